"""The values of a stretch of iterations: every operation on all of them at once, cycles level by level.

A value is an array with the iterations along its first axis (one entry if they are all alike), lanes behind it. A
map is evaluated only where its operands are defined, so that nothing it does can fail for want of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from xdsl.ir import Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.stream import StreamType
from penstock.compiler.dialects.types import vector_type
from penstock.compiler.interpreter.cells import Indices
from penstock.compiler.interpreter.control import Stretch
from penstock.compiler.interpreter.defined import Definedness
from penstock.compiler.interpreter.lane_values import LANE_VALUES, Evaluate
from penstock.compiler.interpreter.linalg import ValueArrays
from penstock.compiler.interpreter.memory import CellMask, MemoryCells
from penstock.compiler.interpreter.plan import Component
from penstock.compiler.scalars.number_types import numpy_dtype

Columns = slice
"""Which of the iterations an operation is run for, among those that its arrays were put in order for."""


class Batch:
    """Runs a stretch. `tokens` are those that it reads, by operation, a row for each time its guard holds."""

    def __init__(
        self,
        control: Stretch,
        defined: Definedness,
        memories: Mapping[SSAValue, MemoryCells],
        bases: Mapping[SSAValue, int],
        tokens: Mapping[Operation, Array],
        tables: Mapping[SSAValue, Array],
    ) -> None:
        self.control, self.plan, self.defined = control, control.plan, defined
        self.memories, self.bases, self.tokens, self.tables = memories, bases, tokens, tables
        self.values: ValueArrays = {}
        self.pools = {m: v.pool(self.plan.cells[m], memories[m], bases[m]) for m, v in control.versions.items()}

    def run(self) -> None:
        for component in self.plan.components:
            if component.cyclic:
                self._run_cycle(component)
            else:
                self._run(component.ops[0])
        for memory, versions in self.control.versions.items():
            pool, defined = self.pools[memory], self.defined.pools[memory]
            versions.leave(self.plan.cells[memory], self.memories[memory], self.bases[memory], pool, defined)

    def written(self, ops: list[nest.WriteOp]) -> Array:
        """The tokens that a channel gets, in order."""
        channel = ops[0].stream.type
        assert isinstance(channel, StreamType)
        shape = channel.token.get_shape()
        if len(ops) == 1:
            return self._where(self.values[ops[0].value], self.control.when(ops[0].when)).reshape(-1, *shape)
        numbers, first = self.control.tokens(ops), self.values[ops[0].value]
        count = int(numbers[-1, -1]) + 1
        tokens = np.empty((count, *first.shape[1:]), first.dtype)
        for column, op in enumerate(ops):
            when = self.control.when(op.when)
            tokens[numbers[when, column]] = self._where(self.values[op.value], when)
        return tokens.reshape(-1, *shape)

    def _where(self, value: Array, when: CellMask) -> Array:
        """The rows of the iterations in which a guard holds."""
        if len(value) != len(when):
            return np.repeat(value, int(np.count_nonzero(when)), axis=0)
        return value if when.all() else value[when]

    # Operations that no cycle goes through: on the whole stretch.

    def _run(self, op: Operation) -> None:
        values, when = self.values, self.control.when
        match op:
            case nest.ReadOp():
                values[op.result] = self._read(op)
            case nest.LoadOp():
                values[op.result] = self._load(op)
            case nest.StoreOp():
                access, definition = self.plan.access[op], self.control.definition(op)
                rows = access.rows_of(self._where(values[op.value], when(op.when)))
                self.pools[op.memory][definition.slots] = rows.reshape(-1, access.cells.lanes)
            case nest.SelectOp():
                values[op.result] = _choose(when(op.when), values[op.inside], values[op.outside])
            case _ if make := LANE_VALUES.get(type(op)):
                inputs, result = [values[v] for v in op.operands], op.results[0]
                values[result] = _where_defined(
                    result, make(op, lambda: self.control.counters), inputs, self.defined.values[result]
                )
            case _:
                pass

    def _read(self, op: nest.ReadOp) -> Array:
        when, tokens = self.control.when(op.when), self.tokens[op]
        if when.all():
            return tokens
        kind = op.result.type
        value = np.zeros((self.control.count, *kind.get_shape()), numpy_dtype(kind.element_type))
        value[when] = tokens
        return value

    def _load(self, op: nest.LoadOp) -> Array:
        access = self.plan.access[op]
        if op.memory in self.pools:
            return access.lanes_of(self.pools[op.memory][self.control.use(op).versions])
        when, cells = self.control.when(op.when), self.control.cells(op) + self.bases[op.memory]
        if when.all():
            return access.lanes_of(self.tables[op.memory][cells])
        loaded = access.lanes_of(self.tables[op.memory][cells[when]])
        value = np.zeros((self.control.count, *access.lanes), loaded.dtype)
        value[when] = loaded
        return value

    # Cycles: level by level, in the order of the body inside a level.

    def _run_cycle(self, component: Component) -> None:
        order = self.control.order(component)
        cycle = _Cycle(self, component, order.iterations)
        for start, stop in zip(order.bounds[:-1], order.bounds[1:], strict=True):
            cycle.run(slice(start, stop))
        cycle.finish()


class _Cycle:
    """The operations of one cycle, with everything they need put in the order of their levels."""

    def __init__(self, batch: Batch, component: Component, order: Indices | None) -> None:
        self.batch, self.order = batch, order
        self.inside = {v for op in component.ops for v in op.results}
        self.sorted: ValueArrays = {}
        self.now: ValueArrays = {}
        ops = set(component.ops)
        self.results: ValueArrays = {}
        for value in self.inside:
            if any(use.operation not in ops for use in value.uses):
                kind = vector_type(value)
                shape = (batch.control.count, *kind.get_shape())
                self.results[value] = np.empty(shape, numpy_dtype(kind.element_type))
        self.steps = [self._step(op) for op in component.ops]

    def run(self, part: Columns) -> None:
        for step in self.steps:
            step(part)
        for value, result in self.results.items():
            result[part] = self.now[value]

    def finish(self) -> None:
        for value, result in self.results.items():
            self.batch.values[value] = result
            if self.order is not None:
                placed = np.empty_like(result)
                placed[self.order] = result
                self.batch.values[value] = placed

    def _ordered(self, array: Array) -> Array:
        return array if self.order is None else array[self.order]

    def _operand(self, value: SSAValue) -> Callable[[Columns], Array]:
        if value in self.inside:
            return lambda _: self.now[value]
        if value not in self.sorted:
            whole = self.batch.values[value]
            self.sorted[value] = whole if len(whole) == 1 else self._ordered(whole)
        ordered = self.sorted[value]
        return (lambda _: ordered) if len(ordered) == 1 else (lambda part: ordered[part])

    def _step(self, op: Operation) -> Callable[[Columns], None]:
        match op:
            case nest.LoadOp():
                return self._load(op)
            case nest.StoreOp():
                return self._store(op)
            case nest.SelectOp():
                return self._select(op)
            case _ if make := LANE_VALUES.get(type(op)):
                return self._evaluate(op, make(op, lambda: self.batch.control.counters))
            case _:
                raise AssertionError(f"{op.name} has no operand that a cycle could go through")

    def _load(self, op: nest.LoadOp) -> Callable[[Columns], None]:
        access, pool, now = self.batch.plan.access[op], self.batch.pools[op.memory], self.now
        versions = self._ordered(self.batch.control.use(op).versions)

        def run(part: Columns) -> None:
            now[op.result] = access.lanes_of(pool[versions[part]])

        return run

    def _store(self, op: nest.StoreOp) -> Callable[[Columns], None]:
        access, pool, value = self.batch.plan.access[op], self.batch.pools[op.memory], self._operand(op.value)
        definition = self.batch.control.definition(op)
        happens = self.batch.control.when(op.when)
        slots = np.zeros((len(happens), access.count), np.int64)
        slots[definition.rows] = definition.versions
        slots, when, always = self._ordered(slots), self._ordered(happens), bool(happens.all())

        def run(part: Columns) -> None:
            lanes = value(part)
            if len(lanes) == 1:
                lanes = np.broadcast_to(lanes, (part.stop - part.start, *lanes.shape[1:]))
            if always:
                pool[slots[part]] = access.rows_of(lanes)
            else:
                pool[slots[part][when[part]]] = access.rows_of(lanes[when[part]])

        return run

    def _select(self, op: nest.SelectOp) -> Callable[[Columns], None]:
        inside, outside, now = self._operand(op.inside), self._operand(op.outside), self.now
        when = self._ordered(self.batch.control.when(op.when))

        def run(part: Columns) -> None:
            now[op.result] = _choose(when[part], inside(part), outside(part))

        return run

    def _evaluate(self, op: Operation, evaluate: Evaluate) -> Callable[[Columns], None]:
        operands, now = [self._operand(v) for v in op.operands], self.now
        result, defined = op.results[0], self.batch.defined.values[op.results[0]]
        if defined.all():

            def run(part: Columns) -> None:
                now[result] = evaluate([operand(part) for operand in operands])

            return run
        ordered = self._ordered(defined)

        def run_where_defined(part: Columns) -> None:
            now[result] = _where_defined(result, evaluate, [operand(part) for operand in operands], ordered[part])

        return run_where_defined


def _choose(when: CellMask, inside: Array, outside: Array) -> Array:
    if when.all():
        return inside
    if not when.any():
        return outside
    return np.where(when.reshape(-1, *(1 for _ in inside.shape[1:])), inside, outside)


def _where_defined(value: SSAValue, evaluate: Evaluate, inputs: list[Array], defined: CellMask) -> Array:
    """Evaluate for the iterations whose operands are defined; zeros for the others."""
    if defined.all():
        return evaluate(inputs)
    kind = vector_type(value)
    result = np.zeros((len(defined), *kind.get_shape()), numpy_dtype(kind.element_type))
    if defined.any():
        result[defined] = evaluate([x if len(x) == 1 else x[defined] for x in inputs])
    return result
