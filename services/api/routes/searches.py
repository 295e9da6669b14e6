"""A search after its start: paused, resumed, extended; one trial in full, and the same trial once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse

from penstock.db import Transaction, lifecycle
from penstock.db.schema.records import Run
from penstock.services.api.answers.documents import chosen_trial, run_detail, trial_detail
from penstock.services.api.answers.params import POLL_AFTER_SECONDS, PROBLEMS, RunId
from penstock.services.api.answers.schemas import MoreTrials, RunDetail, TrialDetail
from penstock.services.api.plumbing import idempotency
from penstock.services.api.plumbing.auth import Caller, Who
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.idempotency import IdempotencyHeader
from penstock.services.jobs import runs
from penstock.services.jobs.runs import find_run, no_trial, pause_or_resume
from penstock.services.step_kinds import TRIAL, StepKey

router = APIRouter(prefix="/v1/runs", tags=["searches"], responses=PROBLEMS)

TrialNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="the number of a trial")]


@router.post("/{run_id}/pause", status_code=202, summary="Start no further trial")
def pause_run(run_id: RunId, context: Ctx, caller: Caller) -> RunDetail:
    """Trials that run come to their end, no other one starts until the run is resumed. Asking twice is fine."""
    return _change(context, caller, run_id, lifecycle.pause_run)


@router.post("/{run_id}/resume", status_code=202, summary="Let a paused run go on")
def resume_run(run_id: RunId, context: Ctx, caller: Caller) -> RunDetail:
    """Trials start again. A run that is not paused stays as it is."""
    return _change(context, caller, run_id, lifecycle.resume_run)


@router.post("/{run_id}/extend", status_code=202, summary="Add trials to a run")
def extend_run(
    run_id: RunId, more: MoreTrials, context: Ctx, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JSONResponse:
    """Makes further trials of the same search.

    While the run searches they are simply more of them. Once it has chosen, whether it found something or nothing
    that fits, it goes on searching, chooses anew among all trials, and makes another package.
    """
    idempotency.check_key(idempotency_key)
    asked = f"POST /v1/runs/{run_id}/extend"
    fingerprint = idempotency.request_hash(asked, more.model_dump(mode="json"))
    with context.database.begin(caller.actor) as tx:

        def work() -> JSONResponse:
            caller.check_may_change(find_run(tx, run_id))
            run = runs.extend_run(tx, run_id, more.trials, context.options.max_trials, context.options.quotas)
            document = run_detail(tx, run)
            headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
            return idempotency.json_response(document, 202, headers)

        return idempotency.once(tx, caller=caller, key=idempotency_key, fingerprint=fingerprint, work=work)


@router.get("/{run_id}/trials/{number}", summary="One trial with its design")
def get_trial(run_id: RunId, number: TrialNumber, context: Ctx, caller: Caller) -> TrialDetail:
    """Everything that is recorded of a trial: enough to evaluate it again."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        row = tx.trials.step_of(run.id, str(StepKey(TRIAL, number)))
        trial = tx.trials.by_number(run.id, number)
        step = tx.steps.get(row.step_id) if row is not None else None
    if row is None:
        raise no_trial(run_id, number)
    return trial_detail(row, chosen_trial(run), trial.design if trial else None, step.result if step else None)


@router.post("/{run_id}/trials/{number}/replay", status_code=202, summary="Evaluate a trial again")
def replay_trial(run_id: RunId, number: TrialNumber, context: Ctx, caller: Caller) -> JSONResponse:
    """Starts a run that evaluates the trial's setting again, from its record, and says what differs.

    Its summary has `replay`: whether all figures are equal, which are not, and what has changed since.
    """
    with context.database.begin(caller.actor) as tx:
        run = runs.replay_trial(
            tx, run_id, number, owner=caller.owner, most_waiting=context.options.max_waiting_runs,
            quotas=context.options.quotas,
        )  # fmt: skip
        document = run_detail(tx, run)
    headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
    return idempotency.json_response(document, 202, headers)


def _change(context: Context, caller: Who, run_id: str, change: Callable[[Transaction, str], Run | None]) -> RunDetail:
    with context.database.begin(caller.actor) as tx:
        caller.check_may_change(find_run(tx, run_id))
        return run_detail(tx, pause_or_resume(tx, run_id, change))
