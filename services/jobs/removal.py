"""Letting go: runs and models by name or by age, and the content that nobody refers to afterwards."""

from __future__ import annotations

from dataclasses import replace

from penstock.db import Database, Transaction
from penstock.db.schema.records import Freed, Run
from penstock.db.schema.states import RUN_TERMINAL
from penstock.db.schema.tables import STUDY_SCHEMA
from penstock.dse.search.forgetting import forget_study
from penstock.services.jobs.models import find_model
from penstock.services.jobs.refused import RefusedError
from penstock.services.jobs.runs import find_run, no_run
from penstock.services.store import ContentStore

GRACE_SECONDS = 3600.0
"""Longer than any writer takes from storing content to the row that refers to it."""
_RUNS_AT_ONCE = 50


def pin_run(tx: Transaction, run_id: str, pinned: bool) -> Run:
    """A pinned run is neither deleted nor collected until it is unpinned."""
    run = find_run(tx, run_id)
    tx.runs.set_pinned(run.id, pinned)
    return replace(run, pinned=pinned)


def delete_run(tx: Transaction, run_id: str) -> Freed:
    """Remove a run that is over, with its trials, events and files; its content goes when nobody else refers to it."""
    run = tx.runs.lock(find_run(tx, run_id).id)
    if run is None:
        raise no_run(run_id)
    if run.state not in RUN_TERMINAL:
        raise RefusedError(
            "run-going", f"the run is {run.state}", where="path", limit="only a run that is over can be deleted",
            hint=f"stop it first: `penstock cancel {run.id}`",
        )  # fmt: skip
    if run.pinned:
        raise RefusedError(
            "run-pinned", "the run is pinned: somebody wants it kept", where="path",
            hint=f"`penstock unpin {run.id}` lets it go",
        )  # fmt: skip
    freed = tx.retention.would_free([run.id])
    _remove(tx, run.id)
    return freed


def delete_model(tx: Transaction, model_id: str) -> None:
    """Remove a model of which there are no runs."""
    model = find_model(tx, model_id, where="path")
    tx.models.hold(model.id, to_delete=True)
    runs = tx.retention.runs_of_model(model.id)
    if runs:
        raise RefusedError(
            "model-in-use", f"there {'is a run' if runs == 1 else f'are {runs} runs'} of this model", where="path",
            hint="delete its runs first: GET /v1/runs?model=… lists them",
        )  # fmt: skip
    tx.retention.delete_model(model.id)


def collect(database: Database, days: float, *, dry_run: bool, actor: str | None = None) -> tuple[Freed, bool]:
    """Remove some of what is older than that, or only say what would go; and whether there is more.

    A transaction for each run: one that is being looked at, or is in use in any other way, holds up no other.
    """
    with database.begin() as tx:
        found = tx.retention.runs_over(days, 1_000_000 if dry_run else _RUNS_AT_ONCE)
        freed = tx.retention.would_free(found, days)
    if dry_run:
        return freed, False
    gone = 0
    for run_id in found:
        with database.begin(actor) as tx:
            run = tx.runs.lock(run_id)
            if run is not None and run.state in RUN_TERMINAL and not run.pinned:
                _remove(tx, run_id)
                gone += 1
    with database.begin() as tx:
        models = tx.retention.delete_models_over(days)
    return Freed(gone, models, freed.bytes), len(found) == _RUNS_AT_ONCE


def collect_content(database: Database, store: ContentStore, older_than_seconds: float = GRACE_SECONDS) -> int:
    """Remove content that no row refers to; how many bytes went."""

    freed = 0
    for some in store.old(older_than_seconds):
        with database.begin() as tx:
            if not tx.retention.lock_content():
                return freed  # a backup is being made: the next time
            kept = tx.retention.needed(some)
            unneeded = [sha256 for sha256 in some if sha256 not in kept]
            freed += store.remove(unneeded, older_than_seconds, tx.retention.needed) if unneeded else 0
    return freed


def _remove(tx: Transaction, run_id: str) -> None:
    tx.retention.delete_run(run_id)
    forget_study(tx.connection, STUDY_SCHEMA, run_id)
