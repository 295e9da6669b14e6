"""Layers by one start whose lengths the call says: interpreter, C++, SystemVerilog and the simulator's cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.backend.hls.ports import interface_of, ports_of
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.dialects.stream import LENGTHS
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.call_list import run_list
from penstock.compiler.layout import crop, pad
from penstock.compiler.lengths import parse_lengths
from penstock.compiler.pipeline import Lowered, lower, prepare
from penstock.compiler.pipeline.lower import at_lengths
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime.calls import CallLists, LaidOut
from penstock.compiler.simulator.call_list import cycles_of_lengths, cycles_of_list
from penstock.compiler.simulator.rules import OPEN_RTL
from penstock.dse.fifo import size_design
from penstock.dse.finishing.lengths import hold_at_lengths, networks_of
from penstock.profiling.open_rtl.run import simulate_rtl
from penstock.profiling.open_rtl.verilate import BuiltProgram, build_many
from penstock.profiling.simulated import simulate_design
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.test_call_lists import call_library
from tests.frontend import sized_models
from tests.rtl.rtl_batch import BOARD, LIBRARY

MODELS = Path(sized_models.__file__)
SIZES = [{"chunk": 3, "cache": 4}, {"chunk": 1, "cache": 4}, {"chunk": 2, "cache": 3}, {"chunk": 1, "cache": 1}]


@pytest.fixture(scope="module")
def imported() -> Program:
    return import_model(f"{MODELS}:model#", dims=parse_lengths(["chunk=1..3", "cache=1..4"]))


def lowered_of(program: Program, quantize: str | None, platform: str = "u55c", clock: float = 300.0) -> Lowered:
    prepared = prepare(program, quantize)
    return lower(prepared, default_design(read_graph(prepared.module), platform, clock, quantize))


@dataclass(frozen=True)
class Sized:
    """Both layers at some lengths: what each is given, and what it must answer."""

    lowered: Lowered
    sizes: Mapping[str, int]

    def __post_init__(self) -> None:
        assert len(self.lowered.top.fed) == 1

    @property
    def own(self) -> Lowered:
        return at_lengths(self.lowered, self.sizes)

    def calls(self) -> tuple[list[list[Array]], list[list[Array]]]:
        own, program = self.own, self.lowered.program
        ports = [port.name for port in program.signature.inputs]
        ((made, fed),) = self.lowered.top.fed.items()
        given: list[list[Array]] = []
        answered: list[list[Array]] = []
        for number in range(2):
            inputs = make_inputs(own, random_sets=number + 1, seed=number)[-1]
            held = program.held_inputs(number)
            inputs = [held.get(name, x) for name, x in zip(ports, inputs, strict=True)]
            if answered:
                inputs[ports.index(fed)] = answered[-1][int(made.rpartition("_")[2])]
            given.append(inputs)
            answered.append(own.run_itensor(inputs))
        return given, answered

    def laid_out(self) -> tuple[LaidOut, CallLists]:
        """As the host lays them out: as large as at the largest lengths, with the lengths behind them."""
        known = self.lowered.program.lengths
        assert known is not None
        steps = np.array([self.sizes[one.name] // one.step for one in known.lengths], np.int32)
        ports = self.lowered.program.signature.inputs
        frames = [
            [*(pad(x.reshape(y.shape), p.shape) for x, y, p in zip(one, self.own.program.signature.inputs, ports,
                                                                    strict=True)), steps]
            for one in self.calls()[0]
        ]  # fmt: skip
        interface = interface_of(self.lowered.top, ports_of(self.lowered.top), self.lowered.border_shapes())
        lists = CallLists(interface)
        return lists.lay_out(frames), lists

    def check(self, found: Sequence[Sequence[Array]]) -> None:
        """Of what each call left the beginnings."""
        mine = [port.shape for port in self.own.program.signature.outputs]
        whole = [port.shape for port in self.lowered.program.signature.outputs]
        for left, answered in zip(found, self.calls()[1], strict=True):
            for array, wanted, shape, own in zip(left, answered, whole, mine, strict=True):
                np.testing.assert_array_equal(crop(array.reshape(shape), own), wanted.reshape(own))


@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_a_list_of_calls_at_every_size(imported: Program, quantize: str | None) -> None:
    lowered = lowered_of(imported, quantize)
    names = {port.argument: port.name for port in ports_of(lowered.top)}
    for sizes in SIZES:
        one = Sized(lowered, sizes)
        laid, _ = one.laid_out()
        memories = {names[argument]: memory for argument, memory in {**laid.inputs, **laid.outputs}.items()}
        run_list(one.own.stream, memories, lowered.padded.params, laid.calls, whole=False)
        one.check(laid.results(frozenset()))


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_the_cpp_runs_lists_of_every_size(imported: Program, quantize: str | None, tmp_path: Path) -> None:
    lowered = lowered_of(imported, quantize)
    call = call_library(lowered, tmp_path)
    for sizes in SIZES:
        one = Sized(lowered, sizes)
        laid, lists = one.laid_out()
        call(laid, lists)
        one.check(laid.results(frozenset()))


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_the_systemverilog_runs_lists_of_every_size(imported: Program, quantize: str | None) -> None:
    """Lengths are read before the list; from call to call they stay. FIFOs that are sized hold at each of them."""
    lowered = lowered_of(imported, quantize, "ecp5-85k", 100.0)
    names = {port.argument: port.name for port in ports_of(lowered.top)}
    network_at = networks_of(lowered, BOARD)
    depths = size_design(network_at(SIZES[0]), BOARD, 100.0, simulations=200).depths
    depths = hold_at_lengths(lowered, BOARD, depths, simulations=200).depths
    listed = [Sized(lowered, sizes).laid_out() for sizes in SIZES]
    laid, lists = listed[0]
    slots = dict(zip((names[a] for a in lists.moved), lists.slots(laid).tolist(), strict=True))
    design = emit_rtl(lowered.stream, LIBRARY, lowered.padded.params, depths=depths, calls=2, slots=slots)
    (program,) = build_many([design], ToolRunner())
    assert isinstance(program, BuiltProgram)
    read = {port.argument or "" for port in design.ports if port.kind == "memory_read"}
    fed = lowered.top.fed  # an output that feeds an input is one memory with it
    for sizes, (laid, _) in zip(SIZES, listed, strict=True):
        memories = {names[argument]: memory for argument, memory in {**laid.inputs, **laid.outputs}.items()}
        given = {name: memories.get(name, laid.calls) for name in read} | {LENGTHS: memories[LENGTHS][:2]}
        run = simulate_rtl(design, given, program=program)
        assert not run.deadlocked, (sizes, run.stuck)
        for argument, memory in laid.outputs.items():
            memory.reshape(-1)[:] = run.outputs[fed.get(names[argument], names[argument])].reshape(-1)
        Sized(lowered, sizes).check(laid.results(frozenset()))
        latency = simulate_design(network_at(sizes), BOARD, 100.0, depths=depths).latency
        cycles = cycles_of_list(latency, 2, len(lowered.top.moved), OPEN_RTL, 1)
        assert run.done[0] + 1 == cycles.total + cycles_of_lengths(2, 1)
