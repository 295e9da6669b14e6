"""Does steps: claims one, runs its body under a heartbeat, stores what came out, records how it ended, and on."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.db import Database, Transaction, claiming, lifecycle
from penstock.db.database import is_transient
from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import Json, Model, NewArtifact, Run, Step
from penstock.db.schema.states import TransitionRefusedError
from penstock.services.remote_store import StoreAwayError, open_store
from penstock.services.settings import Settings
from penstock.services.steps import registry
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import StepBody
from penstock.services.steps.result import Output, RetryLaterError
from penstock.services.steps.version import code_version
from penstock.services.store import TREE_MEDIA_TYPE, MissingContentError
from penstock.services.worker import shutdown
from penstock.services.worker.claimed import Claimed, PortionSizes
from penstock.services.worker.compatible import SchemaWatch
from penstock.services.worker.heartbeat import STOPPED, Heartbeat
from penstock.services.worker.private_folders import PrivateFolders
from penstock.services.worker.room import WAIT_SECONDS, came_from_a_full_disk, has_room
from penstock.services.worker.witness import DutyNotes

log = logging.getLogger(__name__)

STEPS_A_MESSAGE, SECONDS_A_MESSAGE = 20, 1.0
FULL_DISK_PAUSE = 2.0

WriteEnd = Callable[[Transaction], object]
_claims = itertools.count(1)


class Executor:
    """One pool child's way of doing steps; everything in it belongs to this process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = Database(settings.require_database_url(), application="penstock worker", pool_size=3)
        self.store = open_store(settings)
        self.notes = DutyNotes(settings)
        self._patience = settings.outage_seconds
        self._strides = PortionSizes()
        self._folders = PrivateFolders()
        self._schema = SchemaWatch(self.database)
        self._run: Run | None = None
        """As it was at the claim of the step."""
        self._model: Model | None = None

    def work(self) -> None:
        """Do steps of this worker's queues as long as there are any; a message too many ends here.

        Ends after a few all the same: the broker's message is what gives other work of this process a turn.
        """
        try:
            self._work_on()
        finally:
            self._folders.close()

    def _work_on(self) -> None:
        began, done = time.monotonic(), 0
        steps: tuple[Step, ...] = ()
        while True:
            more = done < STEPS_A_MESSAGE or time.monotonic() - began < SECONDS_A_MESSAGE
            if not steps:
                steps = self._claim() if more and self._may_begin() else ()
            if not steps:
                return
            done += len(steps)
            steps = self._perform(Claimed(steps), go_on=more)

    def _may_begin(self) -> bool:
        if shutdown.drains() or not self._is_current():
            return False
        if not has_room(self.settings):
            log.warning("no step is begun: the disk is full")
            time.sleep(FULL_DISK_PAUSE)  # the message goes out again as long as there is something to do
            return False
        return True

    def _is_current(self) -> bool:
        """Whether the schema is still one that this code knows; else the worker comes to its end."""
        try:
            self._schema.check(patience=self._patience)
        except PenstockError as error:
            log.error("no step is begun, and this worker ends: %s", error)
            shutdown.drain()
            os.kill(os.getppid(), signal.SIGUSR1)  # the main process drains, and ends
            return False
        return True

    def _claim(self) -> tuple[Step, ...]:
        worker, settings, tries = _claim_name(), self.settings, itertools.count()
        self._run = None
        return self.database.run(
            lambda tx: claiming.claim_next(
                tx, settings.queues, worker=worker, lease_seconds=settings.lease_seconds, licences=settings.licences,
                again=next(tries) > 0, portion_of=self._strides.of,
            ),
            patience=self._patience,
        )  # fmt: skip

    def _perform(self, claimed: Claimed, *, go_on: bool) -> tuple[Step, ...]:
        """Do what was claimed; returns the next steps, if they were claimed with the end of these."""
        following: tuple[Step, ...] = ()
        began, done, kind = time.monotonic(), 0, ""
        with Heartbeat(self.database, self.settings, claimed, self._give_up, self._relieve), self.notes:
            while (step := claimed.next()) is not None:
                following = self._do(step, claimed, go_on=go_on)
                done, kind = done + 1, step.kind
            if kind:
                self._strides.note(kind, claimed.run_id, done, time.monotonic() - began)
            if ended := claimed.take_ended():
                following = self._finish(claimed.run_id, ended, go_on=go_on)
        return following

    def _do(self, step: Step, claimed: Claimed, *, go_on: bool) -> tuple[Step, ...]:
        """One step. If it ends well it is recorded with those that were claimed with it, else at once."""
        log.info("%s %s of %s: attempt %d", step.id, step.key, step.run_id, step.attempt)
        began = time.monotonic()
        context = self._context(step)
        claimed.context = context
        self.notes.note(step, claimed.leases())
        try:
            outcome = self._work(step, context)
            if isinstance(outcome, StepOutcome):
                seconds = time.monotonic() - began if claimed.several else None
                claimed.end(step, replace(outcome, seconds=seconds))
                if not outcome.new_steps and not outcome.run_summary:
                    return ()
                return self._finish(claimed.run_id, claimed.take_ended(), go_on=go_on and not claimed.several)
            self._relieve(claimed, STOPPED)
            return () if outcome is None else self._record(step.run_id, outcome, self._patience, go_on=go_on)
        finally:
            claimed.context = None
            context.tools.cancel_all()
            self._folders.remove(context.folder)

    def _relieve(self, claimed: Claimed, reason: Json) -> None:
        """Record what is done, and give to others what was not begun. Also called from the heartbeat."""
        ended, waiting = claimed.take_ended(), claimed.take_waiting()
        if ended:
            self._finish(claimed.run_id, ended, go_on=False)
        if waiting:
            self.database.run(
                lambda tx: lifecycle.return_unbegun(tx, claimed.run_id, waiting, reason), patience=self._patience
            )

    def _finish(self, run_id: str, ended: Sequence[tuple[Step, StepOutcome]], *, go_on: bool) -> tuple[Step, ...]:
        def write(tx: Transaction) -> None:
            held = lifecycle.finish_many(tx, run_id, ended)
            for step, _ in ended:
                if step.id not in held:  # or this is the repetition of a commit that did happen
                    log.info("%s: its lease was lost meanwhile", step.key)

        return self._record(run_id, write, self._patience, go_on=go_on)

    def _context(self, step: Step) -> StepContext:
        run = self._run
        if run is None or run.id != step.run_id:
            run = self._run = self.database.run(lambda tx: _existing_run(tx, step), patience=self._patience)
        if self._model is None or self._model.id != run.model_id:  # a model never changes
            self._model = self.database.run(lambda tx: _existing_model(tx, run), patience=self._patience)
        return StepContext(
            run=run, model=self._model, step=step, store=self.store, database=self.database,
            settings=self.settings, folder=self.settings.work_folder / f"{step.id}-{step.fence}",
        )  # fmt: skip

    def _work(self, step: Step, context: StepContext) -> StepOutcome | WriteEnd | None:
        """How the step ends, to be recorded; None if it is not ours to end any more."""
        try:
            self._folders.make(context.folder)
            return self._outcome(step, context)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a body raises must end its step
            if context.stop_reason is not None:
                return stopped(step, context.stop_reason)
            return failed(step, error, self.settings)

    def _outcome(self, step: Step, context: StepContext) -> StepOutcome:
        kind = registry.find(step.kind)
        if kind is None:
            raise PenstockError(
                code="unknown-step", what=f"this worker has no body for steps of kind {step.kind!r}",
                hint="run workers of the same version as the API",
            )  # fmt: skip
        earlier = self._earlier_result(kind, step, context)
        if earlier is not None:
            return earlier
        result = kind.body(context)
        return StepOutcome(
            result=result.data,
            artifacts=[self._keep(name, output) for name, output in result.outputs.items()],
            new_steps=result.new_steps,
            trial=result.trial,
            run_summary=result.run_summary.written() if result.run_summary else None,
        )

    def _earlier_result(self, kind: StepBody, step: Step, context: StepContext) -> StepOutcome | None:
        """What a step with the same inputs gave out, if all of it is still in the store."""
        input_hash = kind.input_hash(context, code_version())
        if input_hash is None:
            return None
        with self.database.begin() as tx:
            tx.steps.set_input_hash(step.id, step.fence, input_hash)
            earlier = tx.steps.reusable(kind.name, input_hash)
            artifacts = tx.artifacts.of_step(earlier.id) if earlier else ()
        if earlier is None or not all(self.store.renew(artifact.sha256) for artifact in artifacts):
            return None
        kept = [NewArtifact(a.name, a.sha256, a.size, a.media_type) for a in artifacts]
        return StepOutcome(result=earlier.result, artifacts=kept, reused_from=earlier.id)

    def _keep(self, name: str, output: Output) -> NewArtifact:
        content = output.content
        if isinstance(content, bytes):
            stored, media_type = self.store.put_bytes(content), output.media_type
        elif content.is_dir():
            stored, media_type = self.store.put_tree(content), TREE_MEDIA_TYPE
        else:
            stored, media_type = self.store.put_file(content), output.media_type
        return NewArtifact(name, stored.sha256, stored.size, media_type)

    def _give_up(self, step: Step, reason: str) -> None:
        """From the heartbeat, whose body does not end: there is no time for an outage of the database."""
        ending = stopped(step, reason)
        if ending is not None:
            self._record(step.run_id, ending, patience=2.0, go_on=False)

    def _record(self, run_id: str, ending: WriteEnd, patience: float, *, go_on: bool) -> tuple[Step, ...]:
        """Write down how steps ended; and claim the next ones of the same run in the same transaction, if it is its
        turn: for short steps the transactions are what takes the time. What was claimed in a commit that nobody
        answered is found by its name, or else by its lease."""
        worker, tries = _claim_name(), itertools.count()

        def end(tx: Transaction) -> tuple[Step, ...]:
            if next(tries) and (known := tx.queues.held_by(worker)):
                return known
            ending(tx)
            if not go_on or self.settings.licences or not self._may_begin():
                return ()
            settings = self.settings
            following = claiming.claim_next_of(
                tx, run_id, settings.queues, worker=worker, lease_seconds=settings.lease_seconds,
                portion=self._strides.of(run_id),
            )  # fmt: skip
            self._run = tx.runs.as_locked(run_id) if following else None
            return following

        try:
            return self.database.run(end, patience=patience)
        except TransitionRefusedError as refused:
            # the lease was lost meanwhile, or this is the repetition of a commit that did happen
            log.info("%s", refused)
            return ()


