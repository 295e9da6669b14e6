"""Server-sent events, line by line: what both clients make of an open stream."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from penstock.services.api.answers.schemas import EventOut
from penstock.services.client.errors import NotPenstockError

SILENCE_SECONDS = 45.0
"""The service says something every ten seconds; a stream that is silent for longer is dead."""


@dataclass
class EventReader:
    """Where a stream is. After a break it is taken up again behind `last_id`: none is missed, none comes twice."""

    last_id: int = 0
    ended: bool = False
    _ends: bool = False

    def feed(self, line: str) -> EventOut | None:
        """The event that this line carries, if it carries one."""
        name, _, value = line.partition(":")
        if name == "event":
            self._ends = value.strip() == "end"
            return None
        if name != "data":
            return None
        if self._ends:
            self.ended = True
            return None
        try:
            event = EventOut.model_validate_json(value)
        except ValidationError:
            raise NotPenstockError("the stream is not one of a Penstock service", code="not-penstock") from None
        self.last_id = event.id
        return event

    @property
    def headers(self) -> dict[str, str]:
        wanted = {"Accept": "text/event-stream"}
        return wanted | ({"Last-Event-ID": str(self.last_id)} if self.last_id else {})
