"""What expressions of a task have besides: its place in the grid, ends of streams, and memories."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeVar

from penstock.compiler.tasks.affine import Affine, Test, Tests, as_affine, plain
from penstock.compiler.tasks.expressions import RUNTIME, Expressions, bound, names_in
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.tree import (
    Assign,
    Decision,
    Expr,
    Fetch,
    Get,
    Memory,
    Stmt,
    StreamEnd,
    StreamSite,
    Var,
    When,
    walk,
)
from penstock.compiler.tasks.value_indices import ChosenPlace, ValueIndices
from penstock.compiler.tasks.values import (
    Condition,
    ReadValue,
    StreamArray,
    TaskDef,
    TaskProgram,
)

_MOST_CHOICES = 256

_Read = TypeVar("_Read")


class TaskExpressions(ValueIndices):
    """Expressions of one instance. What its place decides is noted."""

    def __init__(self, source: ProgramText, program: TaskProgram, task: TaskDef, place: tuple[int, ...]) -> None:
        super().__init__(source, dict(program.constants), {})
        self.program, self.task, self.place = program, task, place
        self.places = frozenset(task.places)
        self.out: list[Stmt] = []
        self.arrays: dict[str, Memory] = {}
        self.kinds: dict[str, TileKind] = {}
        self.ports: dict[tuple[str, tuple[int, ...]], StreamEnd] = {}
        self.decisions: list[Decision] = []
        self.loop_names: dict[int, str] = {}
        self.count, self.temporaries = 0, 0
        self.held: Tests = ()
        """What is known of counters where the text stands."""
        self.depth: int = 0
        self.calls: int = 0
        self.base: int = 0
        self.known_at: dict[str, int] = {}
        """How deep in loops names were set to numbers that are known."""
        self.settling, self.noted = False, set[int]()
        self.indexed_names: set[str] = arrays_of(task.node)
        self.written_names: set[str] = written_in(task.node)

    def _settle(self, node: ast.expr, read: Callable[[Expressions, ast.expr], _Read]) -> _Read:
        """What an expression is for this place, noted where another place may decide otherwise."""
        names = names_in(node)
        if self.settling or not names & self.places:
            return read(self, node)
        self.settling = True
        try:
            found = read(self, node)
        finally:
            self.settling = False
        if any(isinstance(self.names.get(name), (*RUNTIME, Memory)) for name in names):
            for name in names & self.places:  # values of the task are in it: the place itself is what matters
                self._note_place(name)
            return found
        bindings, trips = bound(self.names, node), dict(self.trips)

        def decide(place: tuple[int, ...]) -> object:
            known = bindings | dict(zip(self.task.places, place, strict=True))
            return read(Expressions(self.source, known, trips), node)

        self.decisions.append(Decision(found, decide, node, bindings))
        return found

    def _note_place(self, name: str) -> None:
        axis = self.task.places.index(name)
        if axis not in self.noted:
            self.noted.add(axis)
            self.decisions.append(Decision(self.place[axis], lambda place: place[axis], axis=axis))

    def _name(self, node: ast.Name) -> ReadValue:
        if node.id in self.places and not self.settling:
            self._note_place(node.id)
        return super()._name(node)

    def _temporary(self) -> str:
        self.temporaries += 1
        return f".{self.temporaries}"

    def _loop(self, trip: int, name: str) -> int:
        loop = len(self.trips)
        self.trips[loop], self.loop_names[loop] = trip, name
        return loop

    def chosen(self, node: ast.IfExp, test: ReadValue) -> ReadValue:
        """A value that a counter chooses, or another value."""
        if isinstance(test, RUNTIME):
            before = len(self.out)
            sides = [self.value(side) for side in (node.body, node.orelse)]
            if any(isinstance(one, Get) for one in walk(self.out[before:])):
                raise self.error(
                    node, "which tokens are got would depend on a value",
                    "get them before it, in every round, and choose between them",
                )  # fmt: skip
            return self._where(node, test, *sides)
        if not isinstance(test, Condition) or len(test.tests) != 1:
            raise self.error(node, "a choice by more than one comparison", "choose in two steps, or with if")
        parts: list[tuple[Tests, list[Stmt], ReadValue]] = []
        for tests, side in ((test.tests, node.body), ((test.tests[0].opposite,), node.orelse)):
            before, self.out, outside = self.out, list[Stmt](), self.held
            self.held = (*outside, *tests)
            value = self.value(side)
            parts.append((tests, self.out, value))
            self.out, self.held = before, outside
        values = self._alike(node, [value for _, _, value in parts])
        shape = self._common(node, values)
        name = self._temporary()
        for (tests, made, _), value in zip(parts, values, strict=True):
            self.out.append(When(tests, (*made, Assign(name, self._spread(node, value, shape)))))
        return Var(name, TileKind(values[0].kind.dtype, shape))

    def method(self, node: ast.Call, on: ast.Attribute) -> ReadValue:
        if on.attr == "put":
            raise self.error(node, "put has no value", "let it stand alone on a line")
        if on.attr == "try_get":
            raise self.error(
                node, "try_get is not supported: what it finds depends on time, and a program's answer must not",
                "get() waits for the token; to go on without one, let its sender put one that says so",
            )  # fmt: skip
        if on.attr != "get":
            raise self.error(on, f".{on.attr}() is no part of the language", "streams have put and get")
        if node.args or node.keywords:
            raise self.error(node, "get takes no arguments")
        stream, choices = self._ends(node, on.value)
        name = self._temporary()
        for tests, port in choices:
            got = Get(name, port, stream.kind)
            self.out.append(When(tests, (got,)) if tests else got)
        return Var(name, stream.kind)

    def _ends(self, node: ast.AST, on: ast.expr) -> tuple[StreamArray, list[tuple[Tests, StreamEnd]]]:
        """The channel that is meant, or one for each round where a counter chooses."""
        base, index = (on.value, on.slice) if isinstance(on, ast.Subscript) else (on, None)
        stream = self.value(base)
        if not isinstance(stream, StreamArray):
            raise self.error(on, f"{self.say(stream)} is no stream")
        if index is None:
            if stream.dims:
                raise self.error(
                    on, f"{stream.name} is an array of {list(stream.dims)} streams", f"index it: {stream.name}[i]"
                )
            return stream, [((), self._port(node, stream, (), StreamSite(None, {}, lambda place: (), node)))]
        self.settling, before = True, self.settling
        found = self.value(index)
        self.settling = before
        items = found if isinstance(found, tuple) else (found,)
        if any(isinstance(one, RUNTIME) for one in items):
            raise self.error(
                node, f"which of {stream.name} is meant would depend on a value",
                "put into each of them in every round, with a token that says whether it counts",
                "the task at the other end of a stream is known before a run",
            )  # fmt: skip
        bindings = {k: v for k, v in bound(self.names, index).items() if k not in self.places}
        counters = sorted({loop for one in items if isinstance(one, Affine) for loop, _ in one.terms})
        if prod(self.trips[loop] for loop in counters) > _MOST_CHOICES:
            raise self.error(on, "a counter chooses among too many streams", limit=f"at most {_MOST_CHOICES}")
        choices: list[tuple[Tests, StreamEnd]] = []
        for rounds in product(*(range(self.trips[loop]) for loop in counters)):
            known = dict(zip(counters, rounds, strict=True))
            settled = {name: _at(value, known) for name, value in bindings.items()}
            at = tuple(plain(_fixed(as_affine(one), known)) if isinstance(one, int | Affine) else one for one in items)
            tests = tuple(Test(loop, "eq", number) for loop, number in known.items())
            site = StreamSite(index, settled, self._elsewhere(index, settled), node)
            choices.append((tests, self._port(node, stream, at, site)))
        return stream, choices

    def _elsewhere(
        self, index: ast.expr, bindings: Mapping[str, ReadValue]
    ) -> Callable[[tuple[int, ...]], tuple[ReadValue, ...]]:
        """The index of a channel as a function of the instance's place."""

        def at(place: tuple[int, ...]) -> tuple[ReadValue, ...]:
            names = {**bindings, **dict(zip(self.task.places, place, strict=True))}
            found = Expressions(self.source, names, {}).value(index)
            return found if isinstance(found, tuple) else (found,)

        return at

    def _port(self, node: ast.AST, stream: StreamArray, at: tuple[ReadValue, ...], site: StreamSite) -> StreamEnd:
        channel = check_index(self.source, node, stream, at, self.place)
        port = self.ports.get((stream.name, channel))
        if port is None:
            port = StreamEnd(f"{stream.name}{len(self.ports)}", stream.name, channel)
            self.ports[stream.name, channel] = port
        port.sites.append(site)
        return port

    def indexed(self, node: ast.Subscript, found: ReadValue) -> ReadValue:
        if not isinstance(found, Memory):
            return super().indexed(node, found)
        index, block, kept, place = self._index(node, found)
        loaded = self._loaded(node, found, index, block, kept)
        return loaded if place is None else self.picked(node, loaded, place)

    def _loaded(
        self, node: ast.AST, memory: Memory, index: tuple[Affine, ...], block: tuple[int, ...], kept: tuple[int, ...]
    ) -> Expr:
        """A block as it is here: loads happen in the order of the text, as gets do."""
        return self.kept_now(Fetch(memory, index, block, TileKind(memory.dtype, kept), node))

    def kept_now(self, value: Expr) -> Var:
        name = self._temporary()
        self.out.append(Assign(name, value))
        return Var(name, value.kind)

    def whole(self, node: ast.AST, memory: Memory) -> Expr:
        start = (Affine(0),) * len(memory.shape)
        return self._loaded(node, memory, self._shifted(memory, start), memory.shape, memory.shape)

    def _shifted(self, memory: Memory, index: Sequence[Affine]) -> tuple[Affine, ...]:
        if not memory.is_tensor:
            return tuple(index)
        layout = self.task.layouts.get(memory.name)
        for axis in layout.axes if layout is not None else ():
            if axis is not None:
                self._note_place(self.task.places[axis])
        return tuple(one.plus(Affine(start)) for one, start in zip(index, memory.offset, strict=True))

    def _index(
        self, node: ast.Subscript, memory: Memory
    ) -> tuple[tuple[Affine, ...], tuple[int, ...], tuple[int, ...], ChosenPlace | None]:
        """Where a block begins, its extents, the shape that is left when plain indices are gone; along which of its
        dims a value chooses."""
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(items) > len(memory.shape):
            raise self.error(node, f"{len(items)} indices for {memory.dtype}{list(memory.shape)}")
        index: list[Affine] = []
        block: list[int] = []
        kept: list[int] = []
        place: ChosenPlace | None = None
        for dim, size in enumerate(memory.shape):
            item = items[dim] if dim < len(items) else ast.Slice()
            if (at := self._value_index(item, memory)) is not None:
                if place is not None:
                    raise self.error(
                        item, "two indices are values", "give the array one dim, and compute its index of both"
                    )
                place = self.chosen_place(item, at, len(kept), size, memory.name)
                item = ast.Slice()
            low, extent = self._range(item, size)
            least, most = low.extremes(self.trips, self.held)
            if least < 0 or most + extent > size:
                raise self.error(
                    node, f"index {dim} reaches {least} to {most + extent - 1}",
                    "correct the index, or the loop's bounds",
                    f"{memory.name} has {size} there",
                )  # fmt: skip
            index.append(low)
            block.append(extent)
            if isinstance(item, ast.Slice):
                kept.append(extent)
        return self._shifted(memory, index), tuple(block), tuple(kept), place

    def _value_index(self, item: ast.expr, memory: Memory) -> Expr | None:
        """An index of an array of the task that is known in the run alone."""
        if memory.is_tensor or isinstance(item, ast.Slice):
            return None
        found = self._settle(item, lambda e, n: e.value(n))
        return found if isinstance(found, RUNTIME) else None

    def _range(self, item: ast.expr, size: int) -> tuple[Affine, int]:
        def read(e: Expressions, node: ast.expr) -> ReadValue:
            return e.value(node)

        if not isinstance(item, ast.Slice):
            at = self._settle(item, read)
            if isinstance(at, bool) or not isinstance(at, int | Affine):
                raise self.error(
                    item, f"the index is {self.say(at)}",
                    "indices of tensors are sums of counters and numbers: load it into an array of the task, and let "
                    "the value choose there",
                )  # fmt: skip
            return as_affine(at + size if isinstance(at, int) and at < 0 else at), 1
        if item.step is not None:
            raise self.error(item, "a slice with a step", "load the whole, and take lanes of it: x[::2]")
        low = self._settle(item.lower, read) if item.lower else 0
        high = self._settle(item.upper, read) if item.upper else size
        if not isinstance(low, int | Affine) or not isinstance(high, int | Affine):
            raise self.error(item, "the ends of a slice are sums of counters and numbers")
        extent = as_affine(high).plus(as_affine(low), -1)
        if extent.terms or extent.const < 1:
            raise self.error(item, "the slice's length must be the same in every round", "write x[k * 4 : k * 4 + 4]")
        return as_affine(low), extent.const


