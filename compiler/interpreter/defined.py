"""Which values of a stretch are defined: not read, loaded or computed where there was nothing.

This too is known before any value is: it depends on guards, and on which elements were ever stored.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import Operation, SSAValue

from penstock.compiler.dialects import nest
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.cells import Indices
from penstock.compiler.interpreter.control import Stretch
from penstock.compiler.interpreter.lane_values import LANE_VALUES
from penstock.compiler.interpreter.memory import CellMask, MemoryCells


class Definedness:
    """Where each value is defined, and which versions of each memory are."""

    def __init__(
        self, control: Stretch, memories: Mapping[SSAValue, MemoryCells], bases: Mapping[SSAValue, int], first: int
    ) -> None:
        self.control, self.bases, self.first = control, bases, first
        self.values: dict[SSAValue, CellMask] = {}
        cells = control.plan.cells
        self.pools = {m: v.defined(cells[m], memories[m], bases[m]) for m, v in control.versions.items()}
        self._read_only = {
            op: self._loaded(op, memories[memory])
            for memory, loads in control.plan.loads.items()
            if memory not in control.versions
            for op in loads
        }
        # A version depends on earlier ones only, so there is one solution, and what repeats itself is it.
        while self._step():
            pass

    def _loaded(self, op: nest.LoadOp, memory: MemoryCells) -> CellMask:
        when = self.control.when(op.when)
        if memory.written is None or memory.written.all():
            return when
        whole: CellMask = np.all(self.control.plan.cells[op.memory].table(memory.written), axis=1)
        return when & _all(whole, self.control.cells(op) + self.bases[op.memory])

    def _step(self) -> bool:
        """Once through the body; whether a version turned out different."""
        values, when, changed = self.values, self.control.when, False
        for op in self.control.plan.ops:
            match op:
                case nest.ReadOp():
                    values[op.result] = when(op.when)
                case nest.LoadOp() if op in self._read_only:
                    values[op.result] = self._read_only[op]
                case nest.LoadOp():
                    values[op.result] = _all(self.pools[op.memory], self.control.use(op).versions)
                case nest.SelectOp():
                    values[op.result] = np.where(when(op.when), values[op.inside], values[op.outside])
                case nest.StoreOp():
                    changed |= self._store(op)
                case _ if type(op) in LANE_VALUES:
                    result: CellMask = np.ones(self.control.count, bool)
                    for operand in op.operands:
                        result &= values[operand]
                    values[op.results[0]] = result
                case _:
                    pass
        return changed

    def _store(self, op: nest.StoreOp) -> bool:
        pool, definition = self.pools[op.memory], self.control.definition(op)
        stored = np.repeat(self.values[op.value][definition.rows], definition.cells_each)
        if np.array_equal(pool[definition.slots], stored):
            return False
        pool[definition.slots] = stored
        return True

    def check(self, op: nest.WriteOp | nest.StoreOp) -> None:
        """What leaves the task must be defined."""
        wrong = self.control.when(op.when) & ~self.values[op.value]
        if wrong.any():
            at = int(np.argmax(wrong))
            target = op.stream if isinstance(op, nest.WriteOp) else op.memory
            raise PenstockError(
                code="undefined-value",
                what=f"iteration {self.first + at} sends an undefined value to {_name(target)}: "
                f"{self._reason(op.value, at)}",
                where=self.control.plan.where,
                hint="this is a defect in a pass; please report it",
            )

    def _reason(self, value: SSAValue, at: int) -> str:
        """Where the undefined value of one iteration comes from."""
        while True:
            op = value.owner
            match op:
                case nest.SelectOp():
                    value = op.inside if self.control.when(op.when)[at] else op.outside
                case _ if type(op) in LANE_VALUES and isinstance(op, Operation):
                    value = next(v for v in op.operands if not self.values[v][at])
                case nest.ReadOp():
                    return f"it reads no token from {_name(op.stream)} there"
                case nest.LoadOp() if not self.control.when(op.when)[at]:
                    return f"it loads nothing from {_name(op.memory)} there"
                case nest.LoadOp():
                    return f"it loads from {_name(op.memory)} what nobody stored"
                case _:
                    return "its operation is unknown"


def _all(flags: CellMask, rows: Indices) -> CellMask:
    """Whether every one of a row's flags is set."""
    chosen: CellMask = flags[rows]
    return chosen[:, 0] if chosen.shape[1] == 1 else np.all(chosen, axis=1)


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else str(value)
