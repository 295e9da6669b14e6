"""How runs and steps move: the few operations that change more than one row, each within one transaction.

Every function locks the run first (see repositories.base.Scope). Submitting and cancelling is what the API
does; claiming and ending what workers do; reaping what the janitor does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.db.database import Transaction
from penstock.db.schema.records import Json, NewArtifact, NewStep, Run, Step, TrialSummary
from penstock.db.schema.states import RUN_TERMINAL, RunState, StepState

# Hand-backs do not count as attempts; so many claims of one step mean that something else is wrong.
_CLAIMS_ALLOWED = 50

HELD_BY_PAUSE = ("trial",)
"""Kinds of steps that a paused run does not start."""

_GOING = (RunState.QUEUED, RunState.RUNNING)


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


def submit(
    tx: Transaction, *, model_id: str, name: str, steps: Sequence[NewStep], options: Json, owner: str | None
) -> Run:
    """Create a run with its graph; what needs nothing is queued at once."""
    run = tx.runs.create(model_id=model_id, name=name, options=options, owner=owner)
    _add_steps(tx, run.id, steps)
    _release(tx, tx.steps.releasable(run.id))
    return run


def cancel_run(tx: Transaction, run_id: str) -> Run | None:
    """Stop a run: what waits is cancelled now, what runs is asked to stop. A run that is over stays so."""
    run = tx.runs.lock(run_id)
    if run is None or run.state not in _GOING:
        return run
    tx.runs.transition("cancel", run_id)
    _stop_steps(tx, run_id)
    _settle_run(tx, run_id)
    return tx.runs.get(run_id)


def pause_run(tx: Transaction, run_id: str) -> Run | None:
    """Start no further trial; those that run end as they would. A run that is over or stopping stays as it is."""
    run = tx.runs.lock(run_id)
    if run is None or run.state not in _GOING:
        return run
    if tx.runs.set_paused(run_id, True):
        tx.outbox.remove([step.id for step in tx.steps.waiting(run_id) if step.kind in HELD_BY_PAUSE])
    return tx.runs.get(run_id)


def resume_run(tx: Transaction, run_id: str) -> Run | None:
    """Let the trials of a paused run go on."""
    run = tx.runs.lock(run_id)
    if run is None or not tx.runs.set_paused(run_id, False):
        return run
    queued = [s for s in tx.steps.waiting(run_id) if s.kind in HELD_BY_PAUSE and s.state == StepState.QUEUED]
    tx.outbox.add([(step.id, step.queue) for step in queued])
    return tx.runs.get(run_id)


def extend_run(tx: Transaction, run_id: str, steps: Sequence[NewStep]) -> Run:
    """Give a run further steps; one that is over runs again. The run is locked by the caller, who chose the steps."""
    run = tx.runs.get(run_id)
    assert run is not None, "whoever chose the steps has seen the run"
    if run.state in RUN_TERMINAL:
        tx.runs.transition("extend", run_id)
    _add_steps(tx, run_id, steps)
    _release(tx, tx.steps.releasable(run_id))
    after = tx.runs.get(run_id)
    assert after is not None, "it was there a moment ago, and is locked"
    return after


def claim(tx: Transaction, step_id: str, *, worker: str, lease_seconds: float) -> Step | None:
    """Take a queued step under a new fence; None if there is nothing to take (a duplicate message).

    `worker` names this one claim.
    """
    known = tx.steps.get(step_id)
    if known is not None and known.state == StepState.RUNNING and known.owner == worker:
        return known  # this claim was committed although its connection broke before the answer
    if known is None or known.state != StepState.QUEUED:
        return None
    run = tx.runs.lock(known.run_id)
    step = tx.steps.for_claim(step_id)
    if run is None or step is None or _is_held(run, step):
        return None
    claimed = tx.steps.claim(step, worker=worker, lease_seconds=lease_seconds)
    tx.attempts.start(claimed.id, claimed.fence, claimed.attempt, worker)
    tx.outbox.remove([claimed.id])
    if run.state == RunState.QUEUED:
        tx.runs.transition("start", run.id)
    return claimed


def finish(tx: Transaction, step: Step, outcome: StepOutcome) -> Step:
    """Record a success with everything that it produced, and queue what waited for it.

    A step whose run is being stopped meanwhile succeeds all the same: its outputs are good for reuse.
    """
    run = _locked(tx, step)
    ended = tx.steps.transition(
        "reuse" if outcome.reused_from else "succeed", step, fence=step.fence,
        values={"result": dict(outcome.result), "reused_from": outcome.reused_from, "progress": 1.0},
        data={"reused_from": outcome.reused_from} if outcome.reused_from else None,
    )  # fmt: skip
    _end_attempt(tx, step, "reuse" if outcome.reused_from else "succeed")
    tx.artifacts.create(step.run_id, step.id, outcome.artifacts)
    if outcome.trial is not None:
        tx.trials.create(step.run_id, step.id, outcome.trial)
    if outcome.run_summary:
        tx.runs.merge_summary(step.run_id, outcome.run_summary)
    if run.state == RunState.RUNNING:
        _add_steps(tx, step.run_id, outcome.new_steps)
        _release(tx, tx.steps.releasable(step.run_id))
    _settle_run(tx, step.run_id)
    return ended


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


def hand_back(tx: Transaction, step: Step, reason: Json, *, delay_seconds: float = 0.0) -> Step:
    """Give a step to another worker without counting the attempt: this worker ends, or a service is away."""
    run = _locked(tx, step)
    if step.cancel_requested or run.state != RunState.RUNNING:
        return _stopped(tx, step)
    if step.fence >= _CLAIMS_ALLOWED:
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
    error = {
        "code": "worker-lost", "what": f"worker {step.owner} stopped renewing its lease",
        "hint": "it was killed, ran out of memory, or lost its network",
    }  # fmt: skip
    if step.attempt >= step.max_attempts:
        return _give_up(tx, step, "poison", _evidence(tx, step, error))
    return _requeue(tx, step, "lose", error, 0.0)


def _locked(tx: Transaction, step: Step) -> Run:
    run = tx.runs.lock(step.run_id)
    assert run is not None, f"a foreign key keeps the run of {step.id}"
    return run


def _add_steps(tx: Transaction, run_id: str, steps: Sequence[NewStep]) -> None:
    """Insert steps with their edges. Edges into existing steps are allowed while those are blocked."""
    if not steps:
        return
    created = tx.steps.create(run_id, steps)
    named = {key for step in steps for key in (*step.needs, *step.needed_by)}
    ids = tx.steps.ids_by_key(run_id, sorted(named - created.keys())) | created
    missing = sorted(named - ids.keys())
    if missing:
        raise GraphError(f"steps of {run_id} need {', '.join(missing)}, which the run does not have")
    targets = {key for step in steps for key in step.needed_by} - created.keys()
    blocked = {step.key for step in tx.steps.waiting(run_id) if step.state == StepState.BLOCKED}
    if targets - blocked:
        raise GraphError(f"{', '.join(sorted(targets - blocked))} of {run_id} cannot get new needs: started")
    tx.steps.add_edges(
        [(created[step.key], ids[key]) for step in steps for key in step.needs]
        + [(ids[key], created[step.key]) for step in steps for key in step.needed_by]
    )


def _release(tx: Transaction, ready: Sequence[Step]) -> None:
    if ready:
        _publish(tx, tx.steps.release(ready[0].run_id, ready))


def _publish(tx: Transaction, queued: Sequence[Step], delay_seconds: float = 0.0) -> None:
    """Have queued steps sent to the workers, but for those that a pause holds: their rows come when it ends."""
    runs = {run_id: tx.runs.get(run_id) for run_id in {step.run_id for step in queued}}
    going = [step for step in queued if not _is_held(runs[step.run_id], step)]
    tx.outbox.add([(step.id, step.queue) for step in going], delay_seconds)


def _is_held(run: Run | None, step: Step) -> bool:
    return run is not None and run.paused and step.kind in HELD_BY_PAUSE


def _requeue(
    tx: Transaction, step: Step, name: str, error: Json, delay_seconds: float, attempt: int | None = None
) -> Step:
    values = {} if attempt is None else {"attempt": attempt}
    queued = tx.steps.transition(name, step, fence=step.fence, values=values, data={"error": dict(error)})
    _end_attempt(tx, step, name, error)
    _publish(tx, [queued], delay_seconds)
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
            _release(tx, tx.steps.releasable(step.run_id))
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
    waiting = tx.steps.waiting(run_id)
    for step in waiting:
        tx.steps.transition("cancel", step)
    tx.outbox.remove([step.id for step in waiting])
    tx.steps.request_cancel(run_id)


def _settle_run(tx: Transaction, run_id: str) -> None:
    """End the run if none of its steps is open any more."""
    run = tx.runs.get(run_id)
    if run is None or run.state in RUN_TERMINAL or tx.steps.has_open(run_id):
        return
    endings = {RunState.FAILING: "end_failed", RunState.CANCELLING: "end_cancelled"}
    tx.runs.transition(endings.get(RunState(run.state), "succeed"), run_id)


def _end_attempt(tx: Transaction, step: Step, outcome: str, error: Json | None = None) -> None:
    tx.attempts.finish(step.id, step.fence, outcome, error)


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
    what = f"gave up after {step.attempt} attempts; the last one: {last.get('what', '')}"
    return {
        "code": "poison", "what": what,
        "where": step.key, "hint": last.get("hint", "see the attempts"), "attempts": attempts,
    }  # fmt: skip
