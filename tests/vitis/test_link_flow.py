"""What a package and its report say of a link, against the stand-in."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.compiler.platforms import load_platform
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.build import LinkedBitstream
from penstock.services.jobs import link
from penstock.services.jobs.board import BoardBuild
from penstock.services.jobs.link import LinkBench, Target, failed_link, link_for_card
from tests.standin.install import Installation
from tests.vitis.standins import emitted
from tests.vitis.test_implemented_reports import SITES

TIMING = """\
    | Design Timing Summary
    | ---------------------
    -------------------------------------------------------------------------------------------------

        WNS(ns)      TNS(ns)  TNS Failing Endpoints  TNS Total Endpoints
        -------      -------  ---------------------  -------------------
          0.012        0.000                      0                10000

    All user specified timing constraints are met.
    """


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    return installed(tmp_path, monkeypatch, ("xilinx_u55c_gen3x16_xdma_3_202210_1",))


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platforms: tuple[str, ...]) -> Installation:
    made = Installation(tmp_path / "tools", "2023.2", platforms)
    for name, value in (made.environment | {"PENSTOCK_VITIS": str(made.root)}).items():
        monkeypatch.setenv(name, value)
    return made


def built(tmp_path: Path, target: Target = "hw", platform: str = "u55c") -> BoardBuild:
    design, bench = emitted(tmp_path / "design"), LinkBench(store=tmp_path / "store")
    return link_for_card(design, load_platform(platform), 300.0, target, bench, tmp_path / "results")


def test_hardware_has_figures_and_an_emulation_none(installation: Installation, tmp_path: Path) -> None:
    installation.behave({"reached": 0.9})
    hardware = built(tmp_path / "a")
    assert list(hardware.files) == ["bitstream/penstock_top.xclbin"]
    assert (hardware.info.reached_mhz, hardware.info.clock_mhz, hardware.info.evidence) == (270, 300, "implemented")
    emulation = built(tmp_path / "b", "hw_emu")
    assert sorted(emulation.files) == ["bitstream/emconfig.json", "bitstream/penstock_top.xclbin"]
    assert (emulation.info.reached_mhz, emulation.info.usage, emulation.info.evidence) == (None, (), None)
    assert "nothing was placed or routed" in emulation.info.notes[0]


def test_routed_reports_beside_the_bitstream_are_its_figures(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    area, timing = tmp_path / "full_util_routed.rpt", tmp_path / "top_timing_summary_routed.rpt"
    area.write_text(textwrap.dedent(SITES.format(state="Routed")))
    timing.write_text(textwrap.dedent(TIMING))
    honest = link.build_bitstream

    def with_reports(*arguments: object, **options: object) -> LinkedBitstream:
        return replace(honest(*arguments, **options), reports=(area, timing))  # type: ignore[arg-type]

    monkeypatch.setattr(link, "build_bitstream", with_reports)
    info = built(tmp_path / "a").info
    assert {use.resource: (use.used, use.available) for use in info.usage} == {
        "LUT": (25278, 70560), "FF": (29422, 141120), "DSP": (7, 360), "BRAM18": (43, 432),
    }  # fmt: skip
    assert info.worst_slack_ns == 0.012
    area.write_text("\0garbage")
    timing.write_text("\0garbage")
    damaged = built(tmp_path / "b").info
    assert (damaged.usage, damaged.worst_slack_ns, len(damaged.notes)) == ((), None, 2)


def test_what_a_machine_lacks_for_a_link_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = installed(tmp_path, monkeypatch, ())
    info = built(tmp_path / "a").info
    assert info.path is None
    assert "xilinx_u55c_gen3x16_xdma_3_202210_1 is not installed" in info.failure
    monkeypatch.setenv("PENSTOCK_VITIS", str(tmp_path / "a"))
    assert "v++ was not found" in built(tmp_path / "b").info.failure
    assert made.calls() == []


def test_a_card_with_another_shell_is_linked_for_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = "xilinx_u55c_gen3x16_xdma_2_202110_1"
    installed(tmp_path, monkeypatch, (older,))
    info = built(tmp_path / "a").info
    assert info.path == "bitstream/penstock_top.xclbin"
    assert f"linked for {older}, since xilinx_u55c_gen3x16_xdma_3_202210_1 is not installed" in info.notes


def test_a_link_that_fails_is_said_by_what_failed(installation: Installation, tmp_path: Path) -> None:
    installation.behave({"compile": "source-error"})
    with pytest.raises(ProfilingError) as caught:
        built(tmp_path)
    info = failed_link(load_platform("u55c"), 300.0, "hw", caught.value).info
    assert caught.value.what in info.failure
    assert (info.path, info.evidence) == (None, None)
