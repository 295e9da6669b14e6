"""A kernel walked through as Vitis' front end does: what is unrolled, flattened, inlined, and what stays a loop."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

from penstock.compiler.errors import Mistakes, PenstockError, nearest
from penstock.compiler.hls_in.bindings import (
    INSTEAD,
    Binding,
    Scope,
    Slot,
    StreamView,
    View,
    kind_of,
    unsupported,
    where,
)  # fmt: skip
from penstock.compiler.hls_in.directives import Directed, Directives
from penstock.compiler.hls_in.expressions import FUNCTIONS
from penstock.compiler.hls_in.graph import Graph, Node
from penstock.compiler.hls_in.loops import (
    MOST_UNROLLED,
    Head,
    calls_in,
    head_of,
    loops_in,
    pragma,
    statements_of,
    unlabelled,
)  # fmt: skip
from penstock.compiler.hls_in.memory import Memories
from penstock.compiler.hls_in.parsing import Unit, parse
from penstock.compiler.hls_in.pragmas import Placed, Pragma, pragmas_of
from penstock.compiler.hls_in.records import (
    Again,
    Array,
    Called,
    Counter,
    Dataflow,
    Item,
    Kernel,
    Pipeline,
    Straight,
    Streams,
    Task,
)  # fmt: skip

Tree = list[Any]
MOST_NODES = 60_000
SECONDS = 60
NAMING = ("array_partition", "array_reshape", "stream", "bind_storage", "resource")
"""Pragmas that name a variable."""


def read_kernel(path: Path, top: str) -> Kernel:
    """A source's top function, elaborated; every mistake that could be found is in the error."""
    unit = parse(path)
    first = Elaborator(unit, top)
    try:
        kernel = first.kernel()
        if not first.late:
            return kernel
        return Elaborator(unit, top, first.directed).kernel()
    except _Abandon as stop:
        raise stop.error from None
    except RecursionError:
        raise PenstockError(
            code="source-too-large", what="statements or expressions are nested too deeply", where=path.name,
            hint="split long expressions into several statements",
        ) from None  # fmt: skip


