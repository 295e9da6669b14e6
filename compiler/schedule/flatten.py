"""The body of a nest as a flat list of timed steps, with operators looked up and widths narrowed.

Widths are tracked through sign extensions, products and sums, because that is what the tools build: an
int8 product extended to 32 bits is a 16-bit product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    Float16Type,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.utils.hints import isa

from compiler.dialects import nest, stream
from compiler.dialects.bindings import Allotment, bindings_of
from compiler.dialects.nest import GuardAttr
from compiler.dialects.scaling import scaling_of
from compiler.schedule.library import Operator, OperatorLibrary

_FREE = {"arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.bitcast"}
_SHIFTS = {"arith.shli", "arith.shrsi", "arith.shrui"}
_ADDS = {"arith.addi", "arith.subi"}


@dataclass
class Step:
    """One operation on all lanes. `inputs` are positions of earlier steps; memories and channels by name."""

    name: str
    inputs: tuple[int, ...]
    lanes: int
    bits: int
    operator: Operator | None = None
    kind: str = "compute"
    """compute, read, write, load, store"""
    target: SSAValue | None = None
    op: Operation | None = None
    operand_bits: int = 0


def flatten(op: nest.NestOp, library: OperatorLibrary) -> list[Step]:
    """The steps of a nest's body, its operators built of what the nest says."""
    return Flattener(library, Allotment(bindings_of(op))).run(op.body.block)


