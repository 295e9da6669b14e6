"""The search's memory: an Optuna study, in Postgres for the service or in the process for the command line.

Ask and tell are separate, because a trial runs under the lease of a worker that may die: who asked need not be
who tells. Whoever finds a dead worker's trial calls `fail`, which ends it and puts its parameters back in the
queue. Nothing is kept outside the study's storage.
"""

from __future__ import annotations

import json
import logging
import warnings
import weakref
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

import optuna
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.objectives import DEFAULT_OBJECTIVES
from penstock.dse.search.generations import Answered, Answering, Generations
from penstock.dse.search.local import MEANS, LocalProposer, Meaning, Proposal
from penstock.dse.search.opening import close_storage, gone, open_or_create, open_storage
from penstock.dse.search.own_storage import OwnStorage
from penstock.dse.search.sampler_kinds import DEFAULT_SAMPLER, Searched, sampler_kind
from penstock.dse.search.samplers import distribution, grid, in_order, is_ordered, means_something
from penstock.dse.space.tiling import Choices, Conditions, Params, Value

if TYPE_CHECKING:
    from penstock.dse.search.opening import Storage

_ORIGIN, _FIRST, _INDEX = "origin", "first", "index"
AGENT = "an agent"
"""Where a setting is from that a program outside decided."""

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
    origin: str = ""
    """Where its setting was found before, if it was."""
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    """All that is known of it, where somebody kept it: a study remembers its objectives only."""

    @property
    def feasible(self) -> bool:
        return self.values is not None and all(v <= 0 for v in self.constraints.values())


