"""Random designs as cores in Verilator, many in a program, against the stream interpreter and the simulator."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.dialects import nest, stream
from penstock.compiler.interpreter import stream as interpreter
from penstock.compiler.pipeline import Lowered
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.platforms import load_platform
from penstock.compiler.scalars.number_types import named
from penstock.compiler.schedule import load_library
from penstock.compiler.simulator import OPEN_RTL, Network, Simulation, simulate
from penstock.profiling.network import network_of
from penstock.profiling.open_rtl.run import RtlRun, simulate_rtl
from penstock.profiling.open_rtl.verilate import build_many
from penstock.profiling.open_rtl.words import lanes_of
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.simulated import simulated_network
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.graphs import OPS, SIZES, Case, GraphSpec, Step

Array = NDArray[Any]
LIBRARY = load_library("open-ecp5", 100.0)
BOARD = load_platform("ecp5-85k")
MOVING = ("load", "store", "fetch", "drain")
"""Nests that meet external memory."""


def draw_case(generator: random.Random, kinds: Sequence[str] = ("int8", "int32"), steps: int = 5) -> Case:
    """A random graph under a random design."""
    small = lambda: generator.randrange(12)  # noqa: E731
    count = generator.randint(1, steps)
    spec = GraphSpec(
        generator.choice(kinds), generator.choice([0, 0, 1, 2]), generator.choice(SIZES), generator.choice(SIZES),
        tuple(Step(generator.choice(OPS), small(), small(), small()) for _ in range(count)), generator.random() < 0.5,
    )  # fmt: skip
    return Case(spec, tuple(small() for _ in range(30)))


@dataclass
class Core:
    """A design as a core. With `tasks`, only those, their streams being ports."""

    lowered: Lowered
    label: object
    tasks: list[str] | None = None
    depths: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.deepen()
        parameters = self.lowered.padded.params
        self.design: RtlDesign = emit_rtl(
            self.lowered.stream, LIBRARY, parameters, tasks=self.tasks, depths=self.depths
        )  # fmt: skip

    @property
    def nests(self) -> int:
        return sum(self.tasks is None or task.sym_name.data in self.tasks for task, _ in self.lowered.nests)

    def deepen(self) -> None:
        """Depths with which the design cannot deadlock: what unbounded channels would have held."""
        if any(one.deadlock is not None for one in self.simulations()):
            found = [one.channels for one in self.simulations(bounded=False)]
            self.depths = {name: max(1, times.high_water) for one in found for name, times in one.items()}

    def simulations(self, *, bounded: bool = True) -> list[Simulation]:
        """One for each group."""
        found: list[Simulation] = []
        for part in network_of(self.lowered.top, LIBRARY).groups:
            network = simulated_network(part, BOARD, 100.0)
            assert isinstance(network, Network)
            names = {channel.name for channel in network.channels}
            depths = {name: depth for name, depth in self.depths.items() if name in names}
            found.append(simulate(network, OPEN_RTL, depths=depths, bounded=bounded))
        return found


def build(cores: Sequence[Core]) -> list[Any]:
    programs = build_many([core.design for core in cores], ToolRunner())
    for core, program in zip(cores, programs, strict=True):
        if isinstance(program, ProfilingError):
            program.add_note(f"this is {core.label}")
            raise program
    return programs


def check_whole(core: Core, program: Any, *, frames: int = 1) -> RtlRun:
    """All bits of the outputs, the last cycle of the first frame, and every channel's high-water mark."""
    inputs = make_inputs(core.lowered, random_sets=1)[-1]
    memories = core.lowered.memories(inputs)
    wanted = interpreter.run(core.lowered.stream, memories, core.lowered.padded.params)
    read = {p.argument for p in core.design.ports if p.kind == "memory_read"}
    given = {name: array for name, array in memories.items() if name in read}
    simulated = core.simulations()
    latency = sum(one.latency for one in simulated)
    run = simulate_rtl(
        core.design, given, program=program, frames=frames, one_by_one=frames > 1, idle_cycles=max(20_000, latency)
    )  # fmt: skip
    assert not run.deadlocked, (core.label, run.stuck)
    for name, array in wanted.items():
        got = run.outputs[name].reshape(frames, -1)
        assert all(np.array_equal(bits_of(frame), bits_of(array.reshape(-1))) for frame in got), (core.label, name)
    assert run.done[0] + 1 == latency, core.label
    for one in simulated:
        marks = {name: times.high_water for name, times in one.channels.items()}
        if frames == 1:
            assert {name: run.high_water[name] for name in marks} == marks, core.label
    return run


def check_part(core: Core, program: Any, seed: int) -> RtlRun:
    """A part of a design on random tokens, its streams pausing at random: the tokens that the interpreter makes."""
    assert core.tasks is not None
    generator = np.random.default_rng(seed)
    ins = [port for port in core.design.ports if port.kind == "stream_in"]
    tokens = {port.name: _random_tokens(generator, port) for port in ins}
    kinds = {op.sym_name.data: op.result.type for op in core.lowered.channels if isinstance(op, stream.StreamOp)}
    shaped = {
        port.channel: tokens[port.name].reshape(port.words, *kinds[port.channel].token.get_shape())
        for port in ins if port.channel is not None
    }  # fmt: skip
    parameters = core.lowered.padded.params
    _, wanted = interpreter.run_part(core.lowered.stream, core.tasks, {}, shaped, parameters)
    run = simulate_rtl(core.design, tokens, program=program, stall_seed=seed, idle_cycles=20_000)
    assert not run.deadlocked, (core.label, run.stuck)
    for port in core.design.ports:
        if port.kind == "stream_out":
            assert port.channel is not None
            got, array = run.outputs[port.name].reshape(-1), wanted[port.channel].reshape(-1)
            assert np.array_equal(bits_of(got), bits_of(array)), (core.label, port.name, seed)
    return run


def inner_tasks(lowered: Lowered) -> list[str]:
    """The tasks that meet streams and blocks only."""
    names: dict[str, bool] = {}
    arguments = set(lowered.top.body.block.args)
    for task, op in lowered.nests:
        outside = any(
            one.memory in arguments for one in op.body.block.ops if isinstance(one, nest.LoadOp | nest.StoreOp)
        )
        names[task.sym_name.data] = names.get(task.sym_name.data, True) and not outside
    blocks = _neighbours(lowered)
    return [name for name, inside in names.items() if inside and all(names[other] for other in blocks.get(name, ()))]


def _neighbours(lowered: Lowered) -> dict[str, set[str]]:
    """Tasks that share a block channel."""
    met: dict[Any, set[str]] = {}
    for task, op in lowered.nests:
        for one in op.body.block.ops:
            if isinstance(one, nest.LoadOp | nest.StoreOp):
                met.setdefault(one.memory, set()).add(task.sym_name.data)
    return {name: group for group in met.values() if len(group) > 1 for name in group}


def _random_tokens(generator: np.random.Generator, port: RtlPort) -> Array:
    dtype = named(port.element).dtype
    count = port.words * lanes_of(port)
    if dtype.kind == "f":
        return generator.standard_normal(count).astype(dtype)
    if named(port.element).bits == 1:
        return generator.integers(0, 1, count, endpoint=True).astype(dtype)
    limit = 1 << (named(port.element).bits - 1)
    return generator.integers(-limit, limit - 1, count, endpoint=True).astype(dtype)


def bits_of(array: Array) -> Array:
    if array.dtype.kind == "f":
        return array.view(f"u{array.dtype.itemsize}")
    return array.astype(np.int64)
