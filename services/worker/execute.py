"""Does steps: claims one, runs its body under a heartbeat, stores what came out, records how it ended, and on."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import socket
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.db import Database, Transaction, lifecycle
from penstock.db.database import is_transient
from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import Json, NewArtifact, Step
from penstock.db.schema.states import TransitionRefusedError
from penstock.services.settings import Settings
from penstock.services.steps import registry
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import StepBody
from penstock.services.steps.result import Output, RetryLaterError
from penstock.services.steps.version import code_version
from penstock.services.store import TREE_MEDIA_TYPE, ContentStore, MissingContentError
from penstock.services.worker import shutdown
from penstock.services.worker.heartbeat import Heartbeat
from penstock.services.worker.room import WAIT_SECONDS, came_from_a_full_disk, has_room
from penstock.services.worker.witness import DutyNotes

log = logging.getLogger(__name__)

STEPS_A_MESSAGE = 20
FULL_DISK_PAUSE = 2.0

WriteEnd = Callable[[Transaction], object]
_claims = itertools.count(1)


class Executor:
    """One pool child's way of doing steps; everything in it belongs to this process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.database = Database(settings.require_database_url(), application="penstock worker", pool_size=3)
        self.store = ContentStore(settings.store_folder)
        self.notes = DutyNotes(settings)

    def work(self) -> None:
        """Do steps of this worker's queues as long as there are any; a message too many ends here.

        Ends after a few all the same: the broker's message is what gives other work of this process a turn.
        """
        for _ in range(STEPS_A_MESSAGE):
            if not has_room(self.settings):
                log.warning("no step is begun: the disk is full")
                time.sleep(FULL_DISK_PAUSE)  # the message goes out again as long as there is something to do
                return
            step = None if shutdown.drains() else self._claim()
            if step is None:
                return
            self._perform(step)

    def _claim(self) -> Step | None:
        # one name a claim: should the connection break during the commit, the repeated claim knows its own
        worker = f"{socket.gethostname()}:{os.getpid()}:{next(_claims)}"
        settings = self.settings
        return self.database.run(
            lambda tx: lifecycle.claim_next(
                tx, settings.queues, worker=worker, lease_seconds=settings.lease_seconds, licences=settings.licences
            ),
            patience=settings.outage_seconds,
        )

    def _perform(self, step: Step) -> None:
        log.info("%s %s of %s: attempt %d", step.id, step.key, step.run_id, step.attempt)
        context = self._context(step)
        try:
            with (
                self.notes.on(step),
                Heartbeat(self.database, self.settings, context, lambda why: self._give_up(step, why)),
            ):
                ending = self._work(step, context)
                if ending is not None:
                    self._record(step, ending, self.settings.outage_seconds)
        finally:
            context.tools.cancel_all()
            tempfile.tempdir = None
            shutil.rmtree(context.folder, ignore_errors=True)

    def _context(self, step: Step) -> StepContext:
        def read(tx: Transaction) -> StepContext:
            run = tx.runs.get(step.run_id)
            model = tx.models.get(run.model_id) if run else None
            assert run is not None, f"a foreign key keeps the run of {step.id}"
            assert model is not None, f"a foreign key keeps the model of {run.id}"
            return StepContext(
                run=run, model=model, step=step, store=self.store, database=self.database,
                settings=self.settings, folder=self.settings.work_folder / f"{step.id}-{step.fence}",
            )  # fmt: skip

        return self.database.run(read, patience=self.settings.outage_seconds)

    def _work(self, step: Step, context: StepContext) -> WriteEnd | None:
        """How the step ends, to be recorded; None if it is not ours to end any more."""
        try:
            _make_private(context.folder)
            outcome = self._outcome(step, context)
            return lambda tx: lifecycle.finish(tx, step, outcome)
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
            self._record(step, ending, patience=2.0)

    def _record(self, step: Step, ending: WriteEnd, patience: float) -> None:
        try:
            self.database.run(ending, patience=patience)
        except TransitionRefusedError as refused:
            # the lease was lost meanwhile, or this is the repetition of a commit that did happen
            log.info("%s: %s", step.key, refused)


def _make_private(folder: Path) -> None:
    """The step's own folder; what its body puts into temporary files lies there too and goes with it."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    tempfile.tempdir = str(temporary)


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
