"""What an elaborated kernel is made of: memories, streams, loops and tasks, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from penstock.compiler.hls_in.graph import Graph

Kind = Literal["int", "bool", "half", "float", "double", "fixed"]
_numbers = count()


@dataclass(eq=False)
class Counter:
    """A loop's iterations, from 0."""

    name: str
    trip: int
    number: int = field(default_factory=lambda: next(_numbers))


@dataclass(eq=False)
class Array:
    """`partition` says of a dimension (from 0) how it is cut: ("cyclic" | "block", factor), or ("complete", length)."""

    name: str
    dims: tuple[int, ...]
    kind: Kind
    bits: int
    where: str = ""
    argument: bool = False
    constant: bool = False
    partition: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    reshape: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    storage: str = ""

    @property
    def words(self) -> int:
        return prod(self.dims)

    @property
    def registers(self) -> bool:
        """Cut into single words: no memory at all."""
        cut = all(d in self.partition and self.partition[d][1] >= n for d, n in enumerate(self.dims))
        return cut or (not self.argument and not self.constant and self.words <= 4)

    def factors(self) -> list[tuple[str, int]]:
        """How each dimension is cut, ("none", 1) where it is not."""
        return [self.partition.get(d, ("none", 1)) for d in range(len(self.dims))]

    @property
    def banks(self) -> int:
        return prod(factor for _, factor in self.factors())


@dataclass(eq=False)
class Streams:
    """One hls::stream, or an array of them."""

    name: str
    dims: tuple[int, ...]
    bits: int
    depth: int = 2
    argument: bool = False
    where: str = ""
    directive: str = ""
    """Where its depth is said."""


@dataclass(eq=False)
class Pipeline:
    """A pipelined nest, flattened: its counters from the outermost, and what one iteration does."""

    name: str
    counters: list[Counter]
    graph: Graph
    target: int
    explicit: bool
    """A pragma asked for it."""
    where: str
    line: int = 0
    pipelined: bool = True

    @property
    def iterations(self) -> int:
        return prod(c.trip for c in self.counters)


@dataclass(eq=False)
class Straight:
    """Operations outside of any loop."""

    graph: Graph
    where: str = ""


@dataclass(eq=False)
class Again:
    """A loop that is not pipelined, around others."""

    name: str
    counter: Counter
    body: list[Item]
    where: str
    dataflow: bool = False


@dataclass(eq=False)
class Called:
    """A function that stays a module of its own."""

    name: str
    body: list[Item]
    where: str


@dataclass(eq=False)
class Task:
    name: str
    body: list[Item]
    where: str


@dataclass(eq=False)
class Dataflow:
    """Tasks that run at the same time, in the order of the program."""

    name: str
    tasks: list[Task]
    where: str


Item = Pipeline | Straight | Again | Called | Dataflow


@dataclass
class Kernel:
    """A whole top function."""

    name: str
    body: list[Item]
    arrays: list[Array]
    streams: list[Streams]
    scalars: list[str]
    s_axilite: bool
    axi: frozenset[str] = frozenset()
    """Arguments behind an m_axi interface."""
    notes: list[str] = field(default_factory=list[str])
