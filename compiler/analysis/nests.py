"""A nest as plain facts: its loops, and what one iteration does with which memories and channels.

Nests are built as facts and read off operations as facts; schedules look at nothing else. So a search, which wants
schedules only, makes no operations, and there is still one builder and one scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

from xdsl.dialects.builtin import StringAttr, VectorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.banks import Access, access_of, accesses_of
from penstock.compiler.analysis.extents import Extents, lengths_of_nest
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.bindings import bindings_of
from penstock.compiler.dialects.nest import GuardAttr, Loop, memory_shape
from penstock.compiler.dialects.nest_lane_op import LaneOp
from penstock.compiler.dialects.stream import BlocksType, StreamType
from penstock.compiler.dialects.types import vector_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.lengths import Length

PlaceKind = Literal["stream", "block", "external", "array", "buffer", "rom"]


@dataclass(eq=False, slots=True)
class Place:
    """A channel or memory. `shape` is a token's, a block's or the whole memory's; two places are never equal."""

    name: str
    kind: PlaceKind
    shape: tuple[int, ...]
    dtype: Attribute
    parameter: str = ""
    """What a ROM holds."""
    elsewhere: tuple[Access, ...] = ()
    """How other nests meet the same memory; of a block between two of them, how both do."""

    @property
    def is_own(self) -> bool:
        """Whether it is a memory inside the task."""
        return self.kind in ("buffer", "rom")


@dataclass(eq=False, slots=True)
class NestValue:
    """A vector of lanes that a step makes."""

    shape: tuple[int, ...]
    dtype: Attribute

    @property
    def lanes(self) -> int:
        return prod(self.shape)


@dataclass(eq=False, slots=True)
class Read:
    place: Place
    when: GuardAttr
    result: NestValue


@dataclass(eq=False, slots=True)
class Write:
    value: NestValue
    place: Place
    when: GuardAttr


@dataclass(eq=False, slots=True)
class Load:
    place: Place
    address: AffineMap
    when: GuardAttr
    result: NestValue


@dataclass(eq=False, slots=True)
class StoreFact:
    value: NestValue
    place: Place
    address: AffineMap
    when: GuardAttr


@dataclass(eq=False, slots=True)
class Select:
    inside: NestValue
    outside: NestValue
    when: GuardAttr
    result: NestValue


@dataclass(eq=False, slots=True)
class Constant:
    value: Attribute
    result: NestValue


@dataclass(eq=False, slots=True)
class Map:
    """A scalar body on every lane. The body may be shared with other nests: it is copied, never changed."""

    inputs: tuple[NestValue, ...]
    lanes: tuple[AffineMap, ...]
    result: NestValue
    body: Region


@dataclass(eq=False, slots=True)
class Reduce:
    """Lanes along `dims` combined; the body may be shared."""

    value: NestValue
    dims: tuple[int, ...]
    result: NestValue
    body: Region


@dataclass(eq=False, slots=True)
class Other:
    """An operation that makes lanes of lanes; it stands in no block, or in the one that it was read from."""

    op: LaneOp
    inputs: tuple[NestValue, ...]
    result: NestValue


Statement = Read | Write | Load | StoreFact | Select | Constant | Map | Reduce | Other


def inputs_of(statement: Statement) -> tuple[NestValue, ...]:
    """The values that a step takes."""
    match statement:
        case Write(value=value) | StoreFact(value=value) | Reduce(value=value):
            return (value,)
        case Select(inside, outside):
            return inside, outside
        case Map(inputs=inputs) | Other(inputs=inputs):
            return inputs
        case _:
            return ()


@dataclass(eq=False)
class NestFacts:
    """The loop nest. `block_loops` leading loops hand over a block on every block channel once an iteration.

    Where it stands `in_circle`, an iteration may wait for tokens that come of those that an earlier one writes. One
    that stops as a whole begins iterations at least `interval` cycles apart, or when the one before has ended.
    """

    name: str
    loops: tuple[Loop, ...]
    statements: list[Statement]
    block_loops: int = 0
    bindings: Mapping[str, str] = field(default_factory=dict[str, str])
    in_circle: bool = False
    interval: int = 1
    lengths: tuple[Length, ...] = ()
    """Of each call, where loops and guards follow from them."""

    @property
    def trips(self) -> tuple[int, ...]:
        return tuple([loop.trip for loop in self.loops])

    @property
    def extents(self) -> Extents:
        return Extents(self.loops, self.lengths)


