"""Events as lines that people read: what happened, to which step, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.web import text
from penstock.web.text import Document

_WORDS = {
    "run.create": "submitted",
    "run.start": "started: a worker took the first step",
    "run.succeed": "done: every step succeeded",
    "run.fail": "a step failed: ending what still runs",
    "run.cancel": "somebody asked to stop",
    "run.pause": "paused: no further trial starts",
    "run.resume": "goes on",
    "run.label": "tags or notes were changed",
    "run.extend": "further trials were asked for",
    "run.end_failed": "ended as failed",
    "run.end_cancelled": "stopped",
    "step.release": "ready",
    "step.claim": "taken by a worker",
    "step.succeed": "done",
    "step.reuse": "already known: outputs of an earlier run are used",
    "step.fail": "failed",
    "step.retry": "failed; will be tried again",
    "step.hand_back": "handed back by its worker; another one takes it",
    "step.lose": "its worker went silent; another one takes it",
    "step.poison": "given up after its last attempt",
    "step.cancel": "dropped before it started",
    "step.stop": "stopped",
}
_BAD = ("run.fail", "run.end_failed", "step.fail", "step.retry", "step.lose", "step.poison")
QUIET = ("step.create", "step.release")
"""Only machines care for these."""
ORDINARY = ("step.claim", "step.succeed")
"""Of steps by the hundred these say nothing that their table does not."""


@dataclass(frozen=True)
class EventLine:
    id: int
    time: str
    stamp: str
    subject: str
    words: str
    bad: bool
    actor: str


def event_lines(events: Sequence[Document]) -> tuple[EventLine, ...]:
    """Lines, the newest first; what only machines care for is left out."""
    return tuple(_line(event) for event in reversed(events) if event["kind"] not in QUIET)


def _line(event: Document) -> EventLine:
    kind, data = event["kind"], event["data"]
    return EventLine(
        id=event["id"],
        time=text.clock(event["at"]),
        stamp=text.stamp(event["at"]),
        subject=str(data.get("key") or "run"),
        words=_words(kind, data),
        bad=kind in _BAD,
        actor=event.get("actor") or "",
    )


def _words(kind: str, data: Document) -> str:
    words = _WORDS.get(kind, kind.partition(".")[2].replace("_", " ") or kind)
    if kind == "step.progress":
        return str(data.get("text") or "goes on")
    error = data.get("error")
    if isinstance(error, Mapping) and error.get("what"):
        words += f": {error['what']}"
    attempt = data.get("attempt")
    if kind == "step.claim" and isinstance(attempt, int) and attempt > 1:
        words += f" (attempt {attempt})"
    if isinstance(data.get("text"), str) and kind not in _WORDS:
        words = data["text"]
    return words
