"""What is decided about dies and memories reaches the IR, the C++ and the linker; what cannot be is refused by name."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend.hls.link import LinkTarget, link_files
from penstock.compiler.backend.hls.ports import ports_of
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import directives, stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import Lowered, emit, lower
from penstock.compiler.platforms import load_platform
from tests.compiler.designs import Dense, build_network
from tests.goldens import check_golden

GOLDENS = Path(__file__).parent / "goldens" / "placed"
CUT = {"store_0": "slr0", "load_x": "slr0", "unpack_x": "slr0", "fc0": "slr1", "convert_fc0_write": "slr1",
       "convert_fc0_read": "slr1", "fc0_relu": "slr1", "pack_0": "slr1"}  # fmt: skip


def placed(**changes: object) -> Lowered:
    """One int8 layer and its relu, a converter between them."""
    program = build_network("int8", 2, 4, (Dense(6, False, False),), seed=3)
    kernels = {
        "fc0": KernelDesign(tile=(2, 6, 4), unroll=(1, 3, 2), order=(0, 1, 2)),
        "fc0.relu": KernelDesign(tile=(2, 6), unroll=(1, 2), order=(1, 0)),
    }
    return lower(program, replace(Design(platform="u55c", clock_mhz=300.0, kernels=kernels), **changes))


def streamed(platform: str, count: int) -> Lowered:
    """Layers whose weights come from external memory: a port for each of them."""
    program = build_network("int8", 4, 8, tuple(Dense(8, False, False) for _ in range(count)), seed=3)
    design = default_design(read_graph(program.module), platform, 200.0)
    return lower(program, replace(design, kernels={n: replace(k, weights="stream") for n, k in design.kernels.items()}))


def emitted(lowered: Lowered, folder: Path) -> dict[str, str]:
    emit(lowered, folder, part="xcu55c-fsvh2892-2L-e", clock_mhz=lowered.design.clock_mhz)
    names = ("hls/penstock_top.cpp", "link/connectivity.cfg", "link/floorplan.tcl")
    return {name: (folder / name).read_text() for name in names if (folder / name).exists()}


def test_decided_memories_are_built_so(tmp_path: Path) -> None:
    usual = placed()
    fifo = next(c.sym_name.data for c in usual.channels if isinstance(c, stream.StreamOp))
    lowered = placed(memories={fifo: "bram", "fc0.acc": "bram", "convert.fc0.block": "bram"}, fifo_depths={fifo: 40})
    fc0 = next(t for t in lowered.tasks if t.sym_name.data == "fc0")
    acc = next(op for op in fc0.body.block.ops if isinstance(op, stream.BufferOp) and op.sym_name.data == "acc")
    channels = {c.sym_name.data: c for c in lowered.channels}
    assert directives.storage_of(acc).kind.data == "bram"
    assert directives.fifo_of(channels[fifo]).kind.data == "bram"
    assert directives.storage_of(channels["convert.fc0.block"]).kind.data == "bram"
    text = emitted(lowered, tmp_path)["hls/penstock_top.cpp"]
    assert f"#pragma HLS STREAM variable={fifo} depth=40 type=fifo" in text
    assert f"#pragma HLS BIND_STORAGE variable={fifo} type=fifo impl=bram" in text
    assert "#pragma HLS BIND_STORAGE variable=acc type=ram_s2p impl=bram" in text
    assert "#pragma HLS BIND_STORAGE variable=convert_fc0_block type=ram_s2p impl=bram" in text


@pytest.mark.parametrize(
    ("memories", "where", "says"),
    [
        ({"nothing": "bram"}, "memories.nothing", "no such buffer or FIFO"),
        ({"fc0.keep_O": "bram"}, "memories.fc0.keep_O", "did you mean 'fc0.keep_0'"),
        ({"fc0.rom_1": "uram"}, "memories.fc0.rom_1", "cannot be built of uram"),
        ({"load_x__unpack_x": "lutram"}, "memories.load_x__unpack_x", "can be built of registers, srl, bram, uram"),
    ],
)
def test_decisions_that_cannot_be_kept_are_named(memories: dict[str, str], where: str, says: str) -> None:
    with pytest.raises(PenstockError) as refused:
        placed(memories=memories)
    assert where in refused.value.one_line()
    assert says in refused.value.one_line()


@pytest.mark.parametrize(
    ("name", "dies"),
    [("one_die", dict.fromkeys(CUT, "slr0")), ("two_dies", CUT), ("undecided", {})],
)
def test_link_goldens(name: str, dies: dict[str, str], tmp_path: Path) -> None:
    found = emitted(placed(dies=dies), tmp_path)
    check_golden(GOLDENS / f"{name}.cfg", found["link/connectivity.cfg"])
    assert ("link/floorplan.tcl" in found) == (name == "two_dies")
    if name == "two_dies":
        check_golden(GOLDENS / "two_dies.tcl", found["link/floorplan.tcl"])
    said = re.findall(r"//   stands on die (\w+)\nstatic void (\w+)", found["hls/penstock_top.cpp"])
    assert {task: die for die, task in said} == dies


@pytest.mark.parametrize(("platform", "count"), [("u55c", 3), ("u280", 36)])
def test_every_port_of_the_kernel_is_linked_once(platform: str, count: int, tmp_path: Path) -> None:
    """As the C++ declares them, on banks that the platform has, none of them shared while another is free."""
    found = emitted(streamed(platform, count), tmp_path)
    declared = re.findall(r"INTERFACE m_axi port=\w+ bundle=(\w+)", found["hls/penstock_top.cpp"])
    linked = re.findall(r"^sp=(\w+)\.m_axi_(\w+):(\w+)\[(\d+)\]$", found["link/connectivity.cfg"], re.MULTILINE)
    assert sorted(port for _, port, _, _ in linked) == sorted(set(declared))
    (kernel, instance) = re.findall(r"^nk=(\w+):1:(\w+)$", found["link/connectivity.cfg"], re.MULTILINE)[0]
    assert f"void {kernel}(" in found["hls/penstock_top.cpp"]
    assert {unit for unit, _, _, _ in linked} == {instance}
    ports = {"HBM": 0, "DDR": 0}
    for memory in load_platform(platform).memories:
        ports[memory.kind.upper()] += memory.ports
    assert all(int(bank) < ports[kind] for _, _, kind, bank in linked)
    most = -(-len(linked) // sum(ports.values()))
    assert max(Counter((kind, bank) for _, _, kind, bank in linked).values()) == most


def test_a_board_without_a_shell_is_not_linked_for() -> None:
    lowered = streamed("zcu104", 1)
    target = LinkTarget(load_platform("zcu104"), 200.0, {})
    assert link_files(lowered.top, ports_of(lowered.top), target) == {}