def check_index(
    source: ProgramText, node: ast.AST, stream: StreamArray, at: tuple[object, ...], place: tuple[int, ...]
) -> tuple[int, ...]:
    """The index of a channel in its array of streams; one that is not there is named with the instance."""
    index = tuple(one for one in at if isinstance(one, int) and not isinstance(one, bool))
    known = len(index) == len(at) == len(stream.dims)
    if not known or any(not 0 <= i < n for i, n in zip(index, stream.dims, strict=True)):
        raise source.error(
            node, f"{stream.name}[{', '.join(map(str, at))}] is no stream",
            "leave that one out with an if on the place",
            f"{stream.name} has {list(stream.dims)}; this is instance {place}",
        )  # fmt: skip
    return index


def _at(value: ReadValue, counters: Mapping[int, int]) -> ReadValue:
    return plain(_fixed(value, counters)) if isinstance(value, Affine) else value


def _fixed(value: Affine, counters: Mapping[int, int]) -> Affine:
    found = Affine(value.const)
    for loop, factor in value.terms:
        found = found.plus(Affine(factor * counters[loop]) if loop in counters else Affine(0, ((loop, factor),)))
    return found


def arrays_of(function: ast.FunctionDef) -> set[str]:
    """Names whose elements are set, or chosen by a loop's counter: memories, not tiles."""
    counters: set[str] = set()
    for one in ast.walk(function):
        if isinstance(one, ast.For) and isinstance(one.iter, ast.Call) and isinstance(one.iter.func, ast.Name):
            counters |= names_in(one.target) if one.iter.func.id != "unroll" else set()
    return {
        one.value.id
        for one in ast.walk(function)
        if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name)
        and (isinstance(one.ctx, ast.Store) or names_in(one.slice) & counters)
    }  # fmt: skip


def written_in(function: ast.FunctionDef) -> set[str]:
    """Names that get a value, or an element of them does, besides by one declaration."""
    found: set[str] = set()
    declared: set[str] = set()
    for one in ast.walk(function):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found |= {one.target.id} & declared
            declared.add(one.target.id)
        elif isinstance(one, ast.Assign | ast.AugAssign | ast.For):
            for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                found |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found
