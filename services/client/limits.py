"""Whether what a run found keeps limits: those that it was given, or others that a pipeline asks for afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.objectives import LIMITED, Goal, check_limits
from penstock.services.api.answers.schemas import RunDetail, TrialDetail
from penstock.services.client.errors import UsageError


@dataclass(frozen=True)
class LimitFound:
    """One limit beside the figure that it is about, and where that comes from."""

    limit: str
    figure: str
    bound: float
    value: float | None
    evidence: str | None
    holds: bool
    """False also where the figure is not known: what was not measured is not met."""

    def line(self) -> str:
        if self.value is None:
            return f"{self.limit}: not known: the design has no figure {self.figure}"
        return f"{self.limit}: {'holds' if self.holds else 'missed'}, {self.figure} is {self.value:g} [{self.evidence}]"


def limits_of(run: RunDetail, wanted: Sequence[str] | None) -> list[str]:
    """Those that were asked for, else the run's own."""
    return list(run.options.get("limits") or []) if wanted is None else list(wanted)


def compare_limits(run: RunDetail, chosen: TrialDetail, limits: Sequence[str]) -> list[LimitFound]:
    """Each limit against the chosen design, by the strongest evidence that the run has of each figure."""
    try:
        check_limits(limits)
        goal = Goal.of((), limits).on(load_platform(str(run.options.get("platform", ""))))
    except PenstockError as error:
        raise UsageError(error.one_line()) from None
    known = {name: (value, chosen.evidence) for name, value in chosen.figures.items() if _is_number(value)}
    # Choosing measured these anew, by stronger evidence than the search's.
    for name, evidence in (
        ("latency_cycles", "evidence"), ("latency_us", "evidence"), ("interval_cycles", "evidence"),
    ):  # fmt: skip
        if _is_number(run.summary.get(name)):
            known[name] = (run.summary[name], run.summary.get(evidence))
    found: list[LimitFound] = []
    for text, limit in zip(limits, goal.limits, strict=True):
        figure = LIMITED[limit.name]
        value, evidence = known.get(figure, (None, None))
        holds = value is not None and limit.violation({figure: value}) <= 0
        found.append(LimitFound(text, figure, limit.bound, value, evidence, holds))
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
