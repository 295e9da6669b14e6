"""Designs whose lengths each call says, as cores in Verilator: at every length what the design of that length is."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.parser import Parser

from penstock.compiler.backend.rtl.design import RtlDesign
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.design import Design
from penstock.compiler.dialects.stream import LENGTHS
from penstock.compiler.frontend.context import make_context
from penstock.compiler.lengths import ByLength, Length, SizesByLength
from penstock.compiler.model_lengths import ModelLengths
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.pipeline.lower import at_lengths
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.simulator import OPEN_RTL, Network, Simulation, simulate
from penstock.compiler.simulator.call_list import cycles_of_lengths
from penstock.profiling.network import network_of
from penstock.profiling.open_rtl.run import Job, RtlRun, simulate_many
from penstock.profiling.open_rtl.verilate import BuiltProgram, build_many
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.simulated import simulated_network
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.designs import Dense, build_network
from tests.rtl.gemm import TEXT
from tests.rtl.rtl_batch import BOARD, LIBRARY, bits_of

Array = NDArray[Any]


def sized(program: Program, lengths: Sequence[Length], dims: Mapping[str, Sequence[str | None]]) -> Program:
    """A program that is as large as at the largest lengths; `dims` says which dims of a tensor are which length."""

    def sizes(name: str, rank: int) -> SizesByLength:
        given = dims.get(name, (None,) * rank)
        return tuple(ByLength.of({one: 1}) if one else None for one in given)

    ports = program.signature
    known = ModelLengths(
        tuple(lengths), tuple(sizes(port.name, len(port.shape)) for port in ports.inputs),
        tuple(sizes(port.name, len(port.shape)) for port in ports.outputs),
        {name: sizes(name, array.ndim) for name, array in program.params.items() if name in dims},
    )  # fmt: skip
    return replace(program, lengths=known)


def dense(kind: str, rows: Length, layers: tuple[Dense, ...] = (Dense(4, transposed=True, skip=True),)) -> Program:
    """Dense layers over so many rows as a call says."""
    program = build_network(kind, rows.high, 4, layers, 3)
    names = ["x", *(port.name for port in program.signature.outputs)]
    return sized(program, (rows,), dict.fromkeys(names, (rows.name, None)))


def product(rows: Length, deep: Length, columns: int = 3) -> Program:
    """A matrix product whose rows and whose sums a call says."""
    module = Parser(make_context(), TEXT.format(m=rows.high, n=columns, k=deep.high)).parse_module()
    weight = np.random.default_rng(0).integers(-128, 127, (deep.high, columns), endpoint=True).astype(np.int8)
    ports = Signature((Port("x", (rows.high, deep.high), "int8"),), (Port("output", (rows.high, columns), "int32"),))
    program = Program("gemm", module, {"gemm.weight": weight}, ports)
    dims = {"x": (rows.name, deep.name), "output": (rows.name, None), "gemm.weight": (deep.name, None)}
    return sized(program, (rows, deep), dims)


@dataclass
class LengthCore:
    """A design for all lengths as one core, with depths that are enough at each of them."""

    program: Program
    kernels: Design
    label: object
    depths: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.lowered: Lowered = lower(self.program, self.kernels)
        assert self.lowered.top.lengths is not None
        self.lengths: tuple[Length, ...] = self.lowered.top.lengths.data
        ranges = [range(one.low, one.high + 1, one.step) for one in self.lengths]
        names = [one.name for one in self.lengths]
        self.sizes = [dict(zip(names, one, strict=True)) for one in itertools.product(*ranges)]
        self.ones = [at_lengths(self.lowered, sizes) for sizes in self.sizes]
        if any(part.deadlock is not None for one in self.ones for part in self.simulations(one)):
            found = [part.channels for one in self.ones for part in self.simulations(one, bounded=False)]
            for name, times in ((name, times) for one in found for name, times in one.items()):
                self.depths[name] = max(1, self.depths.get(name, 1), times.high_water)
        self.design: RtlDesign = emit_rtl(
            self.lowered.stream, LIBRARY, self.lowered.padded.params, depths=self.depths
        )  # fmt: skip

    def simulations(self, one: Lowered, *, bounded: bool = True) -> list[Simulation]:
        """One for each group."""
        found: list[Simulation] = []
        for part in network_of(one.top, LIBRARY).groups:
            network = simulated_network(part, BOARD, 100.0)
            assert isinstance(network, Network)
            depths = {name: self.depths[name] for name in part.channels if name in self.depths}
            found.append(simulate(network, OPEN_RTL, depths=depths, bounded=bounded))
        return found

    def steps(self, sizes: Mapping[str, int]) -> Array:
        return np.array([sizes[one.name] // one.step for one in self.lengths], np.int32)

    def given(self, one: Lowered, sizes: Mapping[str, int], inputs: Sequence[Array]) -> dict[str, Array]:
        """What lies in external memory before a call, its lengths among it."""
        read = {port.argument for port in self.design.ports if port.kind == "memory_read"}
        held = {name: array for name, array in one.memories(inputs).items() if name in read}
        return held | {LENGTHS: self.steps(sizes)}


@dataclass(frozen=True)
class Call:
    """One call of a core."""

    core: LengthCore
    sizes: Mapping[str, int]
    one: Lowered
    inputs: Sequence[Array]

    @property
    def job(self) -> Job:
        return Job(self.core.design, self.core.given(self.one, self.sizes, self.inputs), idle_cycles=5000)

    def check(self, run: RtlRun | ProfilingError) -> None:
        """The words that the design of this length writes, and its cycles after what a start takes to read lengths."""
        core, where = self.core, (self.core.label, dict(self.sizes))
        assert isinstance(run, RtlRun), (where, run)
        assert not run.deadlocked, (where, run.stuck)
        found = self.one.run_memories(lambda _: run.outputs, self.inputs)
        for got, wanted in zip(found, self.one.run_stream(self.inputs), strict=True):
            assert np.array_equal(bits_of(got), bits_of(wanted)), where
        simulated = core.simulations(self.one)
        start = cycles_of_lengths(len(core.lengths), 1)
        assert run.done[0] + 1 == sum(part.latency for part in simulated) + start, where
        for part in simulated:
            marks = {name: times.high_water for name, times in part.channels.items()}
            assert {name: run.high_water[name] for name in marks} == marks, where


def check(cores: Sequence[LengthCore]) -> None:
    """All of them in one program, at each of their lengths."""
    tools = ToolRunner()
    calls: list[Call] = []
    built: list[BuiltProgram] = []
    for core, program in zip(cores, build_many([core.design for core in cores], tools), strict=True):
        assert not isinstance(program, ProfilingError), (core.label, program)
        for sizes, one in zip(core.sizes, core.ones, strict=True):
            calls.append(Call(core, sizes, one, make_inputs(one, random_sets=1)[-1]))
            built.append(program)
    for call, run in zip(calls, simulate_many([call.job for call in calls], built, tools), strict=True):
        call.check(run)
