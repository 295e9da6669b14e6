"""The search's memory: an Optuna study, in Postgres for the service or in the process for the command line.

Ask and tell are separate, because a trial runs under the lease of a worker that may die: who asked need not be
who tells. Whoever finds a dead worker's trial calls `fail`, which ends it and puts its parameters back in the
queue. Nothing is kept outside the study's storage.
"""

from __future__ import annotations

import logging
import time
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import IntegrityError, ProgrammingError

from compiler.errors import PenstockError
from dse.evaluate import OBJECTIVES
from dse.tiling import Choices, Params, Value

SamplerName = Literal["tpe", "nsga2", "random"]
SAMPLERS: tuple[SamplerName, ...] = get_args(SamplerName)

_CREATE_ATTEMPTS = 8

optuna.logging.get_logger("optuna").setLevel(logging.WARNING)  # a line a trial is the caller's to write


@dataclass(frozen=True)
class Asked:
    """A trial to run: its number in the study, and its parameters."""

    number: int
    params: dict[str, Value]


@dataclass(frozen=True)
class Told:
    """A trial as the study remembers it. `values` is None until it is complete."""

    number: int
    state: Literal["running", "complete", "fail", "waiting"]
    params: dict[str, Value]
    values: tuple[float, ...] | None
    constraints: dict[str, float]

    @property
    def feasible(self) -> bool:
        return self.values is not None and all(v <= 0 for v in self.constraints.values())


class Study:
    """One search: a space, objectives to minimise, and the trials so far."""

    def __init__(self, study: optuna.Study, choices: Choices, storage: BaseStorage) -> None:
        self._study = study
        # also when it is merely forgotten: an open connection would outlive its use
        self._closing = weakref.finalize(self, _close_storage, storage)
        self._choices = choices
        self._distributions = {name: _distribution(values) for name, values in choices.items()}

    @staticmethod
    def create_or_load(
        name: str,
        choices: Choices,
        *,
        storage_url: str | None = None,
        sampler: str = "tpe",
        seed: int = 0,
        worker: int = 0,
        first: Sequence[Params] = (),
    ) -> Study:
        """Open the study, or create it with the `first` settings queued. Any number of processes may do so.

        Without `storage_url` the study lives in this process. `worker` keeps the samplers of several processes
        with one seed from proposing the same.
        """
        storage = _open_storage(storage_url)
        made, created = _open_study(name, storage, make_sampler(sampler, seed + 7919 * worker))
        study = Study(made, choices, storage)
        if created:
            for params in first:
                study.enqueue(params)
        return study

    def close(self) -> None:
        """Give the connections back. The study itself stays in the storage."""
        self._closing()

    @property
    def name(self) -> str:
        return self._study.study_name

    def ask(self) -> Asked:
        """The next trial: a queued setting if there is one, else what the sampler proposes."""
        with warnings.catch_warnings():
            # a queued setting may lack parameters; the sampler fills them in, which Optuna remarks upon
            warnings.simplefilter("ignore", category=UserWarning)
            trial = self._study.ask(fixed_distributions=self._distributions)
        return Asked(trial.number, self._decode(trial.params))

    def tell(self, number: int, values: Sequence[float], constraints: Mapping[str, float]) -> bool:
        """Finish a trial. False, and nothing changed, if it was finished before: the first answer stands."""
        if len(values) != len(OBJECTIVES):
            raise PenstockError(
                code="bad-objectives", what=f"{len(values)} values for {len(OBJECTIVES)} objectives",
                where=f"{self.name}, trial {number}", hint="give one for each of " + ", ".join(OBJECTIVES),
            )  # fmt: skip
        trial = self._trial(number)
        if self._frozen(number).state.is_finished():
            return False
        known = trial.constraints
        for key, value in constraints.items():
            if key not in known:
                trial.set_constraint(key, value)
        try:
            self._study.tell(number, list(values))
        except ValueError:
            if self._frozen(number).state.is_finished():
                return False  # somebody else was faster
            raise
        return True

    def fail(self, number: int, *, retry: bool) -> bool:
        """End a trial without an answer; with `retry` its setting is queued again. False if it was finished."""
        frozen = self._frozen(number)
        if frozen.state.is_finished():
            return False
        try:
            self._study.tell(number, state=TrialState.FAIL)
        except ValueError:
            if self._frozen(number).state.is_finished():
                return False
            raise
        if retry and frozen.params:
            self._study.enqueue_trial(frozen.params, user_attrs={"retry_of": number})
        return True

    def enqueue(self, params: Params) -> None:
        """Have a setting tried before the sampler's own proposals."""
        self._study.enqueue_trial(self._encode(params))

    def orphans(self, leased: Iterable[int]) -> tuple[int, ...]:
        """Running trials that nobody holds a lease for: whoever asked for them is dead."""
        held = set(leased)
        running = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return tuple(t.number for t in running if t.number not in held)

    def trials(self) -> tuple[Told, ...]:
        """All trials in order of their numbers."""
        return tuple(self._told(t) for t in self._study.get_trials(deepcopy=False))

    def trial(self, number: int) -> Told:
        return self._told(self._frozen(number))

    def _told(self, trial: FrozenTrial) -> Told:
        values = tuple(trial.values) if trial.state == TrialState.COMPLETE else None
        state = cast(Literal["running", "complete", "fail", "waiting"], trial.state.name.lower())
        return Told(trial.number, state, self._decode(trial.params), values, dict(trial.constraints))

    def _frozen(self, number: int) -> FrozenTrial:
        storage = self._storage
        return storage.get_trial(self._trial_id(number))

    def _trial(self, number: int) -> Trial:
        return Trial(self._study, self._trial_id(number))

    def _trial_id(self, number: int) -> int:
        try:
            study_id = self._storage.get_study_id_from_name(self.name)
            return self._storage.get_trial_id_from_study_id_trial_number(study_id, number)
        except KeyError as error:
            raise PenstockError(
                code="unknown-trial", what=f"there is no trial {number}", where=self.name,
                hint="the study may have been deleted and made anew",
            ) from error  # fmt: skip

    @property
    def _storage(self) -> BaseStorage:
        return self._study._storage  # pyright: ignore[reportPrivateUsage]

    def _encode(self, params: Params) -> dict[str, Any]:
        """Values to what Optuna samples: ordered choices are positions, the others themselves."""
        encoded: dict[str, Any] = {}
        for name, value in params.items():
            values = self._choices.get(name, ())
            if value not in values:
                raise PenstockError(
                    code="bad-parameter", what=f"{name} cannot be {value!r}", where=self.name,
                    limit="choices: " + ", ".join(map(str, values)), hint="take one of the choices",
                )  # fmt: skip
            encoded[name] = values.index(value) if is_ordered(values) else value
        return encoded

    def _decode(self, params: Mapping[str, Any]) -> dict[str, Value]:
        decoded: dict[str, Value] = {}
        for name, value in params.items():
            if name in self._choices:
                values = self._choices[name]
                decoded[name] = values[int(value)] if is_ordered(values) else value
        return decoded


