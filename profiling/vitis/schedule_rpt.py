"""`<module>.verbose.sched.rpt`, the schedule of one module state by state: its pipelines' II and stages are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.profiling.vitis.reading import read_start, unreadable
from penstock.profiling.vitis.records import CountSpan, ReportedLoop, SynthesisReport

ENDING = ".verbose.sched.rpt"
# The list of operations that follows can be hundreds of megabytes and is not read.
_START = 4 << 20
_PIPELINE = re.compile(r"^[ \t]*Pipeline-\d+ : II = (\d{1,9}), D = (\d{1,9}), States = \{([\d ]*)\}", re.M)
_STATES = re.compile(r"^\* Number of FSM states ?: ?(\d{1,9})", re.M)


@dataclass(frozen=True)
class ModuleSchedule:
    """`pipelines` are (II, stages) in the source's order."""

    module: str
    states: int | None
    pipelines: tuple[tuple[int, int], ...]


def read_schedule(path: Path) -> ModuleSchedule:
    """Read the head of a module's schedule."""
    text = read_start(path, _START)
    states = _STATES.search(text)
    if states is None and "Schedule info" not in text:
        raise unreadable(path, "no schedule", limit='"* Number of FSM states : ..." was expected')
    pipelines = tuple((int(ii), int(depth)) for ii, depth, _ in _PIPELINE.findall(text))
    return ModuleSchedule(path.name.removesuffix(ENDING), int(states.group(1)) if states else None, pipelines)


def with_schedules(report: SynthesisReport, schedules: Mapping[str, ModuleSchedule]) -> SynthesisReport:
    """Loops whose II or depth the reports lack, with those of their module's schedule; a note says which."""
    taken: list[str] = []
    loops = list(report.loops)
    for module, schedule in schedules.items():
        own = [index for index, loop in enumerate(loops) if loop.module == module and loop.pipelined]
        if len(own) != len(schedule.pipelines):
            continue
        for index, (ii, depth) in zip(own, schedule.pipelines, strict=True):
            changed = _filled(loops[index], ii, depth)
            if changed != loops[index]:
                loops[index] = changed
                taken.append(f"{module}, loop {changed.name}")
    if not taken:
        return report
    return replace(
        report, loops=tuple(loops), notes=(*report.notes, f"II and depth from the schedule: {'; '.join(taken)}")
    )


def _filled(loop: ReportedLoop, ii: int, depth: int) -> ReportedLoop:
    return replace(loop, ii=loop.ii or CountSpan(ii, ii), depth=loop.depth or CountSpan(depth, depth))
