"""Reports that cannot be true, or that speak of another design than the one that was meant, said in words."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.compiler.platforms.resources import RESOURCE_LABELS
from penstock.profiling.vitis.records import ImplementedReport, ReportedUsage, SynthesisReport, TimingReport
from penstock.profiling.vitis.xclbin_info import XclbinInfo

_MULTIPLIES = ("mul", "mac", "fmul", "dmul", "hmul", "fexp", "fdiv")


def doubts_of_synthesis(report: SynthesisReport, multiplications: int | None = None) -> Iterator[str]:
    """`multiplications` is how many operators that multiply the source was found to need at least; None if unknown."""
    yield from _too_much(report.used, report.available, f"{report.top or 'the design'} (csynth)")
    target, reached = report.clock_target_ns, report.clock_estimated_ns
    if target is not None and reached is not None and reached > target:
        yield (
            f"the clock was missed: {reached:g} ns are needed, {target:g} ns were asked for; cycles of this report "
            "hold at the slower clock only"
        )
    bound = any(any(word in operator.operation.lower() for word in _MULTIPLIES) for operator in report.operators)
    cores = any("mul" in name.lower() for item in report.instances for name in (item.module, item.name))
    if multiplications and not report.used.dsp and not bound and not cores:
        yield (
            f"the source multiplies ({multiplications} operators at least) and the report has no operator for it: the "
            "computation was optimised away; check that its result reaches a port"
        )
    for loop in report.loops:
        trip, ii, latency = (None if span is None else span.exact for span in (loop.trip, loop.ii, loop.latency))
        if loop.pipelined and trip and ii and latency is not None and latency < (trip - 1) * ii:
            yield f"{loop.module}, loop {loop.name}: {trip} iterations every {ii} cycles do not fit in {latency} cycles"


def doubts_of_area(report: ImplementedReport) -> Iterator[str]:
    yield from _too_much(report.used, report.available, report.source)


def doubts_of_timing(report: TimingReport) -> Iterator[str]:
    if report.met is False:
        slacks = {"worst slack": report.worst_slack_ns, "worst hold slack": report.worst_hold_slack_ns}
        missed = [f", {word} {slack:g} ns" for word, slack in slacks.items() if slack is not None and slack < 0]
        failing = f", {report.failing_endpoints:,} endpoints fail" if report.failing_endpoints else ""
        said = "".join(missed) + failing
        yield f"{report.source}: timing was missed{said}; the design may compute wrong values at this clock"


def doubts_of_link(info: XclbinInfo) -> Iterator[str]:
    for clock in info.clocks:
        asked, reached = clock.requested_mhz, clock.reached_mhz
        if asked and reached and reached < asked:
            yield f"{info.source}: clock {clock.name} reached {reached:g} MHz of {asked:g} MHz"


def _too_much(used: ReportedUsage, available: ReportedUsage, where: str) -> Iterator[str]:
    for name, word in RESOURCE_LABELS.items():
        count, room = getattr(used, name), getattr(available, name)
        if count is not None and room is not None and count > room:
            share = f"{100 * count / room:.0f} %" if room else "there is none"
            yield f"{where}: {count:,} {word} of {room:,} ({share}): it does not fit, so it cannot be built as it is"