def make_sampler(name: str, seed: int) -> BaseSampler:
    """A seeded sampler by name."""
    match name:
        case "tpe":
            return TPESampler(seed=seed, multivariate=True, n_startup_trials=16)
        case "nsga2":
            return NSGAIISampler(seed=seed, population_size=24)
        case "random":
            return RandomSampler(seed=seed)
        case _:
            raise PenstockError(
                code="unknown-sampler", what=f"there is no sampler {name!r}",
                limit="known are " + ", ".join(SAMPLERS), hint="pass one of these names",
            )  # fmt: skip


def is_ordered(values: Sequence[Value]) -> bool:
    """Whether a parameter's choices are numbers, so that neighbours are alike."""
    return all(isinstance(v, int) and not isinstance(v, bool) for v in values)


def _distribution(values: Sequence[Value]) -> BaseDistribution:
    return IntDistribution(0, len(values) - 1) if is_ordered(values) else CategoricalDistribution(list(values))


def _open_storage(url: str | None) -> BaseStorage:
    """Several processes may make the tables of a new database at once; one wins, the others look again."""
    if url is None:
        return InMemoryStorage()
    for attempt in range(_CREATE_ATTEMPTS):
        try:
            return RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
        except (IntegrityError, ProgrammingError):
            if attempt == _CREATE_ATTEMPTS - 1:
                raise
            time.sleep(0.05 * 2**attempt)
    raise AssertionError("unreachable")


def _close_storage(storage: BaseStorage) -> None:
    if isinstance(storage, RDBStorage):
        storage.engine.dispose()


def _open_study(name: str, storage: BaseStorage, sampler: BaseSampler) -> tuple[optuna.Study, bool]:
    """The study, and whether this call created it."""
    directions = [StudyDirection.MINIMIZE] * len(OBJECTIVES)
    try:
        study = optuna.create_study(study_name=name, storage=storage, sampler=sampler, directions=directions)
        with warnings.catch_warnings():
            # no promise of Optuna's, and none needed: the names are for its dashboard only
            warnings.simplefilter("ignore", category=optuna.exceptions.ExperimentalWarning)
            study.set_metric_names(list(OBJECTIVES))
    except optuna.exceptions.DuplicatedStudyError:
        return optuna.load_study(study_name=name, storage=storage, sampler=sampler), False
    return study, True


def delete_study(name: str, storage_url: str) -> None:
    """Forget a study and all its trials; one that is not there is forgotten already."""
    storage = _open_storage(storage_url)
    try:
        optuna.delete_study(study_name=name, storage=storage)
    except KeyError:
        return
    finally:
        _close_storage(storage)
