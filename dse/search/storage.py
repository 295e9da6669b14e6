"""A study's storage in Postgres: a setting is written when it is whole; of a long study only a part is read.

Optuna writes each parameter and each constraint in a transaction of its own, and reads again what it just wrote. With
a dozen of each and a disk that really syncs, that is most of the time of a modelled trial.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages._cached_storage import _CachedStorage, _StudyInfo  # pyright: ignore[reportPrivateUsage]
from optuna.trial import FrozenTrial
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, ProgrammingError
from sqlalchemy.orm.exc import StaleDataError

from penstock.dse.search.own_storage import StoredSetting
from penstock.dse.search.rows import TrialRows

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


class SharedStorage(_CachedStorage):
    """One study's storage in Postgres, for a process that asks and tells one trial at a time."""

    ROW_MISSING: ClassVar[tuple[type[Exception], ...]] = (IntegrityError, StaleDataError)

    def __init__(self, url: str) -> None:
        self.rdb = _open(url)
        super().__init__(self.rdb)
        self._unwritten: list[tuple[str, float, str]] | None = None
        self._made: FrozenTrial | None = None
        self._was_read = False

    def collect(self) -> None:
        """From now on parameters are kept back, and what others did is read once, until `write_params`."""
        self._unwritten, self._made, self._was_read = [], None, False

    def write_params(self, trial_id: int | None) -> None:
        """Everything that was kept back, at once; nothing where no trial came of it."""
        rows, self._unwritten, self._made = self._unwritten, None, None
        if rows and trial_id is not None:
            self.rdb.write_params(trial_id, rows)

    def begin(self, study_id: int) -> tuple[int, int]:
        """A running trial that has no setting yet: its id, and its number in the study."""
        trial_id = self.create_new_trial(study_id)
        with self._lock:
            return trial_id, self._trial_id_to_study_id_and_number[trial_id][1]

    def write(self, trial_id: int, setting: StoredSetting, attributes: Mapping[str, str]) -> None:
        """A running trial's whole setting, and what else is known of it."""
        rows = [(name, kind.to_internal_repr(value), _written(kind)) for name, (kind, value) in setting.items()]
        self.rdb.write_params(trial_id, rows, attributes)

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        trial_id = super().create_new_trial(study_id, template_trial)
        if self._unwritten is not None and template_trial is None:
            with self._lock:
                _, number = self._trial_id_to_study_id_and_number[trial_id]
                self._made = self._studies[study_id].trials[number]
        return trial_id

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """One that was just made holds nothing that would have to be read."""
        made = self._made
        if made is not None and made._trial_id == trial_id:  # pyright: ignore[reportPrivateUsage]
            return copy.deepcopy(made)
        return super().get_trial(trial_id)

    def set_trial_param(
        self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution
    ) -> None:
        if self._unwritten is None:
            super().set_trial_param(trial_id, param_name, param_value_internal, distribution)
            return
        self._unwritten.append((param_name, param_value_internal, _written(distribution)))

    def counts(self, study_id: int) -> dict[str, int]:
        """How many trials are in each state, in lower case."""
        with self.rdb.engine.begin() as connection:
            return {state.lower(): count for state, count in connection.execute(_COUNTS, {"study": study_id})}

    def _read_trials_from_remote_storage(self, study_id: int) -> None:
        """What samplers learn from: of a long study the newest trials and the best of all, not every one."""
        if self._unwritten is not None and self._was_read:
            return
        with self._lock:
            known = self._studies.get(study_id)
            if known is None or not known.trials or len(known.trials) > 2 * REMEMBERED:
                self._studies[study_id] = self._beginning(study_id, known)
        super()._read_trials_from_remote_storage(study_id)
        self._was_read = True

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
        self.rdb.close()


def _open(url: str) -> TrialRows:
    """Several processes may make the tables of a new database at once; one wins, the others look again."""
    for attempt in range(_CREATE_ATTEMPTS):
        try:
            return TrialRows(url)
        except (IntegrityError, ProgrammingError):
            if attempt == _CREATE_ATTEMPTS - 1:
                raise
            time.sleep(0.05 * 2**attempt)
    raise AssertionError("unreachable")


@lru_cache(1024)
def _written(distribution: BaseDistribution) -> str:
    return distribution_to_json(distribution)
