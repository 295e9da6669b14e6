"""Claims: which steps a worker gets, each under a new fence. What moves them on is in lifecycle.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.db.database import Transaction
from penstock.db.repositories.queues import Portion, Wanted
from penstock.db.schema.records import Run, Step
from penstock.db.schema.states import RunState

_LOOKS = 8
"""How often a claim looks again whose run had nothing left once it was locked: others were faster."""

PortionOf = Callable[[str], Portion]


def one_at_a_time(run_id: str) -> Portion:
    """The portion of who knows nothing of a run."""
    return Portion()


def claim_next(
    tx: Transaction,
    queues: Sequence[str],
    *,
    worker: str,
    lease_seconds: float,
    licences: Mapping[str, int],
    again: bool = False,
    portion_of: PortionOf = one_at_a_time,
) -> tuple[Step, ...]:
    """Take the steps of one run that are to be done next under new fences, if any of these queues may be done now.

    `worker` names this one claim, and `again` says that it may have been made already: its commit was answered by a
    broken connection. `licences` says how many there are of what is counted, `portion_of` how many of a run to take.
    """
    known = tx.queues.held_by(worker) if again else ()
    if known:
        return known
    if licences:
        tx.queues.lock_licences()
    wanted = Wanted(queues, taken_licences(tx, licences))
    for _ in range(_LOOKS):
        run_id = tx.queues.next_run(wanted)
        if run_id is None:
            return ()
        run = tx.runs.lock(run_id)
        steps = _claim(tx, run, wanted, worker, lease_seconds, portion_of(run_id)) if run is not None else ()
        if steps:
            return steps
    return ()


def claim_next_of(
    tx: Transaction, run_id: str, queues: Sequence[str], *, worker: str, lease_seconds: float, portion: Portion
) -> tuple[Step, ...]:
    """The same right after steps of this run have ended in this transaction, if it is the run's turn again.

    Another run's turn comes in a transaction of its own: who holds the lock of one run never waits for another's. So
    it is where licences are counted, whose lock comes before that of a run.
    """
    wanted = Wanted(queues)
    if tx.queues.next_run(wanted) != run_id:
        return ()
    return _claim(tx, tx.runs.as_locked(run_id), wanted, worker, lease_seconds, portion)


def taken_licences(tx: Transaction, licences: Mapping[str, int]) -> tuple[str, ...]:
    """Those of which none is free."""
    used = tx.queues.licences_in_use() if licences else {}
    return tuple(name for name, count in licences.items() if used.get(name, 0) >= count)


def _claim(
    tx: Transaction, run: Run, wanted: Wanted, worker: str, lease_seconds: float, portion: Portion
) -> tuple[Step, ...]:
    claimed = tx.steps.claim(run.id, wanted, worker=worker, lease_seconds=lease_seconds, portion=portion)
    if not claimed and portion.most > 1:  # of that kind there are no more
        claimed = tx.steps.claim(run.id, wanted, worker=worker, lease_seconds=lease_seconds, portion=Portion())
    if claimed:
        begun(tx, run)
    return claimed


def begun(tx: Transaction, run: Run) -> None:
    """A step of the run was claimed."""
    if run.state == RunState.QUEUED:
        tx.runs.transition("start", run.id)
