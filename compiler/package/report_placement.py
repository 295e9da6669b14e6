"""The report's records about space: what stands on which die, and what every memory is built of."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.compiler.package.record import Record


class DieInfo(Record):
    """What stands on one die, of what the platform's shell leaves there and still routes."""

    name: str
    tasks: tuple[str, ...]
    used: dict[str, int]
    limit: dict[str, int]


class CrossingInfo(Record):
    """Wires between two dies."""

    between: tuple[str, str]
    wires: int
    available: int
    channels: tuple[str, ...] = Field(description="what crosses")


class StoredInfo(Record):
    """One buffer or FIFO as it is built."""

    name: str
    die: str
    words: int
    word_bits: int
    banks: int = Field(default=1, description="memories of so many words each, met at once")
    copies: int
    kind: str = Field(description="registers, lutram, srl, bram or uram")
    blocks: str = Field(description="as the device's family counts them; empty: no block memory")


class PlacementReport(Record):
    """A die for every task and a kind for every memory."""

    evidence: Literal["modelled"] = "modelled"
    proven: bool = Field(description="no other placement costs notably less")
    dies: tuple[DieInfo, ...]
    crossings: tuple[CrossingInfo, ...]
    memories: tuple[StoredInfo, ...]
    dies_picture: str = Field(description="SVG")
    memories_picture: str = Field(description="SVG")
    note: str = Field(default="", description="why tasks are not divided among the dies, if they are not")