def accesses_in(facts: NestFacts, place: Place) -> list[Access]:
    """How a nest meets a memory."""
    found: list[Access] = []
    for one in facts.statements:
        if isinstance(one, Load) and one.place is place:
            found.append(Access.of(one.address, one.result.shape, facts.extents.most, writes=False))
        elif isinstance(one, StoreFact) and one.place is place:
            found.append(Access.of(one.address, one.value.shape, facts.extents.most, writes=True))
    return found


def nest_name(op: nest.NestOp) -> str:
    """The nest's name, after its task's where it stands in one."""
    task = op.parent_op()
    prefix = f"{task.sym_name.data}." if isinstance(task, stream.TaskOp) else ""
    return prefix + op.sym_name.data


def place_name(target: SSAValue) -> str:
    """The channel's or memory's name; for an argument of the top, the argument's."""
    if isinstance(target, OpResult):
        name = target.op.properties["sym_name"]
        assert isinstance(name, StringAttr)
        return name.data
    assert isinstance(target, BlockArgument)
    top = target.owner.parent_op()
    if isinstance(top, stream.TopOp):
        return top.argument_names.data[target.index].data
    return target.name_hint or f"argument {target.index}"


def read_nest(op: nest.NestOp) -> NestFacts:
    """The facts of a nest that stands as an operation."""
    return _Reader(op).facts


class _Reader:
    def __init__(self, op: nest.NestOp) -> None:
        self.op = op
        self.places: dict[SSAValue, Place] = {}
        self.values: dict[SSAValue, NestValue] = {}
        self.name = nest_name(op)
        statements = [self._statement(inner) for inner in op.body.block.ops]
        self.facts = NestFacts(
            self.name, op.loops.data, statements, op.block_loops.data, bindings_of(op), op.in_circle is not None,
            op.interval.data, lengths_of_nest(op),
        )  # fmt: skip

    def _statement(self, op: Operation) -> Statement:
        match op:
            case nest.ReadOp():
                return Read(self._place(op.stream), op.when, self._value(op.result))
            case nest.WriteOp():
                return Write(self._value(op.value), self._place(op.stream), op.when)
            case nest.LoadOp():
                return Load(self._place(op.memory), op.address.data, op.when, self._value(op.result))
            case nest.StoreOp():
                return StoreFact(self._value(op.value), self._place(op.memory), op.address.data, op.when)
            case nest.SelectOp():
                return Select(self._value(op.inside), self._value(op.outside), op.when, self._value(op.result))
            case nest.ConstantOp():
                return Constant(op.value, self._value(op.result))
            case nest.MapOp():
                lanes = tuple(m.data for m in op.lanes)
                return Map(tuple(self._value(v) for v in op.inputs), lanes, self._value(op.result), op.body)
            case nest.ReduceOp():
                return Reduce(
                    self._value(op.value), tuple(d.data for d in op.dims), self._value(op.result), op.body
                )  # fmt: skip
            case LaneOp():
                return Other(op, tuple(self._value(v) for v in op.operands), self._value(op.results[0]))
            case _:
                raise PenstockError(code="broken-ir", what=f"{op.name} inside a nest", where=self.name)

    def _value(self, value: SSAValue) -> NestValue:
        if value not in self.values:
            kind = value.type
            if isinstance(kind, VectorType):
                vector = vector_type(value)
                self.values[value] = NestValue(tuple(vector.get_shape()), vector.element_type)
            else:
                self.values[value] = NestValue((), kind)
        return self.values[value]

    def _place(self, target: SSAValue) -> Place:
        if target not in self.places:
            kind: Any = target.type
            if isinstance(kind, StreamType):
                token = vector_type(kind.token)
                shape, dtype = tuple(token.get_shape()), token.element_type
            else:
                shape, dtype = memory_shape(target), (kind.block if isinstance(kind, BlocksType) else kind).element_type
            place = self.places[target] = Place(place_name(target), _kind_of(target), shape, dtype)
            if place.is_own or place.kind == "block":
                others = [a for a in accesses_of(target) if a.parent_op() is not self.op]
                place.elsewhere = tuple([access_of(a) for a in others])
        return self.places[target]


def _kind_of(target: SSAValue) -> PlaceKind:
    if stream.lies_on_chip(target):
        return "array"
    if not isinstance(target, OpResult):
        return "external"
    match target.op:
        case stream.BufferOp():
            return "buffer"
        case stream.RomOp():
            return "rom"
        case _:
            return "block" if isinstance(target.type, BlocksType) else "stream"
