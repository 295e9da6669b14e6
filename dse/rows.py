"""Optuna's tables by statements of our own: a trial is read in one, made in two and answered in one.

Optuna itself takes some sixty statements a trial, and far longer to build them than the database takes to answer.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from math import isfinite
from typing import Any, cast

from optuna.distributions import BaseDistribution, json_to_distribution
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import Connection, Row, TextClause, text

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
_ONE = text(_COLUMNS + "WHERE t.trial_id = :trial")
_SOME = text(
    _COLUMNS + "WHERE t.study_id = :study AND (t.trial_id > :after OR t.trial_id = ANY(:also)) ORDER BY t.trial_id"
)
_STUDY = text("SELECT 1 FROM studies WHERE study_id = :study")
# a row's lock, so that numbers are given one after the other; the count must come in a statement after it
_LOCK = text("SELECT study_id FROM studies WHERE study_id = :study FOR UPDATE")
_MAKE = text(
    "INSERT INTO trials (number, study_id, state, datetime_start) SELECT count(*), :study, 'RUNNING', :now "
    "FROM trials WHERE study_id = :study RETURNING trial_id, number"
)
_PARAMS = text(
    "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
    "SELECT :trial, p ->> 0, CAST(p ->> 1 AS float8), p ->> 2 FROM json_array_elements(CAST(:params AS json)) AS p"
)
_ANSWER = text(
    "WITH ended AS (UPDATE trials SET state = 'COMPLETE', datetime_complete = :now "
    "WHERE trial_id = :trial AND state = 'RUNNING' RETURNING trial_id), "
    "valued AS (INSERT INTO trial_values (trial_id, objective, value, value_type) "
    "SELECT trial_id, v.place - 1, CAST(v.value AS float8), 'FINITE' "
    "FROM ended, json_array_elements_text(CAST(:values AS json)) WITH ORDINALITY AS v(value, place)), "
    "limited AS (INSERT INTO trial_system_attributes (trial_id, key, value_json) "
    "SELECT trial_id, 'constraints:' || c.key, c.value FROM ended, json_each_text(CAST(:constraints AS json)) AS c "
    "ON CONFLICT (trial_id, key) DO NOTHING) "
    "SELECT count(*) FROM ended"
)


class TrialRows(RDBStorage):
    """Optuna's storage in Postgres, with what happens at every trial done in few statements."""

    def _alone(self, statement: TextClause, values: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """One statement that is a transaction of its own."""
        with self._connect() as connection:
            return connection.execute(statement, values).all()

    def _connect(self) -> Connection:
        return self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")

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
        with self.engine.begin() as connection:
            if connection.execute(_LOCK, {"study": study_id}).first() is None:
                raise KeyError(f"there is no study {study_id}")
            trial_id, number = connection.execute(_MAKE, {"study": study_id, "now": now}).one()
        return _frozen(trial_id, number, TrialState.RUNNING, now)

    def write_params(self, trial_id: int, params: Sequence[tuple[str, float, str]]) -> None:
        """A whole setting: names, internal values and distributions as text."""
        with self._connect() as connection:
            connection.execute(_PARAMS, {"trial": trial_id, "params": json.dumps(params)})

    def answer(self, trial_id: int, values: Sequence[float], constraints: Mapping[str, float]) -> bool:
        """End a running trial. False, and nothing changed, if it does not run, or a figure is not finite."""
        if not all(isfinite(figure) for figure in (*values, *constraints.values())):
            return False
        figures = {"values": json.dumps([*map(float, values)]), "constraints": json.dumps(dict(constraints))}
        now = datetime.now()  # as Optuna's own times, without a zone
        return bool(self._alone(_ANSWER, {"trial": trial_id, "now": now, **figures})[0][0])


def _trial(row: Row[Any]) -> FrozenTrial:
    trial_id, number, state, started, ended, *lists = cast(tuple[Any, ...], row)
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
