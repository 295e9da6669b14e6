"""Why nothing moves in a run, in one sentence: what a person who looks at it asks first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from penstock.db import Transaction
from penstock.db.schema.records import Run, Step
from penstock.db.schema.states import RUN_TERMINAL, StepState
from penstock.services.step_kinds import TRIAL

_LONG_WAIT = timedelta(seconds=15)
"""Before that a worker is on its way."""


def waiting_for(tx: Transaction, run: Run, steps: Sequence[Step], counts: Mapping[tuple[str, str], int]) -> str:
    """A pause, a silent worker, a licence that others hold, or a queue: nothing where something moves."""
    if run.state in RUN_TERMINAL:
        return ""
    if run.paused and not counts.get((TRIAL, StepState.RUNNING), 0):
        return "the run is paused: no trial starts until it is resumed"
    now = datetime.now(UTC)
    running = [step for step in steps if step.state == StepState.RUNNING]
    for step in running:
        if step.lease_until is not None and step.lease_until < now:
            silent = round((now - step.lease_until).total_seconds())
            return f"the worker of step {step.key} is silent for {silent} s too long; another will take over"
    trials_running = counts.get((TRIAL, StepState.RUNNING), 0)
    queued = [step for step in steps if step.state == StepState.QUEUED and step.queued_at is not None]
    if running or trials_running or not (queued or counts.get((TRIAL, StepState.QUEUED), 0)):
        return ""
    if not queued:
        return "trials are queued that no worker has taken yet, or that an agent is still to tell"
    return _licence(tx, queued) or _queue(tx, queued, now)


def _licence(tx: Transaction, queued: Sequence[Step]) -> str:
    """Where each step that could be done needs one, and others have some of it."""
    wanted = [step for step in queued if step.licence is not None]
    if len(wanted) < len(queued):
        return ""
    held = tx.queues.licences_in_use()
    for step in wanted:
        if step.licence in held:
            used = held[step.licence]
            return (
                f"step {step.key} waits for a licence of {step.licence}: {used} {'is' if used == 1 else 'are'} in use"
            )
    return ""


def _queue(tx: Transaction, queued: Sequence[Step], now: datetime) -> str:
    since = min(step.queued_at for step in queued if step.queued_at is not None)
    first = next(step for step in queued if step.queued_at == since)
    if now - since < _LONG_WAIT:
        return ""
    seconds = round((now - since).total_seconds())
    said = f"step {first.key} has waited for {seconds} s for a worker of queue '{first.queue}'"
    others = tx.queues.depths().get(first.queue, 0) - sum(step.queue == first.queue for step in queued)
    working = tx.queues.running().get(first.queue, 0)
    beside = [f"{others} other step{'s wait' if others > 1 else ' waits'}"] if others > 0 else []
    beside += [f"{working} {'are' if working > 1 else 'is'} worked on"] if working else []
    return said + (f", where {' and '.join(beside)}" if beside else "")
