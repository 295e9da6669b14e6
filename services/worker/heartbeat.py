"""Keeps the lease of a running step, and ends a step that is cancelled, lost, or in the way of a shutdown."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from penstock.db import Database
from penstock.db.database import is_transient
from penstock.db.repositories.step_logs import LONGEST_TAIL
from penstock.services.settings import Settings
from penstock.services.steps.context import StepContext
from penstock.services.worker import shutdown

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_SHOWN_LINES = 40
EXIT_STUCK = 70


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
    """A thread for the time of one step. It can end the process: see `_force`."""

    def __init__(
        self, database: Database, settings: Settings, context: StepContext, give_up: Callable[[str], None]
    ) -> None:
        self._database = database
        self._settings = settings
        self._context = context
        self._give_up = give_up
        self._said = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat {context.step.id}", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        context, settings = self._context, self._settings
        renewed = time.monotonic()  # the claim was a renewal
        due = renewed + settings.heartbeat_seconds
        stopped_at: float | None = None
        while not self._done.wait(_LOOK_SECONDS):
            now = time.monotonic()
            if now >= due:
                answer = self._renew()
                if answer == "renewed":
                    renewed = now
                elif answer != "unreachable":
                    context.stop(answer)
                elif now - renewed > settings.outage_seconds:
                    context.stop("outage")
                due = now + settings.heartbeat_seconds
            if shutdown.announced():
                context.stop("shutdown")
            if context.stop_reason is not None:
                stopped_at = stopped_at or now
                if now - stopped_at > settings.stop_seconds:
                    self._force(context.stop_reason)

    def _renew(self) -> str:
        """renewed, cancelled, fenced, or unreachable."""
        step = self._context.step
        try:
            with self._database.begin() as tx:
                cancel = tx.steps.heartbeat(step.id, step.fence, self._settings.lease_seconds)
                said = self._tail()
                if cancel is not None and said not in ("", self._said):
                    tx.step_logs.write(step.id, step.fence, said)
                    self._said = said
        except Exception as error:
            if not is_transient(error):
                log.exception("heartbeat of %s", step.id)
            return "unreachable"
        if cancel is None:
            return "fenced"
        return "cancelled" if cancel else "renewed"

    def _tail(self) -> str:
        """What a tool says just now, without the server's own paths: they are nobody's business but its keeper's."""
        said = last_lines(self._context.tools.logs())
        settings = self._settings
        for place in (self._context.folder, settings.tool_folder, settings.home):
            said = said.replace(str(place), "…") if place is not None else said
        return said

    def _force(self, reason: str) -> None:
        """The body does not end: give up its step and this process. The worker starts another process."""
        step = self._context.step
        log.warning(
            "%s did not stop within %.1f s (%s): ending its process",
            step.key,
            self._settings.stop_seconds,
            reason,
        )
        try:
            self._give_up(reason)
        finally:
            os._exit(EXIT_STUCK)
