"""The control of a stretch of iterations of a nest, for all of them at once and before any value is known.

Guards and addresses are affine in the loop counters, so this is static: when each operation happens, whether its
value is used, which version of a memory each load sees, and in which order a cycle's iterations can be run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation, SSAValue

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.nest import GuardAttr
from penstock.compiler.interpreter.cells import Indices
from penstock.compiler.interpreter.lane_values import LANE_VALUES
from penstock.compiler.interpreter.levels import levels
from penstock.compiler.interpreter.memory import CellMask
from penstock.compiler.interpreter.plan import Component, NestPlan
from penstock.compiler.interpreter.versions import Definition, MemoryEvent, Versions, VersionUse


@dataclass(frozen=True)
class LevelOrder:
    """Iterations by level: those from `bounds[i]` to `bounds[i + 1]` can be run together. None: they are in order."""

    iterations: Indices | None
    bounds: list[int]


class Stretch:
    """Iterations `start` to `stop` of a nest, and all that are like them. Cells count from the memory's base."""

    def __init__(self, plan: NestPlan, start: int, stop: int) -> None:
        self.plan = plan
        self.start, self.stop = start, stop
        self.count = stop - start
        self._guards: dict[GuardAttr, CellMask] = {}
        self._orders: dict[Component, LevelOrder] = {}
        self._cells: dict[Operation, Indices] = {}

    @cached_property
    def counters(self) -> list[Indices]:
        """The counter of each loop in every iteration."""
        trips, numbers = self.plan.op.trips, np.arange(self.start, self.stop, dtype=np.int64)
        return [numbers // math.prod(trips[i + 1 :]) % trip for i, trip in enumerate(trips)]

    def when(self, guard: GuardAttr) -> CellMask:
        if guard not in self._guards:
            holds = np.ones(self.count, bool)
            for term in guard.terms:
                holds &= term.of(self.counters[term.loop])
            self._guards[guard] = holds
        return self._guards[guard]

    def tokens(self, ops: list[nest.ReadOp] | list[nest.WriteOp]) -> Indices:
        """The number of each operation's token in every iteration, counted over all of them in body order."""
        happens = np.stack([self.when(op.when) for op in ops], axis=1)
        return (np.cumsum(happens) - 1).reshape(happens.shape)

    def demand(self, ops: list[nest.ReadOp]) -> int:
        return sum(int(np.count_nonzero(self.when(op.when))) for op in ops)

    def cells(self, op: nest.LoadOp | nest.StoreOp) -> Indices:
        """The cells that an access touches, a row an iteration."""
        if op not in self._cells:
            numbers = self.plan.access[op].numbers(self.counters, self.count)
            self._cells[op] = numbers - self.plan.base(op.memory, self.plan.counters(self.start))
        return self._cells[op]

    @cached_property
    def needed(self) -> dict[SSAValue, CellMask]:
        """Where the value of a result matters: it reaches a write or a store, choices considered."""
        needed: dict[SSAValue, CellMask] = {v: np.zeros(self.count, bool) for op in self.plan.ops for v in op.results}
        for op in reversed(self.plan.ops):
            match op:
                case nest.WriteOp() | nest.StoreOp():
                    needed[op.value] |= self.when(op.when)
                case nest.SelectOp():
                    needed[op.inside] |= needed[op.result] & self.when(op.when)
                    needed[op.outside] |= needed[op.result] & ~self.when(op.when)
                case _ if type(op) in LANE_VALUES:
                    for operand in op.operands:
                        needed[operand] |= needed[op.results[0]]
                case _:
                    pass
        return needed

    @cached_property
    def versions(self) -> dict[SSAValue, Versions]:
        """The versions of every memory that the nest stores to."""
        return {
            memory: Versions.of(
                [
                    MemoryEvent(self.plan.position[op], self.when(op.when) & self.needed[op.result], self.cells(op))
                    for op in self.plan.loads.get(memory, [])
                ],
                [MemoryEvent(self.plan.position[op], self.when(op.when), self.cells(op)) for op in stores],
                self.count,
                len(self.plan.ops),
            )
            for memory, stores in self.plan.stores.items()
        }

    def use(self, op: nest.LoadOp) -> VersionUse:
        return self.versions[op.memory].uses[self.plan.loads[op.memory].index(op)]

    def definition(self, op: nest.StoreOp) -> Definition:
        return self.versions[op.memory].definitions[self.plan.stores[op.memory].index(op)]

    def order(self, component: Component) -> LevelOrder:
        """The iterations of a cycle by dependence level."""
        if component not in self._orders:
            loads = [op for op in component.ops if isinstance(op, nest.LoadOp)]
            level = levels(np.concatenate([self._writers(op, component) for op in loads], axis=1))
            order = np.argsort(level, kind="stable")
            bounds = np.searchsorted(level[order], np.arange(int(level.max()) + 2)).tolist()
            in_order = np.array_equal(order, np.arange(self.count))
            self._orders[component] = LevelOrder(None if in_order else order, cast("list[int]", bounds))
        return self._orders[component]

    def _writers(self, op: nest.LoadOp, component: Component) -> Indices:
        """The iterations of this stretch from which a load's value comes by way of the cycle; -1 for others."""
        use = self.use(op)
        inside = [store in component.ops for store in self.plan.stores[op.memory]]
        chosen = np.array([*inside, False])[use.stores]  # -1, none of them, is the last
        return np.where(chosen, use.writers, -1)


KEPT = 4
"""How many controls a nest keeps: its first, middle and last stretches differ, and a shorter one at an end."""


class Controls:
    """The controls of a nest, each made once for all stretches that are alike; parts of one are made anew."""

    def __init__(self, plan: NestPlan) -> None:
        self.plan = plan
        self._known: dict[Any, Stretch] = {}

    def of(self, start: int, stop: int) -> Stretch:
        if not self.plan.is_whole(start, stop):
            return Stretch(self.plan, start, stop)
        likeness = self.plan.likeness(start, stop)
        found = self._known.pop(likeness, None) or Stretch(self.plan, start, stop)
        self._known[likeness] = found
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return found
