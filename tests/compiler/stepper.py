"""The stream level executed in the plainest way, one iteration at a time: what the interpreter is compared with.

Counters, guards, addresses, lane vectors; a task runs to its end before the next one begins.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.nest import GuardAttr
from penstock.compiler.dialects.types import memref_type, vector_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.lanes import run_body, spread, tree
from penstock.compiler.scalars.number_types import numpy_dtype

Array = NDArray[Any]
Environment = dict[SSAValue, Any]
Action = Callable[[int], None]
"""One operation of a nest, run for iteration number i."""


def run(module: ModuleOp, memories: Mapping[str, Array], parameters: Mapping[str, Array]) -> dict[str, Array]:
    """Run a top: `memories` holds inputs and streamed parameters by name; outputs come back by name."""
    top = next(op for op in module.ops if isinstance(op, stream.TopOp))
    machine = _Machine(parameters)
    outputs: dict[str, Array] = {}
    for argument, name, kind in zip(top.body.block.args, top.argument_names, top.argument_kinds, strict=True):
        memory_type = memref_type(argument)
        if kind.data == "output":
            outputs[name.data] = _zeros(memory_type)
        elif kind.data == "buffer":
            machine.memory[argument] = _zeros(memory_type)
            continue
        given = outputs[name.data] if kind.data == "output" else memories[name.data]
        machine.memory[argument] = given.reshape(_shape(memory_type))
    for op in top.body.block.ops:
        if isinstance(op, stream.TaskOp):
            machine.task(op)
    machine.check_drained(top)
    return outputs


@dataclass
class _Machine:
    """Channels and memories. Tasks run to completion in program order, which is a topological one."""

    parameters: Mapping[str, Array]
    memory: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, Array])
    queues: dict[SSAValue, deque[Array]] = field(default_factory=dict[SSAValue, "deque[Array]"])

    def queue(self, channel: SSAValue) -> deque[Array]:
        return self.queues.setdefault(channel, deque())

    def task(self, task: stream.TaskOp) -> None:
        for op in task.body.block.ops:
            match op:
                case stream.BufferOp():
                    self.memory[op.result] = _zeros(op.result.type)
                case stream.RomOp():
                    self.memory[op.result] = self.parameters[op.parameter.data]
                case nest.NestOp():
                    _NestRun(self, op, task.sym_name.data).run()
                case _:
                    raise PenstockError(code="broken-ir", what=f"{op.name} inside a task", where=task.sym_name.data)

    def check_drained(self, top: stream.TopOp) -> None:
        for channel, queue in self.queues.items():
            if queue:
                name = channel.name_hint or str(channel)
                raise PenstockError(
                    code="broken-stream", what=f"{len(queue)} tokens were written but never read", where=name,
                    hint="this is a defect in a pass; please report it",
                )  # fmt: skip


class _NestRun:
    """One nest, prepared once (guards and addresses for all iterations) and then stepped."""

    def __init__(self, machine: _Machine, op: nest.NestOp, task: str) -> None:
        self.machine = machine
        self.op = op
        self.where = f"{task}.{op.sym_name.data}"
        self.counters = np.array(list(itertools.product(*(range(t) for t in op.trips))), np.int64)
        self.counters = self.counters.reshape(op.iterations, len(op.trips))
        self.values: Environment = {}
        self.blocks: dict[SSAValue, Array] = {}
        self.handed: dict[SSAValue, int] = {}
        self.handover = self._handover()

    def run(self) -> None:
        actions = [self._prepare(op) for op in self.op.body.block.ops]
        for i in range(self.op.iterations):
            for action in actions:
                action(i)

    def _handover(self) -> NDArray[np.bool_]:
        """The iterations in which a block begins."""
        inner = 1
        for trip in self.op.trips[self.op.block_loops.data :]:
            inner *= trip
        return np.arange(self.op.iterations) % inner == 0

    def _prepare(self, op: Operation) -> Action:
        match op:
            case nest.ReadOp():
                return self._read(op)
            case nest.WriteOp():
                return self._write(op)
            case nest.LoadOp():
                return self._load(op)
            case nest.StoreOp():
                return self._store(op)
            case nest.SelectOp():
                return self._select(op)
            case nest.MapOp():
                return self._map(op)
            case nest.ReduceOp():
                return self._reduce(op)
            case nest.ConstantOp():
                kind = op.result.type
                value = cast(Any, op.value).value.data
                self.values[op.result] = np.full(kind.get_shape(), value, numpy_dtype(kind.element_type))
                return lambda i: None
            case nest.WithinOp():
                return self._within(op)
            case nest.StackOp():
                return self._stack(op)
            case nest.PickOp():
                return self._pick(op)
            case _:
                raise PenstockError(code="broken-ir", what=f"{op.name} inside a nest", where=self.where)

    def _read(self, op: nest.ReadOp) -> Action:
        when, queue, values = self._when(op.when), self.machine.queue(op.stream), self.values
        kind = op.result.type
        values[op.result] = np.zeros(kind.get_shape(), numpy_dtype(kind.element_type))

        def act(i: int) -> None:
            if when[i]:
                if not queue:
                    raise PenstockError(
                        code="broken-stream", what=f"iteration {i} reads a token that nobody wrote", where=self.where,
                        hint="this is a defect in a pass; please report it",
                    )  # fmt: skip
                values[op.result] = queue.popleft()

        return act

    def _write(self, op: nest.WriteOp) -> Action:
        when, queue, values = self._when(op.when), self.machine.queue(op.stream), self.values
        assert isinstance(op.stream.type, stream.StreamType)
        shape = op.stream.type.token.get_shape()

        def act(i: int) -> None:
            if when[i]:
                queue.append(np.array(values[op.value]).reshape(shape))

        return act

    def _load(self, op: nest.LoadOp) -> Action:
        corners, when = self._corners(op.address.data), self._when(op.when)
        values, memory, kind = self.values, op.memory, op.result.type
        values[op.result] = np.zeros(kind.get_shape(), numpy_dtype(kind.element_type))

        def act(i: int) -> None:
            source = self._memory(memory, i, for_write=False)
            if when[i]:
                window = _window(corners[i], kind.get_shape(), source)
                values[op.result] = source[window].reshape(kind.get_shape()).copy()

        return act

    def _store(self, op: nest.StoreOp) -> Action:
        corners, extents = self._corners(op.address.data), vector_type(op.value).get_shape()
        when, values, memory = self._when(op.when), self.values, op.memory

        def act(i: int) -> None:
            target = self._memory(memory, i, for_write=True)
            if when[i]:
                window = _window(corners[i], extents, target)
                target[window] = values[op.value].reshape(target[window].shape)

        return act

    def _memory(self, memory: SSAValue, i: int, *, for_write: bool) -> Array:
        """A plain memory, or the block that this iteration works on."""
        if not isinstance(memory.type, stream.BlocksType):
            return self.machine.memory[memory]
        if self.handover[i] and self.handed.get(memory) != i:
            self.handed[memory] = i
            if for_write:
                block = _zeros(memory.type.block)
                self.machine.queue(memory).append(block)
            else:
                block = self.machine.queue(memory).popleft()
            self.blocks[memory] = block
        return self.blocks[memory]

    def _within(self, op: nest.WithinOp) -> Action:
        places, lanes, values = self._corners(op.place.data), op.lanes, self.values

        def act(i: int) -> None:
            values[op.result] = np.array([places[i, 0] + lane < op.size.data for lane in range(lanes)])

        return act

    def _select(self, op: nest.SelectOp) -> Action:
        when, values = self._when(op.when), self.values

        def act(i: int) -> None:
            values[op.result] = values[op.inside] if when[i] else values[op.outside]

        return act

    def _stack(self, op: nest.StackOp) -> Action:
        values = self.values

        def act(i: int) -> None:
            made = np.empty(tuple(op.result.type.get_shape()), values[op.inputs[0]].dtype)
            by, ahead = op.by.data, (slice(None),) * op.by.data.along
            for window, place, number, at in by.places(op.width):
                goal = made[..., place] if by.size > 1 else made
                goal[(*ahead, window)] = values[op.inputs[number]][(*ahead, at)]
            values[op.result] = made

        return act

    def _pick(self, op: nest.PickOp) -> Action:
        values, shape = self.values, tuple(op.result.type.get_shape())
        lanes = [op.lanes.data.eval(list(at), [])[0] for at in np.ndindex(shape)]

        def act(i: int) -> None:
            values[op.result] = values[op.value].reshape(-1)[lanes].reshape(shape)

        return act

    def _map(self, op: nest.MapOp) -> Action:
        shape = tuple(op.result.type.get_shape())
        lanes: Sequence[AffineMap] = [m.data for m in op.lanes]
        values, block = self.values, op.body.block

        def act(i: int) -> None:
            spaced = [spread(values[v], m) for v, m in zip(op.inputs, lanes, strict=True)]
            values[op.result] = np.broadcast_to(run_body(block, spaced), shape)

        return act

    def _reduce(self, op: nest.ReduceOp) -> Action:
        dims, values, block = [d.data for d in op.dims], self.values, op.body.block

        def act(i: int) -> None:
            value = values[op.value]
            for dim in dims:
                value = tree(block, value, dim)
            values[op.result] = value

        return act

    def _when(self, guard: GuardAttr) -> NDArray[np.bool_]:
        holds = np.ones(self.op.iterations, bool)
        for term in guard.terms:
            holds &= term.of(self.counters[:, term.loop])
        return holds

    def _corners(self, address: AffineMap) -> NDArray[np.int64]:
        """The address of every iteration, a row each."""
        rows = [coefficients(e, len(self.op.trips)) for e in address.results]
        matrix = np.array(rows, np.int64).reshape(len(rows), len(self.op.trips))
        origin = np.array(address.eval([0] * len(self.op.trips), []), np.int64)
        return self.counters @ matrix.T + origin


def _window(corner: NDArray[np.int64], extents: Sequence[int], memory: Array) -> tuple[slice, ...]:
    """The lanes, or the one word, at an address."""
    if memory.ndim > len(corner):
        return tuple(slice(int(c), int(c) + 1) for c in corner)
    return tuple(slice(int(c), int(c) + e) for c, e in zip(corner, extents, strict=True))


def _shape(kind: Any) -> tuple[int, ...]:
    word = kind.element_type.get_shape() if isinstance(kind.element_type, VectorType) else ()
    return (*kind.get_shape(), *word)


def _zeros(kind: Any) -> Array:
    return np.zeros(_shape(kind), numpy_dtype(kind.element_type))