@dataclass
class Flattener:
    """Walks a body once. `steps_of` says which steps made a value; constants have none.

    Lanes of one operation that are built of different things are steps side by side.
    """

    library: OperatorLibrary
    allotment: Allotment
    steps: list[Step] = field(default_factory=list[Step])
    steps_of: dict[SSAValue, tuple[int, ...]] = field(default_factory=dict[SSAValue, tuple[int, ...]])
    bits_of: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def run(self, body: Block) -> list[Step]:
        for op in body.ops:
            self._visit(op)
        return self.steps

    def _visit(self, op: Operation) -> None:
        match op:
            case nest.ReadOp():
                self._access(op, "read", op.stream, [], op.result)
            case nest.WriteOp():
                self._access(op, "write", op.stream, [op.value], None)
            case nest.LoadOp():
                self._access(op, "load", op.memory, [], op.result)
            case nest.StoreOp():
                self._access(op, "store", op.memory, [op.value], None)
            case nest.SelectOp():
                bits = max(self._bits(op.inside), self._bits(op.outside))
                row = self.library.find("arith.select", bits)
                self._add(op.result, op.name, [op.inside, op.outside], [(lanes(op.result), row)], bits, bits)
            case nest.WithinOp():
                bits = op.size.data.bit_length()  # of the counter that is compared, once for lanes of one bound
                row = self.library.find("arith.cmpi", bits)
                self._add(op.result, op.name, [], [(len(set(op.bounds)), row)], 1, bits)
            case nest.ConstantOp():
                self.bits_of[op.result] = _constant_bits(op.value, op.result.type)
            case nest.MapOp():
                self._map(op)
            case nest.ReduceOp():
                self._reduce(op)
            case _:
                row = self.library.find(op.name, max((self._bits(o) for o in op.operands), default=1))
                self._add(op.results[0], op.name, op.operands, [(1, row)], row.bits, row.bits)

    def _access(
        self, op: Operation, kind: str, target: SSAValue, values: Sequence[SSAValue], result: SSAValue | None
    ) -> None:
        data = result if result is not None else values[0]
        step = Step(op.name, self._inputs(values), lanes(data), _type_bits(data.type), kind=kind, target=target, op=op)
        self.steps.append(step)
        if result is not None:
            self.steps_of[result] = (len(self.steps) - 1,)
            self.bits_of[result] = step.bits

    def _map(self, op: nest.MapOp) -> None:
        block = op.body.block
        for inside, outside in zip(block.args, op.inputs, strict=True):
            self._alias(inside, outside, self._bits(outside))
        for scalar in block.ops:
            if isinstance(scalar, nest.YieldOp):
                self._alias(op.result, scalar.value, self._bits(scalar.value))
            else:
                self._scalar(scalar, lanes(op.result))

    def _scalar(self, op: Operation, count: int) -> None:
        result = op.results[0]
        width = _type_bits(result.type)
        if isinstance(op, arith.ConstantOp):
            self.bits_of[result] = _constant_bits(op.value, result.type)
            return
        bits = [self._bits(o) for o in op.operands]
        if op.name in _FREE:
            self._alias(result, op.operands[0], min(bits[0] + (op.name == "arith.extui"), width))
            return
        if op.name in _SHIFTS and (amount := _constant_value(op.operands[1])) is not None:
            moved = bits[0] + amount if op.name == "arith.shli" else max(bits[0] - amount, 1)
            self._alias(result, op.operands[0], min(moved, width))
            return
        rows = self._operators(op, max(bits), count)
        self._add(result, op.name, op.operands, rows, min(_result_bits(op, bits), width), max(bits))

    def _operators(self, op: Operation, bits: int, count: int) -> list[tuple[int, Operator]]:
        """What the lanes of an operation are built of, and how many of them of each."""
        return [(taken, self._operator(op, bits, choice)) for taken, choice in self.allotment.take(op, count)]

    def _operator(self, op: Operation, bits: int, choice: str | None) -> Operator:
        name = op.name
        if name in _SHIFTS:
            name = "shift"
        elif name == "arith.divf" and _constant_value(op.operands[0]) == 1:
            name = "reciprocal"
        elif name == "arith.muli" and _is_added(op.results[0]):
            name = "mac"
        elif self.library.knows("scale") and scaling_of(op) is not None:
            return self.library.find("scale", bits)
        return self.library.find(name, bits, choice)

    def _reduce(self, op: nest.ReduceOp) -> None:
        """A balanced tree a dim: one step a level, each halving what is left of the dim's lanes."""
        combine = next(iter(op.body.block.ops))
        width, bits = _type_bits(op.result.type), self._bits(op.value)
        value, extents = op.value, list(vector_shape(op.value))
        for dim in (d.data for d in op.dims):
            while extents[dim] > 1:
                pairs = extents[dim] // 2
                count = pairs * (prod(extents) // extents[dim])
                grown = min(_result_bits(combine, [bits, bits]), width)
                self._add(op.result, combine.name, [value], self._operators(combine, bits, count), grown, bits)
                value, bits = op.result, grown
                extents[dim] -= pairs
        if value is op.value:
            self._alias(op.result, op.value, bits)

    def _add(
        self,
        result: SSAValue,
        name: str,
        operands: Sequence[SSAValue],
        rows: Sequence[tuple[int, Operator]],
        bits: int,
        operand_bits: int,
    ) -> None:
        inputs, first = self._inputs(operands), len(self.steps)
        self.steps += [Step(name, inputs, count, bits, row, operand_bits=operand_bits) for count, row in rows]
        self.steps_of[result] = tuple(range(first, len(self.steps)))
        self.bits_of[result] = bits

    def _alias(self, new: SSAValue, old: SSAValue, bits: int) -> None:
        if old in self.steps_of:
            self.steps_of[new] = self.steps_of[old]
        self.bits_of[new] = bits

    def _inputs(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        return tuple(step for v in values for step in self.steps_of.get(v, ()))

    def _bits(self, value: SSAValue) -> int:
        return self.bits_of.get(value, _type_bits(value.type))


def vector_shape(value: SSAValue) -> tuple[int, ...]:
    """The shape of a lane vector; a scalar has none."""
    kind: Any = value.type
    return tuple(int(extent) for extent in kind.get_shape()) if isinstance(kind, VectorType) else ()


def lanes(value: SSAValue) -> int:
    """How many scalars a lane vector holds."""
    return prod(vector_shape(value))


def guard_of(op: Operation) -> GuardAttr:
    when = op.properties.get("when")
    return when if isinstance(when, GuardAttr) else nest.ALWAYS


def target_name(target: SSAValue) -> str:
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


def _is_added(product: SSAValue) -> bool:
    """Whether a product goes straight into a sum: in its own body, or where the map's result is used."""
    for use in product.uses:
        user = use.operation
        if user.name in _ADDS:
            return True
        if isinstance(user, nest.YieldOp):
            parent = user.parent_op()
            if isinstance(parent, nest.MapOp) and any(_adds(u.operation, u.index) for u in parent.result.uses):
                return True
    return False


def _adds(user: Operation, index: int) -> bool:
    if isinstance(user, nest.ReduceOp):
        return next(iter(user.body.block.ops)).name in _ADDS
    if isinstance(user, nest.MapOp):
        return any(u.operation.name in _ADDS for u in user.body.block.args[index].uses)
    return False


def _result_bits(op: Operation, bits: Sequence[int]) -> int:
    match op.name:
        case "arith.muli":
            return sum(bits)
        case "arith.addi" | "arith.subi":
            return max(bits) + 1
        case "arith.cmpi" | "arith.cmpf":
            return 1
        case "arith.select":
            return max(bits[1:])
        case "arith.maxsi" | "arith.minsi" | "arith.maxui" | "arith.minui":
            return max(bits)
        case _:
            return _type_bits(op.results[0].type)


def _type_bits(kind: Attribute) -> int:
    vector: Any = kind
    element: Attribute = vector.element_type if isinstance(kind, VectorType) else kind
    if isa(element, IntegerType):
        return element.width.data
    return 16 if isinstance(element, Float16Type) else 32 if isinstance(element, Float32Type) else 64


def _constant_value(value: SSAValue) -> int | None:
    """A constant integer, or the float one; that is all that operators are chosen by."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        constant = value.op.value
        if isinstance(constant, IntegerAttr):
            return constant.value.data
        if isinstance(constant, FloatAttr) and constant.value.data == 1.0:
            return 1
    return None


def _constant_bits(value: Attribute, kind: Attribute) -> int:
    if isinstance(value, IntegerAttr):
        return min(int(value.value.data).bit_length() + 1, _type_bits(kind))
    return _type_bits(kind)
