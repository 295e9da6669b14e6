"""The service's queues and tokens, ready for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.web import text
from penstock.web.text import Document


@dataclass(frozen=True)
class QueueRow:
    name: str
    waiting: int
    running: int
    oldest: str
    """Since when something waits that could be done now."""


def view_queues(queues: Sequence[Document], ages: Sequence[Document], now: datetime) -> tuple[QueueRow, ...]:
    oldest = {age["queue"]: text.age(age["oldest"], now) for age in ages}
    return tuple(QueueRow(q["name"], q["waiting"], q["running"], oldest.get(q["name"], "")) for q in queues)


def state_of_token(token: Document, now: datetime) -> str:
    if token["revoked_at"] is not None:
        return "revoked"
    return "expired" if token["expires_at"] is not None and token["expires_at"] < now else "good"
