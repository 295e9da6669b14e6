"""Functions of a kernel: inlined, kept as modules, or the tasks of a dataflow region."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.bindings import (
    Binding,
    NameScope,
    Slot,
    WordView,
    kind_of,
    unsupported,
    where,
)
from penstock.compiler.hls_in.float_functions import FUNCTIONS, NOT_FINITE
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.leaving import Leaving
from penstock.compiler.hls_in.loops import NAMING, pragma
from penstock.compiler.hls_in.memory import Memories
from penstock.compiler.hls_in.pragmas import Pragma
from penstock.compiler.hls_in.records import Called, DataflowRegion, KernelTask, Pipeline, Region, Straight
from penstock.compiler.hls_in.storage import KernelArray
from penstock.compiler.hls_in.syntax import (
    Tree,
    all_calls_in,
    assigned_in,
    calls_in,
    compares_numbers,
    is_no_place,
    loops_in,
    names_in,
    number_loops,
    statements_of,
    unlabelled,
)
from penstock.compiler.hls_in.word_copies import COPIES, WordCopies

ASSERTED = "__penstock_assert"
"""What the shipped assert.h calls."""


class Abandon(Exception):
    """Going on would take for ever."""

    def __init__(self, error: PenstockError) -> None:
        self.error = error


class Functions(WordCopies):
    assumed: list[KernelValue]
    functions: dict[str, Tree]
    calls: list[str]
    loop_numbers: dict[int, int]
    at_once: bool
    """Whether calls here are tasks of a dataflow region."""
    called_before: int
    sometimes: bool = False
    """The function at hand is called under a condition."""
    returned: KernelArray | None
    """Where what the top returns goes, if anybody asks for it."""
    changes: dict[str, dict[str, Tree]]
    """What each function changes."""

    @abstractmethod
    def block(self, tree: Tree, own_scope: bool = True) -> None: ...

    @abstractmethod
    def statement(self, tree: Tree, label: str = "") -> None: ...

    def function_body(self, function: Tree) -> list[Region]:
        """A function's own items, with its names bound already."""
        if len(self.calls) > 32 or function[2] in self.calls:
            raise unsupported(function[1], f"recursion of {function[2]!r}", "write it as a loop")
        self.calls.append(function[2])
        block = function[6]
        pragmas = self.pragmas.of(block)
        if self.items is None:
            self.directives(pragmas)
            self.block(block, own_scope=False)
            items: list[Region] = []
        elif pragma(pragmas, "dataflow"):
            items = [self._dataflow(function[2], block, pragmas)]
        elif (asked := self.asked(block, "pipeline")) and "off" not in asked.options:
            items = [self._pipelined_function(function, asked, pragmas)]
        else:
            items = self.region(
                lambda: (self.directives(pragmas), self.block(block, own_scope=False), self._give_back(function))
            )
        self.calls.pop()
        return items

    def region(self, walk: Callable[[], object]) -> list[Region]:
        """Items of a stretch of statements that stand outside of pipelines."""
        graph, memories, items = self.graph, self.memories, self.items
        self.items = found = list[Region]()
        self.begin()
        walk()
        self.settle()
        self.graph, self.memories, self.items = graph, memories, items
        return found

    def begin(self) -> None:
        self.graph = ValueGraph()
        self.memories = Memories(self.graph, whole=self.rolled)

    def settle(self) -> None:
        """Close the operations since the last loop."""
        self.memories.close()
        if self.items is not None and any(
            n.op not in ("const", "counter", "input", "phi", "dead") or n.follow is not None for n in self.graph.nodes
        ):
            self.items.append(Straight(self.graph, where(self.functions[self.calls[-1]][1]) if self.calls else ""))
        self.begin()

    def _pipelined_function(self, function: Tree, asked: Pragma, pragmas: list[Pragma]) -> Pipeline:
        graph, memories, items = self.graph, self.memories, self.items
        self.begin()
        self.items = None
        self.directives(pragmas)
        self.block(function[6], own_scope=False)
        self._give_back(function)
        self.memories.close()
        made = Pipeline(
            function[2],
            [],
            self.graph,
            asked.number("ii", self.constants()) or 1,
            True,
            where(function[1]),
            function[1][1],
            flushes=asked.flushes,
            returned=self.left.value,
        )
        self.graph, self.memories, self.items = graph, memories, items
        return made

    def _give_back(self, function: Tree) -> None:
        """What the top returns, written to where a host finds it."""
        array, value = self.returned, self.left.value
        if array is not None and value is not None and len(self.calls) == 1:
            value = self.convert(value, array.kind, array.bits, array.signed)
            self.memories.write(array, (self.graph.constant(0),), value, None, function[1][1])
            self.touched.add(array)

    def _dataflow(self, name: str, block: Tree, pragmas: list[Pragma]) -> DataflowRegion:
        items = self.items
        around, self.at_once = self.at_once, True
        tasks = self._tasks(block, pragmas)
        self.items, self.at_once = items, around
        seen: dict[str, int] = {}
        for position, task in enumerate(tasks):
            seen[task.name] = seen.get(task.name, 0) + 1
            if seen[task.name] > 1:
                tasks[position] = KernelTask(f"{task.name}_{seen[task.name] - 1}", task.body, task.where)
        return DataflowRegion(name, tasks, where(block[1]))

    def _tasks(self, block: Tree, pragmas: list[Pragma]) -> list[KernelTask]:
        """What becomes of a region's statements: each is a task; those of a function that is to be inlined are, too."""
        tasks: list[KernelTask] = []
        self.directives(pragmas)
        waiting = [p for p in pragmas if p.kind in NAMING]
        for statement in statements_of(block):
            while waiting and waiting[0].line < statement[1][1]:
                with self.mistakes.noted():
                    self.apply(waiting.pop(0))
            with self.mistakes.noted():
                inner, label = unlabelled(statement)
                if inner[0] in ("group", "return") or (inner[0] == "expression" and not list(calls_in(inner))):
                    self.items = []
                    self.statement(inner)
                    continue
                if (function := self._inlined_region(inner)) is not None:
                    with self._entered(function, inner[2][3]), self._inside(function, inner[1]):
                        self.at_once = True
                        tasks += self._tasks(function[6], self.pragmas.of(function[6]))
                    continue
                body = self.region(partial(self.statement, statement))
                if not body:
                    continue
                if inner[0] == "for" and all(isinstance(part, Called) for part in body):  # unrolled: a task a call
                    tasks += [KernelTask(p.name, p.body, where(inner[1])) for p in body if isinstance(p, Called)]
                    continue
                called = next(calls_in(inner), None) if inner[0] == "expression" else None
                task = called or f"Loop_{label or f'VITIS_LOOP_{inner[1][1]}'}_proc"
                if called and len(body) == 1 and isinstance(body[0], Called):
                    body = body[0].body
                tasks.append(KernelTask(task, body, where(inner[1])))
        return tasks

    def called(self, tree: Tree) -> KernelValue:
        _, place, name, arguments, _, _ = tree
        function = self.functions.get(name)
        if function is None:
            return self._library(tree)
        with self._entered(function, arguments) as bindings:
            if self._is_module(function):
                for slot in bindings.values():
                    if isinstance(slot, Slot) and slot.value is not None and slot.value.constant and slot.kind != "int":
                        slot.value = replace(slot.value, given=True)
                if not self.only_goes_on():
                    self.beyond.append((where(place), f"the loops of {name!r} under a condition"))
                    if not self.branches:
                        self.says("loops under conditions are counted as if these always held")
                self.settle()
                self.loop_numbers |= number_loops(function[6])
                before, self.sometimes = self.sometimes, self.sometimes or not self.only_goes_on()
                self.path = None
                body = self.function_body(function)
                self.sometimes = before
                assert self.items is not None
                self.items.append(Called(name, body, where(place)))
            elif self.items is not None:  # no loops, or asked for: as if its statements stood here
                with self._inside(function, place):
                    self.directives(self.pragmas.of(function[6]))
                    self.block(function[6], own_scope=False)
            else:
                self.function_body(function)
            value = self.left.value
        return value if value is not None else self.graph.constant(0)

    @contextlib.contextmanager
    def _entered(self, function: Tree, arguments: list[Tree]) -> Generator[dict[str, Binding]]:
        """What names mean in a function that is called with these arguments."""
        bindings: dict[str, Binding] = {}
        for (parameter, parameter_type, _), argument in zip(function[3], arguments, strict=False):
            bindings[parameter] = self._passed(parameter, parameter_type, argument)
        for parameter, value in function[5]:  # of its template
            bindings.setdefault(parameter, Slot(parameter, "int", 32, value=self.graph.constant(value)))
        before = self.scope, self.left, self.path, self.instance, self.at_once
        self.scope = NameScope(self._outermost(), bindings)
        self.left = Leaving()
        if self.at_once:
            self.called_before += 1
            self.instance, self.at_once = (*self.instance, self.called_before), False
        try:
            yield bindings
        finally:
            self.scope, self.left, self.path, self.instance, self.at_once = before

    @contextlib.contextmanager
    def _inside(self, function: Tree, place: list[Any]) -> Generator[None]:
        """Where a function's statements stand in place of its call."""
        self.calls.append(function[2])
        try:
            if self.calls.count(function[2]) > 1:
                raise unsupported(place, f"recursion of {function[2]!r}", "write it as a loop")
            self.loop_numbers |= number_loops(function[6])
            yield
        finally:
            self.calls.pop()

    def _is_module(self, function: Tree) -> bool:
        """Whether a call of it here stays one, and is not its statements."""
        return self.items is not None and self.has_loops(function) and not self._inlines(function)

    def _inlines(self, function: Tree) -> bool:
        """Whether a pragma asks for its statements in place of its calls."""
        asked = pragma(self.pragmas.of(function[6]), "inline")
        return asked is not None and "off" not in asked.options

    def _inlined_region(self, statement: Tree) -> Tree | None:
        """The function of a call whose loops are tasks of the region that it stands in."""
        call = statement[2] if statement[0] == "expression" else None
        function = self.functions.get(call[2]) if call is not None and call[0] == "call" else None
        if function is None or not self.has_loops(function):
            return None
        return function if self._inlines(function) else None

    def changed_in(self, tree: Tree, heads: bool = True) -> dict[str, Tree]:
        """As `assigned_in`, and what functions change that a statement calls: they get it by reference."""
        found = assigned_in(tree, heads)
        for call in all_calls_in(tree):
            function = self.functions.get(call[2])
            if function is None:
                continue
            changes = self._changes(function)
            for (parameter, type_, _), argument in zip(function[3], call[3], strict=False):
                if parameter in changes and type_[0] in ("reference", "pointer"):
                    name = next(names_in(argument), None)
                    if name is not None:
                        found.setdefault(name, call[1])
        return found

    def _changes(self, function: Tree) -> dict[str, Tree]:
        """Names that a function changes, as far as they are its own arguments."""
        known = self.changes.get(function[2])
        if known is None:
            self.changes[function[2]] = {}  # of a recursion
            known = self.changes[function[2]] = self.changed_in(function[6])
        return known

    def says(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _outermost(self) -> NameScope:
        scope = self.scope
        while scope.around is not None:
            scope = scope.around
        return scope

    def _passed(self, name: str, type_: Tree, argument: Tree) -> Binding:
        kind = kind_of(type_)
        if kind is not None and (type_[0] != "reference" or is_no_place(argument)):
            return Slot(name, *kind, self.convert(self.value(argument), *kind))
        target = self.target(argument)
        if isinstance(target, tuple) and target[0].array.number:
            target = target[0]
        own = target[0].array if isinstance(target, tuple) else target
        if kind is not None and isinstance(own, Slot | KernelArray) and (own.kind, own.bits, own.signed) != kind:
            return Slot(name, *kind, self.convert(self.value(argument), *kind))  # a reference to what a cast gives
        return WordView(target[0].array, target[1]) if isinstance(target, tuple) else target

    def stays(self, branch: Tree | None) -> bool:
        """Whether a branch has loops, or calls what has."""
        if branch is None:
            return False
        called = (self.functions[name] for name in calls_in(branch) if name in self.functions)
        return (
            any(True for _ in loops_in(branch)) or any(map(self.has_loops, called))
            or any(name in COPIES for name in calls_in(branch))
        )  # fmt: skip

    def has_loops(self, function: Tree, depth: int = 0) -> bool:
        if depth > 32:
            return False
        for loop in loops_in(function[6]):
            found = self.asked(loop[5], "unroll")
            if found is None or "factor" in found.options:
                return True
        called = list(calls_in(function[6]))
        others = [self.functions[name] for name in called if name in self.functions]
        return any(name in COPIES for name in called) or any(self.has_loops(other, depth + 1) for other in others)

    @abstractmethod
    def only_goes_on(self) -> bool:
        """Whether nothing but loops around that go on is a condition here."""
        ...

    def _assume(self, condition: Tree) -> None:
        """What an assert says of numbers. It is no hardware, so it is worked out apart from what is."""
        if not compares_numbers(condition):
            return
        around, self.graph = self.graph, ValueGraph()
        try:
            self.assumed.append(self.truth(self.value(condition)))
        finally:
            self.graph = around

    def _library(self, tree: Tree) -> KernelValue:
        _, place, name, arguments, _, type_ = tree
        if name in COPIES and len(arguments) == 3:
            return self.copied(place, name, arguments)
        base = name[:-1] if name.endswith("f") and name[:-1] in (*FUNCTIONS, "fmax", "fmin") else name
        if name == ASSERTED and len(arguments) == 1:
            self._assume(arguments[0])
        if name in (ASSERTED, "printf", "__assert_fail"):
            for argument in arguments:
                if assigned_in(argument):  # what is printed is no hardware, what printing changes is
                    self.value(argument)
            return self.graph.constant(0)
        values = [self.value(argument) for argument in arguments]
        if name in NOT_FINITE:
            return self.graph.constant(NOT_FINITE[name], *(kind_of(type_) or ("float", 32, True)))
        first = (values[0].kind, values[0].bits, values[0].signed) if values else ("int", 32, True)
        kind = kind_of(type_) or first
        if base in ("fmax", "fmin", "max", "min") and len(values) == 2:
            sign = ">" if "max" in base else "<"
            left, right = (self.convert(value, *kind) for value in values)
            return self.graph.choose(self.graph.compare(sign, left, right, place[1]), left, right, place[1])
        if base in FUNCTIONS and values:
            if all(value.constant for value in values):
                with contextlib.suppress(ValueError, ArithmeticError):
                    return self.graph.constant(FUNCTIONS[base](*(float(v.value or 0) for v in values)), *kind)
            if base == "ldexp":
                raise unsupported(place, "ldexp of what no constant is", "multiply by a power of two that is one")
            name = "abs" if base in ("fabs", "abs") else base
            return self.graph.apply(name, tuple(values), *kind[:2], place[1], kind[2])
        raise unsupported(
            place, f"the function {name!r}, whose body is not in the source,", "add its definition, or use hls_math.h"
        )
