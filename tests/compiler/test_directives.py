"""Directives: what is derived for a design, that they change no value, and what no tool could build is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.ports import plan_ports
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import directives, nest, stream
from penstock.compiler.dialects.directives import (
    AxiAttr,
    BanksAttr,
    CarriedAttr,
    Cut,
    FifoAttr,
    PipelineAttr,
    StorageAttr,
)
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import Lowered, emit, lower
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from tests.compiler.designs import Dense, build_network


def two_layers(kind: str = "float32", **changes: object) -> Lowered:
    """Two layers of 32, the first of them with weights streamed, in groups of their own where `groups` says so."""
    program = build_network(kind, 4, 32, (Dense(32, False, False), Dense(32, False, False)), seed=5)
    design = default_design(read_graph(program.module), "u55c", 300.0)
    kernels = {n: replace(k, weights="stream") if n == "fc0" else k for n, k in design.kernels.items()}
    return lower(program, replace(design, kernels=kernels, **changes))


def memories(lowered: Lowered, task: str) -> dict[str, stream.BufferOp | stream.RomOp]:
    one = next(t for t in lowered.tasks if t.sym_name.data == task)
    return {op.sym_name.data: op for op in one.body.block.ops if isinstance(op, stream.BufferOp | stream.RomOp)}


@pytest.mark.parametrize(
    "attribute",
    [
        BanksAttr.of([Cut(1), Cut(3), Cut(2, complete=True)]),
        BanksAttr.of([Cut(1, 8), Cut(3, 2), Cut(1, 4, complete=True), Cut(4, 2, complete=True)]),
        BanksAttr.of([]),
        StorageAttr.of("bram", "ram_s2p"),
        FifoAttr.of("srl"),
        PipelineAttr.of(6),
        PipelineAttr.of(1, flushes=True),
        CarriedAttr.of(24),
        AxiAttr.of(bundle=1, bits=512, depth=64, burst=16, outstanding=8),
    ],
    ids=str,
)
def test_attributes_print_and_parse(attribute: object) -> None:
    assert Parser(make_context(), str(attribute)).parse_attribute() == attribute


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#directive.storage<uram, rom_1p>", "no initial contents"),
        ("#directive.storage<lutram, ram_t2p>", "one write port"),
        ("#directive.storage<flash, rom_1p>", "not one of"),
        ("#directive.fifo<pipe>", "not one of"),
        ("#directive.pipeline<ii: 0>", "at least 1"),
        ("#directive.m_axi<bundle: 0, bits: 24, depth: 4, burst: 2, outstanding: 2>", "a port of 24 bits"),
        ("#directive.m_axi<bundle: 0, bits: 512, depth: 4, burst: 128, outstanding: 2>", "4096 bytes"),
    ],
)
def test_what_no_tool_could_build(text: str, message: str) -> None:
    with pytest.raises((VerifyException, ParseError), match=message):
        Parser(make_context(), text).parse_attribute()


def test_values_do_not_depend_on_directives() -> None:
    """Only attributes are added, and the module that went in stays as it was."""
    lowered = two_layers()
    bare = lowered.stream.clone()
    for op in bare.walk():
        for name in [n for n in op.attributes if n.startswith("directive.")]:
            del op.attributes[name]
    before = str(bare)
    assert str(GenerateDirectives(lowered.design).apply(bare)) == str(lowered.stream)
    assert str(bare) == before


def six_lanes() -> Lowered:
    program = build_network("int8", 2, 64, (Dense(48, False, False),), seed=3)
    kernel = KernelDesign(tile=(2, 48, 64), unroll=(1, 3, 2), order=(0, 1, 2))
    relu = KernelDesign(tile=(2, 48), unroll=(1, 3), order=(0, 1))
    return lower(program, Design("u55c", 300.0, {"fc0": kernel, "fc0.relu": relu}))


def test_memories_follow_their_accesses() -> None:
    found = memories(six_lanes(), "fc0")
    assert str(directives.banks_of(found["rom_1"])) == "#directive.banks<word 3, word 2>"
    assert str(directives.storage_of(found["rom_1"])) == "#directive.storage<bram, rom_1p>"
    assert str(directives.banks_of(found["acc"])) == "#directive.banks<none, word 3>"
    assert str(directives.storage_of(found["acc"])) == "#directive.storage<lutram, ram_s2p>"
    assert directives.carried_of(found["acc"]) == CarriedAttr.of(32)  # 2 rows x 16 steps until a sum comes back
    assert str(directives.storage_of(found["keep_0"])) == "#directive.storage<registers, any>"


def test_the_interval_is_what_the_schedule_reaches() -> None:
    """A float sum that comes back in the next slot cannot start every cycle."""
    program = build_network("float32", None, 8, (Dense(1, False, False),), seed=3)
    kernels = {
        "fc0": KernelDesign(tile=(1, 8), unroll=(1, 1), order=(0, 1)),
        "fc0.relu": KernelDesign(tile=(1,), unroll=(1,), order=(0,)),
    }
    lowered = lower(program, Design("u55c", 300.0, kernels))
    intervals = {f"{t.sym_name.data}.{n.sym_name.data}": directives.pipeline_of(n).ii.data for t, n in lowered.nests}
    assert intervals["load_x.load"] == 1
    assert intervals["fc0.compute"] > 1


def test_fifos_by_depth() -> None:
    def kinds(depth: int) -> set[str]:
        return {
            directives.fifo_of(c).kind.data
            for c in two_layers(default_depth=depth).channels
            if isinstance(c, stream.StreamOp)
        }

    assert (kinds(2), kinds(16), kinds(512)) == ({"registers"}, {"srl"}, {"bram"})


def axi_ports(top: stream.TopOp) -> list[AxiAttr]:
    """The ports of a top on a platform with external memory, where there are no others."""
    ports = directives.interfaces_of(top)
    assert all(isinstance(port, AxiAttr) for port in ports)
    return [port for port in ports if isinstance(port, AxiAttr)]


def test_arguments_used_together_have_bundles_of_their_own() -> None:
    """Input, streamed weights and output work at the same time; the one that nobody reads takes a free bundle."""
    lowered = two_layers()
    used = [
        axi.bundle.data
        for axi, value in zip(axi_ports(lowered.top), lowered.top.body.block.args, strict=True)
        if value.first_use
    ]
    assert len(used) == len(set(used)) == 3


def test_kernels_that_take_turns_share_bundles() -> None:
    groups = {"fc0": 0, "fc0.relu": 0, "fc1": 1, "fc1.relu": 1}
    together, apart = two_layers().top, two_layers(groups=groups).top
    assert len(apart.body.block.args) == len(together.body.block.args) + 1  # the tensor between the kernels
    bundles = [axi.bundle.data for axi in axi_ports(apart)]
    assert len(set(bundles)) < len(bundles)


def test_two_tasks_of_a_kernel_do_not_share_an_argument() -> None:
    groups = {"fc0": 0, "fc0.relu": 0, "fc1": 1, "fc1.relu": 1}
    lowered = two_layers(groups=groups)  # the second kernel reads what the first wrote
    for task in lowered.tasks:
        task.properties["group"] = IntAttr(0)
    with pytest.raises(VerifyException, match="use it at the same time"):
        directives.verify_directives(lowered.top)


def test_a_platform_with_few_ports_shares_the_least_loaded() -> None:
    """The streamed weights move most, so input and output share the other port; what nobody reads costs none."""
    top = two_layers().top
    bundles = {name.data: p.bundle for name, p in zip(top.argument_names, plan_ports(top, 2, 64), strict=True)}
    assert bundles["x"] == bundles["output_0"] != bundles["fc0.weight"]
    assert set(bundles.values()) == {0, 1}


def test_two_that_are_read_at_once_never_share_a_bundle() -> None:
    """HLS refuses it in a dataflow region (200-1013): with one port there are still as many bundles as are read."""
    top = two_layers().top
    ports = zip(top.body.block.args, plan_ports(top, 1, 64), strict=True)
    read = [port.bundle for value, port in ports if any(isinstance(use.operation, nest.LoadOp) for use in value.uses)]
    assert len(read) == len(set(read)) > 1


def test_bursts_follow_the_addresses() -> None:
    """The output is written from its first to its last element; a burst stays in one page of 4,096 bytes."""
    lowered = two_layers()
    for axi, value in zip(axi_ports(lowered.top), lowered.top.body.block.args, strict=True):
        assert axi.burst.data * axi.bits.data // 8 <= directives.BURST_BYTES
        if value.first_use:
            assert axi.burst.data * axi.outstanding.data >= 64


def test_a_missing_directive_is_named(tmp_path: Path) -> None:
    lowered = two_layers()
    (task, nest) = next(iter(lowered.nests))
    del nest.attributes[directives.PIPELINE]
    with pytest.raises(VerifyException, match=r"no directive\.pipeline"):
        emit(lowered, tmp_path, part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    assert task.sym_name.data.startswith("load")


def test_lanes_without_banks_are_refused() -> None:
    lowered = six_lanes()
    op = memories(lowered, "fc0")["rom_1"]
    op.attributes[directives.BANKS] = BanksAttr.of([Cut(1), Cut(1)])
    with pytest.raises(VerifyException, match="lanes meet 1 banks"):
        directives.verify_directives(lowered.top)
    lowered.top.attributes[directives.INTERFACES] = ArrayAttr([])
    with pytest.raises(VerifyException, match="0 ports for"):
        directives.interfaces_of(lowered.top)
