"""Where bars stand in the picture of a run: one a task, from its first token to its end, the critical path on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.package.report import PathStep, SimulatedRun
from penstock.compiler.package.scatter import PlotTick, short_count

WIDTH, LEFT, RIGHT, TOP, ROW = 1020, 230, 24, 24, 19
MOST_ROWS = 40
_TICKS = 6


@dataclass(frozen=True)
class GanttRow:
    """One task: its bar, and the parts of it that lie on the critical path as (x, width)."""

    task: str
    title: str
    y: float
    x: float
    width: float
    critical: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Gantt:
    width: int
    left: int
    height: float
    ticks: tuple[PlotTick, ...]
    rows: tuple[GanttRow, ...]
    left_out: int


def gantt(run: SimulatedRun) -> Gantt:
    """Tasks in the order in which they begin; of many, those on the critical path and the busiest."""
    last = max((task.end_cycle for task in run.tasks), default=1) or 1
    on_path = {step.task for step in run.critical_path}
    ranked = sorted(run.tasks, key=lambda t: (t.task not in on_path, -t.busy_cycles))[:MOST_ROWS]
    scale = (WIDTH - LEFT - RIGHT) / last
    rows = [
        GanttRow(
            task.task,
            f"{task.task}: first token in cycle {task.first_token_cycle}, done in {task.end_cycle}, "
            f"busy {task.busy_cycles}, waited {task.waited_cycles}",
            TOP + ROW * number,
            round(LEFT + task.first_token_cycle * scale, 2),
            round(max(1.5, (task.end_cycle - task.first_token_cycle) * scale), 2),
            _parts(run.critical_path, task.task, scale),
        )
        for number, task in enumerate(sorted(ranked, key=lambda t: (t.first_token_cycle, t.end_cycle)))
    ]
    step = _step(last)
    ticks = tuple(PlotTick(round(LEFT + at * scale, 2), short_count(at)) for at in range(0, last + 1, step))
    return Gantt(WIDTH, LEFT, TOP + ROW * len(rows) + 4, ticks, tuple(rows), len(run.tasks) - len(rows))


def _parts(path: Sequence[PathStep], task: str, scale: float) -> tuple[tuple[float, float], ...]:
    return tuple(
        (round(LEFT + step.start_cycle * scale, 2), round(max(1.5, (step.end_cycle - step.start_cycle) * scale), 2))
        for step in path
        if step.task == task
    )


def _step(last: int) -> int:
    """A round distance between ticks."""
    rough = max(1, last // _TICKS)
    size = 10 ** (len(str(rough)) - 1)
    return next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
