"""A tile program as plain facts: a grid of instances, loops, loads and stores at affine places, operations on tiles.

All indices are affine in counters: of the grid's dims and of loops. So what two instances share is known before a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.tasks.affine import Affine

BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "int8": 1, "int16": 2, "int32": 4, "bool": 1}
MATRIX = "dot"
Strides = tuple[int, ...]


@dataclass(frozen=True)
class MeshBound:
    """Holds for the elements of a tile at which `base` + strides · place is less than 0."""

    base: Affine
    strides: Strides


@dataclass(frozen=True)
class MeshAccess:
    """A tile of a tensor that lies flat in memory: element p at `base` + strides · p, where all bounds hold."""

    tensor: str
    base: Affine
    strides: Strides
    shape: tuple[int, ...]
    mask: tuple[MeshBound, ...] = ()

    @property
    def elements(self) -> int:
        """Those that are distinct: a dim of stride 0 repeats them."""
        return math.prod(size for size, stride in zip(self.shape, self.strides, strict=True) if stride)

    def counters(self) -> frozenset[int]:
        """What it depends on: bounds too, since they say what is loaded."""
        return frozenset(k for base in (self.base, *(bound.base for bound in self.mask)) for k, _ in base.terms)


@dataclass(frozen=True)
class MeshLoad:
    result: int
    access: MeshAccess
    other: float
    where: str


@dataclass(frozen=True)
class MeshStore:
    access: MeshAccess
    value: int
    where: str


@dataclass(frozen=True)
class MeshCompute:
    """`kind` of `operands`; what else it needs (an axis, a constant, a type, bounds) in `setting`."""

    result: int
    kind: str
    operands: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    setting: float | int | str | tuple[int, ...] | tuple[MeshBound, ...] | None = None
    inner: int = 1
    """How many products are added up for one element of a `dot`."""


@dataclass(frozen=True)
class Carried:
    """A tile that goes round: what it is at first, within the body, at the end of the body, and after the loop."""

    first: int
    inside: int
    last: int
    after: int


@dataclass(frozen=True)
class MeshLoop:
    counter: int
    extent: Affine
    carried: tuple[Carried, ...]
    body: tuple[MeshStatement, ...]
    where: str


MeshStatement = MeshLoad | MeshStore | MeshCompute | MeshLoop


@dataclass(frozen=True)
class MeshTensor:
    name: str
    dtype: str
    elements: int

    @property
    def bytes(self) -> int:
        return self.elements * BYTES[self.dtype]


@dataclass(frozen=True)
class GridDim:
    counter: int
    name: str
    extent: int


@dataclass(frozen=True)
class TileProgram:
    name: str
    grid: tuple[GridDim, ...]
    tensors: Mapping[str, MeshTensor]
    written: frozenset[str]
    shapes: Mapping[int, tuple[tuple[int, ...], str]]
    body: tuple[MeshStatement, ...]
    trips: Mapping[int, int]
    """The most that each counter counts to."""
    blocks: Mapping[str, int]

    @property
    def instances(self) -> int:
        return math.prod(dim.extent for dim in self.grid)


def walk(body: Sequence[MeshStatement]) -> Iterator[MeshStatement]:
    for statement in body:
        yield statement
        if isinstance(statement, MeshLoop):
            yield from walk(statement.body)
