"""Starting runs, adding to them, doing a trial again: the checks, the steps and the rows of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.db import Transaction, lifecycle
from penstock.db.lifecycle import Submitted
from penstock.db.schema.ids import is_id
from penstock.db.schema.records import Model, NewStep, Run, Step
from penstock.db.schema.states import RUN_GOING, RUN_TERMINAL, RunState, StepState
from penstock.dse.support.budgets import MOST_USUAL_TRIALS
from penstock.services.jobs.kernels import TAKEN, check_kernel_options
from penstock.services.jobs.model_dims import check_dims
from penstock.services.jobs.quotas import NO_QUOTAS, Quotas, asked_trials, check_quotas, most_of_one
from penstock.services.jobs.refused import RefusedError
from penstock.services.run_options import EXTENDED, LONGEST_NAME
from penstock.services.step_kinds import CHECK, EXPLORE, FIRST_TURN, KERNEL, PACKAGE, REPLAY, SELECT, TRIAL
from penstock.services.steps.graph import (
    GIVEN,
    check_steps,
    choosing_steps,
    in_turn,
    last_before_choice,
    replay_steps,
    run_steps,
    trial_steps,
)

_CLOSE = 200
"""More than all API processes start in the same moment."""


def find_run(tx: Transaction, run_id: str) -> Run:
    """The run with that id, or the refusal that there is none."""
    run = tx.runs.get(run_id) if is_id(run_id, "run") else None
    if run is None:
        raise no_run(run_id)
    return run


def no_run(run_id: str) -> RefusedError:
    return RefusedError(
        "run-not-found",
        f"there is no run '{run_id[:64]}'",
        where="path",
        hint="GET /v1/runs lists the runs; `penstock runs` prints them",
    )


def check_trials(trials: int | None, most: int) -> None:
    if trials is not None and trials > most:
        raise RefusedError(
            "invalid-request",
            f"{trials} trials are more than this service does in one run",
            where="body.trials",
            limit=f"at most {most}",
            hint="ask for fewer, or start several runs with different seeds",
        )


def start_run(
    tx: Transaction,
    model: Model,
    options: Mapping[str, Any],
    *,
    name: str,
    owner: str | None,
    most_waiting: int,
    quotas: Quotas = NO_QUOTAS,
) -> Submitted:
    """A run of a model with the steps that it begins with, unless too many wait already, or too many of its owner."""
    check_dims(model, options)
    if model.kind == KERNEL:
        _check_kernel(options)
        options = {name: value for name, value in options.items() if name in (*TAKEN, "priority")}
    check_quotas(tx, owner, quotas, runs=1, trials=asked_trials(options))
    check_waiting(tx, most_waiting, owner)
    return lifecycle.begin_run(
        tx, model_id=model.id, name=name or model.name, steps=run_steps(model, options), options=options, owner=owner,
        priority=int(options.get("priority") or 0),
    )  # fmt: skip


def check_model(
    tx: Transaction,
    model: Model,
    options: Mapping[str, Any],
    *,
    owner: str | None,
    most_waiting: int,
    quotas: Quotas = NO_QUOTAS,
) -> Submitted:
    """A run that says what is known of a model before any search."""
    if model.kind == KERNEL:
        raise RefusedError(
            "not-of-kernels", "a C++ kernel is not checked before its run", where="path",
            hint="start a run: its first step reads the kernel and says what is wrong, and where, within seconds",
        )  # fmt: skip
    check_dims(model, options)
    check_quotas(tx, owner, quotas, runs=1)
    check_waiting(tx, most_waiting, owner)
    name = f"{CHECK} of {model.name}"[:LONGEST_NAME]
    return lifecycle.begin_run(tx, model_id=model.id, name=name, steps=check_steps(), options=options, owner=owner)


def _check_kernel(options: Mapping[str, Any]) -> None:
    try:
        check_kernel_options(options)
    except PenstockError as error:
        raise RefusedError("not-of-kernels", error.what, where="body", limit=error.limit, hint=error.hint) from None


def check_waiting(tx: Transaction, most_waiting: int, owner: str | None) -> None:
    """Refuses a run beyond what may wait in all; and before that of an owner whose runs alone are most of it."""
    of_one = most_of_one(most_waiting)
    waiting = tx.runs.count_going()
    if waiting < of_one - _CLOSE:
        return
    tx.runs.lock_intake()  # many may ask at once: near a limit they are counted one after the other
    waiting, own = tx.runs.count_going(), tx.runs.count_going(owner) if owner is not None else 0
    if waiting >= most_waiting or own >= of_one:
        raise RefusedError(
            "too-many-runs",
            f"{waiting} runs are queued or running" + (f", {own} of them yours" if owner is not None else ""),
            limit=f"at most {most_waiting}" + (f", and {of_one} of one owner" if owner is not None else ""),
            hint="wait for some to end, or cancel some",
        )


def cancel_run(tx: Transaction, run_id: str) -> Run:
    before = find_run(tx, run_id)
    run = lifecycle.cancel_run(tx, run_id)
    if run is None:
        raise no_run(run_id)
    if before.state in (RunState.SUCCEEDED, RunState.FAILED):
        raise _finished(f"the run has already {before.state}", "there is nothing left to stop")
    return run


def pause_or_resume(tx: Transaction, run_id: str, change: Callable[[Transaction, str], Run | None]) -> Run:
    """Hold trials back or let them go on, which a run that is over or stopping refuses."""
    found = find_run(tx, run_id)
    if tx.steps.by_key(found.id, KERNEL) is not None:
        raise RefusedError(
            "not-of-kernels", "the sources of a kernel are tried in one go", where="path", hint="stop the run instead"
        )
    run = change(tx, found.id)
    if run is None:
        raise no_run(run_id)
    if run.state not in RUN_GOING:
        raise _finished(_said(run), "only a run that is queued or running has trials to hold back")
    return run


def extend_run(
    tx: Transaction, run_id: str, count: int, most: int, quotas: Quotas = NO_QUOTAS, *, told: bool = False
) -> Run:
    """Give a run further trials, whose settings may be `told` later; one that had chosen chooses again."""
    run = tx.runs.lock(find_run(tx, run_id).id)
    check_quotas(tx, run.owner if run else None, quotas, trials=count)
    model = tx.models.get(run.model_id) if run is not None else None
    if run is None or model is None:
        raise no_run(run_id)
    steps = further_steps(tx, run, model, count, most, told=told)
    tx.runs.merge_options(run.id, {EXTENDED: int(run.options.get(EXTENDED) or 0) + count})
    return lifecycle.extend_run(tx, run.id, steps)


def further_steps(
    tx: Transaction, run: Run, model: Model, count: int, most: int, *, told: bool = False
) -> tuple[NewStep, ...]:
    """More trials before the choice if that can still wait, else a turn of their own with another choice."""
    steps = {step.key: step for step in tx.steps.list_except(run.id, TRIAL)}
    _check_extendable(run, steps)
    first = tx.steps.next_number(run.id, TRIAL)
    if steps[EXPLORE].state != StepState.SUCCEEDED:  # the numbers that it will take are taken
        first = max(first, int(run.options.get("trials") or MOST_USUAL_TRIALS))
    _check_count(first + count, most)
    turn = max((int(s.payload.get("turn", FIRST_TURN)) for s in steps.values() if s.kind == SELECT), default=FIRST_TURN)
    waits = str(last_before_choice(run.options).in_turn(turn))
    if steps[waits].state == StepState.BLOCKED:
        return trial_steps(count, run.options, first=first, turn=turn, needs=(EXPLORE,), told=told)
    # what is being chosen now ends first: it counts on the study being at rest
    before = (in_turn(PACKAGE, turn),) if run.state not in RUN_TERMINAL else (EXPLORE,)
    trials = trial_steps(count, run.options, first=first, turn=turn + 1, needs=before, told=told)
    return (*choosing_steps(model, run.options, turn + 1), *trials)


def replay_trial(
    tx: Transaction, run_id: str, number: int, *, owner: str | None, most_waiting: int, quotas: Quotas = NO_QUOTAS
) -> Run:
    """A run that evaluates a trial of this one again."""
    check_quotas(tx, owner, quotas, runs=1)
    check_waiting(tx, most_waiting, owner)
    run = find_run(tx, run_id)
    if tx.steps.by_key(run.id, KERNEL) is not None:
        raise RefusedError(
            "not-of-kernels", "a source of a kernel is not tried again by itself", where="path",
            hint="start the run again: the same kernel and options try the same sources",
        )  # fmt: skip
    if tx.trials.by_number(run.id, number) is None:
        raise no_trial(run_id, number)
    return lifecycle.submit(
        tx,
        model_id=run.model_id,
        name=f"{REPLAY} of trial {number} of {run.name}"[:LONGEST_NAME],
        steps=replay_steps(run.id, number),
        options={name: value for name, value in run.options.items() if name not in ("trials", EXTENDED)},
        owner=owner,
    )


def no_trial(run_id: str, number: int) -> RefusedError:
    return RefusedError(
        "trial-not-found",
        f"run '{run_id[:64]}' has no finished trial {number}",
        where="path",
        hint="GET /v1/runs/{id}/trials lists them",
    )


def _check_extendable(run: Run, steps: dict[str, Step]) -> None:
    if run.state in (RunState.CANCELLED, RunState.CANCELLING, RunState.FAILING):
        raise _finished(_said(run), "start a run of its own for further trials")
    if KERNEL in steps:
        raise _finished("the sources of a kernel are tried in one go", "start a run with more trials")
    if EXPLORE in steps and GIVEN in steps[EXPLORE].payload:
        raise _finished("the run was given its design and searched nothing", "start a run of its own for a search")
    if EXPLORE not in steps or (run.state == RunState.FAILED and steps[EXPLORE].state != StepState.SUCCEEDED):
        raise _finished("the run never came to its search", "mend what its error says and start it again")


def _check_count(total: int, most: int) -> None:
    if total > most:
        raise RefusedError(
            "invalid-request",
            f"the run would have {total} trials, more than this service does in one run",
            where="body.trials",
            limit=f"at most {most}",
            hint="ask for fewer, or start a run of its own: it begins with what this one found",
        )


def _said(run: Run) -> str:
    words = {"succeeded": "has succeeded", "failed": "has failed", "cancelled": "was cancelled"}
    return f"the run {words.get(run.state, f'is {run.state}')}"


def _finished(what: str, hint: str) -> RefusedError:
    return RefusedError("run-finished", what, where="path", hint=hint)
