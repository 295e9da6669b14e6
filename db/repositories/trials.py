"""What each trial of a run found: one row a trial step, written in the transaction that finishes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Double,
    Integer,
    Numeric,
    Select,
    case,
    cast,
    func,
    or_,
    select,
    text,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import array

from penstock.db.repositories.base import BadCursorError, Repository, number_cursor
from penstock.db.schema.records import Json, Page, Trial
from penstock.db.schema.states import StepState
from penstock.db.schema.tables import artifacts, steps, trials
from penstock.db.schema.tables import runs as all_runs

_WITHOUT_FIGURES = tuple(state for state in StepState if state != StepState.SUCCEEDED)
_VALUE, _WHOLE = re.compile(r"-?[0-9.]{1,25}(e[+-]?[0-9]{1,3})?"), re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class TrialRow:
    """A trial step and, once it is done, what it found. `state` is None while there is no summary."""

    step_id: str
    key: str
    step_state: str
    attempt: int
    owner: str | None
    error: Json | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    number: int | None
    state: str | None
    params: Json | None
    figures: Json | None
    evidence: str | None
    seconds: float | None
    origin: str | None
    version: str | None


class TrialMark(NamedTuple):
    """A trial as far as a drawing or a front needs it: a tuple, since all of a run's are read at once."""

    number: int
    state: str
    """Of the trial, or of its step while it has found nothing."""
    evidence: str | None
    figures: Mapping[str, float]


@dataclass(frozen=True)
class BestTrial:
    """The trial of a run with the smallest latency among those that fit their platform."""

    run_id: str
    number: int
    figures: Json
    evidence: str


@dataclass(frozen=True)
class EarlierTrial:
    """A complete trial of another run that was about the same thing."""

    run_id: str
    number: int
    params: Json
    figures: Json


