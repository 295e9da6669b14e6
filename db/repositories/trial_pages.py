"""Trials as people look at them: a table that is sorted and filtered by anything, a search's course and its pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Double, Float, Integer, and_, case, cast, false, func, or_, select, text

from penstock.db.repositories.base import Repository
from penstock.db.repositories.trials import TrialRow, steps_with_trials, trial_number_of_step
from penstock.db.schema.tables import steps, trials

_RECENT = text("interval '3 minutes'")
_BELOW, _ABOVE, _IS = "<=", ">=", "="


@dataclass(frozen=True)
class TrialFilter:
    """A figure or parameter compared with a value, as `dsp_share<=0.5` or `order=connected`; `a|b` is either."""

    name: str
    relation: str
    value: str


@dataclass(frozen=True)
class TrialTally:
    """How a search comes along, as far as its ended trials tell."""

    run_id: str
    infeasible: int
    ended: int
    recent: int
    """Ended in the last three minutes."""
    recent_seconds: float
    """What these took; less than three minutes where the first trial ended later."""


@dataclass(frozen=True)
class TimedTrial:
    """When a trial ended, in seconds since the first one began, how long it took, and what it found of one figure."""

    number: int
    fits: bool
    value: float | None
    ended: float
    seconds: float


@dataclass(frozen=True)
class SpreadTrial:
    """A trial among others: what was set, and what came of it."""

    number: int
    state: str
    params: dict[str, Any]
    figures: dict[str, Any]


class TrialPages(Repository):
    def page(
        self,
        run_id: str,
        *,
        sort: str = "",
        falling: bool = False,
        states: Sequence[str] = (),
        filters: Sequence[TrialFilter] = (),
        offset: int = 0,
        limit: int = 100,
    ) -> tuple[int, tuple[TrialRow, ...]]:
        """How many trials there are of the kind asked for, and some of them. What lacks the figure comes last."""
        state = func.coalesce(trials.c.state, steps.c.state)
        where: list[ColumnElement[bool]] = [steps.c.run_id == run_id, steps.c.kind == "trial"]
        if states:
            where.append(state.in_(states))
        where += [_holds(one) for one in filters]
        joined = select(func.count()).join_from(steps, trials, trials.c.step_id == steps.c.id, isouter=True)
        count = self.connection.execute(joined.where(*where)).scalar_one()
        order: list[ColumnElement[Any]] = []
        if sort:
            number, words = _number_in(sort), _text_in(sort)
            order = [number.is_(None) & words.is_(None), *(v.desc() if falling else v.asc() for v in (number, words))]
            order[1:] = [one.nulls_last() for one in order[1:]]
            order.insert(0, case((trials.c.state == "complete", 0), (trials.c.state.is_not(None), 1), else_=2))
        number = trial_number_of_step()
        order.append(number.desc() if falling and not sort else number)
        if not (sort or states or filters):
            # the page is found among the steps and joined then: of ten thousand, that is much less than joining all
            asked = func.coalesce(cast(steps.c.payload["number"].astext, Integer), -1)
            few = select(steps.c.id).where(*where).order_by(asked.desc() if falling else asked, steps.c.key)
            page = steps.c.id.in_(few.offset(offset).limit(limit))
            return count, self._all(TrialRow, steps_with_trials().where(page).order_by(*order))
        rows = self._all(TrialRow, steps_with_trials().where(*where).order_by(*order).offset(offset).limit(limit))
        return count, rows

    def numbers(self, run_id: str, *, states: Sequence[str], filters: Sequence[TrialFilter]) -> frozenset[int]:
        """The ended trials that pass."""
        where = [trials.c.run_id == run_id, *map(_holds, filters)]
        if states:
            where.append(trials.c.state.in_(states))
        return frozenset(self.connection.execute(select(trials.c.number).where(*where)).scalars())

    def spread(self, run_id: str, most: int) -> tuple[SpreadTrial, ...]:
        """Every so many of the ended trials by number."""
        own = trials.c.run_id == run_id
        count = self.connection.execute(select(func.count()).where(own)).scalar_one()
        columns = trials.c.number, trials.c.state, trials.c.params, trials.c.figures
        statement = select(*columns).where(own, trials.c.number % max(1, -(-count // most)) == 0)
        return self._all(SpreadTrial, statement.order_by(trials.c.number))

    def sample(self, run_id: str, figure: str, most: int) -> tuple[int, list[tuple[dict[str, Any], float]]]:
        """How many trials keep their limits and have the figure, and of them every so many, settings and figure."""
        own = [trials.c.run_id == run_id, trials.c.state == "complete"]
        own.append(func.jsonb_typeof(trials.c.figures[figure]) == "number")
        kinds = select(trials.c.evidence).where(*own).group_by(trials.c.evidence)
        usual = kinds.order_by(func.count().desc(), trials.c.evidence).limit(1).scalar_subquery()
        own.append(trials.c.evidence == usual)
        count = self.connection.execute(select(func.count()).select_from(trials).where(*own)).scalar_one()
        step = max(1, -(-count // most))
        columns = (trials.c.params, cast(trials.c.figures[figure].astext, Double))
        rows = self.connection.execute(select(*columns).where(*own, trials.c.number % step == 0))
        return count, [(params, float(value)) for params, value in rows]

    def ended(self, run_id: str, figure: str, most: int) -> tuple[int, tuple[TimedTrial, ...]]:
        """How many trials ended, and of them every so many by number; the figure of those with the usual evidence."""
        own = trials.c.run_id == run_id
        kinds = select(trials.c.evidence).where(own, trials.c.state == "complete").group_by(trials.c.evidence)
        usual = kinds.order_by(func.count().desc(), trials.c.evidence).limit(1).scalar_subquery()
        known = and_(func.jsonb_typeof(trials.c.figures[figure]) == "number", trials.c.evidence == usual)
        began = trials.c.created_at - func.make_interval(0, 0, 0, 0, 0, 0, trials.c.seconds)
        count, first = self.connection.execute(select(func.count(), func.min(began)).where(own)).one()
        statement = select(
            trials.c.number,
            (trials.c.state == "complete").label("fits"),
            case((known, cast(trials.c.figures[figure].astext, Double)), else_=None).label("value"),
            cast(func.extract("epoch", trials.c.created_at - first), Double).label("ended"),
            trials.c.seconds,
        ).where(own, trials.c.number % max(1, -(-count // most)) == 0)
        return count, self._all(TimedTrial, statement.order_by(trials.c.number))

    def names(self, run_id: str) -> tuple[list[str], list[str]]:
        """Every figure and every parameter that any trial of the run has."""
        found: list[list[str]] = []
        for column in (trials.c.figures, trials.c.params):
            key = func.jsonb_object_keys(column).label("key")
            rows = self.connection.execute(select(key).where(trials.c.run_id == run_id).distinct())
            found.append(sorted(str(row[0]) for row in rows))
        return found[0], found[1]

    def tally(self, run_ids: Sequence[str]) -> dict[str, TrialTally]:
        """For each run that has ended trials."""
        newer = trials.c.created_at > func.now() - _RECENT
        first = func.greatest(func.min(trials.c.created_at), func.now() - _RECENT)
        statement = (
            select(
                trials.c.run_id,
                func.count().filter(trials.c.state == "infeasible").label("infeasible"),
                func.count().label("ended"),
                func.count().filter(newer).label("recent"),
                cast(func.extract("epoch", func.now() - first), Float).label("recent_seconds"),
            )
            .where(trials.c.run_id.in_(run_ids))
            .group_by(trials.c.run_id)
        )
        return {tally.run_id: tally for tally in self._all(TrialTally, statement)}

    def falls(self, run_ids: Sequence[str], figure: str) -> dict[str, list[tuple[int, float]]]:
        """For each run where in its search the best value of a figure fell, and to what: few rows, however many
        trials."""
        value = cast(trials.c.figures[figure].astext, Double)
        best = func.min(value).over(partition_by=trials.c.run_id, order_by=trials.c.number)
        known = and_(
            trials.c.run_id.in_(run_ids),
            trials.c.state == "complete",
            func.jsonb_typeof(trials.c.figures[figure]) == "number",
        )
        inner = (
            select(trials.c.run_id, trials.c.number, value.label("value"), best.label("best")).where(known).subquery()
        )
        before = func.lag(inner.c.best).over(partition_by=inner.c.run_id, order_by=inner.c.number)
        outer = select(inner, before.label("before")).subquery()
        fell = or_(outer.c.before.is_(None), outer.c.best < outer.c.before)
        statement = select(outer.c.run_id, outer.c.number, outer.c.best).where(fell)
        found: dict[str, list[tuple[int, float]]] = {}
        for run_id, number, reached in self.connection.execute(statement.order_by(outer.c.run_id, outer.c.number)):
            found.setdefault(run_id, []).append((number, reached))
        return found


def _holds(one: TrialFilter) -> ColumnElement[bool]:
    """Whether a trial passes; one that does not have what is asked for does not."""
    if one.relation == _IS and "|" in one.value:
        return or_(*(_holds(replace(one, value=value)) for value in one.value.split("|")))
    words = func.replace(_text_in(one.name), " ", "")  # conditions have no blanks
    try:
        asked = float(one.value)
    except ValueError:
        return words == one.value if one.relation == _IS else false()
    number = _number_in(one.name)
    if one.relation == _IS:
        return or_(number == asked, words == one.value)
    return number <= asked if one.relation == _BELOW else number >= asked


def _number_in(name: str) -> ColumnElement[float | None]:
    """A figure or a parameter as a number; NULL where it is none."""
    both = (trials.c.figures[name], trials.c.params[name])
    return case(*((func.jsonb_typeof(value) == "number", cast(value.astext, Double)) for value in both), else_=None)


def _text_in(name: str) -> ColumnElement[str | None]:
    """A parameter that is no number."""
    value = trials.c.params[name]
    return case((func.jsonb_typeof(value) != "number", value.astext), else_=None)
