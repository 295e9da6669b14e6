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


class TensorInfo(Record):
    """A tensor that the accelerator is called with or leaves, or a bank's share of it, where it lies."""

    name: str
    kind: Literal["input", "parameter", "output", "buffer"] = Field(
        description="buffer: one kernel leaves it there for a later one"
    )
    bank: str = Field(description="of external memory; empty: the shell or whoever calls the core holds it")
    port: str = Field(description="the bundle of AXI ports; empty: an array on the chip")
    argument: str = Field(description="what the C++ calls it")
    shape: tuple[int, ...]
    dtype: str
    share: tuple[int, int] | None = Field(default=None, description="which of how many banks' shares; null: whole")
    bytes: int = Field(description="from the address that the host gives it")
    word_bytes: int = Field(description="what one access moves")


class BankInfo(Record):
    """A bank of external memory that some port is served by."""

    name: str
    memory: str = Field(description="as the platform calls it")
    bytes: int = Field(description="what it holds")


class PlacementReport(Record):
    """A die for every task, a kind for every memory, a bank for every tensor."""

    evidence: Literal["modelled"] = "modelled"
    proven: bool = Field(description="no other placement costs notably less")
    dies: tuple[DieInfo, ...]
    crossings: tuple[CrossingInfo, ...]
    memories: tuple[StoredInfo, ...]
    tensors: tuple[TensorInfo, ...] = Field(default=(), description="in the order of the arguments")
    banks: tuple[BankInfo, ...] = Field(default=(), description="those that tensors lie in")
    dies_picture: str = Field(description="SVG")
    memories_picture: str = Field(description="SVG")
    note: str = Field(default="", description="why tasks are not divided among the dies, if they are not")
