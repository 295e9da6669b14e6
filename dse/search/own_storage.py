"""A study's storage in this process, which needs no database and none of its drivers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

from optuna.distributions import BaseDistribution
from optuna.storages import InMemoryStorage

StoredSetting = Mapping[str, tuple[BaseDistribution, Any]]
"""Parameters by name, each with its values and the one that it has."""


class OwnStorage(InMemoryStorage):
    """A study's storage in this process."""

    ROW_MISSING: ClassVar[tuple[type[Exception], ...]] = ()
    """What it raises for a row that somebody deleted, beside what Optuna does."""

    def begin(self, study_id: int) -> tuple[int, int]:
        """A running trial that has no setting yet: its id, and its number in the study."""
        trial_id = self.create_new_trial(study_id)
        return trial_id, self.get_trial_number_from_id(trial_id)

    def write(self, trial_id: int, setting: StoredSetting, attributes: Mapping[str, str]) -> None:
        """A running trial's whole setting, and what else is known of it."""
        with self._lock:
            trial = copy.copy(self._get_trial(trial_id))
            trial.params = {name: value for name, (_, value) in setting.items()}
            trial.distributions = {name: kind for name, (kind, _) in setting.items()}
            trial.user_attrs = {**trial.user_attrs, **attributes}
            self._set_trial(trial_id, trial)
