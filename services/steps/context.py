"""What a step body can see and do: its inputs, a private folder, tools, progress, and whether to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.db import Database
from penstock.db.database import is_transient
from penstock.db.schema.records import Artifact, Json, MadeTrial, Model, Run, Step
from penstock.services.settings import Settings
from penstock.services.step_kinds import FIRST_TURN, TRIAL
from penstock.services.steps.graph import in_turn
from penstock.services.steps.launcher import runner_of
from penstock.services.steps.result import StepStoppedError
from penstock.services.store import ContentStore

_PROGRESS_SECONDS = 1.0


class StepContext:
    """Made for one claim of one step. `stop` may be called from another thread; the rest is the body's."""

    def __init__(
        self,
        *,
        run: Run,
        model: Model,
        step: Step,
        folder: Path,
        store: ContentStore,
        database: Database,
        settings: Settings,
    ) -> None:
        self.run = run
        self.model = model
        self.step = step
        self.folder = folder
        self.store = store
        self.database = database
        self.settings = settings
        self.tools = runner_of(step, settings)
        self._stop_reason: str | None = None
        self._stop_lock = threading.Lock()
        self._shown_at = 0.0

    @property
    def payload(self) -> Json:
        return self.step.payload

    @property
    def options(self) -> Json:
        """What the user asked of the whole run."""
        return self.run.options

    @property
    def stop_reason(self) -> str | None:
        """cancelled, shutdown, fenced or outage; None while the body may go on."""
        return self._stop_reason

    def cancelled(self) -> bool:
        return self._stop_reason is not None

    def check(self) -> None:
        """End the body if it should not go on. Call it often in long Python loops."""
        if self._stop_reason is not None:
            raise StepStoppedError(self._stop_reason)

    def stop(self, reason: str) -> None:
        """Have the body end: its tools are killed now, its Python code ends at its next check."""
        with self._stop_lock:
            self._stop_reason = self._stop_reason or reason
        self.tools.cancel_all(leave=reason != "cancelled")

    def progress(self, fraction: float | None, text: str | None = None) -> None:
        """Show how far the step is. Cheap to call often; also ends a body that should not go on."""
        self.check()
        now = time.monotonic()
        if now - self._shown_at < _PROGRESS_SECONDS:
            return
        self._shown_at = now
        try:
            with self.database.begin() as tx:
                if tx.runs.lock(self.step.run_id) is not None:  # else it was deleted: the lease is over
                    tx.steps.set_progress(self.step, fraction, text)
        except Exception as error:
            if not is_transient(error):
                raise  # a database that is away for a moment must not end the work

    @contextmanager
    def hold(self) -> Iterator[None]:
        """While this is held, nobody can take the step away: for a write to another system that must
        happen at most once a step. Keep it short; raises if the step is lost already."""
        with self.database.begin() as tx:
            if not tx.steps.hold(self.step.id, self.step.fence):
                raise StepStoppedError("fenced")
            yield

    def remember(self, memo: Json) -> None:
        """Leave word for a later attempt of this step, which finds it as `step.memo`."""
        with self.database.begin() as tx:
            if not tx.steps.set_memo(self.step.id, self.step.fence, memo):
                raise StepStoppedError("fenced")

    def record_trials(self, made: Mapping[str, MadeTrial], words: str) -> None:
        """Trials that this step made itself, by their keys, and how far it is. What is noted already stays."""
        with self.database.begin() as tx:
            if tx.runs.lock(self.run.id) is None or not tx.steps.set_progress(self.step, None, words):
                raise StepStoppedError("fenced")
            tx.steps.record_trials(self.step, TRIAL, made)

    @property
    def turn(self) -> int:
        """Which choice of the run this step belongs to: another begins when trials are added after one."""
        return int(self.payload.get("turn", FIRST_TURN))

    def step_named(self, key: str) -> Step | None:
        """Another step of this run, of this turn if there is one."""
        with self.database.begin() as tx:
            return tx.steps.by_key(self.run.id, in_turn(key, self.turn)) or tx.steps.by_key(self.run.id, key)

    def artifact(self, step_key: str, name: str) -> Artifact:
        """An output of another step of this run."""
        step = self.step_named(step_key)
        with self.database.begin() as tx:
            found = tx.artifacts.by_name(step.id, name) if step else None
        if found is None:
            raise LookupError(f"step {step_key} of {self.run.id} has no output {name!r}")
        return found

    def input_file(self, step_key: str, name: str) -> Path:
        """The content of another step's output; not to be written to."""
        return self.store.path(self.artifact(step_key, name).sha256)

    def input_tree(self, step_key: str, name: str) -> Path:
        """A folder that another step gave out, unpacked into this step's own folder."""
        folder = self.folder / f"{step_key.replace('/', '-')}-{name}"
        if not folder.exists():
            self.store.extract_tree(self.artifact(step_key, name).sha256, folder)
        return folder

    def result_of(self, step_key: str) -> Json:
        """The data of another step's result."""
        step = self.step_named(step_key)
        if step is None:
            raise LookupError(f"{self.run.id} has no step {step_key}")
        return step.result
