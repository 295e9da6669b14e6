"""What a task's own attributes say: its loops, how its operands arrive, and the two halves of a reduction."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, OpResult, Region, SSAValue

from compiler.analysis.loops import LoopPlan
from compiler.dialects import itensor, nest
from compiler.dialects.itensor import ITensorType, unpack
from compiler.errors import PenstockError


def task_plan(task: itensor.TaskOp) -> LoopPlan:
    """The loops of a task, from its own attributes."""
    schedule = task.schedule
    return LoopPlan.of(
        task.sym_name.data, unpack(task.trips), task.iterator_types.data,
        unpack(schedule.tile), unpack(schedule.unroll), unpack(schedule.order),
    )  # fmt: skip


def is_reread(task: itensor.TaskOp, operand: int, plan: LoopPlan) -> bool:
    """Whether an operand's stream sends it again for every tile, rather than once."""
    kind = task.operands_[operand].type
    assert isinstance(kind, ITensorType)
    return kind != plan.itensor(task.maps[operand], kind.dtype)


def lift_bounds(body: Region) -> list[itensor.WithinOp]:
    """What a body asks of its loops, in the order of the arguments that it gets for the answers."""
    found = [op for op in body.block.ops if isinstance(op, itensor.WithinOp)]
    for op in found:
        op.result.replace_all_uses_with(body.block.insert_arg(i1, len(body.block.args)))
        op.detach()
    return found


def split_reduction(task: itensor.TaskOp) -> tuple[Region, Region]:
    """`combine(acc, expr)` apart: a two-argument region for combine, and the body that yields expr."""
    source = task.body.block
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
            where=task.sym_name.data, hint="only sums, products, minima and maxima are accumulated",
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
