"""Optuna's tables by statements of our own: a trial is read in one, made on one way and answered in one.

Optuna itself takes some sixty statements a trial, and far longer to build them than the database takes to answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Container, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from math import isfinite
from typing import Any, LiteralString, cast

import psycopg
from optuna.distributions import BaseDistribution, json_to_distribution
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import DBAPIError

_COLUMNS = (
    "SELECT t.trial_id, t.number, CAST(t.state AS text), t.datetime_start, t.datetime_complete, "
    "(SELECT json_agg(CASE v.value_type WHEN 'FINITE' THEN CAST(v.value AS text) WHEN 'INF_POS' THEN 'inf' "
    "ELSE '-inf' END ORDER BY v.objective) FROM trial_values v WHERE v.trial_id = t.trial_id), "
    "(SELECT json_agg(json_build_array(p.param_name, p.param_value, p.distribution_json) ORDER BY p.param_id) "
    "FROM trial_params p WHERE p.trial_id = t.trial_id), "
    "(SELECT json_agg(json_build_array(a.key, a.value_json)) FROM trial_user_attributes a "
    "WHERE a.trial_id = t.trial_id), "
    "(SELECT json_agg(json_build_array(a.key, a.value_json)) FROM trial_system_attributes a "
    "WHERE a.trial_id = t.trial_id) FROM trials t "
)
_ONE = _COLUMNS + "WHERE t.trial_id = %(trial)s"
_SOME = (
    _COLUMNS + "WHERE t.study_id = %(study)s AND (t.trial_id > %(after)s OR t.trial_id = ANY(%(also)s)) "
    "ORDER BY t.trial_id"
)
_STUDY = "SELECT 1 FROM studies WHERE study_id = %(study)s"
# What is not an answer need not be on the disk when its statement ends: the next commit that waits takes it there, and
# the answer's waits. Should the server crash before, a trial is lost that had no answer yet.
_LATER = "set_config('synchronous_commit', 'off', true)"
# a row's lock, so that numbers are given one after the other; the count must come in a statement after it
_LOCK = f"SELECT study_id, {_LATER} FROM studies WHERE study_id = %(study)s FOR NO KEY UPDATE"
_MAKE = (
    "INSERT INTO trials (number, study_id, state, datetime_start) SELECT count(*), %(study)s, 'RUNNING', %(now)s "
    "FROM trials WHERE study_id = %(study)s HAVING EXISTS (SELECT 1 FROM studies WHERE study_id = %(study)s) "
    "RETURNING trial_id, number"
)
_PARAMS = (
    f"WITH later AS MATERIALIZED (SELECT {_LATER}), "
    "noted AS (INSERT INTO trial_user_attributes (trial_id, key, value_json) "
    "SELECT t.trial_id, a.key, to_json(a.value)::text "
    "FROM trials t, json_each_text(CAST(%(attributes)s AS json)) AS a WHERE t.trial_id = %(trial)s) "
    "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
    "SELECT t.trial_id, p ->> 0, CAST(p ->> 1 AS float8), p ->> 2 "
    "FROM trials t, later, json_array_elements(CAST(%(params)s AS json)) AS p WHERE t.trial_id = %(trial)s"
)
_ANSWER = (
    "WITH ended AS (UPDATE trials SET state = 'COMPLETE', datetime_complete = %(now)s "
    "WHERE trial_id = %(trial)s AND state = 'RUNNING' "
    "AND (CAST(%(started)s AS timestamp) IS NULL OR datetime_start = %(started)s) RETURNING trial_id), "
    "valued AS (INSERT INTO trial_values (trial_id, objective, value, value_type) "
    "SELECT trial_id, v.place - 1, CAST(v.value AS float8), 'FINITE' "
    "FROM ended, json_array_elements_text(CAST(%(values)s AS json)) WITH ORDINALITY AS v(value, place)), "
    "limited AS (INSERT INTO trial_system_attributes (trial_id, key, value_json) "
    "SELECT trial_id, 'constraints:' || c.key, c.value "
    "FROM ended, json_each_text(CAST(%(constraints)s AS json)) AS c "
    "ON CONFLICT (trial_id, key) DO NOTHING) "
    "SELECT count(*) FROM ended"
)
_TRUSTED_SECONDS = 1.0
"""A connection that was used so lately is not asked whether it still stands."""

SqlRow = tuple[Any, ...]


class TrialRows(RDBStorage):
    """Optuna's storage in Postgres, with what happens at every trial done in few statements.

    These go over one connection that is kept, and past SQLAlchemy, which takes longer than the database does.
    """

    def __init__(self, url: str) -> None:
        self._line: psycopg.Connection[SqlRow] | None = None
        self._used = 0.0
        self._started: dict[int, datetime] = {}
        """When the trials started that this process made and nobody has answered."""
        super().__init__(url, engine_kwargs={"pool_pre_ping": True})

    def close(self) -> None:
        self._hang_up()
        self.engine.dispose()

    @contextmanager
    def _kept(self) -> Generator[psycopg.Connection[SqlRow]]:
        """The connection, each statement a transaction of its own; errors as SQLAlchemy names them."""
        try:
            yield self._connected()
            self._used = time.monotonic()
        except psycopg.Error as error:
            self._hang_up()
            raise DBAPIError.instance(None, None, error, psycopg.Error) from error

    def _connected(self) -> psycopg.Connection[SqlRow]:
        if self._line is not None and time.monotonic() - self._used > _TRUSTED_SECONDS and not _stands(self._line):
            self._hang_up()
        if self._line is None:
            found = self.engine.raw_connection()
            self._line = cast("psycopg.Connection[SqlRow]", found.driver_connection)
            found.detach()
            self._line.autocommit = True
        return self._line

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _alone(self, statement: LiteralString, values: Mapping[str, Any]) -> list[SqlRow]:
        """One statement that is a transaction of its own."""
        with self._kept() as connection:
            return connection.execute(statement, values, prepare=True).fetchall()

    def _get_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        included_trial_ids: set[int],
        trial_id_greater_than: int,
    ) -> list[FrozenTrial]:
        asked = {"study": study_id, "after": trial_id_greater_than, "also": list(included_trial_ids)}
        found = [_trial(row) for row in self._alone(_SOME, asked)]
        if not found and not self._alone(_STUDY, {"study": study_id}):
            raise KeyError(f"there is no study {study_id}")
        return [trial for trial in found if states is None or trial.state in states]

    def get_trial(self, trial_id: int) -> FrozenTrial:
        rows = self._alone(_ONE, {"trial": trial_id})
        if not rows:
            raise KeyError(f"there is no trial {trial_id}")
        return _trial(rows[0])

    def _create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> FrozenTrial:
        if template_trial is not None:
            return super()._create_new_trial(study_id, template_trial)
        now = datetime.now()  # as Optuna's own times, without a zone
        asked = {"study": study_id, "now": now}
        with self._kept() as connection, connection.pipeline():  # all of it on one way there and back
            with connection.transaction():
                connection.execute(_LOCK, asked, prepare=True)
                made = connection.execute(_MAKE, asked, prepare=True)
            row = made.fetchone()
        if row is None:
            raise KeyError(f"there is no study {study_id}")
        trial_id, number = row
        self._started[trial_id] = now
        return _frozen(trial_id, number, TrialState.RUNNING, now)

    def write_params(
        self, trial_id: int, params: Sequence[tuple[str, float, str]], attributes: Mapping[str, str] | None = None
    ) -> None:
        """A whole setting: names, internal values and distributions as text. Attributes are written beside it."""
        written = {"params": json.dumps(params), "attributes": json.dumps(dict(attributes or {}))}
        with self._kept() as connection:
            made = connection.execute(_PARAMS, {"trial": trial_id, **written}, prepare=True)
        if made.rowcount != len(params):
            raise KeyError(f"there is no trial {trial_id}")

    def answer(self, trial_id: int, values: Sequence[float], constraints: Mapping[str, float]) -> bool:
        """End a running trial. False, and nothing changed, if it does not run, or a figure is not finite."""
        if not all(isfinite(figure) for figure in (*values, *constraints.values())):
            return False
        figures = {"values": json.dumps([*map(float, values)]), "constraints": json.dumps(dict(constraints))}
        times = {"now": datetime.now(), "started": self._started.get(trial_id)}  # as Optuna's own, without a zone
        answered = bool(self._alone(_ANSWER, {"trial": trial_id, **times, **figures})[0][0])
        if answered:
            self._started.pop(trial_id, None)
        return answered

    def is_another(self, trial: FrozenTrial) -> bool:
        """Whether a crash of the server lost the trial that this process made, and the number was given again."""
        started = self._started.get(trial._trial_id)  # pyright: ignore[reportPrivateUsage]
        return started is not None and started != trial.datetime_start


def _stands(connection: psycopg.Connection[SqlRow]) -> bool:
    try:
        connection.execute("")
    except psycopg.OperationalError:
        return False
    return True


def _trial(row: SqlRow) -> FrozenTrial:
    trial_id, number, state, started, ended, *lists = row
    values: list[str] = lists[0] or []
    params: list[tuple[str, float, str]] = lists[1] or []
    user: list[tuple[str, str]] = lists[2] or []
    system: list[tuple[str, str]] = lists[3] or []
    trial = _frozen(trial_id, number, TrialState[state], started)
    trial.datetime_complete = ended
    trial.values = [float(value) for value in values] if values else None
    for name, internal, written in params:
        kind = _distribution(written)
        trial.distributions[name], trial.params[name] = kind, kind.to_external_repr(internal)
    trial.user_attrs = {key: json.loads(value) for key, value in user}
    trial.system_attrs = {key: json.loads(value) for key, value in system}
    return trial


def _frozen(trial_id: int, number: int, state: TrialState, started: datetime | None) -> FrozenTrial:
    return FrozenTrial(
        number=number, state=state, value=None, values=None, datetime_start=started, datetime_complete=None,
        params={}, distributions={}, user_attrs={}, system_attrs={}, intermediate_values={}, trial_id=trial_id,
    )  # fmt: skip


@lru_cache(1024)
def _distribution(written: str) -> BaseDistribution:
    return json_to_distribution(written)
