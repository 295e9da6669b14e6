"""Bodies taken apart and put together: statements with other ports, other counters, other variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.compiler.tasks.affine import Affine, Tests
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
    StreamEnd,
    Var,
    When,
)

AddressRule = Callable[[Memory, tuple[Affine, ...]], tuple[Affine, ...]]


@dataclass(frozen=True)
class Renaming:
    """What stands for what in a copy of a body. What is not named stays."""

    ports: Mapping[StreamEnd, StreamEnd] = field(default_factory=dict[StreamEnd, StreamEnd])
    loops: Mapping[int, int] = field(default_factory=dict[int, int])
    memories: Mapping[Memory, Memory] = field(default_factory=dict[Memory, Memory])
    prefix: str = ""
    """Before the name of each variable."""
    index: AddressRule = lambda memory, at: at
    """An address, by the memory that is meant in the body that is copied."""

    def statements(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(self.statement(one) for one in body)

    def statement(self, one: Stmt) -> Stmt:
        match one:
            case Get():
                return Get(self.prefix + one.var, self.ports.get(one.port, one.port), one.kind)
            case Put():
                return Put(self.ports.get(one.port, one.port), self.value(one.value))
            case Assign():
                return Assign(self.prefix + one.var, self.value(one.value))
            case Store():
                index = self.index(one.memory, self._addresses(one.index))
                return Store(
                    self.memories.get(one.memory, one.memory),
                    index,
                    one.block,
                    self.value(one.value),
                    declared=one.declared,
                )
            case For():
                return replace(one, loop=self.loops.get(one.loop, one.loop), body=self.statements(one.body))
            case When():
                return When(self.tests(one.tests), self.statements(one.body))

    def tests(self, tests: Tests) -> Tests:
        return tuple(replace(test, loop=self.loops.get(test.loop, test.loop)) for test in tests)

    def value(self, value: Expr) -> Expr:
        match value:
            case Const():
                return value
            case Var():
                return replace(value, name=self.prefix + value.name)
            case Fetch():
                index = self.index(value.memory, self._addresses(value.index))
                return replace(value, memory=self.memories.get(value.memory, value.memory), index=index)
            case Apply() | Join():
                return replace(value, args=tuple(self.value(one) for one in value.args))
            case Shuffle() | Fold():
                return replace(value, arg=self.value(value.arg))

    def _addresses(self, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        return tuple(
            Affine(one.const, tuple(sorted((self.loops.get(loop, loop), by) for loop, by in one.terms)))
            for one in index
        )  # fmt: skip


def same_shape(one: Stmt, other: Stmt) -> bool:
    """Whether two statements are equal but for ports, and for where in a tensor an instance's part begins."""
    match one, other:
        case (Get(), Get()):
            return one.var == other.var and one.kind == other.kind
        case (Put(), Put()):
            return same_value(one.value, other.value)
        case (Assign(), Assign()):
            return one.var == other.var and same_value(one.value, other.value)
        case (Store(), Store()):
            return (
                _same_place(one.memory, one.index, other.memory, other.index)
                and one.block == other.block
                and same_value(one.value, other.value)
            )
        case (For(), For()):
            return (one.loop, one.trip) == (other.loop, other.trip) and same_shapes(one.body, other.body)
        case (When(), When()):
            return one.tests == other.tests and same_shapes(one.body, other.body)
        case _:
            return False


def same_shapes(one: Sequence[Stmt], other: Sequence[Stmt]) -> bool:
    return len(one) == len(other) and all(same_shape(a, b) for a, b in zip(one, other, strict=True))


def same_value(one: Expr, other: Expr) -> bool:
    if type(one) is not type(other) or one.kind != other.kind:
        return False
    match one, other:
        case (Const(), Const()):
            return one.value == other.value
        case (Var(), Var()):
            return one.name == other.name
        case (Fetch(), Fetch()):
            return _same_place(one.memory, one.index, other.memory, other.index) and one.block == other.block
        case (Apply(), Apply()):
            return one.op == other.op and _same_values(one.args, other.args)
        case (Join(), Join()):
            return _same_values(one.args, other.args)
        case (Shuffle(), Shuffle()):
            return one.lanes == other.lanes and same_value(one.arg, other.arg)
        case (Fold(), Fold()):
            return (one.op, one.axis) == (other.op, other.axis) and same_value(one.arg, other.arg)
        case _:
            return False


def _same_values(one: Sequence[Expr], other: Sequence[Expr]) -> bool:
    return len(one) == len(other) and all(same_value(a, b) for a, b in zip(one, other, strict=True))


def _same_place(memory: Memory, index: tuple[Affine, ...], other: Memory, at: tuple[Affine, ...]) -> bool:
    """The same memory by name and shape; of a tensor, the part may begin elsewhere."""
    if (memory.name, memory.shape, memory.is_tensor, memory.dtype, memory.parameter) != (
        other.name, other.shape, other.is_tensor, other.dtype, other.parameter,
    ):  # fmt: skip
        return False
    return len(index) == len(at) and all(
        a.terms == b.terms and (a.const == b.const or memory.is_tensor) for a, b in zip(index, at, strict=True)
    )
