"""Keeps the leases of a worker's steps, and ends a step that is cancelled, lost, or in the way of a shutdown."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from penstock.db import Database, Transaction
from penstock.db.database import is_transient
from penstock.db.repositories.step_logs import LONGEST_TAIL
from penstock.db.schema.records import Json, Step
from penstock.services.settings import Settings
from penstock.services.steps.context import StepContext
from penstock.services.worker import shutdown
from penstock.services.worker.claimed import Claimed

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_SHOWN_LINES = 40
EXIT_STUCK = 70


LONG_SECONDS = 0.5
"""What takes longer lets no other step wait that was claimed with it."""
STOPPED = {"code": "not-begun", "what": "the step that was claimed before it ended otherwise than it should"}
_HELD_UP = {"code": "not-begun", "what": "the step that was claimed before it takes longer than others of its kind"}


def last_lines(logs: Iterable[Path]) -> str:
    """What the tool that wrote last has written last, as plain text."""
    found: list[tuple[float, Path]] = []
    for path in logs:
        with suppress(OSError):
            found.append((path.stat().st_mtime, path))
    if not found:
        return ""
    try:
        with max(found)[1].open("rb") as log_file:
            size = log_file.seek(0, os.SEEK_END)
            log_file.seek(max(0, size - LONGEST_TAIL))
            said = log_file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = said.splitlines()[1 if size > LONGEST_TAIL else 0 :]
    return "\n".join("".join(c for c in line if c.isprintable() or c == "\t") for line in lines[-_SHOWN_LINES:])


class Heartbeat:
    """A thread for the time of one claim. It can end the process: see `_force`."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        claimed: Claimed,
        give_up: Callable[[Step, str], None],
        relieve: Callable[[Claimed, Json], None],
    ) -> None:
        self._database = database
        self._settings = settings
        self._claimed = claimed
        self._give_up = give_up
        self._relieve = relieve
        self._said = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat of {claimed.run_id}", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        settings = self._settings
        renewed = time.monotonic()  # the claim was a renewal
        due = renewed + settings.heartbeat_seconds
        current, since, stopped_at = self._claimed.context, renewed, None
        while not self._done.wait(_LOOK_SECONDS):
            now = time.monotonic()
            if self._claimed.context is not current:
                current, since, stopped_at = self._claimed.context, now, None
            if now >= due:
                if self._renew(current):
                    renewed = now
                elif current is not None and now - renewed > settings.outage_seconds:
                    current.stop("outage")
                due = now + settings.heartbeat_seconds
            if current is None:
                continue
            if self._claimed.several and now - since > LONG_SECONDS:
                self._try_to_relieve()
            if shutdown.announced():
                current.stop("shutdown")
            if current.stop_reason is not None:
                stopped_at = stopped_at or now
                if now - stopped_at > settings.stop_seconds:
                    self._force(current)

    def _renew(self, current: StepContext | None) -> bool:
        """Renew all leases, and have the body end whose lease is lost or whose run is; False if nobody answers."""
        held = self._claimed.leases()
        try:
            with self._database.begin() as tx:
                answers = tx.steps.heartbeat(held, self._settings.lease_seconds)
                if current is not None and current.step.id in answers:
                    self._show(tx, current)
        except Exception as error:
            if not is_transient(error):
                log.exception("heartbeat of %s", ", ".join(held))
            return False
        if current is not None and current.step.id in held:
            if current.step.id not in answers:
                current.stop("fenced")
            elif answers[current.step.id]:
                current.stop("cancelled")
        return True

    def _try_to_relieve(self) -> None:
        try:
            self._relieve(self._claimed, _HELD_UP)
        except Exception as error:  # its thread must go on: what was not given back comes back by its lease
            if not is_transient(error):
                log.exception("steps of %s that wait", self._claimed.run_id)

    def _show(self, tx: Transaction, context: StepContext) -> None:
        """Keep what a tool says just now, where it is news."""
        said = self._tail(context)
        if said not in ("", self._said):
            tx.step_logs.write(context.step.id, context.step.fence, said)
            self._said = said

    def _tail(self, context: StepContext) -> str:
        """What a tool says just now, without the server's own paths: they are nobody's business but its keeper's."""
        said = last_lines(context.tools.logs())
        settings = self._settings
        for place in (context.folder, settings.tool_folder, settings.home):
            said = said.replace(str(place), "…") if place is not None else said
        return said

    def _force(self, context: StepContext) -> None:
        """The body does not end: give up its step and this process. The worker starts another process."""
        step, reason = context.step, context.stop_reason or ""
        log.warning(
            "%s did not stop within %.1f s (%s): ending its process",
            step.key,
            self._settings.stop_seconds,
            reason,
        )
        try:
            self._give_up(step, reason)
        finally:
            os._exit(EXIT_STUCK)
