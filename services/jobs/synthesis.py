"""What AMD's tools said of a chosen design, as a section of its report: before its FIFOs were sized, and after."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.evidence import Evidence
from penstock.compiler.package.report import TimeFigures
from penstock.compiler.package.report_synthesis import ChipUse, LoopInfo, OtherLoop, SynthesisInfo, SynthesisPass
from penstock.compiler.platforms.resources import RESOURCE_LABELS
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.fifo import total_bits
from penstock.dse.rungs.rung import Bench, Measured, RungTimes
from penstock.dse.rungs.vitis import kept_report, profile_of, retimed
from penstock.profiling.protocol import Profile
from penstock.profiling.vitis.records import CountSpan, ReportedUsage, SynthesisReport

MOST_LOOPS = 500
RETIMED = "simulated with II and depth from the synthesis report"
_OWN: Mapping[Evidence, str] = {
    "csynth": "csynth's own estimate, which does not see tasks wait for each other",
    "cosim": "the tool's simulation of the RTL",
}


def synthesis_section(
    evaluator: Evaluator, before: Evaluation, first: Measured, after: Evaluation, last: Measured, bench: Bench
) -> SynthesisInfo:
    """`before` and `after` are the design with its FIFOs as the search had them, and sized; both were measured."""
    profile = profile_of(evaluator, after, bench, last.evidence)
    report = kept_report(profile)
    assert last.retimed is not None, "every rung of these tools simulates what was synthesised"
    loops, planned = _loops(evaluator, after, profile)
    matched = {(one.task, one.loop) for one in loops}
    return SynthesisInfo(
        tool=profile.tool, version=report.version or profile.tool_version, part=report.part,
        clock_target_ns=report.clock_target_ns, clock_uncertainty_ns=report.clock_uncertainty_ns,
        clock_estimated_ns=report.clock_estimated_ns, fmax_mhz=report.fmax_mhz,
        times=TimeFigures(
            evidence=last.evidence, latency_cycles=last.latency, initial_delay_cycles=last.initial_delay,
            interval_cycles=last.interval, fmax_mhz=last.fmax_mhz, basis=_OWN[last.evidence],
        ),
        retimed=_simulated(last.retimed),
        resources=dict(last.resources.as_dict()) if last.resources else {},
        usage=chip_use(report.used, report.available),
        loops=loops[:MOST_LOOPS],
        others=_others(report, {loop for _, loop in matched}),
        planned=planned,
        before=_pass(before, first), after=_pass(after, last),
        notes=(*report.notes, *_left_out(loops), *_memory(report, last)),
    )  # fmt: skip


def _loops(
    evaluator: Evaluator, evaluation: Evaluation, profile: Profile
) -> tuple[tuple[LoopInfo, ...], tuple[str, ...]]:
    network = evaluator.assembler.network(evaluation.design)
    planned = {(task.name, i): nest for task in network.tasks for i, nest in enumerate(task.nests)}
    made = retimed(evaluator, evaluation, profile)
    found = tuple(
        LoopInfo(
            task=one.process, loop=one.loop, trips=planned[one.process, one.index].run_iterations,
            planned_ii=planned[one.process, one.index].ii, ii=one.ii,
            planned_depth=planned[one.process, one.index].depth, depth=one.depth,
        )
        for one in made.nests if one.loop is not None
    )  # fmt: skip
    return found, made.kept


def _others(report: SynthesisReport, ours: set[str]) -> tuple[OtherLoop, ...]:
    return tuple(
        OtherLoop(
            module=loop.module, loop=loop.name, trips=_most(loop.trip), ii=_most(loop.ii), depth=_most(loop.depth),
            latency_cycles=_most(loop.latency),
        )
        for loop in report.loops if loop.name not in ours
    )[:MOST_LOOPS]  # fmt: skip


def _most(span: CountSpan | None) -> int | None:
    return None if span is None else span.high


def chip_use(used: ReportedUsage, available: ReportedUsage) -> tuple[ChipUse, ...]:
    """A row for each resource of which both numbers are reported."""
    rows = ((word, getattr(used, name), getattr(available, name)) for name, word in RESOURCE_LABELS.items())
    return tuple(ChipUse(resource=w, used=u, available=a) for w, u, a in rows if u is not None and a is not None)


def _pass(evaluation: Evaluation, measured: Measured) -> SynthesisPass:
    bits = {c.name: c.bits for c in evaluation.figures.channels if c.kind == "stream"}
    area = measured.resources
    return SynthesisPass(
        latency_cycles=measured.latency,
        retimed_cycles=measured.retimed.latency if measured.retimed else None,
        fifo_bits=total_bits(evaluation.design.fifo_depths, bits),
        bram18=area.bram18 if area else None,
        lut=area.lut if area else None,
    )


def _simulated(times: RungTimes) -> TimeFigures:
    return TimeFigures(
        evidence="simulated", latency_cycles=times.latency, initial_delay_cycles=times.initial_delay,
        interval_cycles=times.interval, basis=RETIMED,
    )  # fmt: skip


def _left_out(loops: tuple[LoopInfo, ...]) -> list[str]:
    more = len(loops) - MOST_LOOPS
    return [f"{more} further loops are in the tool's own report"] if more > 0 else []


def _memory(report: SynthesisReport, measured: Measured) -> list[str]:
    """csynth counts one block RAM for a deep FIFO whatever its size."""
    counted, computed = report.used.bram18, measured.resources.bram18 if measured.resources else None
    if counted is None or computed is None or counted == computed:
        return []
    return [f"csynth counts {counted} BRAM18; with deep FIFOs at what their depth and width take they are {computed}"]
