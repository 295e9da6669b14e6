"""Runs a task program in NumPy, as it was written: every instance on its own, waiting where a token is not there yet.

This is the meaning of a program. Streams have no limits here, so that what comes out does not depend on their depths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.tasks.affine import Affine, Tests
from penstock.compiler.tasks.kinds import BFLOAT16, FLOAT16, bits_of, is_float
from penstock.compiler.tasks.network import Instances, TaskInstance
from penstock.compiler.tasks.source import CODE
from penstock.compiler.tasks.tree import (
    Apply,
    Assign,
    Const,
    Expr,
    Fetch,
    Fold,
    For,
    Get,
    Join,
    Memory,
    Put,
    Shuffle,
    Stmt,
    Store,
    Var,
    When,
)

MOST_SAMPLED = 1_000_000
"""Puts and gets of all tasks, up to which a program is interpreted at import: a minute's work."""


def _where(condition: Array, one: Array, other: Array) -> Array:
    return np.where(np.asarray(condition, bool), one, other)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_OPS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shr": np.right_shift, "shl": np.left_shift, "exp": np.exp, "sqrt": np.sqrt, "tanh": np.tanh,
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "where": _where, "sigmoid": _sigmoid,
}  # fmt: skip
_FOLDS: dict[str, Callable[..., Any]] = {"add": np.sum, "max": np.max, "min": np.min}


def stored_as(dtype: str) -> np.dtype[Any]:
    """What NumPy keeps such numbers in."""
    if is_float(dtype):
        return np.dtype(np.float32)
    bits = bits_of(dtype)
    return np.dtype(bool) if bits == 1 else np.dtype(f"int{next(size for size in (8, 16, 32, 64) if bits <= size)}")


