"""The II and depth that a report gives, in place of those that were predicted. Loops fit by name and trip count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.schedule import ScheduledPipeline
from penstock.profiling.vitis.records import ReportedLoop, SynthesisReport
from penstock.profiling.vitis.retime import reported_figures


class Reported:
    """What `time_kernel` asks for every pipeline; it remembers which ones a report had."""

    def __init__(self, report: SynthesisReport) -> None:
        self._rest = [loop for loop in report.loops if reported_figures(loop) is not None]
        self.taken: set[Pipeline] = set()
        self._lacking: list[Pipeline] = []

    def __call__(self, owner: str, item: Pipeline, planned: ScheduledPipeline) -> ScheduledPipeline:
        fitting = [loop for loop in self._rest if loop.name == item.name and _same_trip(loop, item)]
        own = [loop for loop in fitting if loop.module.partition("_Pipeline_")[0] == owner]
        loop = next(iter(own or fitting), None)
        if loop is None:
            self._lacking.append(item)
            return planned
        self._rest.remove(loop)
        self.taken.add(item)
        figures = reported_figures(loop)
        assert figures is not None
        return replace(planned, ii=figures[0], depth=figures[1], flushes=loop.flushes(planned.flushes))

    def notes(self) -> Iterator[str]:
        for item in self._lacking:
            yield f"the reports have no loop {item.name} of {item.iterations} iterations: its figures are predicted"
        for loop in self._rest:
            yield f"the reports' loop {loop.name} of {loop.module} is none of the source's"


def _same_trip(loop: ReportedLoop, item: Pipeline) -> bool:
    return loop.trip is None or loop.trip.exact == item.iterations
