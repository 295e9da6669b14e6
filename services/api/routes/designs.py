"""A design after its run: what changes of it would do, and a run that takes it as it is."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from penstock.services.api.answers.documents import run_detail
from penstock.services.api.answers.params import POLL_AFTER_SECONDS, PROBLEMS, RunId
from penstock.services.api.plumbing import idempotency
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Ctx
from penstock.services.jobs import designs
from penstock.services.jobs.changes import DesignChanges

router = APIRouter(prefix="/v1/runs", tags=["designs"], responses=PROBLEMS)


@router.post("/{run_id}/what-if", status_code=202, summary="Ask what changes of a design would do")
def ask_what_if(run_id: RunId, changes: DesignChanges, context: Ctx, caller: Caller) -> JSONResponse:
    """Starts a short run that models and simulates the run's design as it is and with other depths, lanes and tiles.

    Its summary has `what_if`: `before` and `after`, or why the changed design cannot be. Asked of such a run, the
    changes are added to those that it has. It takes a second or two once a worker is free.
    """
    with context.database.begin(caller.actor) as tx:
        run = designs.ask_what_if(
            tx, context.store, run_id, changes, owner=caller.owner, most_waiting=context.options.max_waiting_runs,
            quotas=context.options.quotas,
        )  # fmt: skip
        document = run_detail(tx, run)
    headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
    return idempotency.json_response(document, 202, headers)


@router.post("/{run_id}/take", status_code=202, summary="Start a run of exactly this design")
def take_design(run_id: RunId, context: Ctx, caller: Caller) -> JSONResponse:
    """Starts a run that searches nothing: it takes the design of a run, or of a question about one, sizes the FIFOs
    that the record leaves open, places, checks and packs it."""
    with context.database.begin(caller.actor) as tx:
        run = designs.take_design(
            tx, run_id, owner=caller.owner, most_waiting=context.options.max_waiting_runs,
            quotas=context.options.quotas,
        )  # fmt: skip
        document = run_detail(tx, run)
    headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
    return idempotency.json_response(document, 202, headers)