class Elaborator(Directives):
    def __init__(self, unit: Unit, top: str, directed: Directed | None = None) -> None:
        """`directed` are partitions by array of a first walk: a callee may cut what its caller used before."""
        self.unit = unit
        self.directed = dict(directed or {})
        self.late = False
        self._kept = {}
        self.top = top
        functions = [tree for tree in unit.declarations if tree[0] == "function" and tree[6] is not None]
        self.functions: dict[str, Tree] = {tree[2]: tree for tree in functions}
        found = [
            p for file, text in unit.sources.texts.items()
            for p in pragmas_of(str(file.relative_to(unit.sources.folder)), text)
        ]  # fmt: skip
        for p in found:
            p.__dict__["file"] = "/penstock-source/" + p.file
        self.pragmas = Placed(found, functions)
        self.mistakes = Mistakes()
        self.scope = Scope()
        self.graph = Graph()
        self.memories = Memories(self.graph)
        self.path: Node | None = None
        self.items: list[Item] | None = []
        """Where loops go; None inside a pipeline, where every loop is unrolled."""
        self.calls: list[str] = []
        self.arrays: list[Array] = []
        self.streams: list[Streams] = []
        self.tables: dict[Array, tuple[float | int, ...]] = {}
        self.touched: set[Array] = set()
        self.result: Node | None = None
        self.loop_numbers: dict[int, int] = {}
        self.steps = 0
        self.until = time.process_time() + SECONDS

    def kernel(self) -> Kernel:
        function = self.functions.get(self.top)
        if function is None:
            raise PenstockError(
                code="no-top", what=f"there is no function {self.top!r}", where=self.unit.sources.main.name,
                hint=nearest(self.top, self.functions, "its functions: " + (", ".join(sorted(self.functions)) or "none")),
            )  # fmt: skip
        with self.mistakes.noted():
            self._globals()
        scalars: list[str] = []
        for name, type_, place in function[3]:
            with self.mistakes.noted():
                self.scope.names[name] = binding = self._argument(name, type_, place)
                if isinstance(binding, Slot):
                    scalars.append(name)
        self._number_loops(function)
        body = self.function_body(function)
        self.mistakes.raise_first()
        interface = [p for p in self.pragmas.of(function[6]) if p.kind == "interface"]
        s_axilite = any("s_axilite" in p.options and p.options.get("port") == "return" for p in interface)
        axi = frozenset(p.options.get("port", "") for p in interface if "m_axi" in p.options)
        return Kernel(self.top, body, self.arrays, self.streams, scalars, s_axilite, axi)

    def _number_loops(self, function: Tree) -> None:
        """Vitis names a loop without a label by its line and its number among the function's loops."""

        bare = [0]

        def visit(tree: Any, labelled: bool) -> None:
            if not isinstance(tree, list) or not tree:
                return
            kind: Any = tree[0]
            if kind == "for":
                bare[0] += not labelled
                self.loop_numbers[id(tree)] = bare[0]
                visit(tree[5], False)
            for child in (
                tree[3] if kind == "block" else tree[3:5] if kind == "if" else tree[3:4] if kind == "label" else ()
            ):
                visit(child, kind == "label")

        visit(function[6], False)

    # functions

    def function_body(self, function: Tree) -> list[Item]:
        """A function's own items, with its names bound already."""
        if len(self.calls) > 32 or function[2] in self.calls:
            raise unsupported(function[1], f"recursion of {function[2]!r}", "write it as a loop")
        self.calls.append(function[2])
        block = function[6]
        pragmas = self.pragmas.of(block)
        if self.items is None:
            self.directives(pragmas)
            self.block(block, own_scope=False)
            items: list[Item] = []
        elif pragma(pragmas, "dataflow"):
            items = [self._dataflow(function[2], block, pragmas)]
        elif (asked := pragma(pragmas, "pipeline")) and "off" not in asked.options:
            items = [self._pipelined_function(function, asked, pragmas)]
        else:
            items = self.region(lambda: (self.directives(pragmas), self.block(block, own_scope=False)))
        self.calls.pop()
        return items

    def region(self, walk: Any) -> list[Item]:
        """Items of a stretch of statements that stand outside of pipelines."""
        graph, memories, items = self.graph, self.memories, self.items
        self.items = found = list[Item]()
        self._begin()
        walk()
        self._settle()
        self.graph, self.memories, self.items = graph, memories, items
        return found

    def _begin(self) -> None:
        self.graph = Graph()
        self.memories = Memories(self.graph)

    def _settle(self) -> None:
        """Close the operations since the last loop."""
        if self.items is not None and any(
            n.op in ("load", "store", "take", "put", "add", "mul", "div", "sub") for n in self.graph.nodes
        ):
            self.items.append(Straight(self.graph))
        self._begin()

    def _pipelined_function(self, function: Tree, asked: Pragma, pragmas: list[Pragma]) -> Pipeline:
        graph, memories, items = self.graph, self.memories, self.items
        self._begin()
        self.items = None
        self.directives(pragmas)
        self.block(function[6], own_scope=False)
        made = Pipeline(
            function[2], [], self.graph, asked.number("ii", {}) or 1, True, where(function[1]), function[1][1]
        )
        self.graph, self.memories, self.items = graph, memories, items
        return made

    def _dataflow(self, name: str, block: Tree, pragmas: list[Pragma]) -> Dataflow:
        tasks: list[Task] = []
        items = self.items
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
                body = self.region(lambda statement=statement: self.statement(statement))
                if not body:
                    continue
                called = next(calls_in(inner), None) if inner[0] == "expression" else None
                task = called or f"Loop_{label or f'VITIS_LOOP_{inner[1][1]}'}_proc"
                if called and len(body) == 1 and isinstance(body[0], Called):
                    body = body[0].body
                tasks.append(Task(task, body, where(inner[1])))
        self.items = items
        seen: dict[str, int] = {}
        for position, task in enumerate(tasks):
            seen[task.name] = seen.get(task.name, 0) + 1
            if seen[task.name] > 1:
                tasks[position] = Task(f"{task.name}_{seen[task.name] - 1}", task.body, task.where)
        return Dataflow(name, tasks, where(block[1]))

    def called(self, tree: Tree) -> Node:
        _, place, name, arguments, templates, type_ = tree
        function = self.functions.get(name)
        if function is None:
            return self._library(tree)
        bindings: dict[str, Binding] = {}
        for (parameter, parameter_type, _), argument in zip(function[3], arguments, strict=False):
            bindings[parameter] = self._passed(parameter, parameter_type, argument)
        for parameter, literal in zip(function[5], templates, strict=False):
            bindings[parameter] = Slot(parameter, "int", 32, self.value(literal))
        scope, result, path = self.scope, self.result, self.path
        self.scope = Scope(self._outermost(), bindings)
        self.result = None
        stays = (
            self.items is not None and self._has_loops(function) and not pragma(self.pragmas.of(function[6]), "inline")
        )
        if stays:
            self._settle()
            self._number_loops(function)
            self.path = None
            body = self.function_body(function)
            assert self.items is not None
            self.items.append(Called(name, body, where(place)))
        elif self.items is not None:  # no loops, or asked for: as if its statements stood here
            self.calls.append(name)
            if self.calls.count(name) > 1:
                raise unsupported(place, f"recursion of {name!r}", "write it as a loop")
            self._number_loops(function)
            self.directives(self.pragmas.of(function[6]))
            self.block(function[6], own_scope=False)
            self.calls.pop()
        else:
            self.function_body(function)
        value = self.result
        self.scope, self.result, self.path = scope, result, path
        return value if value is not None else self.graph.constant(0)

    def _outermost(self) -> Scope:
        scope = self.scope
        while scope.around is not None:
            scope = scope.around
        return scope

    def _passed(self, name: str, type_: Tree, argument: Tree) -> Binding:
        kind = kind_of(type_)
        if kind is not None and type_[0] != "reference":
            return Slot(name, *kind, self.convert(self.value(argument), *kind))
        target = self.target(argument)
        if isinstance(target, (View, StreamView, Slot)):
            return target
        raise unsupported(argument[1], f"passing one word of an array to {name!r}", "pass the array and the index")

    def _has_loops(self, function: Tree, depth: int = 0) -> bool:
        if depth > 32:
            return False
        for loop in loops_in(function[6]):
            found = pragma(self.pragmas.of(loop[5]), "unroll")
            if found is None or "factor" in found.options:
                return True
        others = [self.functions[name] for name in calls_in(function[6]) if name in self.functions]
        return any(self._has_loops(other, depth + 1) for other in others)

    def _library(self, tree: Tree) -> Node:
        _, place, name, arguments, _, type_ = tree
        base = name[:-1] if name.endswith("f") and name[:-1] in (*FUNCTIONS, "fmax", "fmin") else name
        if name in ("assert", "printf", "__assert_fail"):
            return self.graph.constant(0)
        values = [self.value(argument) for argument in arguments]
        kind = kind_of(type_) or (values[0].kind, values[0].bits) if values else ("int", 32)
        if base in ("fmax", "fmin", "max", "min") and len(values) == 2:
            sign = ">" if "max" in base else "<"
            values = [self.convert(value, *kind) for value in values]
            return self.graph.choose(self.graph.compare(sign, *values, place[1]), *values, place[1])
        if base in FUNCTIONS and values:
            if all(value.constant for value in values):
                with contextlib.suppress(ValueError, ArithmeticError):
                    return self.graph.constant(FUNCTIONS[base](*(float(v.value or 0) for v in values)), *kind)
            return self.graph.apply("abs" if base in ("fabs", "abs") else base, tuple(values), *kind, place[1])
        raise unsupported(
            place, f"the function {name!r}, whose body is not in the source,", "add its definition, or use hls_math.h"
        )

    # statements

    def block(self, tree: Tree, own_scope: bool = True) -> None:
        if own_scope:
            self.scope = Scope(self.scope)
            self.directives(self.pragmas.of(tree))
        try:
            self.statements(statements_of(tree), [p for p in self.pragmas.of(tree) if p.kind in NAMING])
        finally:
            if own_scope and self.scope.around is not None:
                self.scope = self.scope.around

    def statements(self, trees: list[Tree], pragmas: Iterable[Pragma] = ()) -> None:
        """Statements, and between them the pragmas that name variables, in the order of the text."""
        waiting = list(pragmas)
        for tree in trees:
            while waiting and waiting[0].line < tree[1][1]:
                with self.mistakes.noted():
                    self.apply(waiting.pop(0))
            with self.mistakes.noted():
                self.statement(tree)
        for p in waiting:
            with self.mistakes.noted():
                self.apply(p)

    def statement(self, tree: Tree, label: str = "") -> None:
        self.steps += 1
        if len(self.graph.nodes) > MOST_NODES:
            raise _Abandon(unsupported(tree[1], f"more than {MOST_NODES:,} operations in one iteration", "unroll less"))
        if self.steps % 64 == 0 and time.process_time() > self.until:
            raise _Abandon(unsupported(tree[1], f"a kernel that takes more than {SECONDS} s to unfold", "unroll less"))
        match tree[0]:
            case "block":
                self.block(tree)
            case "group":
                for part in tree[2]:
                    with self.mistakes.noted():
                        self.declare(part)
            case "label":
                self.statement(tree[3], tree[2])
            case "expression":
                self.value(tree[2])
            case "return":
                if tree[2] is not None:
                    self.result = self.value(tree[2])
            case "if":
                self._if(tree)
            case "for":
                self._for(tree, label)
            case "bad":
                raise unsupported(
                    tree[1], f"a {tree[2]}", INSTEAD.get(tree[2], "write it with for, if and assignments")
                )
            case _:
                raise unsupported(tree[1], f"a statement of kind {tree[0]!r}", "write it with for, if and assignments")

    def _if(self, tree: Tree) -> None:
        condition = self.truth(self.value(tree[2]))
        for branch, taken in ((tree[3], condition), (tree[4], self.graph.negate(condition))):
            if branch is None or (taken.constant and not taken.value):
                continue
            if not taken.constant and self.items is not None and any(True for _ in loops_in(branch)):
                raise unsupported(tree[1], "a loop under a condition", "put the condition inside the loop")
            with self.under(None if taken.constant else taken):
                self.statement(branch)

    @contextlib.contextmanager
    def under(self, condition: Node | None) -> Generator[None]:
        path = self.path
        self.path = self.graph.both(path, condition)
        try:
            yield
        finally:
            self.path = path

    # loops

    def _constant(self, tree: Tree) -> int | None:
        node = self.value(tree)
        return int(node.value) if node.value is not None else None

    def _for(self, tree: Tree, label: str) -> None:
        head = head_of(tree, self._constant)
        pragmas = self.pragmas.of(tree[5])
        unroll = pragma(pragmas, "unroll")
        factor = unroll.number("factor", self.constants()) if unroll is not None else None
        whole = self.items is None or (unroll is not None and factor is None) or (factor or 0) >= head.trip
        if whole or head.trip <= 1:
            self._unrolled(tree, head)
            return
        self._settle()
        item = self._loop(tree, label)
        assert self.items is not None
        self.items.append(item)

    def _unrolled(self, tree: Tree, head: Head) -> None:
        if head.trip > MOST_UNROLLED:
            raise unsupported(
                tree[1], f"unrolling {head.trip:,} iterations", "pipeline this loop, or unroll by a factor"
            )
        for turn in range(head.trip):
            self._bound(head, self.graph.constant(head.first + turn * head.step), lambda: self.statement(tree[5]))

    def _bound(self, head: Head, value: Node, walk: Any) -> None:
        """Walk with the loop's variable at a value."""
        self.scope = Scope(self.scope, {head.variable: Slot(head.variable, "int", 32, value, self.path)})
        try:
            walk()
        finally:
            assert self.scope.around is not None
            self.scope = self.scope.around

    def loop_name(self, tree: Tree, label: str) -> str:
        return label or f"VITIS_LOOP_{tree[1][1]}_{self.loop_numbers.get(id(tree), 0)}"

    def _staying(self, body: Tree) -> list[Tree]:
        """Loops of a body that are not wholly unrolled, and None-like calls of functions with loops."""
        found: list[Tree] = []
        for loop in loops_in(body):
            unroll = pragma(self.pragmas.of(loop[5]), "unroll")
            if unroll is None or "factor" in unroll.options:
                found.append(loop)
        return found

    def _loop(self, tree: Tree, label: str) -> Item:
        """A loop that stays one: a pipeline with the loops that it can be flattened with, or a loop around others."""
        chain, names = [tree], [self.loop_name(tree, label)]
        while True:
            body, pragmas = chain[-1][5], self.pragmas.of(chain[-1][5])
            asked = pragma(pragmas, "pipeline")
            if pragma(pragmas, "dataflow"):
                return self._around(tree, names[0])
            if asked is not None and "off" not in asked.options:
                return self._pipeline(chain, names, asked)
            staying = self._staying(body)
            calls = [c for c in calls_in(body) if c in self.functions and self._has_loops(self.functions[c])]
            if not staying and not calls:
                return self._pipeline(chain, names, None)
            if len(staying) != 1 or calls or not self._flattens(chain, staying[0]):
                return self._around(tree, names[0])
            direct = [unlabelled(s) for s in statements_of(body)]
            inner = next((pair for pair in direct if pair[0] is staying[0]), None)
            if inner is None:
                return self._around(tree, names[0])
            chain.append(inner[0])
            names.append(self.loop_name(*inner))

    def _flattens(self, chain: list[Tree], inner: Tree) -> bool:
        """Whether a loop is one with those around it: its bounds do not change, and no iteration leaves it early."""
        outer = {_variable(tree) for tree in chain}
        if any(name in outer for part in (inner[2], inner[3]) for name in _names(part)):
            return False
        unroll = pragma(self.pragmas.of(inner[5]), "unroll")
        if unroll is None or "factor" not in unroll.options:
            return True
        head = head_of(inner, self._constant)
        return head.trip % (unroll.number("factor", self.constants()) or 1) == 0

    def _around(self, tree: Tree, name: str) -> Again:
        head = head_of(tree, self._constant)
        counter = Counter(name, head.trip)
        dataflow = pragma(self.pragmas.of(tree[5]), "dataflow")

        def walk() -> None:
            scaled = self._scaled(counter, head)
            self._bound(head, scaled, lambda: self.block(tree[5]) if tree[5][0] == "block" else self.statement(tree[5]))

        if dataflow:
            self.scope = Scope(self.scope, {head.variable: Slot(head.variable, "int", 32, self._scaled(counter, head))})
            body: list[Item] = [self._dataflow(name, tree[5], self.pragmas.of(tree[5]))]
            assert self.scope.around is not None
            self.scope = self.scope.around
        else:
            body = self.region(walk)
        return Again(name, counter, body, where(tree[1]), dataflow is not None)

    def _scaled(self, counter: Counter, head: Head) -> Node:
        node = self.graph.operate("mul", self.graph.counter(counter), self.graph.constant(head.step), "int", 32)
        return self.graph.operate("add", node, self.graph.constant(head.first), "int", 32)

    def _pipeline(self, chain: list[Tree], names: list[str], asked: Pragma | None) -> Pipeline:
        graph, memories, items, path = self.graph, self.memories, self.items, self.path
        target = asked.number("ii", self.constants()) if asked is not None else None
        heads = [head_of(tree, self._constant) for tree in chain]
        unroll = pragma(self.pragmas.of(chain[-1][5]), "unroll")
        factor = (unroll.number("factor", self.constants()) or 1) if unroll is not None else 1
        trips = [head.trip for head in heads]
        trips[-1] = max(1, trips[-1] // factor)
        counters = [Counter(name, trip) for name, trip in zip(names, trips, strict=True)]
        self._begin()
        self.items = None
        self.path = None
        carried = self._carry(chain)
        self._level(chain, heads, counters, 0, factor)
        for slot, (phi, _) in carried.items():
            if slot.value is not phi:
                phi.follow = slot.value
        self.memories.close()
        made = Pipeline(
            "_".join(names), counters, self.graph, target or 1, asked is not None, where(chain[0][1]), chain[-1][1][1]
        )
        self.graph, self.memories, self.items, self.path = graph, memories, items, path
        for slot, (phi, before) in carried.items():
            slot.latest = None
            slot.value = before if slot.value is phi else self.graph.fresh("input", slot.kind, slot.bits)
        return made

    def _carry(self, chain: list[Tree]) -> dict[Slot, tuple[Node, Node | None]]:
        """Variables from outside that the nest assigns: each becomes what the iteration before has left."""
        carried: dict[Slot, tuple[Node, Node | None]] = {}
        variables = {_variable(tree) for tree in chain}
        for name in _assigned(chain[0]):
            slot = self.scope.find(name)
            if isinstance(slot, Slot) and name not in variables and slot not in carried:
                phi = self.graph.fresh("phi", slot.kind, slot.bits)
                carried[slot] = phi, slot.value
                slot.value, slot.path, slot.latest = phi, None, None
        return carried

    def _level(self, chain: list[Tree], heads: list[Head], counters: list[Counter], depth: int, factor: int) -> None:
        tree, head = chain[depth], heads[depth]
        last = depth == len(chain) - 1
        value = self._scaled(counters[depth], head)
        if last and factor == 1:
            self._bound(head, value, lambda: self.statement(tree[5]))
            return
        if last:
            for lane in range(factor):
                node = self.graph.operate(
                    "mul", self.graph.counter(counters[depth]), self.graph.constant(factor * head.step), "int", 32
                )
                node = self.graph.operate("add", node, self.graph.constant(head.first + lane * head.step), "int", 32)
                self._bound(head, node, lambda: self.statement(tree[5]))
            return

        def walk() -> None:
            parts = statements_of(tree[5])
            at = next(i for i, part in enumerate(parts) if unlabelled(part)[0] is chain[depth + 1])
            self._sunk(parts[:at], counters[depth + 1 :], first=True, pragmas=self.pragmas.of(tree[5]))
            self._level(chain, heads, counters, depth + 1, factor)
            self._sunk(parts[at + 1 :], counters[depth + 1 :], first=False)

        self._bound(head, value, lambda: self._in_block(tree[5], walk))

    def _in_block(self, block: Tree, walk: Any) -> None:
        self.scope = Scope(self.scope)
        self.directives(self.pragmas.of(block))
        try:
            walk()
        finally:
            assert self.scope.around is not None
            self.scope = self.scope.around

    def _sunk(self, statements: list[Tree], inner: list[Counter], first: bool, pragmas: Iterable[Pragma] = ()) -> None:
        """Statements beside an inner loop: they happen in its first or last iteration alone."""
        condition: Node | None = None
        for counter in inner:
            at = self.graph.constant(0 if first else counter.trip - 1)
            condition = self.graph.both(condition, self.graph.compare("==", self.graph.counter(counter), at))
        for statement in statements:
            for name, type_ in _declared(statement) if first else ():
                kind = kind_of(type_)
                if kind is not None:  # lives through all iterations of the inner loop
                    slot = self.scope.names[name] = Slot(name, *kind)
                    slot.value = phi = self.graph.fresh("phi", *kind)
                    self.memories.phis[slot] = phi
            with self.under(condition):
                self.statements([statement])
        for p in pragmas:
            if p.kind in NAMING:
                with self.mistakes.noted():
                    self.apply(p)


class _Abandon(Exception):
    """Going on would take for ever."""

    def __init__(self, error: PenstockError) -> None:
        self.error = error


def _variable(tree: Tree) -> str:
    start = tree[2]
    if start[0] == "group" and start[2]:
        return str(start[2][0][2])
    names = list(_names(start))
    return names[0] if names else ""


def _names(tree: Any) -> Generator[str]:
    if isinstance(tree, list):
        if len(tree) == 3 and tree[0] == "name":
            yield tree[2]
        else:
            for child in tree:
                yield from _names(child)


def _declared(tree: Tree) -> list[tuple[str, Tree]]:
    return [(part[2], part[3]) for part in tree[2]] if tree[0] == "group" else []


def _assigned(tree: Any) -> list[str]:
    """Names that a statement assigns, each once, in order."""
    found: dict[str, None] = {}

    def visit(node: Any) -> None:
        if not isinstance(node, list) or not node:
            return
        if (
            node[0] == "binary"
            and len(node) == 6
            and str(node[2]).endswith("=")
            and node[2] not in ("==", "!=", "<=", ">=")
        ) or (node[0] == "unary" and len(node) == 5 and node[2] in ("++", "--", "p++", "p--")):
            _target_name(node[3], found)
        elif node[0] == "operator" and len(node) == 4 and node[2] == ">>" and len(node[3]) == 2:
            _target_name(node[3][1], found)
        elif node[0] == "method" and len(node) == 5 and node[3] == "read" and node[4]:
            _target_name(node[4][0], found)
        for child in node:
            visit(child)

    visit(tree)
    return list(found)


def _target_name(tree: Tree, found: dict[str, None]) -> None:
    while tree[0] == "cast":
        tree = tree[3]
    if tree[0] == "name":
        found[tree[2]] = None
