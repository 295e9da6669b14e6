"""What is known of a source that was tried: for whoever watches an exploration, and for the record of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class NestLine:
    """What was done to a nest: loops from the outermost, lanes of each variable."""

    line: int
    source: tuple[str, ...]
    order: tuple[str, ...]
    lanes: Mapping[str, int]


@dataclass(frozen=True)
class TriedSource:
    """A source beside what was sent, which is number 0. Cycles are simulated, area is modelled; None where `refused`
    says why there are none."""

    number: int
    latency: int | None
    interval: int | None
    area: Mapping[str, int]
    tasks: int
    nests: tuple[NestLine, ...]
    changes: tuple[str, ...]
    """Pragmas that were changed, where nothing else was."""
    refused: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


OnTried = Callable[[TriedSource], None]


def nobody(tried: TriedSource) -> None:
    """For an exploration that nobody watches."""
