"""Partial sums that never leave their register: what one iteration stores, the next one loads.

Such a memory needs no words of its own. The last register before the store keeps its value while no iteration passes,
and the load reads it there. How large a sum can grow is known, so it has no more bits than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue

from penstock.compiler.analysis.banks import lanes_of
from penstock.compiler.backend.rtl.numbers import ValueRange, type_range
from penstock.compiler.backend.rtl.scalar_sv import SPELLINGS, literal_of
from penstock.compiler.backend.rtl.timing import NestTiming
from penstock.compiler.dialects import nest, stream


@dataclass(frozen=True)
class Accumulator:
    """`total` is the map whose last operation, `combine`, makes the new value."""

    load: nest.LoadOp
    store: nest.StoreOp
    total: nest.MapOp
    combine: Operation

    def range(self, ranges: dict[SSAValue, ValueRange], trips: Sequence[int]) -> ValueRange:
        """All values that the register can have; every value of the type where nothing is known."""
        whole = type_range(self.load.result.type)
        start = _start(self.load)
        if self.combine.name != "arith.addi" or start is None or len(self.total.inputs) != 2:
            return whole
        first, steps = start
        added = [v for v in self.total.inputs if not _is_choice(v, self.load)]
        if len(added) != 1 or added[0] not in ranges or list(self.combine.operands) != list(self.total.body.block.args):
            return whole
        step, count = ranges[added[0]], prod(trips[steps:])
        found = ValueRange(first + count * min(step.low, 0), first + count * max(step.high, 0))
        return found if whole.low <= found.low and found.high <= whole.high else whole


def find_accumulators(op: nest.NestOp, timing: NestTiming) -> list[Accumulator]:
    found: list[Accumulator] = []
    for load in op.body.block.ops:
        if isinstance(load, nest.LoadOp) and isinstance(load.memory.owner, stream.BufferOp):
            others = [use.operation for use in load.memory.uses if use.operation is not load]
            if len(others) == 1 and isinstance(others[0], nest.StoreOp):
                one = _accumulator(load, others[0], timing)
                found += [one] if one is not None else []
    return found


def _accumulator(load: nest.LoadOp, store: nest.StoreOp, timing: NestTiming) -> Accumulator | None:
    total = store.value.owner
    shape = nest.memory_shape(load.memory)
    whole = lanes_of(load) == lanes_of(store) == shape
    if not whole or store.when.terms or not isinstance(total, nest.MapOp) or store.parent_op() is not load.parent_op():
        return None
    terminator = total.body.block.last_op
    assert terminator is not None
    combine = terminator.operands[0].owner
    if not isinstance(combine, Operation) or combine not in timing.spans or combine.name not in SPELLINGS:
        return None
    (start, end), (loaded, there), stored = timing.spans[combine], timing.spans[load], timing.start(store)
    keeps = start < end == stored and loaded == there < stored <= loaded + timing.schedule.ii
    return Accumulator(load, store, total, combine) if keeps else None


def _start(load: nest.LoadOp) -> tuple[int, int] | None:
    """What the sum begins with, and from which loop on it grows: the outermost that the guard looks at."""
    uses = list(load.result.uses)
    if len(uses) != 1 or not isinstance(select := uses[0].operation, nest.SelectOp):
        return None
    constant = select.inside.owner
    if select.outside is not load.result or not isinstance(constant, nest.ConstantOp):
        return None
    if not select.when.terms or any(t.comparison != "eq" or t.value != 0 for t in select.when.terms):
        return None
    return literal_of(constant.value), min(t.loop for t in select.when.terms)


def _is_choice(value: SSAValue, load: nest.LoadOp) -> bool:
    return isinstance(value.owner, nest.SelectOp) and value.owner.outside is load.result
