"""How runs and steps move: the few operations that change more than one row, each within one transaction.

Every function locks the run first (see repositories.base.Scope). Submitting and cancelling is what the API
does; claiming and ending what workers do; reaping what the janitor does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from penstock.db.claiming import begun
from penstock.db.database import Transaction
from penstock.db.schema.records import Json, NewArtifact, NewStep, Run, Step, TrialSummary
from penstock.db.schema.states import RUN_GOING, RUN_TERMINAL, RunState, StepState, TransitionRefusedError

# Hand-backs do not count as attempts; so many claims of one step mean that something else is wrong.
_CLAIMS_ALLOWED = 50
WORKER_LOST = "worker-lost"
LOSSES_ALLOWED = 12
"""Workers that a step may lose without evidence against it: one that kills them in a way nobody sees ends here."""
_LONGEST_DELAY = 60.0


class GraphError(ValueError):
    """Steps that need what does not exist, or that cannot be added to a run any more."""


@dataclass(frozen=True)
class StepOutcome:
    """What a finished step leaves behind."""

    result: Json
    artifacts: Sequence[NewArtifact] = ()
    new_steps: Sequence[NewStep] = ()
    trial: TrialSummary | None = None
    run_summary: Json | None = None
    reused_from: str | None = None
    seconds: float | None = None
    """What it took, by its worker's clock; None charges the time since its claim."""


@dataclass(frozen=True)
class Submitted:
    """A run as it was made: whoever made it need not ask for it again."""

    run: Run
    steps: tuple[Step, ...]
    last_event_id: int


def submit(
    tx: Transaction,
    *,
    model_id: str,
    name: str,
    steps: Sequence[NewStep],
    options: Json,
    owner: str | None,
    priority: int = 0,
) -> Run:
    """Create a run with its graph; what needs nothing is queued at once."""
    return begin_run(
        tx, model_id=model_id, name=name, steps=steps, options=options, owner=owner, priority=priority
    ).run  # fmt: skip


def begin_run(
    tx: Transaction,
    *,
    model_id: str,
    name: str,
    steps: Sequence[NewStep],
    options: Json,
    owner: str | None,
    priority: int = 0,
) -> Submitted:
    """The same in two statements, for whoever goes on to show what was made."""
    run = tx.runs.create(model_id=model_id, name=name, options=options, owner=owner, priority=priority)
    _refuse_missing(run.id, {key for step in steps for key in (*step.needs, *step.needed_by)}, {s.key for s in steps})
    made, last_event_id = tx.steps.begin(run.id, steps)
    return Submitted(run, made, last_event_id)


def cancel_run(tx: Transaction, run_id: str) -> Run | None:
    """Stop a run: what waits is cancelled now, what runs is asked to stop. A run that is over stays so."""
    run = tx.runs.lock(run_id)
    if run is None or run.state not in RUN_GOING:
        return run
    tx.runs.transition("cancel", run_id)
    _stop_steps(tx, run_id)
    _settle_run(tx, run_id)
    return tx.runs.get(run_id)


def pause_run(tx: Transaction, run_id: str) -> Run | None:
    """Start no further trial; those that run end as they would. A run that is over or stopping stays as it is."""
    run = tx.runs.lock(run_id)
    if run is None or run.state not in RUN_GOING:
        return run
    tx.runs.set_paused(run_id, True)
    return tx.runs.get(run_id)


def resume_run(tx: Transaction, run_id: str) -> Run | None:
    """Let the trials of a paused run go on."""
    run = tx.runs.lock(run_id)
    if run is None or not tx.runs.set_paused(run_id, False):
        return run
    tx.queues.announce()
    return tx.runs.get(run_id)


def extend_run(tx: Transaction, run_id: str, steps: Sequence[NewStep]) -> Run:
    """Give a run further steps; one that is over runs again. The run is locked by the caller, who chose the steps."""
    run = tx.runs.get(run_id)
    assert run is not None, "whoever chose the steps has seen the run"
    if run.state in RUN_TERMINAL:
        tx.runs.transition("extend", run_id)
        tx.shares.begin(run_id, run.owner)
    _add_steps(tx, run_id, steps)
    _release(tx, run_id)
    after = tx.runs.get(run_id)
    assert after is not None, "it was there a moment ago, and is locked"
    return after


