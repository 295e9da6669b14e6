"""Bitstreams: the tools' reports and failures, and what they make of a small core."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.package.bitstream import Bitstream, ChipUsage, bitstream_files, board_document
from penstock.compiler.platforms import Resources
from penstock.compiler.runtime import penstock_runtime as runtime
from penstock.compiler.runtime.penstock_runtime.simulation import Simulation
from penstock.profiling.open_rtl import bitstream as flow
from penstock.profiling.open_rtl.bitstream import build_bitstream, read_report
from penstock.profiling.open_rtl.parts import parts_of
from penstock.profiling.open_rtl.tools import Tool
from penstock.profiling.protocol import ProfilingError
from tests.board.folder import weights, wrapped, write_package
from tests.board.hand_core import reference
from tests.profiling.open_tools import own_cache

REPORT = {
    "fmax": {"$glbnet$clk": {"achieved": 73.9, "constraint": 50.0}, "slow": {"achieved": 61.5, "constraint": 25.0}},
    "utilization": {"DP16KD": {"used": 7, "available": 208}, "ALU54B": {"used": 0, "available": 78}},
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an earlier run kept must not decide a test."""
    own_cache(tmp_path_factory.mktemp("home"), monkeypatch)


def test_the_slowest_clock_and_what_is_used_are_read() -> None:
    assert read_report(json.dumps(REPORT)) == (61.5, (ChipUsage("DP16KD", 7, 208),))


@pytest.mark.parametrize("text", ["", "{}", '{"fmax": {}, "utilization": {}}', '{"fmax": 3}', "[1, 2]"])
def test_a_report_without_figures_is_a_failure_and_never_zero(text: str) -> None:
    with pytest.raises(ProfilingError) as caught:
        read_report(text)
    assert caught.value.kind == "report-unreadable"


def test_a_package_says_what_its_board_is_with_and_without_a_bitstream() -> None:
    design = wrapped()
    made = Bitstream(b"\xff", "config", "netlist", 73.9, 50.0, 1, (ChipUsage("DP16KD", 7, 208),), (("yosys", "0.70"),))
    without, complete = bitstream_files(design, None), bitstream_files(design, made)
    assert set(complete) - set(without) == {
        f"bitstream/{n}" for n in ("ulx3s-85f.bit", "ulx3s-85f.config", "netlist.v")
    }
    assert board_document(design, None)["report"] is None
    assert not board_document(design, None)["load"]
    document = json.loads(complete["bitstream/board.json"])
    assert document["report"]["evidence"] == "implemented"
    assert document["report"]["fmax_mhz"] == 73.9
    assert document["load"][0] == "fujprog bitstream/ulx3s-85f.bit"
    missing = [
        name for name in document["sources"] + document["netlist_sources"] if f"bitstream/{name}" not in complete
    ]
    assert not missing


def stand_in(script: str) -> Callable[[], Tool]:
    return lambda: Tool("yosys", ("/bin/sh", "-c", script), "1", "here")


def test_a_tool_that_dies_or_writes_nothing_is_a_typed_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("find_yosys", "find_nextpnr_ecp5", "find_ecppack"):
        monkeypatch.setattr(flow, name, stand_in("true"))
    with pytest.raises(ProfilingError, match=r"wrote no netlist\.json") as caught:
        build_bitstream(wrapped())
    assert caught.value.kind == "report-missing"
    monkeypatch.setattr(flow, "find_yosys", stand_in("echo broken; exit 3"))
    with pytest.raises(ProfilingError, match="exit code 3") as caught:
        build_bitstream(wrapped())
    assert (caught.value.kind, "broken" in caught.value.log_tail) == ("tool-failed", True)


