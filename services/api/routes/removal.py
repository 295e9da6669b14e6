"""Keeping and letting go: pins, the deletion of runs and models, /v1/gc."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from penstock.services.api.answers.documents import run_detail
from penstock.services.api.answers.params import PROBLEMS, RunId
from penstock.services.api.answers.schemas import (
    RunDetail,
)
from penstock.services.api.answers.upkeep import (
    Collected,
    Collection,
    FreedOut,
)
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.jobs import removal
from penstock.services.jobs.models import find_model
from penstock.services.jobs.runs import find_run

router = APIRouter(prefix="/v1", tags=["upkeep"], responses=PROBLEMS)


@router.post("/runs/{run_id}/pin", status_code=202, summary="Keep a run")
def pin_run(run_id: RunId, context: Ctx, caller: Caller) -> RunDetail:
    """A pinned run is neither deleted nor collected until it is unpinned. Asking twice is fine."""
    return _pinned(context, caller, run_id, True)


@router.post("/runs/{run_id}/unpin", status_code=202, summary="Keep a run no longer")
def unpin_run(run_id: RunId, context: Ctx, caller: Caller) -> RunDetail:
    """The run may be deleted again, and goes when its time comes."""
    return _pinned(context, caller, run_id, False)


@router.delete("/runs/{run_id}", summary="Delete a run")
def delete_run(run_id: RunId, context: Ctx, caller: Caller) -> FreedOut:
    """Removes a run that is over: its trials, events and files. One that is going is a 409: cancel it first.

    Content that other runs refer to stays; what nobody refers to goes within the hours after.
    """
    with context.database.begin(caller.actor) as tx:
        caller.check_may_change(find_run(tx, run_id))
        return FreedOut.model_validate(removal.delete_run(tx, run_id))


@router.delete("/models/{model_id}", status_code=204, summary="Delete a model")
def delete_model(model_id: Annotated[str, Path(max_length=64)], context: Ctx, caller: Caller) -> None:
    """Removes a model of which there are no runs."""
    with context.database.begin(caller.actor) as tx:
        caller.check_may_change(find_model(tx, model_id, where="path"), "model")
        removal.delete_model(tx, model_id)


@router.post("/gc", summary="Remove what is old")
def collect_garbage(asked: Collection, context: Ctx, caller: Caller) -> Collected:
    """Removes runs that ended so long ago and are not pinned, models without runs, and content that nobody needs.

    Some at a time: ask again while `more` is true. With `dry_run` it says what all of it would be; needs scope `admin`.
    """
    freed, more = removal.collect(
        context.database, asked.older_than_days, dry_run=asked.dry_run, actor=caller.actor
    )  # fmt: skip
    if not asked.dry_run and not more:
        removal.collect_content(context.database, context.store)
    known = FreedOut.model_validate(freed).model_dump()
    return Collected(**known, dry_run=asked.dry_run, more=more)


def _pinned(context: Context, caller: Caller, run_id: str, pinned: bool) -> RunDetail:
    with context.database.begin(caller.actor) as tx:
        caller.check_may_change(find_run(tx, run_id))
        return run_detail(tx, removal.pin_run(tx, run_id, pinned))
