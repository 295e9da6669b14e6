"""What a task's own attributes say: its loops, how its operands arrive, and the two halves of a reduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.loops import LoopPlan
from penstock.compiler.dialects import itensor, nest
from penstock.compiler.dialects.itensor import ITensorType, unpack
from penstock.compiler.errors import PenstockError


def task_plan(task: itensor.TaskOp) -> LoopPlan:
    """The loops of a task, from its own attributes."""
    schedule = task.schedule
    return LoopPlan.of(
        task.sym_name.data, unpack(task.trips), task.iterator_types.data,
        unpack(schedule.tile), unpack(schedule.unroll), unpack(schedule.order),
    )  # fmt: skip


def is_reread(kind: ITensorType, indexing_map: AffineMap, plan: LoopPlan) -> bool:
    """Whether an operand's stream sends it again for every tile, rather than once."""
    return kind != plan.itensor(indexing_map, kind.dtype)


def lift_bounds(body: Region) -> list[itensor.WithinOp]:
    """What a body asks of its loops, in the order of the arguments that it gets for the answers."""
    found = [op for op in body.block.ops if isinstance(op, itensor.WithinOp)]
    for op in found:
        op.result.replace_all_uses_with(body.block.insert_arg(i1, len(body.block.args)))
        op.detach()
    return found


def split_reduction(source: Block, layer: str) -> tuple[Region, Region]:
    """`combine(acc, expr)` apart: a two-argument region for combine, and the body that yields expr."""
    accumulator = source.args[-1]
    terminator = source.last_op
    assert terminator is not None
    last = terminator.operands[0]
    uses = list(accumulator.uses)
    if (
        not isinstance(last, OpResult)
        or len(uses) != 1
        or uses[0].operation is not last.op
        or len(last.op.operands) != 2
    ):
        raise PenstockError(
            code="unsupported-op", what="a reduction that is not combine(accumulator, value)",
            where=layer, hint="only sums, products, minima and maxima are accumulated",
        )  # fmt: skip
    combining = last.op
    pair = Block(arg_types=[accumulator.type, accumulator.type])
    value = next(o for o in combining.operands if o is not accumulator)
    joined = combining.clone({accumulator: pair.args[0], value: pair.args[1]})
    pair.add_ops([joined, nest.YieldOp(joined.results[0])])

    body = Block(arg_types=[a.type for a in source.args[:-1]])
    mapping: dict[SSAValue, SSAValue] = dict(zip(source.args[:-1], body.args, strict=True))
    for op in source.ops:
        if op is not combining and op is not terminator:
            body.add_op(op.clone(mapping))
    body.add_op(nest.YieldOp(mapping[value]))
    return Region(pair), Region(body)


_NEUTRAL: Mapping[type[Operation], float] = {
    arith.AddfOp: 0.0, arith.AddiOp: 0, arith.MulfOp: 1.0, arith.MuliOp: 1,
    arith.MaximumfOp: -inf, arith.MinimumfOp: inf,
}  # fmt: skip


def starts_neutral(combine: Block, init: Attribute) -> bool:
    """Whether joining the initial value with a first term is that term, but for the sign of a zero.

    Then a sum whose terms are all there at once needs no operator for its start.
    """
    start: Any = init
    neutral = _NEUTRAL.get(type(combine.first_op)) if combine.first_op is not None else None
    return neutral is not None and start.value.data == neutral


@dataclass(frozen=True, eq=False)
class Computation:
    """What a task computes, however it is scheduled: what is common to all nests that it may become."""

    maps: tuple[AffineMap, ...]
    """Of the operands, then of the result."""
    dtype: Attribute
    """Of the result."""
    init: Attribute | None
    body: Region
    """For a lane: the term of a reduction, or the whole body. Its last arguments answer `bounds`."""
    combine: Region | None
    """How a reduction joins two terms."""
    bounds: tuple[itensor.WithinOp, ...]

    @staticmethod
    def of(layer: str, maps: Sequence[AffineMap], dtype: Attribute, init: Attribute | None, body: Block) -> Computation:
        """From the body of a task, which stays as it is."""
        combine, lanes = (None, _copy_body(body)) if init is None else split_reduction(body, layer)
        return Computation(tuple(maps), dtype, init, lanes, combine, tuple(lift_bounds(lanes)))

    @staticmethod
    def of_task(task: itensor.TaskOp) -> Computation:
        assert isinstance(task.result.type, ITensorType)
        return Computation.of(task.sym_name.data, task.maps, task.result.type.dtype, task.init, task.body.block)


def _copy_body(source: Block) -> Region:
    block = Block(arg_types=[a.type for a in source.args])
    mapping: dict[SSAValue, SSAValue] = dict(zip(source.args, block.args, strict=True))
    for op in source.ops:
        if isinstance(op, itensor.YieldOp):
            block.add_op(nest.YieldOp(mapping[op.values[0]]))
        else:
            block.add_op(op.clone(mapping))
    return Region(block)
