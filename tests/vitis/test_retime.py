"""Networks with csynth's figures: every phase finds its loop, and RTL is met closer than by csynth's own latency."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.csynth_networks import figures_beside, find_pairs, pairs, retime_sequence, run
from benchmarks.networks import run as run_networks
from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator import VITIS, Network, SimulatedProcess, simulate
from penstock.profiling.networks.procnet import ProcNet, read_procnet
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.records import CountSpan, SynthesisReport
from penstock.profiling.vitis.retime import fitting_loops, retime
from tests.vitis.corpus import NO_CORPUS, SAMPLE, whole_corpus

WHOLE = whole_corpus()
STREAMS = "streamhls__polybench__streamhls__2560_DSPs__opt3__atax"


def design(name: str) -> tuple[ProcNet, SynthesisReport]:
    network = read_procnet(SAMPLE.parent / "process-networks" / f"{name}.json")
    return network, read_csynth_xml(SAMPLE / name / "csynth.xml.gz")


def planned_wrong(network: Network) -> Network:
    """The same network as a plan that is off: all pipelines turn every cycle and are three stages long."""

    def wrong(process: SimulatedProcess) -> SimulatedProcess:
        return replace(process, phases=tuple(replace(phase, ii=1, depth=3) for phase in process.phases))

    return replace(network, processes=tuple(wrong(process) for process in network.processes))


def test_a_plan_that_is_off_is_put_right_by_the_report():
    given, report = design(STREAMS)
    assert isinstance(given.network, Network)
    assert given.rtl_cycles is not None
    plan = planned_wrong(given.network).with_depths({channel.name: 1 for channel in given.network.channels})
    timed = retime(plan, report)
    assert timed.kept == ()
    assert {phase.evidence for phase in timed.phases} == {"csynth"}
    assert set(timed.depths) == {channel.name for channel in given.network.channels if channel.kind == "fifo"}
    cycles = simulate(timed.network, VITIS).latency
    said = report.latency.exact if report.latency else None
    assert said is not None
    assert abs(cycles / given.rtl_cycles - 1) < abs(said / given.rtl_cycles - 1)
    assert cycles == simulate(given.network, VITIS).latency


def test_loops_in_the_sources_order_fit_nests_that_are_grouped():
    _, report = design(STREAMS)
    sample = next(loop for loop in report.loops if loop.pipelined)
    loops = tuple(
        replace(sample, name=name, module="task", trip=CountSpan(trip, trip))
        for name, trip in (("a", 8), ("b", 5), ("c", 8))
    )
    report = replace(report, loops=loops)

    def names(*iterations: int) -> list[str | None] | None:
        found = fitting_loops(report, "task", list(iterations))
        return None if found is None else [loop.name if loop is not None else None for loop in found]

    assert names(8, 5, 8) == ["a", "b", "c"]
    assert names(8, 8, 1, 5) == ["a", "c", None, "b"]
    assert names(8, 5) is None, "a loop that is left over fits nothing"
    assert names(8, 8, 6) is None


def test_the_first_token_leaves_after_the_reported_depth():
    given, report = design(STREAMS)
    assert isinstance(given.network, Network)
    timed = retime(planned_wrong(given.network), report)
    for phase in timed.phases:
        process = timed.network.process(phase.process)
        writes = [a for a in process.phases[phase.index].accesses if a.direction == "write"]
        firsts = [a.pattern.iteration(0) * phase.ii + phase.depth - 1 for a in writes]
        assert phase.initial_delay == min(firsts, default=process.phases[phase.index].length)


def test_a_process_that_the_report_does_not_have_keeps_its_plan_and_says_so():
    given, report = design(STREAMS)
    assert isinstance(given.network, Network)
    first = given.network.processes[0].name
    without = replace(report, loops=tuple(loop for loop in report.loops if not loop.module.startswith(first)))
    timed = retime(planned_wrong(given.network), without)
    assert timed.kept == (first,)
    assert {phase.evidence for phase in timed.phases if phase.process == first} == {"modelled"}
    assert all(phase.depth == 3 for phase in timed.phases if phase.process == first)


@pytest.mark.parametrize("named", ["{}_1", "{}_s", "{}_2_s"])
def test_copies_and_templates_of_a_function_are_found_by_their_names(named: str):
    given, report = design(STREAMS)
    assert isinstance(given.network, Network)
    names = {process.name: named.format(process.name) for process in given.network.processes}

    def renamed(module: str) -> str:
        function, pipeline, loop = module.partition("_Pipeline_")
        return names[function] + pipeline + loop

    other = replace(report, loops=tuple(replace(loop, module=renamed(loop.module)) for loop in report.loops))
    assert retime(given.network, other).kept == ()


def test_the_report_of_another_design_is_refused():
    given, _ = design("streamhls__polybench__heterocl__atax")
    _, other = design("streamhls__polybench__scalehls__gesummv")
    assert not isinstance(given.network, Network)
    with pytest.raises(ProfilingError) as caught:
        retime_sequence(given.network, other)
    assert "not those of the design" in caught.value.what


def test_the_benchmark_meets_rtl_closer_than_csynth_does():
    figures = run(SAMPLE.parent)
    assert figures.evidence == "simulated"
    assert figures.summary["refused"] == 0
    better_than_csynth(figures.summary, designs=4)
    inside = run_networks(SAMPLE.parent).summary
    assert inside["with_reports_csynth_mean_error_pct"] == figures.summary["csynth_mean_error_pct"]
    assert figures_beside(SAMPLE) == {}


@pytest.mark.slow
@pytest.mark.skipif(WHOLE is None, reason=NO_CORPUS)
def test_over_all_designs_csynth_is_off_by_percents_and_the_simulator_by_less_than_a_tenth():
    assert WHOLE is not None
    assert sum(1 for _ in pairs(WHOLE.parent)) > 50
    summary = run(WHOLE.parent).summary
    assert summary["refused"] == 0
    better_than_csynth(summary, designs=50)
    assert float(summary["dataflow_csynth_mean_error_pct"] or 0) > 10
    assert float(summary["simulated_max_error_pct"] or 100) < 0.1


def better_than_csynth(summary: object, designs: int) -> None:
    assert isinstance(summary, dict)
    assert summary["n"] >= designs
    for label in ("", "dataflow_"):
        assert 0 < summary[f"{label}simulated_mean_error_pct"] < summary[f"{label}csynth_mean_error_pct"] / 10


def test_a_folder_without_pairs_is_refused_by_name(tmp_path: Path):
    with pytest.raises(PenstockError) as caught:
        find_pairs(tmp_path)
    assert caught.value.code == "no-data"