def rounded_to_bfloat16(value: Any) -> Any:
    """The nearest number of eight significant bits, of two the even one, as a float32."""
    single = np.asarray(value, np.float32)
    bits = single.view(np.uint32).astype(np.uint64)
    upper = np.where(np.isnan(single), 0x7FC0, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return (upper << 16).astype(np.uint32).view(np.float32)[()]


def wrapped(value: Any, dtype: str) -> Any:
    """A number as its type holds it: integers wrap around."""
    kept = stored_as(dtype)
    if dtype == BFLOAT16:
        return rounded_to_bfloat16(value)
    if dtype == FLOAT16:
        return np.asarray(value, np.float32).astype(np.float16).astype(kept)[()]
    if is_float(dtype):
        return np.asarray(value).astype(kept)
    bits = bits_of(dtype)
    if bits == 1:
        return np.asarray(value).astype(np.int64) & 1 != 0
    if np.asarray(value).dtype.kind == "f":
        value = np.trunc(value)
    whole = np.asarray(value).astype(np.int64)
    return (
        whole if bits == 8 * kept.itemsize else ((whole + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))
    ).astype(kept)


def interpret(network: Instances, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What lies in the output tensors after a run."""
    program = network.program
    memories: dict[str, Array] = {}
    for name in network.inputs:
        kind = program.tensors[name].kind
        memories[name] = np.asarray(inputs[name]).astype(stored_as(kind.dtype)).reshape(kind.shape)
    written: dict[str, Array] = {}
    for name in network.outputs:
        kind = program.tensors[name].kind
        memories[name], written[name] = np.zeros(kind.shape, stored_as(kind.dtype)), np.zeros(kind.shape, bool)
    queues: dict[str, deque[Any]] = {name: deque() for name in network.channels}
    with np.errstate(all="ignore"):
        _run_all(network, [_Run(one, memories, written, queues).go() for one in network.instances])
    for name, queue in queues.items():
        if queue:
            raise PenstockError(code=CODE, what=f"{len(queue)} tokens are put and never got", where=name)
    for name, marks in written.items():
        if not marks.all():
            raise PenstockError(
                code=CODE, what=f"{int((~marks).sum())} of {marks.size} elements are never stored", where=name,
                limit="every element of an output must be", hint="store all of it, or make the tensor smaller",
            )  # fmt: skip
    return {name: memories[name] for name in network.outputs}


def answers_of(instance: TaskInstance, tokens: Mapping[str, Sequence[Array]]) -> dict[str, list[Any]]:
    """What one instance that meets streams only puts into each channel, of the tokens that it gets: one run."""
    queues = {name: deque[Any](tokens.get(name, ())) for name in instance.channels.values()}
    with np.errstate(all="ignore"):
        for _ in _Run(instance, {}, {}, queues).go():
            pass
    return {name: list(queue) for name, queue in queues.items() if name not in tokens}


def _run_all(network: Instances, runs: list[Generator[str]]) -> None:
    """Each as far as its tokens reach, until all have ended; if none can go on, they wait for ever."""
    waiting = dict(enumerate(runs))
    while waiting:
        moved, blocked = False, dict[int, str]()
        for number, run in list(waiting.items()):
            try:
                state = next(run)
            except StopIteration:
                del waiting[number]
                moved = True
                continue
            moved = moved or state == ""
            blocked[number] = state
        if not moved:
            names = [f"{network.instances[i].name} waits for a token of {c}" for i, c in list(blocked.items())[:4]]
            raise PenstockError(
                code="task-deadlock", what="the program stops for ever: " + ", ".join(names), where=network.source.name,
                hint="put a token before the first get of the circle",
            )  # fmt: skip


class _Run:
    """One instance. A generator that yields "" after it has moved on, or the channel that it waits for."""

    def __init__(
        self, instance: TaskInstance, memories: Mapping[str, Array], written: Mapping[str, Array],
        queues: Mapping[str, deque[Any]],
    ) -> None:  # fmt: skip
        self.instance, self.queues = instance, queues
        self.memories, self.written = memories, written
        self.own: dict[Memory, Array] = {
            m: np.zeros(m.shape, stored_as(m.dtype)) if m.table is None else m.table
            for m in instance.body.arrays.values()
        }
        self.values: dict[str, Any] = {}
        self.counters: dict[int, int] = {}
        self.compiled: dict[Expr, Callable[[], Any]] = {}

    def go(self) -> Generator[str]:
        yield from self._all(self.instance.body.statements)

    def _all(self, statements: tuple[Stmt, ...]) -> Generator[str]:
        for one in statements:
            match one:
                case For(loop=loop, trip=trip, body=body):
                    for self.counters[loop] in range(trip):
                        yield from self._all(body)
                case When(tests=tests, body=body):
                    if self._holds(tests):
                        yield from self._all(body)
                case Get(var=var, port=port):
                    name = self.instance.channels[port]
                    queue = self.queues[name]
                    moved = True
                    while not queue:
                        yield "" if moved else name
                        moved = False
                    self.values[var] = queue.popleft()
                case Put(port=port, value=value):
                    self.queues[self.instance.channels[port]].append(self._value(value))
                case Assign(var=var, value=value):
                    self.values[var] = self._value(value)
                case Store():
                    self._store(one)

    def _holds(self, tests: Tests) -> bool:
        return all(test.holds(self.counters[test.loop]) for test in tests)

    def _store(self, one: Store) -> None:
        at = self._block(one.index, one.block)
        value = np.asarray(self._value(one.value)).reshape(one.block)
        if one.memory.is_tensor:
            self.memories[one.memory.name][at] = value
            self.written[one.memory.name][at] = True
        else:
            self.own[one.memory][at] = value

    def _block(self, index: tuple[Affine, ...], block: tuple[int, ...]) -> tuple[slice, ...]:
        return tuple(
            slice(start := one.at(self.counters), start + extent) for one, extent in zip(index, block, strict=True)
        )

    def _value(self, value: Expr) -> Any:
        found = self.compiled.get(value)
        if found is None:
            found = self.compiled[value] = self._compile(value)
        return found()

    def _compile(self, value: Expr) -> Callable[[], Any]:
        """The expression as a function of the frame."""
        kind = value.kind
        match value:
            case Const(value=number):
                made = np.full(kind.shape, wrapped(number, kind.dtype)) if kind.shape else wrapped(number, kind.dtype)
                return lambda: made
            case Var(name=name):
                return lambda: self._variable(name)
            case Fetch(memory=memory, index=index, block=block):
                place = self.memories[memory.name] if memory.is_tensor else self.own[memory]
                return lambda: place[self._block(index, block)].reshape(kind.shape).copy()
            case Shuffle(arg=arg, lanes=lanes):
                inner, order = self._compile(arg), np.array(lanes)
                return lambda: np.asarray(inner()).reshape(-1)[order].reshape(kind.shape)
            case Join(args=args):
                parts = [self._compile(one) for one in args]
                return lambda: np.stack([part() for part in parts])
            case Fold(op=op, arg=arg, axis=axis):
                inner = self._compile(arg)
                return lambda: wrapped(_FOLDS[op](inner(), axis=axis), kind.dtype)
            case Apply(op="cast", args=(arg,)):
                inner = self._compile(arg)
                return lambda: wrapped(inner(), kind.dtype)
            case Apply(op=op, args=args):
                parts, compute = [self._compile(one) for one in args], _OPS[op]
                return lambda: wrapped(compute(*[part() for part in parts]), kind.dtype)

    def _variable(self, name: str) -> Any:
        if name not in self.values:
            raise PenstockError(
                code=CODE, what=f"{name!r} is used before it has a value", where=self.instance.task.line,
                limit=f"in instance {self.instance.name}", hint="set it before the loop",
            )  # fmt: skip
        return self.values[name]