class Trials(Repository):
    def of_step(self, step_id: str) -> Trial | None:
        return self._first(Trial, select(trials).where(trials.c.step_id == step_id))

    def by_number(self, run_id: str, number: int) -> Trial | None:
        where = (trials.c.run_id == run_id, trials.c.number == number)
        return self._first(Trial, select(trials).where(*where))

    def list(self, run_id: str, *, cursor: str | None = None, limit: int = 200) -> Page[Trial]:
        """A run's trials by number."""
        statement = select(trials).where(trials.c.run_id == run_id).order_by(trials.c.number)
        after = number_cursor(cursor)
        if after is not None:
            statement = statement.where(trials.c.number > after)
        return self._page(Trial, statement, limit, lambda row: row["number"])

    def list_steps(self, run_id: str, *, cursor: str | None = None, limit: int = 200) -> Page[TrialRow]:
        """A run's trial steps in the order of their making, with what those that are done have found."""
        statement = steps_with_trials().where(steps.c.run_id == run_id, steps.c.kind == "trial").order_by(steps.c.id)
        if cursor is not None:
            statement = statement.where(steps.c.id > cursor)
        return self._page(TrialRow, statement, limit, lambda row: row["step_id"])

    def by_figures(
        self, run_id: str, figures: Sequence[str], *, cursor: str | None = None, limit: int = 200
    ) -> Page[TrialRow]:
        """Trial steps by the first of the figures that each has, the smallest first.

        What keeps its limits comes first, then what does not, then what has no such figure, each by its number.
        """
        value = func.coalesce(*(_figure(name) for name in figures), 0.0)
        known = or_(*(_figure(name).is_not(None) for name in figures))
        rank = case((known, case((trials.c.state == "complete", 0), else_=1)), else_=2)
        place = (rank, value, trial_number_of_step())
        own = (steps.c.run_id == run_id, steps.c.kind == "trial")
        statement = steps_with_trials(
            rank.label("rank"), value.label("value"), trial_number_of_step().label("at")
        ).where(*own)
        if cursor is not None:
            statement = statement.where(tuple_(*place) > tuple_(*_place_of(cursor)))
        found = self.connection.execute(statement.order_by(*place).limit(limit + 1)).mappings().all()
        last = found[limit - 1] if len(found) > limit else None
        after = None if last is None else f"{last['rank']}:{float(last['value'])!r}:{last['at']}"
        names = [field.name for field in fields(TrialRow)]
        return Page(tuple(TrialRow(**{name: row[name] for name in names}) for row in found[:limit]), after)

    def marks(self, run_id: str, figures: Sequence[str]) -> tuple[TrialMark, ...]:
        """All trials of a run by number, with those of the figures that they have.

        What ended with figures is read from its own table alone, the rest from the few steps that did not: joining ten
        thousand of both takes three times as long.
        """
        ended = select(trials.c.number, trials.c.state, trials.c.evidence, *(_figure(name) for name in figures))
        cursor = self.connection.execute(ended.where(trials.c.run_id == run_id)).cursor
        assert cursor is not None, "a SELECT has rows"
        rows: Sequence[Any] = cursor.fetchall()  # plain tuples: wrapping ten thousand takes as long as reading
        marks = [
            TrialMark(
                row[0], row[1], row[2],
                {name: value for name, value in zip(figures, row[3:], strict=True) if value is not None},
            )
            for row in rows
        ]  # fmt: skip
        others = select(func.coalesce(cast(steps.c.payload["number"].astext, Integer), -1), steps.c.state).where(
            steps.c.run_id == run_id, steps.c.kind == "trial", steps.c.state.in_(_WITHOUT_FIGURES)
        )
        marks += [TrialMark(number, state, None, {}) for number, state in self.connection.execute(others)]
        return tuple(sorted(marks, key=lambda mark: mark.number))

    def step_of(self, run_id: str, key: str) -> TrialRow | None:
        """One trial step with what it found."""
        statement = steps_with_trials().where(steps.c.run_id == run_id, steps.c.key == key)
        return self._first(TrialRow, statement)

    def best(self, run_ids: Sequence[str], figure: str, evidence: Sequence[str]) -> dict[str, BestTrial]:
        """For each run that has one, its complete trial with the smallest value of the figure.

        Figures of different evidence are not compared: only trials with the run's best evidence take part. `evidence`
        names every kind, the weakest first.
        """
        value = trials.c.figures[figure]
        rank = func.array_position(array(evidence), trials.c.evidence)
        first = (
            select(trials.c.number, trials.c.figures, trials.c.evidence)
            .where(
                trials.c.run_id == all_runs.c.id,
                trials.c.state == "complete",
                func.jsonb_typeof(value) == "number",
            )
            .order_by(rank.desc(), cast(value, Numeric), trials.c.number)
            .limit(1)
            .lateral()
        )
        columns = (all_runs.c.id.label("run_id"), first.c.number, first.c.figures, first.c.evidence)
        statement = select(*columns).join(first, true()).where(all_runs.c.id.in_(run_ids))
        return {best.run_id: best for best in self._all(BestTrial, statement)}

    def of_content(
        self, name: str, sha256: str, platform: str, *, besides: str, order: str, runs: int, each: int
    ) -> tuple[EarlierTrial, ...]:
        """Trials of the newest other runs that made the same content on the same platform.

        Of each run the complete ones with the smallest values of a figure.
        """
        alike = (
            select(artifacts.c.run_id)
            .distinct()
            .join(all_runs, all_runs.c.id == artifacts.c.run_id)
            .where(
                artifacts.c.sha256 == sha256,
                artifacts.c.name == name,
                artifacts.c.run_id != besides,
                all_runs.c.options["platform"].astext == platform,
            )
            .order_by(artifacts.c.run_id.desc())
            .limit(runs)
            .scalar_subquery()
        )
        value = trials.c.figures[order]
        place = func.row_number().over(partition_by=trials.c.run_id, order_by=(cast(value, Numeric), trials.c.number))
        columns = (trials.c.run_id, trials.c.number, trials.c.params, trials.c.figures)
        ranked = (
            select(*columns, place.label("place"))
            .where(trials.c.run_id.in_(alike), trials.c.state == "complete", func.jsonb_typeof(value) == "number")
            .subquery()
        )
        kept = (ranked.c.run_id, ranked.c.number, ranked.c.params, ranked.c.figures)
        statement = select(*kept).where(ranked.c.place <= each).order_by(ranked.c.run_id, ranked.c.place)
        return self._all(EarlierTrial, statement)

    def made_lately(self, hours: float) -> int:
        """How many trials of all runs have ended in these hours."""
        since = func.now() - text(f"interval '{float(hours):.3f} hours'")
        return self.connection.execute(select(func.count()).where(trials.c.created_at > since)).scalar_one()

    def count(self, run_id: str) -> int:
        statement = select(func.count()).where(trials.c.run_id == run_id)
        return self.connection.execute(statement).scalar_one()


def steps_with_trials(*more: ColumnElement[Any]) -> Select[Any]:
    """Every trial step with what it found, if it has."""
    from_step = ("key", "attempt", "owner", "error", "created_at", "started_at", "finished_at")
    from_trial = ("number", "state", "params", "figures", "evidence", "seconds", "origin", "version")
    return select(
        steps.c.id.label("step_id"),
        steps.c.state.label("step_state"),
        *(steps.c[name] for name in from_step),
        *(trials.c[name] for name in from_trial),
        *more,
    ).join_from(steps, trials, trials.c.step_id == steps.c.id, isouter=True)


def trial_number_of_step() -> ColumnElement[int]:
    """Of a trial's step, also while the trial has found nothing; -1 for a step that is numbered in no way."""
    return func.coalesce(trials.c.number, cast(steps.c.payload["number"].astext, Integer), -1)


def _figure(name: str) -> ColumnElement[float | None]:
    """A figure as a number; NULL where the trial does not have it."""
    value = trials.c.figures[name]
    return case((func.jsonb_typeof(value) == "number", cast(value.astext, Double)), else_=None)


def _place_of(cursor: str) -> tuple[int, float, int]:
    match cursor.split(":"):
        case [("0" | "1" | "2") as rank, value, number] if _VALUE.fullmatch(value) and _WHOLE.fullmatch(number):
            return int(rank), float(value), int(number)
        case _:
            raise BadCursorError(f"{cursor!r} is not a cursor of this list")
