"""Several runs' best so far in one drawing: which search came further, and which sooner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.web.axis import fit_axis, span_axis
from penstock.web.chart import Tick, stairs_path, x_ticks, y_ticks
from penstock.web.course_view import Fall
from penstock.web.search_view import ObjectiveAxis


@dataclass(frozen=True)
class RunCourse:
    """Where the best value of a run fell, and how many trials it had."""

    name: str
    falls: Sequence[Fall]
    trials: int


@dataclass(frozen=True)
class DrawnCourse:
    name: str
    words: str
    line: str


@dataclass(frozen=True)
class Courses:
    title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[DrawnCourse, ...]
    """In the order of the runs; of one without a good trial the line is empty."""


def draw_courses(courses: Sequence[RunCourse], axis: ObjectiveAxis) -> Courses | None:
    """None unless there are two to compare."""
    values = [value for course in courses for _, value in course.falls]
    most = max((max(course.trials, course.falls[-1][0] + 1) for course in courses if course.falls), default=0)
    if sum(bool(course.falls) for course in courses) < 2 or most < 2:
        return None
    across, upwards = span_axis(most, 0.0, 100.0), fit_axis(values, 100.0, 0.0)
    lines: list[DrawnCourse] = []
    for course in courses:
        places = [(across.pixel(number), upwards.pixel(value)) for number, value in course.falls]
        words = f"{axis.show(course.falls[-1][1])} by trial {course.falls[-1][0]}" if course.falls else "no good trial"
        line = stairs_path(places, to=across.pixel(course.trials)) if places else ""
        lines.append(DrawnCourse(course.name, words, line))
    whole = tuple(tick for tick in across.ticks if tick == round(tick))
    return Courses(
        title=f"best {axis.title} so far" + (" (log)" if upwards.logarithmic else ""),
        x_ticks=x_ticks(replace(across, ticks=whole), lambda value: f"{value:,.0f}"),
        y_ticks=y_ticks(upwards, axis.show),
        lines=tuple(lines),
    )