def tell(tx: Transaction, run_id: str, key: str, queues: tuple[str, str], payload: Json) -> bool:
    """Say what a step lacked that waited for it in a queue that nobody serves; False if it waits for nothing."""
    told = tx.steps.move_to(run_id, key, queues, payload)
    if told:
        tx.queues.announce()
    return told


def claim(tx: Transaction, step_id: str, *, worker: str, lease_seconds: float) -> Step | None:
    """Take one particular step, if it is queued and its run is not paused; due or not."""
    known = tx.steps.get(step_id)
    run = tx.runs.lock(known.run_id) if known is not None else None
    if run is None:
        return None
    claimed = tx.steps.claim_this(run.id, step_id, worker=worker, lease_seconds=lease_seconds)
    if claimed is not None:
        begun(tx, run)
    return claimed


def finish(tx: Transaction, step: Step, outcome: StepOutcome) -> None:
    """Record a success with everything that it produced, and queue what waited for it.

    A step whose run is being stopped meanwhile succeeds all the same: its outputs are good for reuse.
    """
    if finish_many(tx, step.run_id, [(step, outcome)]):
        return
    now = tx.steps.get(step.id)
    detail = f" under fence {now.fence}, not {step.fence}" if now else ""
    raise TransitionRefusedError(step.id, "succeed", now.state if now else None, detail)


def finish_many(tx: Transaction, run_id: str, ends: Sequence[tuple[Step, StepOutcome]]) -> set[str]:
    """The same for steps of one run; returns those that were still held. Of the others nothing is recorded."""
    run = tx.runs.lock(run_id)
    if run is None:  # it ended without this worker, and was deleted
        return set()
    held = tx.steps.succeed(run_id, [_ended(step, outcome) for step, outcome in ends])
    new_steps: list[NewStep] = []
    for step, outcome in ends:
        if step.id in held:
            tx.artifacts.create(run_id, step.id, outcome.artifacts)
            new_steps += outcome.new_steps
            if outcome.run_summary:
                tx.runs.merge_summary(run_id, outcome.run_summary)
    outlook = tx.steps.outlook(run_id, sorted(held))
    if run.state == RunState.RUNNING:
        _add_steps(tx, run_id, new_steps)
        if outlook.releases or new_steps:
            _release(tx, run_id)
    if held and not outlook.open:
        _settle_run(tx, run_id)
    return held


def _ended(step: Step, outcome: StepOutcome) -> dict[str, Any]:
    return {
        "step": step.id, "fence": step.fence, "result": dict(outcome.result), "reused_from": outcome.reused_from,
        "seconds": outcome.seconds, "trial": asdict(outcome.trial) if outcome.trial else None,
    }  # fmt: skip


def return_unbegun(tx: Transaction, run_id: str, steps: Sequence[Step], reason: Json) -> None:
    """Give steps to others that were claimed with one that takes long; those of a run that is stopped end."""
    run = tx.runs.lock(run_id)
    if run is None:
        return
    if run.state == RunState.RUNNING:
        if tx.steps.return_unbegun(run_id, {step.id: step.fence for step in steps}, reason):
            tx.queues.announce()
        return
    for step in steps:
        with suppress(TransitionRefusedError):  # lost meanwhile
            _stopped(tx, step)


def fail(tx: Transaction, step: Step, error: Json) -> Step:
    """Record an error that another attempt would only repeat."""
    _locked(tx, step)
    return _give_up(tx, step, "fail", error)


def retry(tx: Transaction, step: Step, error: Json, *, delay_seconds: float = 0.0) -> Step:
    """Record an error that another attempt may not meet; the last attempt makes it final."""
    run = _locked(tx, step)
    if step.cancel_requested or run.state != RunState.RUNNING:
        return _stopped(tx, step)
    if step.attempt >= step.max_attempts:
        return _give_up(tx, step, "poison", _evidence(tx, step, error))
    return _requeue(tx, step, "retry", error, delay_seconds)


