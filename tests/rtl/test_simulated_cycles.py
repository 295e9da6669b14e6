"""The simulator against the RTL, to the cycle: random networks with random FIFO depths, and compiled designs."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend.rtl.design import RtlDesign
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects.stream import TopOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.compiler.simulator import (
    OPEN_RTL,
    Channel,
    ChannelAccess,
    Network,
    Phase,
    Sequence,
    SimulatedProcess,
    simulate,
)
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.profiling.network import TaskNetwork as Scheduled
from penstock.profiling.network import network_of
from penstock.profiling.networks.guards import pattern_of
from penstock.profiling.open_rtl.run import Job, RtlRun, simulate_many
from penstock.profiling.open_rtl.verilate import build_many
from penstock.profiling.open_rtl.words import lanes_of
from penstock.profiling.simulated import simulated_network
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.designs import KINDS, Dense, build_network, divisors
from tests.rtl.random_streams import draw_design

PLATFORM, CLOCK_MHZ = "ecp5-85k", 100.0
IDLE = 3000  # cycles after which nothing will ever happen
TYPES = {"i8": np.int8, "i32": np.int32, "f32": np.float32}
Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One design: as RTL, and as the simulator has it."""

    seed: int
    rtl: RtlDesign
    scheduled: Scheduled
    network: Network | Sequence

    @property
    def frames(self) -> int:
        return 1 + self.seed % 3

    @property
    def job(self) -> Job:
        """With any data: no time depends on it."""
        written = {port.argument for port in self.rtl.ports if port.kind == "memory_write"}
        data = {
            port.argument: np.ones((port.words, lanes_of(port)), TYPES[port.element])
            for port in self.rtl.ports
            if port.kind == "memory_read" and port.argument is not None and port.argument not in written
        }
        return Job(self.rtl, data, frames=self.frames, idle_cycles=IDLE)


Cases = Several[Case]


def case_of(seed: int, module: ModuleOp, parameters: Mapping[str, Array]) -> Case:
    board, library = load_platform(PLATFORM), load_library("open-ecp5", CLOCK_MHZ)
    rtl = emit_rtl(module, library, parameters, top=f"core{seed}")
    top = next(op for op in module.ops if isinstance(op, TopOp))
    scheduled = network_of(top, library)
    return Case(seed, rtl, scheduled, simulated_network(scheduled, board, CLOCK_MHZ))


def draw_case(seed: int) -> Case:
    """Hand-made nests, of every kind."""
    module = Parser(make_context(), draw_design(seed)).parse_module()
    module.verify()
    return case_of(seed, GenerateDirectives(Design(PLATFORM, CLOCK_MHZ, {})).apply(module), {})


def draw_compiled(seed: int) -> Case:
    """What the compiler makes of a few layers: any tiling, converters, one kernel or several."""
    random = Random(f"compiled/{seed}")
    layers = tuple(
        Dense(random.choice([2, 4, 6, 8]), random.random() < 0.5, random.random() < 0.5)
        for _ in range(random.randint(1, 3))
    )
    program = build_network(
        random.choice(KINDS), random.choice([None, 1, 2, 3]), random.choice([3, 4, 8]), layers, seed
    )
    kernels, groups, group = dict[str, KernelDesign](), dict[str, int](), 0
    for operation in read_graph(program.module).operations:
        tile = tuple(random.choice(divisors(trip)) for trip in operation.trips)
        unroll = tuple(random.choice(divisors(extent)) for extent in tile)
        order = tuple(random.sample(range(len(tile)), len(tile)))
        kernels[operation.layer] = KernelDesign(tile, unroll, order, random.choice(["rom", "stream"]))
        group += seed % 2 and random.randint(0, 1)
        groups[operation.layer] = group
    lowered = lower(program, Design(PLATFORM, CLOCK_MHZ, kernels, groups=groups))
    return case_of(seed, lowered.stream, program.params)


def with_host(case: Case) -> Network:
    """Every word that leaves passes through a FIFO without end to a process of its own, so that its time is known."""
    assert isinstance(case.network, Network)
    processes, channels = list(case.network.processes), list(case.network.channels)
    for position, task in enumerate(case.scheduled.tasks):
        left: list[ChannelAccess] = []
        for number, schedule in enumerate(task.nests):
            phase = processes[position].phases[number]
            for port in schedule.ports:
                if port.kind == "external" and port.direction == "write":
                    access = ChannelAccess(port.channel, "write", port.pattern, port.stage)
                    left.append(access)
                    phase = replace(phase, accesses=(*phase.accesses, access))
            phases = [*processes[position].phases]
            phases[number] = phase
            processes[position] = replace(processes[position], phases=tuple(phases))
        if left:
            words = sum(access.tokens for access in left)
            taken = ChannelAccess(left[0].channel, "read", pattern_of((words,)), 0)
            processes.append(SimulatedProcess(f"host of {left[0].channel}", (Phase((words,), 1, 1, (taken,)),)))
            channels.append(Channel(left[0].channel, depth=None))
    return replace(case.network, processes=tuple(processes), channels=tuple(channels))


def run_all(cases: Cases) -> list[RtlRun]:
    tools = ToolRunner()
    programs = [one for one in build_many([case.rtl for case in cases], tools) if not isinstance(one, PenstockError)]
    assert len(programs) == len(cases)
    runs = simulate_many([case.job for case in cases], programs, tools)
    failed = [run for run in runs if not isinstance(run, RtlRun)]
    assert not failed, failed[0]
    return [run for run in runs if isinstance(run, RtlRun)]


def compare(case: Case, run: RtlRun) -> bool:
    """Ends of all frames and high-water marks; of one kernel the first and last word out. Whether it is a deadlock."""
    simulated = simulate(case.network, OPEN_RTL, frames=case.frames)
    assert run.deadlocked == (simulated.deadlock is not None), case.seed
    if run.deadlocked:
        return True
    assert tuple(cycle + 1 for cycle in run.done) == simulated.frame_ends, case.seed
    marks = {name: channel.high_water for name, channel in simulated.channels.items()}
    assert run.high_water == marks, case.seed
    if isinstance(case.network, Sequence):
        return False
    outside = simulate(with_host(case), OPEN_RTL)
    assert run.initial_delay == min(c.first_write for name, c in outside.channels.items() if name not in marks)
    # the host takes a word in the cycle after its write, and is done one later
    assert last_word(case, run) == max(
        p.end for name, p in outside.processes.items() if name not in simulated.processes
    ) - 1  # fmt: skip
    assert run.latency == max(last_word(case, run), simulated.frame_ends[0])
    return False


def last_word(case: Case, run: RtlRun) -> int:
    """The cycle after the one in which the first frame's last word leaves."""
    found = [run.ports[port.name].times for port in case.rtl.ports if port.kind in ("stream_out", "memory_write")]
    return max(int(times.reshape(case.frames, -1)[0, -1]) + 1 for times in found if times is not None and times.size)


def check(cases: Cases) -> list[bool]:
    return [compare(case, run) for case, run in zip(cases, run_all(cases), strict=True)]


def test_a_few_networks_take_the_cycles_that_were_simulated():
    check([*(draw_case(seed) for seed in range(5)), draw_compiled(1)])


@pytest.mark.slow
def test_many_networks_take_the_cycles_that_were_simulated():
    """Eighty, of two to eight tasks; some of them deadlock in both."""
    verdicts = check([draw_case(seed) for seed in range(100, 180)])
    assert 3 <= sum(verdicts) <= len(verdicts) / 2


@pytest.mark.slow
def test_compiled_designs_take_the_cycles_that_were_simulated():
    check([draw_compiled(seed) for seed in range(10, 34)])
