"""The simulator against the RTL, to the cycle: random networks with random FIFO depths, deadlocks included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from xdsl.parser import Parser

from compiler.backend.rtl.design import RtlDesign
from compiler.backend.rtl.emit import emit_rtl
from compiler.design import Design
from compiler.dialects.stream import TopOp
from compiler.errors import PenstockError
from compiler.frontend.context import make_context
from compiler.platforms import load_platform
from compiler.schedule import load_library
from compiler.simulator import OPEN_RTL, Access, Channel, Network, Phase, Process, Simulator, pattern_of
from compiler.transforms.generate_directives import GenerateDirectives
from profiling.network import Network as Scheduled
from profiling.network import network_of
from profiling.open_rtl.run import Job, RtlRun, simulate_many
from profiling.open_rtl.verilate import build_many
from profiling.simulated import simulated_network
from profiling.tool_runner import ToolRunner
from tests.rtl.random_streams import draw_design

PLATFORM, CLOCK_MHZ = "ecp5-85k", 100.0
IDLE = 3000  # cycles after which nothing will ever happen


@dataclass(frozen=True)
class Case:
    """One design: as RTL, and as the simulator has it."""

    seed: int
    rtl: RtlDesign
    scheduled: Scheduled
    network: Network

    @property
    def frames(self) -> int:
        return 1 + self.seed % 3

    @property
    def job(self) -> Job:
        words = next((port.words for port in self.rtl.ports if port.argument == "x"), None)
        data = {} if words is None else {"x": np.arange(words, dtype=np.int8)}
        return Job(self.rtl, data, frames=self.frames, idle_cycles=IDLE)


def draw_case(seed: int) -> Case:
    board, library = load_platform(PLATFORM), load_library("open-ecp5", CLOCK_MHZ)
    module = Parser(make_context(), draw_design(seed)).parse_module()
    module.verify()
    module = GenerateDirectives(Design(PLATFORM, CLOCK_MHZ, {})).apply(module)
    rtl = emit_rtl(module, library, {}, top=f"core{seed}")
    top = next(op for op in module.ops if isinstance(op, TopOp))
    scheduled = network_of(top, library)
    network = simulated_network(scheduled, board, CLOCK_MHZ)
    assert isinstance(network, Network)
    return Case(seed, rtl, scheduled, network)


def with_host(case: Case) -> Network:
    """Every word that leaves passes through a FIFO without end to a process of its own, so that its time is known."""
    processes, channels = list(case.network.processes), list(case.network.channels)
    for position, task in enumerate(case.scheduled.tasks):
        left: list[Access] = []
        for number, schedule in enumerate(task.nests):
            phase = processes[position].phases[number]
            for port in schedule.ports:
                if port.kind == "external" and port.direction == "write":
                    access = Access(port.channel, "write", port.pattern, port.stage)
                    left.append(access)
                    phase = replace(phase, accesses=(*phase.accesses, access))
            phases = [*processes[position].phases]
            phases[number] = phase
            processes[position] = replace(processes[position], phases=tuple(phases))
        if left:
            words = sum(access.tokens for access in left)
            taken = Access(left[0].channel, "read", pattern_of((words,)), 0)
            processes.append(Process(f"host of {left[0].channel}", (Phase((words,), 1, 1, (taken,)),)))
            channels.append(Channel(left[0].channel, depth=None))
    return replace(case.network, processes=tuple(processes), channels=tuple(channels))


def run_all(cases: Sequence[Case]) -> list[RtlRun]:
    tools = ToolRunner()
    programs = [one for one in build_many([case.rtl for case in cases], tools) if not isinstance(one, PenstockError)]
    assert len(programs) == len(cases)
    runs = simulate_many([case.job for case in cases], programs, tools)
    return [run for run in runs if isinstance(run, RtlRun)]


def compare(case: Case, run: RtlRun) -> bool:
    """Ends of all frames, first and last word out, high-water marks; whether it is a deadlock."""
    simulated = Simulator(case.network, OPEN_RTL).run(frames=case.frames)
    assert run.deadlocked == (simulated.deadlock is not None), case.seed
    if run.deadlocked:
        return True
    assert tuple(cycle + 1 for cycle in run.done) == simulated.frame_ends, case.seed
    marks = {name: channel.high_water for name, channel in simulated.channels.items()}
    assert run.high_water == marks, case.seed
    outside = Simulator(with_host(case), OPEN_RTL).run()
    assert run.initial_delay == min(c.first_write for name, c in outside.channels.items() if name not in marks)
    # the host takes a word in the cycle after its write, and is done one later
    assert run.latency == max(p.end for name, p in outside.processes.items() if name not in simulated.processes) - 1
    return False


def check(seeds: Sequence[int]) -> list[bool]:
    cases = [draw_case(seed) for seed in seeds]
    runs = run_all(cases)
    return [compare(case, run) for case, run in zip(cases, runs, strict=True)]


def test_a_few_networks_take_the_cycles_that_were_simulated():
    check(range(6))


@pytest.mark.slow
def test_many_networks_take_the_cycles_that_were_simulated():
    """Eighty, of two to eight tasks; some of them deadlock in both."""
    verdicts = check(range(100, 180))
    assert 3 <= sum(verdicts) <= len(verdicts) / 2
