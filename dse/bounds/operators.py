"""What a kernel's operators take at least, a lane: every one built in the way that suits best.

Widths are followed as far as they are sure. Where they are not, an operator counts as the smallest row of the library
that it may become, so that no design is smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log2, prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.analysis.pairs import LONGEST_CHAIN, narrow_product
from penstock.compiler.dialects.scaling import scaling_of
from penstock.compiler.platforms import Resources
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.scalars.operations import OPERATIONS, is_constant
from penstock.compiler.schedule import Operator, OperatorLibrary, implementations
from penstock.compiler.schedule.bodies import constant_bits, operator_widths
from penstock.dse.lanes.binding import bindable


@dataclass(frozen=True)
class Needed:
    """One operator of a lane: of how many lanes there is one, and what each way to build it takes."""

    of_lanes: Fraction
    ways: tuple[Resources, ...]


@dataclass(frozen=True)
class LeastBody:
    """A kernel's scalar body: its operators, and the stages between an operand and a result at least."""

    needed: tuple[Needed, ...]
    one_term: int
    """From the last term of a sum to the result. All operands of an iteration are taken at once, so it is the slowest
    of their ways that counts."""
    whole_sum: int
    """From when the first of all terms may be there."""
    again: int
    """Cycles of an addition until the next one to the same sum may begin; none where nothing is summed."""
    added: int
    """Stages of one addition of its sums: no fewer, since a tool forwards what goes around a loop sooner."""


def body_of(op: TensorOp, library: OperatorLibrary, graph: Graph) -> LeastBody:
    """What a token brings is there within the stage in which it is read, so an operator that fills its first stage
    starts in the next one. What the chip keeps may be there before."""
    block = op.op.body.block
    bound, terms = set(bindable(op)), prod(op.trips[d] for d in op.reductions)
    combining, chained = _combining(op, block), library.knows("link") and narrow_product(block) is not None
    needed: list[Needed] = []
    arguments = dict(zip(block.args[: len(op.inputs)], op.inputs, strict=True))
    slowest: dict[SSAValue, int] = dict.fromkeys(arguments, 0)
    # since when nothing but what fits within its stage has been done to what a token brought
    streamed = [argument for argument, value in arguments.items() if library.chains and not graph.is_param(value)]
    fresh: dict[SSAValue, int] = dict.fromkeys(streamed, 0)
    again = added = 0
    for inner in block.ops:
        if not inner.results:
            continue
        rows = _rows(inner, library, op, bound)
        passing = min((library.stages(row) for row, _ in rows), default=0)
        begun = [fresh[operand] for operand in inner.operands if operand in fresh]
        late = bool(rows) and all(library.fills(row) for row, _ in rows) and (inner is not combining or terms > 1)
        if rows and inner is not combining:
            shared = max(row.lanes for row, _ in rows)
            needed.append(Needed(Fraction(1, shared), tuple(area * (shared // row.lanes) for row, area in rows)))
        elif rows:
            # a tree of n terms has n - 1; the one that is left where nothing is kept in between may fall away
            sums = -(-terms // LONGEST_CHAIN) if chained else terms
            needed.append(Needed(Fraction(sums - 1, terms), tuple(area for _, area in rows)))
            again, added, passing = min(row.latency for row, _ in rows), passing, 0
        result = inner.results[0]
        known = [slowest[operand] for operand in inner.operands if operand in slowest]
        known += [begun_at + late for begun_at in begun]
        if known:
            slowest[result] = max(known) + passing
        if begun and not passing and not late:
            fresh[result] = max(begun)
    last = block.last_op
    assert last is not None
    given = last.operands[0]
    once, before = added if terms > 1 else 0, slowest.get(given, 0)
    return LeastBody(
        tuple(needed), before + once, before + added * ceil(log2(terms)), again if terms > 1 else 0, once
    )  # fmt: skip


def _combining(op: TensorOp, block: Block) -> Operation | None:
    """What adds a reduction's terms up."""
    last = block.last_op
    result = None if last is None else last.operands[0]
    return result.op if op.reductions and isinstance(result, OpResult) else None


def _rows(
    inner: Operation, library: OperatorLibrary, op: TensorOp, bound: set[str]
) -> list[tuple[Operator, Resources]]:
    """Every row of the library that an operation may become, with its area at the width that it has at least."""
    row = OPERATIONS.get(type(inner))
    if isinstance(inner, arith.ConstantOp) or (row is not None and row.operator is None):
        return []
    if row is not None and row.by_constant and is_constant(inner.operands[1]):
        return []
    name = inner.name if row is None else row.operator or inner.name
    names = {name}
    if inner.name == "arith.divf":
        names.add("reciprocal")
    if inner.name == "arith.muli":
        names |= {"mac", "link"}
    if scaling_of(inner) is not None and library.knows("scale"):
        names = {"scale"}
    bits, sure = _bits(inner)
    if sure and len(names) == 1:
        choices = implementations(library, inner.name, bits) if inner.name in bound else (None,)
        found = [library.find(name if name in names else "scale", bits, choice) for choice in choices]
        return [(one, one.area(bits)) for one in found]
    return [(one, one.area(bits)) for one in library.operators if names.intersection(one.ops) and one.bits >= bits]


def _bits(inner: Operation) -> tuple[int, bool]:
    """The widest operand's bits, and whether it has no fewer: those of whole numbers may be narrowed. An entry's of a
    table, which is as wide as its type."""
    if isinstance(inner, LookUpOp):
        return operator_widths(inner, [])[0], True
    known = [_width(operand) for operand in inner.operands]
    return max(bits for bits, _ in known), all(sure for _, sure in known)


def _width(value: SSAValue) -> tuple[int, bool]:
    if isinstance(value.type, AnyFloat):
        return type_bits(value.type), True
    if not isinstance(value, OpResult):
        return type_bits(value.type), True
    made = value.op
    if isinstance(made, arith.ConstantOp):
        constant = made.value
        assert isinstance(constant, IntegerAttr | FloatAttr)
        return constant_bits(constant, value.type), True
    if isinstance(made, arith.ExtSIOp):
        return _width(made.operands[0])
    return 1, False


Costs = Mapping[str, float]


def weighed(needed: tuple[Needed, ...], prices: Costs) -> float:
    """The least price of a lane's operators, each resource at so much."""
    return sum(
        float(one.of_lanes) * min(sum(getattr(way, name) * price for name, price in prices.items()) for way in one.ways)
        for one in needed
    )
