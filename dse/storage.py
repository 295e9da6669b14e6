"""Optuna's tables, written to less often: a setting in one statement, an answer's constraints in one.

Optuna writes each parameter and each constraint in a transaction of its own. With a dozen of each and a disk that
really syncs, that is most of the time of a modelled trial.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages import RDBStorage
from optuna.storages._cached_storage import _CachedStorage, _StudyInfo  # pyright: ignore[reportPrivateUsage]
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, ProgrammingError

_CREATE_ATTEMPTS = 8

REMEMBERED, BEST_REMEMBERED = 1000, 100
"""A sampler looks at the newest trials and at the best by each objective: more cost it time and teach it little."""

_COUNTS = text("SELECT state::text, count(*) FROM trials WHERE study_id = :study GROUP BY state")
_OLDEST = text(
    "SELECT coalesce(min(trial_id), 0) FROM "
    "(SELECT trial_id FROM trials WHERE study_id = :study ORDER BY trial_id DESC LIMIT :newest) AS newest"
)
_OLD_BUT_NEEDED = text(
    "SELECT trial_id FROM trials WHERE study_id = :study AND state IN ('RUNNING', 'WAITING') UNION "
    "SELECT trial_id FROM (SELECT t.trial_id, "
    "row_number() OVER (PARTITION BY v.objective ORDER BY v.value, t.trial_id) AS place "
    "FROM trials t JOIN trial_values v USING (trial_id) WHERE t.study_id = :study AND t.state = 'COMPLETE' "
    "AND NOT EXISTS (SELECT 1 FROM trial_system_attributes a WHERE a.trial_id = t.trial_id "
    "AND a.key LIKE 'constraints:%' AND a.value_json::float > 0)) AS ranked WHERE place <= :best"
)
_PARAMS = text(
    "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
    "VALUES (:trial, :name, :value, :distribution)"
)
_CONSTRAINTS = text(
    "INSERT INTO trial_system_attributes (trial_id, key, value_json) VALUES (:trial, :key, :value) "
    "ON CONFLICT (trial_id, key) DO NOTHING"
)


class SharedStorage(_CachedStorage):
    """One study's storage in Postgres, for a process that asks and tells one trial at a time."""

    def __init__(self, url: str) -> None:
        self.rdb = _open(url)
        super().__init__(self.rdb)
        self._unwritten: list[dict[str, Any]] | None = None

    def collect(self) -> None:
        """From now on parameters are kept back, until `write_params`."""
        self._unwritten = []

    def write_params(self) -> None:
        """Everything that was kept back, at once."""
        rows, self._unwritten = self._unwritten, None
        if rows:
            with self.rdb.engine.begin() as connection:
                connection.execute(_PARAMS, rows)

    def set_trial_param(
        self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution
    ) -> None:
        if self._unwritten is None:
            super().set_trial_param(trial_id, param_name, param_value_internal, distribution)
            return
        row = {"trial": trial_id, "name": param_name, "value": param_value_internal}
        self._unwritten.append(row | {"distribution": distribution_to_json(distribution)})

    def set_constraints(self, trial_id: int, constraints: Mapping[str, float]) -> None:
        """All of a trial's constraints at once; the first answer to each stands."""
        rows = [{"trial": trial_id, "key": f"constraints:{k}", "value": json.dumps(v)} for k, v in constraints.items()]
        if rows:
            with self.rdb.engine.begin() as connection:
                connection.execute(_CONSTRAINTS, rows)

    def counts(self, study_id: int) -> dict[str, int]:
        """How many trials are in each state, in lower case."""
        with self.rdb.engine.begin() as connection:
            return {state.lower(): count for state, count in connection.execute(_COUNTS, {"study": study_id})}

    def _read_trials_from_remote_storage(self, study_id: int) -> None:
        """What samplers learn from: of a long study the newest trials and the best of all, not every one."""
        with self._lock:
            known = self._studies.get(study_id)
            if known is None or not known.trials or len(known.trials) > 2 * REMEMBERED:
                self._studies[study_id] = self._beginning(study_id, known)
        super()._read_trials_from_remote_storage(study_id)

    def _beginning(self, study_id: int, known: _StudyInfo | None) -> _StudyInfo:
        """A study of which nothing is read yet, with marks for what is to be read first."""
        info = _StudyInfo()
        if known is not None:
            info.name, info.directions, info.param_distribution = known.name, known.directions, known.param_distribution
        asked = {"study": study_id, "newest": REMEMBERED, "best": BEST_REMEMBERED}
        with self.rdb.engine.begin() as connection:
            info.last_finished_trial_id = connection.execute(_OLDEST, asked).scalar_one() - 1
            info.unfinished_trial_ids = set(connection.execute(_OLD_BUT_NEEDED, asked).scalars())
        return info

    def close(self) -> None:
        self.rdb.engine.dispose()


def _open(url: str) -> RDBStorage:
    """Several processes may make the tables of a new database at once; one wins, the others look again."""
    for attempt in range(_CREATE_ATTEMPTS):
        try:
            return RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
        except (IntegrityError, ProgrammingError):
            if attempt == _CREATE_ATTEMPTS - 1:
                raise
            time.sleep(0.05 * 2**attempt)
    raise AssertionError("unreachable")