def placed(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Tools of which only placement has something to say."""
    monkeypatch.setattr(flow, "find_yosys", stand_in("echo {} > netlist.json; echo v > netlist.v"))
    monkeypatch.setattr(flow, "find_nextpnr_ecp5", stand_in(script))
    monkeypatch.setattr(flow, "find_ecppack", stand_in("echo bits > board.bit"))


OVERFULL = (
    "echo 'Info:             DP16KD:     300/    208   144%'; echo 'Info:         TRELLIS_FF:     660/  83640     0%'; "
    "echo 'ERROR: Unable to place cell'; exit 1"
)


def test_a_design_that_does_not_fit_names_the_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    placed(monkeypatch, OVERFULL)
    for _ in range(2):
        with pytest.raises(PenstockError) as caught:
            build_bitstream(wrapped())
        assert (caught.value.code, caught.value.limit) == ("bitstream-fit", "300 DP16KD of 208, 92 too many")
        placed(monkeypatch, "exit 1")  # the second time nothing is run


def test_a_chip_too_crowded_to_route_in_time_says_how_full_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no failure that is kept: a quieter machine may end in time."""
    placed(monkeypatch, "echo 'Info:         MULT18X18D:     125/    156    80%'; exec sleep 60")
    for _ in range(2):
        with pytest.raises(PenstockError, match="was not placed and routed within 0 minutes") as caught:
            build_bitstream(wrapped(), timeout=1.0)
        assert (caught.value.code, caught.value.limit) == ("bitstream-time", "it takes 125 MULT18X18D of 156")


def test_it_says_which_tool_runs_and_how_long_it_took_before(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = json.dumps({"fmax": {"clk": {"achieved": 173.7}}, "utilization": {}})
    placed(monkeypatch, f"echo x > board.config; echo '{fast}' > report.json")
    first: list[str] = []
    again: list[str] = []
    build_bitstream(wrapped(300), progress=first.append)
    build_bitstream(wrapped(301), progress=again.append)
    assert [text.partition(" for ")[0] for text in first] == [
        "synthesising with yosys", "placing and routing with nextpnr", "packing with ecppack",
    ]  # fmt: skip
    assert "the last time" not in first[0]
    assert all(text.endswith(" s the last time)") for text in again)
    build_bitstream(wrapped(301), progress=again.append)
    assert len(again) == 3, "what is kept takes no tool"


def test_a_missed_clock_is_tried_with_other_seeds_and_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = json.dumps({"fmax": {"clk": {"achieved": 43.7}}, "utilization": {}})
    placed(monkeypatch, f"echo x > board.config; echo '{slow}' > report.json")
    with pytest.raises(PenstockError, match=r"best of 3 placements reaches 43\.7 MHz") as caught:
        build_bitstream(wrapped())
    assert caught.value.code == "bitstream-timing"
    assert "at most 43 MHz" in caught.value.hint


@pytest.mark.slow
def test_a_small_core_becomes_a_bitstream_whose_netlist_computes_the_same(tmp_path: Path) -> None:
    words = 600
    run = build_bitstream(wrapped(words))
    made = run.made
    assert made.fmax_mhz >= made.clock_mhz == 50.0
    used = {usage.resource: usage.used for usage in made.usage}
    assert (used["EHXPLLL"], used["MULT18X18D"]) == (1, 2)
    assert used["DP16KD"] == 7
    assert b"LFE5U-85F" in made.bit[:200]
    again = build_bitstream(wrapped(words))
    assert again.cached
    assert again.made == made
    package = write_package(tmp_path / "package", wrapped(words), words, made)
    with runtime.load(package, backend="netlist") as accelerator:
        assert isinstance(accelerator.backend, Simulation)
        for seed in range(2):
            x = np.random.default_rng(seed).integers(-128, 128, (words, 2)).astype(np.int8)
            assert np.array_equal(accelerator.run_exact([x])[0], reference(x, weights(words)))


@pytest.mark.slow
def test_a_core_with_too_much_memory_does_not_fit() -> None:
    with pytest.raises(PenstockError) as caught:
        build_bitstream(wrapped(60_000))
    assert caught.value.code == "bitstream-fit"
    assert "DP16KD of 208" in caught.value.limit


def test_core_and_shell_are_told_apart_in_the_netlist() -> None:
    lut = "  LUT4 #(\n    .INIT(16'h8000)\n  ) \\{name}_LUT4_Z  (\n    .A(a),\n    .Z(z)\n  );\n"
    ff = '  TRELLIS_FF #(\n    .GSR("DISABLED")\n  ) \\{name}_TRELLIS_FF_Q  (\n    .CLK(clk)\n  );\n'
    carry = "  CCU2C #(\n    .INIT0(16'h5555)\n  ) \\core.n0.sum_CCU2C_S0  (\n    .A0(a)\n  );\n"
    named = "  PFUMX \\core.n0.mux_PFUMX_Z  (\n    .ALUT(a)\n  );\n  LUT4 plain (\n    .A(a)\n  );\n"
    parts = [lut.format(name=n) for n in ("core.n0.acc", "core.n1.acc", "link.state")]
    parts += [ff.format(name=n) for n in ("core.n0.acc", "link.state", "core_done")]
    found = parts_of("module penstock_board(clk);\n" + "".join([*parts, carry, named]) + "endmodule\n")
    assert found.core == Resources(lut=2 + 2, ff=1)
    assert found.shell == Resources(lut=1 + 1, ff=2)