class Study:
    """One search: a space, objectives to minimise, and the trials so far."""

    def __init__(
        self,
        study: optuna.Study,
        choices: Choices,
        storage: Storage,
        conditions: Conditions,
        objectives: tuple[str, ...],
        settings: Sequence[Params] | None,
        proposer: LocalProposer | None,
    ) -> None:
        self._study = study
        self._name = study.study_name
        # also when it is merely forgotten: an open connection would outlive its use
        self._closing = weakref.finalize(self, close_storage, storage)
        self._choices = choices
        self._conditions = conditions
        self._objectives = objectives
        self._distributions = {name: distribution(choices[name]) for name in in_order(choices, conditions)}
        self._grid = settings
        self._first: list[tuple[Params, str]] = json.loads(study.user_attrs.get(_FIRST, "[]"))
        self._generations = None if proposer is None else Generations(proposer, [params for params, _ in self._first])
        self._ended: dict[int, Answered] = {}

    @staticmethod
    def create_or_load(
        name: str,
        choices: Choices,
        *,
        conditions: Conditions | None = None,
        objectives: Sequence[str] = DEFAULT_OBJECTIVES,
        storage_url: str | None = None,
        sampler: str = DEFAULT_SAMPLER,
        seed: int = 0,
        worker: int = 0,
        first: Sequence[Params | tuple[Params, str]] = (),
        create: bool = True,
        meaning: Meaning | None = None,
    ) -> Study:
        """Open the study, or create it with the `first` settings, each with where it was found if it was.

        Any number of processes may do so. Without `storage_url` the study lives in this process. `worker` keeps the
        samplers of several processes with one seed from proposing the same. With `create=False` a study that is gone
        is an error. By `meaning` a sampler knows which settings are the same design, and need not be tried.
        """
        storage = open_storage(storage_url)
        wanted, own_seed = tuple(objectives), seed + 7919 * worker
        kind = sampler_kind(sampler)
        known = Searched(choices, conditions or {}, own_seed, meaning)
        begun = [one if isinstance(one, tuple) else (one, "") for one in first]
        try:
            made = open_or_create(name, storage, kind.make(known), wanted, create)
            if begun and _FIRST not in made.user_attrs:
                _check_all([params for params, _ in begun], choices, name)
                made.set_user_attr(_FIRST, json.dumps([(dict(params), origin) for params, origin in begun]))
        except BaseException:
            close_storage(storage)
            raise
        settings = grid(choices, conditions or {}, seed) if kind.walks else None
        proposer = kind.proposes(known) if kind.proposes is not None else None
        return Study(made, choices, storage, conditions or {}, wanted, settings, proposer)

    def close(self) -> None:
        """Give the connections back. The study itself stays in the storage."""
        self._closing()

    @property
    def name(self) -> str:
        return self._name

    @property
    def size(self) -> int | None:
        """How many settings there are to try, where all of them are known."""
        return None if self._grid is None else len(self._grid)

    def begin(self, index: int, params: Params) -> Asked:
        """The trial at a place of the search, with a setting that an agent decided."""
        with self._still_there():
            return self._ask_own((), index, None, params)

    def ask(self, index: int | None = None, evaluate: Answering | None = None) -> Asked:
        """The next trial: one of the first settings, a queued one, or what the sampler proposes.

        With an `index`, the trial at that place of the search. Whoever asks for the same again, since an attempt was
        lost, gets the same setting: always of the first settings and of a grid, and by the default sampler where
        `evaluate` says what comes of a setting that another process is still at.
        """
        if self._grid is not None:
            with self._still_there():
                return self._ask_grid(self._grid, index)
        with self._still_there():
            trials = self._study.get_trials(deepcopy=False)
            own = index is not None or not any(trial.state == TrialState.WAITING for trial in trials)
            place = len(trials) if index is None else index
            if own and (place < len(self._first) or self._generations is not None):
                return self._ask_own(trials, index, evaluate)
        with warnings.catch_warnings(), self._still_there(), self._written_at_once() as written:
            # a queued setting may lack parameters; the sampler fills them in, which Optuna remarks upon
            warnings.simplefilter("ignore", category=UserWarning)
            trial = self._study.ask()
            written.append(self._trial_id(trial.number))
            params: dict[str, Value] = {}
            for name, kind in self._distributions.items():
                if means_something(name, params, self._conditions):
                    found = trial._suggest(name, kind)  # pyright: ignore[reportPrivateUsage]
                    params |= self._decode({name: found})
        return Asked(trial.number, params)

    def _ask_own(
        self, trials: Sequence[FrozenTrial], index: int | None, evaluate: Answering | None, told: Params | None = None
    ) -> Asked:
        """A whole setting, which is written as one and not parameter by parameter."""
        storage = self._storage
        trial_id, number = storage.begin(self._study_id)
        place = number if index is None else index
        noted = {} if index is None else {_INDEX: str(index)}
        if told is not None:
            proposal = Proposal((), dict(told), None)
            noted[_ORIGIN] = AGENT
        elif place < len(self._first):
            params, origin = self._first[place]
            proposal = Proposal((), dict(params), None)
            noted |= {_ORIGIN: origin} if origin else {}
        else:
            assert self._generations is not None, "others propose by themselves"
            known = self._known(trials, by_index=index is not None)
            proposal = self._generations.setting(place, known, evaluate if index is not None else None)
        noted |= {} if proposal.means is None else {MEANS: proposal.means}
        setting = {name: (self._distributions[name], v) for name, v in self._encode(proposal.params).items()}
        storage.write(trial_id, setting, noted)
        return Asked(number, proposal.params)

    def _known(self, trials: Sequence[FrozenTrial], *, by_index: bool) -> dict[int, Answered]:
        """The trials by their place in the search; of several attempts at one, what has an answer."""
        found: dict[int, Answered] = {}
        for trial in trials:
            if not trial.params or (by_index and _INDEX not in trial.user_attrs):
                continue
            one = self._ended.get(trial.number)
            if one is None:
                complete = trial.state == TrialState.COMPLETE
                answer = (tuple(trial.values), dict(trial.constraints)) if complete else None
                means = trial.user_attrs.get(MEANS)
                one = Answered(self._decode(trial.params), answer, None if means is None else str(means))
                if complete:
                    self._ended[trial.number] = one
            place = int(trial.user_attrs[_INDEX]) if by_index else trial.number
            if place not in found or one.answer is not None:
                found[place] = one
        return found

    def _ask_grid(self, settings: Sequence[Params], index: int | None) -> Asked:
        position = sum(self.counts().values()) if index is None else index
        if position >= len(settings):
            raise PenstockError(
                code="grid-exhausted", what="every setting of the space was tried", where=self.name,
                limit=f"there are {len(settings)}", hint="nothing is left to search",
            )  # fmt: skip
        params = dict(settings[position])
        known = {name: self._distributions[name] for name in params}
        template = create_trial(state=TrialState.RUNNING, params=self._encode(params), distributions=known)
        trial_id = self._storage.create_new_trial(self._study_id, template)
        return Asked(self._storage.get_trial(trial_id).number, params)

    @contextmanager
    def _written_at_once(self) -> Generator[list[int], None, None]:
        """A setting is written when it is whole, to the trial that is given: a sampler must not wait for a disk."""
        storage = self._storage
        made: list[int] = []
        if isinstance(storage, OwnStorage):
            yield made
            return
        storage.collect()
        try:
            yield made
        finally:
            storage.write_params(made[0] if made else None)

    def tell(self, number: int, values: Sequence[float], constraints: Mapping[str, float]) -> bool:
        """Finish a trial. False, and nothing changed, if it was finished before: the first answer stands.

        False also where the database's server crashed since the trial was asked for, and with it the trial is lost.
        """
        if len(values) != len(self._objectives):
            raise PenstockError(
                code="bad-objectives", what=f"{len(values)} values for {len(self._objectives)} objectives",
                where=f"{self.name}, trial {number}", hint="give one for each of " + ", ".join(self._objectives),
            )  # fmt: skip
        with self._still_there():
            return self._tell(number, values, constraints)

    def _tell(self, number: int, values: Sequence[float], constraints: Mapping[str, float]) -> bool:
        storage = self._storage
        if not isinstance(storage, OwnStorage) and storage.rdb.answer(self._trial_id(number), values, constraints):
            return True
        frozen = self._frozen(number)
        if frozen.state.is_finished() or (not isinstance(storage, OwnStorage) and storage.rdb.is_another(frozen)):
            return False
        trial = self._trial(number)
        for key, value in constraints.items():
            if key not in frozen.constraints:
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
        with self._still_there():
            return self._fail(number, retry)

    def _fail(self, number: int, retry: bool) -> bool:
        frozen = self._frozen(number)
        if frozen.state.is_finished():
            return False
        try:
            self._study.tell(number, state=TrialState.FAIL)
        except ValueError:
            if self._frozen(number).state.is_finished():
                return False
            raise
        if retry and frozen.params and self._grid is None and _INDEX not in frozen.user_attrs:
            self._study.enqueue_trial(frozen.params, user_attrs={"retry_of": number})
        return True

    def enqueue(self, params: Params, *, origin: str = "") -> None:
        """Have a setting tried before the sampler's own proposals. `origin` says where it was found."""
        self._study.enqueue_trial(self._encode(params), user_attrs={_ORIGIN: origin} if origin else None)

    def orphans(self, leased: Iterable[int]) -> tuple[int, ...]:
        """Running trials that nobody holds a lease for: whoever asked for them is dead."""
        held = set(leased)
        running = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return tuple(t.number for t in running if t.number not in held)

    def trials(self) -> tuple[Told, ...]:
        """The trials in order of their numbers, all of them unless the study is long: see `counts`."""
        return tuple(self._told(t) for t in self._study.get_trials(deepcopy=False))

    def counts(self) -> dict[str, int]:
        """How many trials are in each state; of a long study `trials` knows the newest and the best only."""
        if not isinstance(self._storage, OwnStorage):
            return self._storage.counts(self._study_id)
        states = [t.state.name.lower() for t in self._study.get_trials(deepcopy=False)]
        return {state: states.count(state) for state in states}

    def trial(self, number: int) -> Told:
        with self._still_there():
            return self._told(self._frozen(number))

    @contextmanager
    def _still_there(self) -> Generator[None, None, None]:
        """Whatever a missing row looks like, the reason may be that somebody deleted the study: then say so."""
        try:
            yield
        except (KeyError, PenstockError, StorageInternalError, *self._storage.ROW_MISSING) as error:
            try:
                found = self._storage.get_study_id_from_name(self.name)
            except KeyError:
                raise gone(self.name) from error
            if found != self._study_id:
                raise gone(self.name) from error
            raise

    def _told(self, trial: FrozenTrial) -> Told:
        values = tuple(trial.values) if trial.state == TrialState.COMPLETE else None
        state = cast(Literal["running", "complete", "fail", "waiting"], trial.state.name.lower())
        origin = str(trial.user_attrs.get(_ORIGIN, ""))
        return Told(trial.number, state, self._decode(trial.params), values, dict(trial.constraints), origin)

    def _frozen(self, number: int) -> FrozenTrial:
        storage = self._storage
        return storage.get_trial(self._trial_id(number))

    def _trial(self, number: int) -> Trial:
        return Trial(self._study, self._trial_id(number))

    def _trial_id(self, number: int) -> int:
        try:
            return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, number)
        except KeyError as error:
            raise PenstockError(
                code="unknown-trial", what=f"there is no trial {number}", where=self.name,
                hint="trials are numbered from 0",
            ) from error  # fmt: skip

    @property
    def _study_id(self) -> int:
        return self._study._study_id  # pyright: ignore[reportPrivateUsage]

    @property
    def _storage(self) -> Storage:
        return cast("Storage", self._study._storage)  # pyright: ignore[reportPrivateUsage]

    def _encode(self, params: Params) -> dict[str, Any]:
        """Values to what Optuna samples: ordered choices are positions, the others themselves."""
        encoded: dict[str, Any] = {}
        for name, value in params.items():
            values = self._choices.get(name, ())
            _check(name, value, self._choices, self.name)
            encoded[name] = values.index(value) if is_ordered(values) else value
        return encoded

    def _decode(self, params: Mapping[str, Any]) -> dict[str, Value]:
        decoded: dict[str, Value] = {}
        for name, value in params.items():
            if name in self._choices:
                values = self._choices[name]
                decoded[name] = values[int(value)] if is_ordered(values) else value
        return decoded


def _check_all(settings: Sequence[Params], choices: Choices, where: str) -> None:
    for params in settings:
        for name, value in params.items():
            _check(name, value, choices, where)


def _check(name: str, value: Value, choices: Choices, where: str) -> None:
    if value not in (values := choices.get(name, ())):
        raise PenstockError(
            code="bad-parameter", what=f"{name} cannot be {value!r}", where=where,
            limit="choices: " + ", ".join(map(str, values)), hint="take one of the choices",
        )  # fmt: skip