def hand_back(tx: Transaction, step: Step, reason: Json, *, delay_seconds: float = 0.0, patient: bool = False) -> Step:
    """Give a step to another worker without counting the attempt: this worker ends, or a service is away.

    `patient` is for what people put right, such as a full disk or a taken licence: however long that takes.
    """
    run = _locked(tx, step)
    if step.cancel_requested or run.state != RunState.RUNNING:
        return _stopped(tx, step)
    if step.fence >= _CLAIMS_ALLOWED and not patient:
        return _give_up(tx, step, "poison", _evidence(tx, step, reason))
    return _requeue(tx, step, "hand_back", reason, delay_seconds, attempt=step.attempt - 1)


def stop(tx: Transaction, step: Step) -> Step:
    """The worker ended the step because its run was stopped; in a run that goes on it is handed back."""
    return hand_back(tx, step, {"code": "stopped", "what": "the worker stopped, the run did not"})


def reap(tx: Transaction, expired: Step) -> Step | None:
    """Take a step from a worker whose lease is over; None if the worker renewed it after all."""
    run = tx.runs.lock(expired.run_id)
    step = tx.steps.lock_expired(expired.id, expired.fence)
    if run is None or step is None:
        return None
    if step.cancel_requested or run.state != RunState.RUNNING:
        return _stopped(tx, step)
    return _lost(tx, step, None)


def lose(tx: Transaction, step_id: str, fence: int, evidence: Json | None) -> Step | None:
    """Take a step from a worker that is known to be dead, with what is known of why; None if it has it no more.

    A lost worker is not the step's fault until that is shown: a crash of its own process, or the kernel's kill for want
    of memory, uses up an attempt. Anything else, such as a kill from outside or the end of a machine, gives the attempt
    back and has the step wait, longer each time; after many such losses the step is given up all the same.
    """
    known = tx.steps.get(step_id)
    run = tx.runs.lock(known.run_id) if known else None
    step = tx.steps.get(step_id)
    if run is None or step is None or step.state != StepState.RUNNING or step.fence != fence:
        return None
    if step.cancel_requested or run.state != RunState.RUNNING:
        return _stopped(tx, step)
    return _lost(tx, step, evidence)


def _lost(tx: Transaction, step: Step, evidence: Json | None) -> Step:
    if evidence is not None:
        if step.attempt >= step.max_attempts:
            return _give_up(tx, step, "poison", _evidence(tx, step, evidence))
        return _requeue(tx, step, "lose", evidence, 1.0)
    error = {
        "code": WORKER_LOST, "what": f"worker {step.owner} stopped renewing its lease",
        "hint": "it was killed, its machine ended, or it lost its network",
    }  # fmt: skip
    losses = tx.attempts.losses(step.id, WORKER_LOST) + 1
    if losses >= LOSSES_ALLOWED:
        return _give_up(tx, step, "poison", _evidence(tx, step, error))
    delay = 0.0 if losses == 1 else min(2.0 ** (losses - 2), _LONGEST_DELAY)
    return _requeue(tx, step, "lose", error, delay, attempt=step.attempt - 1)


def _locked(tx: Transaction, step: Step) -> Run:
    run = tx.runs.lock(step.run_id)
    if run is None:  # its run ended without this worker, and was deleted
        raise TransitionRefusedError(step.id, "end", None)
    return run


def _add_steps(tx: Transaction, run_id: str, steps: Sequence[NewStep]) -> None:
    """Insert steps with their edges. Edges into existing steps are allowed while those are blocked."""
    if not steps:
        return
    waiting = {step.key for step in steps if step.needs} | {key for step in steps for key in step.needed_by}
    created, queued = tx.steps.create(run_id, steps, waiting)
    if queued:
        tx.queues.announce()
    named = {key for step in steps for key in (*step.needs, *step.needed_by)}
    elsewhere = sorted(named - created.keys())
    ids = (tx.steps.ids_by_key(run_id, elsewhere) if elsewhere else {}) | created
    _refuse_missing(run_id, named, ids.keys())
    targets = {key for step in steps for key in step.needed_by} - created.keys()
    started = targets - tx.steps.blocked_keys(run_id, sorted(targets)) if targets else set[str]()
    if started:
        raise GraphError(f"{', '.join(sorted(started))} of {run_id} cannot get new needs: started")
    tx.steps.add_edges(
        [(created[step.key], ids[key]) for step in steps for key in step.needs]
        + [(ids[key], created[step.key]) for step in steps for key in step.needed_by]
    )
    tx.events.add_created(run_id, list(created.values()))


