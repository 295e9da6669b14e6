"""A scalar body as timed steps of one lane: what each operation is built of, and how wide it really is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from penstock.compiler.analysis.pairs import PAIRED, PAIRINGS
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.bindings import Allotment
from penstock.compiler.dialects.scaling import scaling_of
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.scalars.operations import OPERATIONS
from penstock.compiler.schedule.library import Operator, OperatorLibrary

ADDS = {"arith.addi", "arith.subi"}


@dataclass(frozen=True, slots=True)
class BodyStep:
    """One operation. An input is the position of a step of the body, or below 0 the argument `~input`."""

    name: str
    inputs: tuple[int, ...]
    count: int
    bits: int
    operator: Operator
    operand_bits: int


@dataclass(frozen=True)
class FlatBody:
    """The steps of a body, and which of them (or of its arguments) give its result, so wide."""

    steps: tuple[BodyStep, ...]
    made_by: tuple[int, ...]
    bits: int


@dataclass(frozen=True)
class Operators:
    """What operations are built of."""

    library: OperatorLibrary
    allotment: Allotment
    paired: arith.MuliOp | None = None
    """The product of which two lanes share an operator, where that is asked for."""

    def of(self, op: Operation, bits: Sequence[int], count: int, *, added: bool) -> list[tuple[int, Operator]]:
        """What the lanes of an operation are built of, and how many of them of each; `bits` are its operands'."""
        return [(taken, self._one(op, bits, choice, added)) for taken, choice in self.allotment.take(op, count)]

    def _one(self, op: Operation, widths: Sequence[int], choice: str | None, added: bool) -> Operator:
        bits = max(widths)
        if choice in PAIRINGS:  # without a partner it is built as any other, and in pairs where nothing sums it
            choice = PAIRED if op is self.paired else None
        row = OPERATIONS.get(type(op))  # one without a row is refused by the library, under its own name
        name = op.name if row is None else row.operator or op.name
        if name == "arith.divf" and _constant_value(op.operands[0]) == 1:
            name = "reciprocal"
        elif name == "arith.muli" and _is_added(op.results[0], added):
            name = "mac"
        elif self.library.knows("scale") and scaling_of(op) is not None:
            return self.library.find("scale", bits)
        return self.library.find(name, bits, choice, min(widths) if op.name == "arith.muli" else None)


def flatten_body(
    block: Block, bits: Sequence[int], stepped: Sequence[bool], operators: Operators, count: int, added: bool
) -> FlatBody:
    """The steps of a body for `count` lanes. `bits` are its arguments' widths, `stepped` says which a step makes.

    `added` says whether its result goes straight into a sum.
    """
    body = _Body(operators, count, added)
    for index, (argument, width, made) in enumerate(zip(block.args, bits, stepped, strict=True)):
        body.made_by[argument] = (~index,) if made else ()
        body.bits_of[argument] = width
    last = block.last_op
    assert last is not None, "the verifier has seen that a body yields"
    for op in block.ops:
        if op is not last:
            body.visit(op)
    (given,) = last.operands
    return FlatBody(tuple(body.steps), body.made_by.get(given, ()), body.bits(given))


class _Body:
    def __init__(self, operators: Operators, count: int, added: bool) -> None:
        self.operators, self.count, self.added = operators, count, added
        self.steps: list[BodyStep] = []
        self.made_by: dict[SSAValue, tuple[int, ...]] = {}
        self.bits_of: dict[SSAValue, int] = {}

    def visit(self, op: Operation) -> None:
        result = op.results[0]
        width = type_bits(result.type)
        if isinstance(op, arith.ConstantOp):
            self.bits_of[result] = constant_bits(op.value, result.type)
            return
        bits = operator_widths(op, [self.bits(o) for o in op.operands])
        row = OPERATIONS.get(type(op))
        if row is not None and row.operator is None:
            self._alias(result, op.operands[0], min(bits[0] + (op.name == "arith.extui"), width))
            return
        if row is not None and row.by_constant and (amount := _constant_value(op.operands[1])) is not None:
            moved = bits[0] + amount if op.name == "arith.shli" else max(bits[0] - amount, 1)
            self._alias(result, op.operands[0], min(moved, width))
            return
        rows = self.operators.of(op, bits, self.count, added=self.added)
        inputs = tuple([step for o in op.operands for step in self.made_by.get(o, ())])
        grown, first = min(result_bits(op, bits), width), len(self.steps)
        self.steps += [BodyStep(op.name, inputs, count, grown, row, max(bits)) for count, row in rows]
        self.made_by[result] = tuple(range(first, len(self.steps)))
        self.bits_of[result] = grown

    def bits(self, value: SSAValue) -> int:
        found = self.bits_of.get(value)
        return type_bits(value.type) if found is None else found

    def _alias(self, new: SSAValue, old: SSAValue, bits: int) -> None:
        self.made_by[new] = self.made_by.get(old, ())
        self.bits_of[new] = bits


def operator_widths(op: Operation, bits: Sequence[int]) -> Sequence[int]:
    """The widths that an operator is chosen by and grows with: its operands', or that of what is looked up."""
    return [type_bits(op.result.type)] if isinstance(op, LookUpOp) else bits


def first_op(block: Block) -> Operation:
    """What a reduction combines with."""
    return next(iter(block.ops))


def _is_added(product: SSAValue, added: bool) -> bool:
    """Whether a product goes straight into a sum: in its own body, or where the body's result does."""
    return any(
        use.operation.name in ADDS or (added and isinstance(use.operation, nest.YieldOp)) for use in product.uses
    )


def result_bits(op: Operation, bits: Sequence[int]) -> int:
    """The bits that a result needs when its operands have so many."""
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
            return type_bits(op.results[0].type)


def _constant_value(value: SSAValue) -> int | None:
    """A constant integer, or the float one; that is all that operators are chosen by."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        constant = value.op.value
        if isinstance(constant, IntegerAttr):
            return constant.value.data
        if isinstance(constant, FloatAttr) and constant.value.data == 1.0:
            return 1
    return None


def constant_bits(value: Attribute, kind: Attribute) -> int:
    if isinstance(value, IntegerAttr):
        return min(int(value.value.data).bit_length() + 1, type_bits(kind))
    return type_bits(kind)
