"""/v1/runs: starting runs, looking at them, stopping them."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from penstock.db.schema.states import RUN_TERMINAL
from penstock.services.api.answers.documents import run_detail, run_list, submitted_run
from penstock.services.api.answers.params import POLL_AFTER_SECONDS, PROBLEMS, PageLimit, RunCursor, RunId, check_cursor
from penstock.services.api.answers.schemas import NewRun, RunDetail, RunList, RunStateName
from penstock.services.api.plumbing import idempotency
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.idempotency import IdempotencyHeader
from penstock.services.api.routes.models import intake
from penstock.services.jobs import runs
from penstock.services.jobs.models import find_model
from penstock.services.jobs.runs import find_run
from penstock.services.run_options import PlainText, RunOptions

router = APIRouter(prefix="/v1/runs", tags=["runs"], responses=PROBLEMS)

LONGEST_WAIT_SECONDS = 60


@router.post("", status_code=202, response_model=RunDetail, summary="Start a run")
def start_run(asked: NewRun, context: Ctx, caller: Caller, idempotency_key: IdempotencyHeader = None) -> JSONResponse:
    """Queues a run of a model. Follow `Location`; the answer to a GET there changes until the run is over."""
    idempotency.check_key(idempotency_key)
    runs.check_trials(asked.trials, context.options.max_trials)
    fingerprint = idempotency.request_hash("POST /v1/runs", asked.model_dump(mode="json"))
    with context.database.begin(caller.actor) as tx:

        def work() -> JSONResponse:
            model = find_model(tx, asked.model, where="body.model", hold=True)
            intake(context).check_disk()
            options = asked.model_dump(mode="json", include=set(RunOptions.model_fields))
            most, quotas = context.options.max_waiting_runs, context.options.quotas
            made = runs.start_run(
                tx, model, options, name=asked.name, owner=caller.owner, most_waiting=most, quotas=quotas
            )
            document = submitted_run(made, model)
            headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
            return idempotency.json_response(document, 202, headers)

        return idempotency.once(tx, caller=caller, key=idempotency_key, fingerprint=fingerprint, work=work)


@router.get("", summary="List runs")
def list_runs(
    context: Ctx,
    caller: Caller,
    limit: PageLimit = 50,
    cursor: RunCursor = None,
    state: Annotated[list[RunStateName] | None, Query(description="only runs in these states")] = None,
    model: Annotated[PlainText | None, Query(max_length=64, description="only runs of this model")] = None,
    words: Annotated[
        PlainText, Query(max_length=200, description="a part of the name, or the beginning of the id")
    ] = "",
    owner: Annotated[PlainText | None, Query(max_length=200, description="only runs of this owner")] = None,
    platform: Annotated[PlainText | None, Query(max_length=64, description="only runs for this platform")] = None,
    tag: Annotated[PlainText, Query(max_length=40, description="only runs with this tag")] = "",
) -> RunList:
    """Runs, the newest first."""
    check_cursor(cursor, "run")
    with context.database.begin() as tx:
        if model is not None:
            find_model(tx, model, where="query.model")
        page = tx.runs.list(
            cursor=cursor, limit=limit, states=state or (), model_id=model, owner=owner, platform=platform,
            words=words, tag=tag,
        )  # fmt: skip
        return RunList(items=run_list(tx, page.items), next_cursor=page.next_cursor)


@router.get("/{run_id}", summary="One run")
async def get_run(
    run_id: RunId,
    context: Ctx,
    caller: Caller,
    wait: Annotated[
        int,
        Query(ge=0, le=LONGEST_WAIT_SECONDS, description="seconds to hold the answer back until there is news"),
    ] = 0,
    after: Annotated[
        int | None,
        Query(
            ge=0,
            le=2**63 - 1,
            description="with `wait`: answer as soon as an event newer than this one exists; "
            "without it: answer when the run is over",
        ),
    ] = None,
) -> RunDetail:
    """One run with its steps. With `?wait=30` it is a long poll."""
    document = await run_in_threadpool(_look, context, run_id)
    if wait and not _is_news(document, after):
        leave = context.hub.enter(run_id, document.last_event_id, caller.owner)
        try:
            document = await _news(context, document, wait, after)
        finally:
            leave()
    return document


@router.post("/{run_id}/cancel", status_code=202, summary="Stop a run")
def cancel_run(run_id: RunId, context: Ctx, caller: Caller) -> RunDetail:
    """Stops a run: what waits is dropped now, what is being worked on ends within seconds.

    Asking twice is fine; a run that was over before is a 409.
    """
    with context.database.begin(caller.actor) as tx:
        caller.check_may_change(find_run(tx, run_id))
        return run_detail(tx, runs.cancel_run(tx, run_id))


async def _news(context: Context, document: RunDetail, wait: int, after: int | None) -> RunDetail:
    """Looks again whenever something happened, until it is news or the time is over."""
    end = time.monotonic() + wait
    while not _is_news(document, after):
        left = end - time.monotonic()
        if left <= 0 or not await context.hub.newer(document.id, document.last_event_id, left):
            break
        document = await run_in_threadpool(_look, context, document.id)
    return document


def _is_news(document: RunDetail, after: int | None) -> bool:
    return document.state in RUN_TERMINAL or (after is not None and document.last_event_id > after)


def _look(context: Context, run_id: str) -> RunDetail:
    with context.database.begin() as tx:
        return run_detail(tx, find_run(tx, run_id), estimated=True)
