"""What is drawn of all trials of a search: their trade-off, and how the best came along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.web.course_view import Course, draw_course, falls_of
from penstock.web.pareto import Plot
from penstock.web.search_view import ObjectiveAxis, ObjectiveViews, axes_of, known_axis, plot_trials
from penstock.web.text import Document


@dataclass(frozen=True)
class TrialDrawings:
    total: int = 0
    plot: Plot | None = None
    course: Course | None = None


def draw_trials(
    options: Document,
    summary: Document,
    marks: Sequence[Document],
    objectives: ObjectiveViews,
    kept: frozenset[int] | None = None,
) -> TrialDrawings:
    """`marks` are all trials, each with the figures that are drawn; those that are not `kept` are pale."""
    asked = options.get("objectives") or ()
    return TrialDrawings(
        total=len(marks),
        plot=plot_trials(marks, asked, objectives, options.get("limits") or (), kept),
        course=_course(asked, summary, marks, objectives),
    )


def _course(
    asked: Sequence[str], summary: Document, marks: Sequence[Document], objectives: ObjectiveViews
) -> Course | None:
    """Of the first objective, beside what no design can be below."""
    axis = known_axis(axes_of(asked, objectives)[0], marks)
    bound = _in_unit_of(axis, summary.get("bound"), marks)
    ended = sum(mark["state"] in ("complete", "infeasible", "failed") for mark in marks)
    title, reason = f"best {axis.title} so far", summary.get("bound_reason") or ""
    return draw_course(falls_of(marks, axis.figure), ended, title, axis.show, bound, reason)


def _in_unit_of(axis: ObjectiveAxis, bound: object, marks: Sequence[Document]) -> float | None:
    """The bound is of what the search kept small, such as cycles; where a time is drawn, a trial that has both says
    how long a cycle is."""
    if not isinstance(bound, int | float) or axis.figure == axis.kept_small:
        return bound if isinstance(bound, int | float) else None
    for mark in marks:
        drawn, kept = mark["figures"].get(axis.figure), mark["figures"].get(axis.kept_small)
        if isinstance(drawn, int | float) and isinstance(kept, int | float) and kept:
            return bound * drawn / kept
    return None
