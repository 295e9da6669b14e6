"""A search after its start: paused, resumed, extended; one trial in full, and the same trial once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse

from penstock.db import Transaction, lifecycle
from penstock.db.schema.records import Model, NewStep, Run, Step
from penstock.db.schema.states import RUN_TERMINAL, RunState, StepState
from penstock.services.api.answers.documents import chosen_trial, run_detail, trial_detail
from penstock.services.api.answers.params import PROBLEMS, RunId, find_run, no_run
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import MoreTrials, RunDetail, TrialDetail
from penstock.services.api.plumbing import idempotency
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.idempotency import IdempotencyHeader
from penstock.services.steps.graph import (
    EXPLORE,
    FIRST_TURN,
    PACKAGE,
    REPLAY,
    SELECT,
    SHORTLIST,
    TRIAL,
    choosing_steps,
    in_turn,
    measured_in_steps,
    replay_steps,
    trial_steps,
)

router = APIRouter(prefix="/v1/runs", tags=["searches"], responses=PROBLEMS)

POLL_AFTER_SECONDS = 2
TrialNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="the number of a trial")]


@router.post("/{run_id}/pause", status_code=202, summary="Start no further trial")
def pause_run(run_id: RunId, context: Ctx, caller: Caller) -> RunDetail:
    """Trials that run come to their end, no other one starts until the run is resumed. Asking twice is fine."""
    return _change(context, run_id, lifecycle.pause_run)


@router.post("/{run_id}/resume", status_code=202, summary="Let a paused run go on")
def resume_run(run_id: RunId, context: Ctx, caller: Caller) -> RunDetail:
    """Trials start again. A run that is not paused stays as it is."""
    return _change(context, run_id, lifecycle.resume_run)


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
    with context.database.begin() as tx:

        def work() -> JSONResponse:
            found = find_run(tx, run_id)
            run = tx.runs.lock(found.id)
            model = tx.models.get(found.model_id)
            if run is None or model is None:
                raise no_run(run_id)
            steps = further_steps(tx, run, model, more.trials, context.options.max_trials)
            tx.runs.merge_options(run.id, {"extended": int(run.options.get("extended") or 0) + more.trials})
            document = run_detail(tx, lifecycle.extend_run(tx, run.id, steps))
            headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
            return idempotency.json_response(document, 202, headers)

        return idempotency.once(tx, caller=caller, key=idempotency_key, fingerprint=fingerprint, work=work)


@router.get("/{run_id}/trials/{number}", summary="One trial with its design")
def get_trial(run_id: RunId, number: TrialNumber, context: Ctx, caller: Caller) -> TrialDetail:
    """Everything that is recorded of a trial: enough to evaluate it again."""
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        row = tx.trials.step_of(run.id, f"{TRIAL}/{number:04d}")
        trial = tx.trials.by_number(run.id, number)
    if row is None:
        raise _no_trial(run_id, number)
    return trial_detail(row, chosen_trial(run), trial.design if trial else None)


@router.post("/{run_id}/trials/{number}/replay", status_code=202, summary="Evaluate a trial again")
def replay_trial(run_id: RunId, number: TrialNumber, context: Ctx, caller: Caller) -> JSONResponse:
    """Starts a run that evaluates the trial's setting again, from its record, and says what differs.

    Its summary has `replay`: whether all figures are equal, which are not, and what has changed since.
    """
    with context.database.begin() as tx:
        run = find_run(tx, run_id)
        if tx.trials.by_number(run.id, number) is None:
            raise _no_trial(run_id, number)
        options = {name: value for name, value in run.options.items() if name not in ("trials", "extended")}
        again = lifecycle.submit(
            tx, model_id=run.model_id, name=f"{REPLAY} of trial {number} of {run.name}"[:200],
            steps=replay_steps(run.id, number), options=options, owner=caller,
        )  # fmt: skip
        document = run_detail(tx, again)
    headers = {"Location": document.url, "Retry-After": str(POLL_AFTER_SECONDS)}
    return idempotency.json_response(document, 202, headers)


def further_steps(tx: Transaction, run: Run, model: Model, count: int, most: int) -> tuple[NewStep, ...]:
    """More trials before the choice if that can still wait, else a turn of their own with another choice."""
    steps = {step.key: step for step in tx.steps.list_except(run.id, TRIAL)}
    _check_extendable(run, steps)
    first = tx.steps.next_number(run.id, TRIAL)
    if steps[EXPLORE].state != StepState.SUCCEEDED:  # the numbers that it will take are taken
        first = max(first, int(run.options.get("trials") or 0))
    _check_count(first + count, most)
    turn = max((int(s.payload.get("turn", FIRST_TURN)) for s in steps.values() if s.kind == SELECT), default=FIRST_TURN)
    waits = in_turn(SHORTLIST if measured_in_steps(run.options) else SELECT, turn)
    if steps[waits].state == StepState.BLOCKED:
        return trial_steps(count, run.options, first=first, turn=turn, needs=(EXPLORE,))
    # what is being chosen now ends first: it counts on the study being at rest
    before = (in_turn(PACKAGE, turn),) if run.state not in RUN_TERMINAL else (EXPLORE,)
    trials = trial_steps(count, run.options, first=first, turn=turn + 1, needs=before)
    return (*choosing_steps(model, run.options, turn + 1), *trials)


def _change(context: Context, run_id: str, change: Callable[[Transaction, str], Run | None]) -> RunDetail:
    """Pause or resume, which a run that is over or stopping refuses."""
    with context.database.begin() as tx:
        run = change(tx, find_run(tx, run_id).id)
        if run is None:
            raise no_run(run_id)
        _check_going(run)
        return run_detail(tx, run)


def _check_going(run: Run) -> None:
    if run.state not in (RunState.QUEUED, RunState.RUNNING):
        raise _finished(_said(run), "only a run that is queued or running has trials to hold back")


def _check_extendable(run: Run, steps: dict[str, Step]) -> None:
    if run.state in (RunState.CANCELLED, RunState.CANCELLING, RunState.FAILING):
        raise _finished(_said(run), "start a run of its own for further trials")
    if EXPLORE not in steps or (run.state == RunState.FAILED and steps[EXPLORE].state != StepState.SUCCEEDED):
        raise _finished("the run never came to its search", "mend what its error says and start it again")


def _check_count(total: int, most: int) -> None:
    if total > most:
        raise Problem(
            "invalid-request",
            f"the run would have {total} trials, more than this service does in one run",
            where="body.trials",
            limit=f"at most {most}",
            hint="ask for fewer, or start a run of its own: it begins with what this one found",
        )


def _said(run: Run) -> str:
    words = {"succeeded": "has succeeded", "failed": "has failed", "cancelled": "was cancelled"}
    return f"the run {words.get(run.state, f'is {run.state}')}"


def _finished(what: str, hint: str) -> Problem:
    return Problem("run-finished", what, where="path", hint=hint)


def _no_trial(run_id: str, number: int) -> Problem:
    return Problem(
        "trial-not-found",
        f"run '{run_id[:64]}' has no finished trial {number}",
        where="path",
        hint="GET /v1/runs/{id}/trials lists them",
    )