def _existing_run(tx: Transaction, step: Step) -> Run:
    run = tx.runs.get(step.run_id)
    assert run is not None, f"a foreign key keeps the run of {step.id}"
    return run


def _existing_model(tx: Transaction, run: Run) -> Model:
    model = tx.models.get(run.model_id)
    assert model is not None, f"a foreign key keeps the model of {run.id}"
    return model


def _claim_name() -> str:
    """One name a claim: should the connection break during the commit, the repeated claim knows its own."""
    return f"{socket.gethostname()}:{os.getpid()}:{next(_claims)}"


def stopped(step: Step, reason: str) -> WriteEnd | None:
    """How a step ends that was told to stop."""
    if reason == "cancelled":
        return lambda tx: lifecycle.stop(tx, step)
    if reason == "shutdown":
        why = {"code": "worker-ended", "what": f"worker {step.owner} was shut down"}
        return lambda tx: lifecycle.hand_back(tx, step, why)
    return None  # fenced: someone else has it. outage: nobody can be told, the lease runs out


def failed(step: Step, error: BaseException, settings: Settings) -> WriteEnd:
    """How a step ends whose body raised."""
    if not isinstance(error, RetryLaterError) and came_from_a_full_disk(error, settings):
        log.warning("%s of %s met a full disk: %s", step.key, step.run_id, error)
        why = {"code": "storage-full", "what": "the disk of the worker is full", "hint": "free some space: it goes on"}
        return lambda tx: lifecycle.hand_back(tx, step, why, delay_seconds=WAIT_SECONDS, patient=True)
    if isinstance(error, PenstockError):
        log.info("%s of %s failed: %s", step.key, step.run_id, error)
        return lambda tx: lifecycle.fail(tx, step, error.to_dict())
    if isinstance(error, MissingContentError):
        log.error("%s of %s: %s", step.key, step.run_id, error)
        return lambda tx: lifecycle.fail(tx, step, _content_gone(step).to_dict())
    if isinstance(error, StoreAwayError):
        why = {"code": "store-away", "what": str(error)}
        return lambda tx: lifecycle.hand_back(tx, step, why, delay_seconds=5.0, patient=True)
    if isinstance(error, RetryLaterError):
        why = {"code": error.code, "what": error.what}
        return lambda tx: lifecycle.hand_back(tx, step, why, delay_seconds=error.delay_seconds, patient=True)
    if came_from_an_outage(error):
        log.warning("%s of %s lost the database: %s", step.key, step.run_id, error)
        why = {"code": "database-away", "what": "the database could not be reached"}
        return lambda tx: lifecycle.hand_back(tx, step, why, delay_seconds=1.0)
    log.error("%s of %s raised", step.key, step.run_id, exc_info=error)
    what = describe(error)
    return lambda tx: lifecycle.retry(tx, step, what, delay_seconds=1.0)


def _content_gone(step: Step) -> PenstockError:
    return PenstockError(
        code="content-gone", what="content that this step needs is not in the store any more", where=step.key,
        limit="a model or a file of the run was removed while it ran",
        hint="submit the model again and start another run",
    )  # fmt: skip


def came_from_an_outage(error: BaseException) -> bool:
    """Whether the database was away. Optuna wraps such errors in its own, so the causes are looked at."""
    seen: BaseException | None = error
    while seen is not None:
        if is_transient(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def describe(error: BaseException) -> Json:
    """An error that nobody foresaw, with the lines of our code that it came through."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    trace = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    return {
        "code": "internal-error", "what": f"{type(error).__name__}: {error}"[:2000], "trace": trace,
        "hint": "this is a bug in Penstock; please report it with the trace",
    }  # fmt: skip
