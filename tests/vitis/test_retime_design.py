"""A design's own schedules with csynth's figures: times as in the simulator's network, and FIFOs sized anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import stream
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.compiler.simulator import Network as SimulatedNetwork
from penstock.compiler.simulator import simulate
from penstock.dse.fifo.of_design import runs_through, size_design
from penstock.profiling.network import TaskNetwork, network_of
from penstock.profiling.simulated import rules_of, simulate_design, simulated_network
from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.records import SynthesisReport
from penstock.profiling.vitis.retime import retime
from penstock.profiling.vitis.retime_design import retime_design
from tests.schedule.gemms import gemm_program
from tests.vitis.standins import recording

PLATFORM, CLOCK = load_platform("u55c"), 300.0


@pytest.fixture(scope="module")
def top() -> stream.TopOp:
    tiled = Design("u55c", CLOCK, {"fc": KernelDesign((1, 8, 64), (1, 2, 4), (0, 1, 2))})
    return lower(gemm_program(16, 32, 64, "int8"), tiled).top


@pytest.fixture(scope="module")
def design(top: stream.TopOp) -> TaskNetwork:
    return network_of(top, load_library(PLATFORM.operators, CLOCK))


@pytest.fixture(scope="module")
def report(top: stream.TopOp, tmp_path_factory: pytest.TempPathFactory) -> SynthesisReport:
    path = recording(tmp_path_factory.mktemp("report") / "csynth.xml", top, deeper=40)
    return read_csynth_xml(path)


def test_every_nest_takes_its_figures_from_the_report(design: TaskNetwork, report: SynthesisReport):
    timed = retime_design(design, report)
    assert timed.kept == ()
    assert {nest.evidence for nest in timed.nests} == {"csynth"}
    for task, planned in zip(timed.network.tasks, design.tasks, strict=True):
        for nest, plan in zip(task.nests, planned.nests, strict=True):
            assert (nest.ii, nest.depth) == (2 * plan.ii, plan.depth + 40)
            assert "csynth reached" in nest.ii_reason
            assert all(port.stage < nest.depth for port in nest.ports)
    assert simulate_design(timed.network, PLATFORM, CLOCK).latency > simulate_design(design, PLATFORM, CLOCK).latency


def test_schedules_and_simulated_networks_are_retimed_alike(design: TaskNetwork, report: SynthesisReport):
    converted = simulated_network(design, PLATFORM, CLOCK)
    assert isinstance(converted, SimulatedNetwork)
    other = simulate(retime(converted, report).network, rules_of(PLATFORM, CLOCK))
    assert simulate_design(retime_design(design, report).network, PLATFORM, CLOCK).latency == other.latency


@pytest.mark.parametrize(("kind", "flushes"), [("yes", True), ("flp", True), ("loop auto-rewind stp", False)])
def test_pipelines_wait_as_the_report_says_or_else_as_planned(
    design: TaskNetwork, report: SynthesisReport, kind: str, flushes: bool
):
    assert any(nest.flushes for task in design.tasks for nest in task.nests)
    said = replace(report, loops=tuple(replace(loop, kind=kind) for loop in report.loops))
    converted = simulated_network(design, PLATFORM, CLOCK)
    assert isinstance(converted, SimulatedNetwork)
    timed, network = retime_design(design, said).network, retime(converted, said).network
    for task, process, planned in zip(timed.tasks, network.processes, design.tasks, strict=True):
        for nest, phase, plan in zip(task.nests, process.phases, planned.nests, strict=True):
            assert nest.flushes == phase.flushes == (flushes if kind != "yes" else plan.flushes)


def test_fifos_are_sized_for_the_pipelines_that_were_built(design: TaskNetwork, report: SynthesisReport):
    timed = retime_design(design, report).network
    sized = size_design(timed, PLATFORM, CLOCK)
    depths = {name: depth for kernel in sized.kernels for name, depth in kernel.depths.items()}
    assert runs_through(timed, PLATFORM, CLOCK, depths)
    assert sized.latency == sized.unbounded_latency
    assert sized.latency == simulate_design(timed, PLATFORM, CLOCK, depths=depths).latency


def test_what_the_report_does_not_have_stays_planned(design: TaskNetwork, report: SynthesisReport):
    first = design.tasks[0].name
    without = replace(report, loops=tuple(loop for loop in report.loops if loop.module != first))
    timed = retime_design(design, without)
    assert timed.kept == (first,)
    assert timed.network.tasks[0] == design.tasks[0]
    assert {nest.evidence for nest in timed.nests if nest.process == first} == {"modelled"}