def _refuse_missing(run_id: str, named: AbstractSet[str], known: AbstractSet[str]) -> None:
    missing = sorted(named - known)
    if missing:
        raise GraphError(f"steps of {run_id} need {', '.join(missing)}, which the run does not have")


def _release(tx: Transaction, run_id: str) -> None:
    """Queue whatever waited for what is done now."""
    if tx.steps.release(run_id):
        tx.queues.announce()


def _requeue(
    tx: Transaction, step: Step, name: str, error: Json, delay_seconds: float, attempt: int | None = None
) -> Step:
    values: dict[str, Any] = {"due_at": tx.steps.from_now(delay_seconds)}
    values |= {} if attempt is None else {"attempt": attempt}
    queued = tx.steps.transition(name, step, fence=step.fence, values=values, data={"error": dict(error)})
    _end_attempt(tx, step, name, error)
    tx.queues.announce()
    return queued


def _give_up(tx: Transaction, step: Step, name: str, error: Json) -> Step:
    failed = tx.steps.transition(
        name, step, fence=step.fence, values={"error": dict(error)}, data={"error": dict(error)}
    )
    _end_attempt(tx, step, name, error)
    run = tx.runs.get(step.run_id)
    assert run is not None, f"a foreign key keeps the run of {step.id}"
    if run.state == RunState.RUNNING:
        if step.may_fail:
            _release(tx, step.run_id)
        else:
            tx.runs.transition("fail", step.run_id, error={**error, "step": step.key})
            _stop_steps(tx, step.run_id)
    _settle_run(tx, step.run_id)
    return failed


def _stopped(tx: Transaction, step: Step) -> Step:
    stopped = tx.steps.transition("stop", step, fence=step.fence)
    _end_attempt(tx, step, "stop")
    _settle_run(tx, step.run_id)
    return stopped


def _stop_steps(tx: Transaction, run_id: str) -> None:
    tx.steps.cancel_waiting(run_id)
    tx.steps.request_cancel(run_id)


def _settle_run(tx: Transaction, run_id: str) -> None:
    """End the run if none of its steps is open any more."""
    run = tx.runs.get(run_id)
    if run is None or run.state in RUN_TERMINAL or tx.steps.has_open(run_id):
        return
    endings = {RunState.FAILING: "end_failed", RunState.CANCELLING: "end_cancelled"}
    tx.runs.transition(endings.get(RunState(run.state), "succeed"), run_id)


def _end_attempt(tx: Transaction, step: Step, outcome: str, error: Json | None = None) -> None:
    """Note how it ended, and what it cost its run and its owner."""
    told = json.dumps(dict(error)) if error else None
    tx.shares.charge(step.run_id, step.id, step.fence, outcome, told)


def _evidence(tx: Transaction, step: Step, last: Json) -> Json:
    """Why a step is given up: each attempt with its worker, its times and its end."""
    attempts = [
        {
            "attempt": a.number, "worker": a.worker, "outcome": a.outcome or "poison",
            "started_at": a.started_at.isoformat(),
            "finished_at": a.finished_at.isoformat() if a.finished_at else None,
            "error": dict(a.error if a.outcome and a.error else last),
        }
        for a in tx.attempts.list(step.id)
    ]  # fmt: skip
    what = f"gave up after {len(attempts)} attempts; the last one: {last.get('what', '')}"
    return {
        "code": "poison", "what": what,
        "where": step.key, "hint": last.get("hint", "see the attempts"), "attempts": attempts,
    }  # fmt: skip
