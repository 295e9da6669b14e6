"""How a study is opened or made, closed, and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import optuna
from optuna.samplers import BaseSampler
from optuna.study import StudyDirection

from penstock.compiler.errors import PenstockError
from penstock.dse.search.own_storage import OwnStorage

if TYPE_CHECKING:
    from penstock.dse.search.storage import SharedStorage

    Storage = OwnStorage | SharedStorage

_OBJECTIVES = "objectives"


def open_storage(url: str | None) -> Storage:
    """One in this process without an address. Only another one needs the database's drivers, which take a while."""
    if url is None:
        return OwnStorage()
    from penstock.dse.search.storage import SharedStorage

    return SharedStorage(url)


def close_storage(storage: Storage) -> None:
    if not isinstance(storage, OwnStorage):
        storage.close()


def open_or_create(
    name: str, storage: Storage, sampler: BaseSampler, objectives: tuple[str, ...], create: bool
) -> optuna.Study:
    """The study, made by this call if it is not there. One that was made for something else is refused."""
    try:
        study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    except KeyError:
        if not create:
            raise gone(name) from None
        directions = [StudyDirection.MINIMIZE] * len(objectives)
        try:
            study = optuna.create_study(study_name=name, storage=storage, sampler=sampler, directions=directions)
            study.set_user_attr(_OBJECTIVES, list(objectives))
        except optuna.exceptions.DuplicatedStudyError:
            study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    made_for = tuple(study.user_attrs.get(_OBJECTIVES, objectives))
    if made_for != objectives or len(study.directions) != len(objectives):
        raise PenstockError(
            code="other-objectives", what=f"the study was made for {', '.join(made_for)}", where=name,
            limit=f"it is asked for {', '.join(objectives)}", hint="start a run of its own for other objectives",
        )  # fmt: skip
    return study


def gone(name: str) -> PenstockError:
    return PenstockError(
        code="study-gone", what="the study of this run is not there any more", where=name,
        limit="its trials so far are kept, but the search has lost its memory",
        hint="somebody deleted it: start the run again",
    )  # fmt: skip
