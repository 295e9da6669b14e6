"""A task's body for one instance: conditions on its place are settled, functions inlined, everything has a type."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from penstock.compiler.tasks.affine import Affine, Test, Tests, as_affine, plain
from penstock.compiler.tasks.expressions import RUNTIME, Expressions, ReadValue, bound, names_in
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.tree import (
    Assign,
    Decision,
    Expr,
    Fetch,
    For,
    Get,
    Memory,
    Put,
    Stmt,
    Store,
    StreamEnd,
    StreamSite,
    TaskBody,
    Var,
    When,
)
from penstock.compiler.tasks.values import (
    Builtin,
    Condition,
    OwnFunction,
    StreamArray,
    TaskDef,
    TaskProgram,
    TensorArgument,
)

MOST_STATEMENTS = 20_000
_MOST_UNROLLED = 4096
_MOST_CHOICES = 256
_DEEPEST = 32
_FILL_LANES = 64


def elaborate(source: ProgramText, program: TaskProgram, task: TaskDef, place: tuple[int, ...]) -> TaskBody:
    """The body of one instance of a task."""
    return _Elaborator(source, program, task, place).run()


class _Elaborator(Expressions):
    def __init__(self, source: ProgramText, program: TaskProgram, task: TaskDef, place: tuple[int, ...]) -> None:
        super().__init__(source, dict(program.constants), {})
        self.program, self.task, self.place = program, task, place
        self.places = frozenset(task.places)
        self.out: list[Stmt] = []
        self.arrays: dict[str, Memory] = {}
        self.kinds: dict[str, TileKind] = {}
        self.ports: dict[tuple[str, tuple[int, ...]], StreamEnd] = {}
        self.decisions: list[tuple[Decision, object]] = []
        self.loop_names: dict[int, str] = {}
        self.count = self.temporaries = self.depth = self.calls = 0
        self.settling, self.noted = False, set[int]()
        self.indexed_names = _arrays_of(task.node)

    def run(self) -> TaskBody:
        self.names |= dict(zip(self.task.places, self.place, strict=True))
        for name, tensor in self.program.tensors.items():
            self.names[name] = self._shard(tensor)
        self._statements(self.task.node.body)
        return TaskBody(tuple(self.out), self.arrays, self.ports, self.trips, self.loop_names, self.decisions)

    def _shard(self, tensor: TensorArgument) -> Memory:
        layout, shape = self.task.layouts.get(tensor.name), tensor.kind.shape
        if layout is None:
            return Memory(tensor.name, tensor.kind.dtype, shape, True, (0,) * len(shape))
        grid = self.task.grid
        parts = [size if axis is None else size // grid[axis] for size, axis in zip(shape, layout.axes, strict=True)]

        def offset(place: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(
                0 if axis is None else part * place[axis] for part, axis in zip(parts, layout.axes, strict=True)
            )

        return Memory(tensor.name, tensor.kind.dtype, tuple(parts), True, offset(self.place))

    # -- what depends on the place

    def _settle(self, node: ast.expr, read: Any) -> Any:
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

        self.decisions.append((decide, found))
        return found

    def _note_place(self, name: str) -> None:
        axis = self.task.places.index(name)
        if axis not in self.noted:
            self.noted.add(axis)
            self.decisions.append((lambda place: place[axis], self.place[axis]))

    def _name(self, node: ast.Name) -> ReadValue:
        if node.id in self.places and not self.settling:
            self._note_place(node.id)
        return super()._name(node)

    # -- statements

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for one in body:
            self.count += 1
            if self.count > MOST_STATEMENTS:
                raise self.error(
                    one, "too many statements", "loop with range() instead of unroll()", f"at most {MOST_STATEMENTS}"
                )
            self._statement(one)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="put")) as call):
                self._put(call)
            case ast.Expr():
                found = self.value(node.value)
                if not isinstance(found, Var | tuple) and found is not None:
                    raise self.error(node, "the value is not used", "put it, store it or leave it out")
            case ast.Assign(targets=[target]):
                self._assign(node, target, self.value(node.value))
            case ast.AnnAssign(target=ast.Name(id=name)):
                self._declare(node, name)
            case ast.AugAssign():
                self._assign(node, node.target, self.value(
                    ast.copy_location(ast.BinOp(_as_load(node.target), node.op, node.value), node)
                ))  # fmt: skip
            case ast.For(orelse=[]):
                self._for(node)
            case ast.If():
                self._if(node)
            case ast.Return(value=None):
                raise self.error(node, "a task does not return", "put its results into streams, or store them")
            case ast.While():
                raise self.error(node, "a loop whose rounds are not known", "write for i in range(N)")
            case _:
                raise self.error(
                    node, f"{type(node).__name__} is no part of the language",
                    "assignments, put, for over range, if and calls of functions are",
                )  # fmt: skip

    def _declare(self, node: ast.AnnAssign, name: str) -> None:
        kind = self.value(node.annotation)
        if not isinstance(kind, TileKind):
            raise self.error(node.annotation, f"{self.say(kind)} is no type", "write x: int32 = 0")
        if name in self.places or isinstance(self.names.get(name), Builtin | StreamArray | TensorArgument):
            raise self.error(node, f"{name!r} means something else already", "take another name")
        if kind.shape and name in self.indexed_names:
            own = Memory(name, kind.dtype, kind.shape, False, (0,) * len(kind.shape))
            memory = self.names[name] = self.arrays.setdefault(name, own)
            if (memory.dtype, memory.shape) != (kind.dtype, kind.shape):
                raise self.error(node, f"{name!r} is {memory.dtype}{list(memory.shape)} already", "take another name")
            if node.value is not None:
                self._fill(node, memory, self.value(node.value))
            return
        if self.kinds.setdefault(name, kind) != kind:
            raise self.error(node, f"{name!r} is {self.kinds[name]} already")
        if node.value is not None:
            self.out.append(Assign(name, self.cast(node, self.value(node.value), kind)))
        self.names[name] = Var(name, kind)

    def _fill(self, node: ast.AST, memory: Memory, value: ReadValue) -> None:
        made = self.cast(node, value, TileKind(memory.dtype))
        if made.kind.shape == () and prod(memory.shape) > _FILL_LANES:
            loops = [self._loop(size, f"{memory.name}{dim}") for dim, size in enumerate(memory.shape)]
            store: Stmt = Store(memory, tuple(Affine.counter(loop) for loop in loops), (1,) * len(loops), made)
            for loop, size in zip(reversed(loops), reversed(memory.shape), strict=True):
                store = For(loop, size, self.loop_names[loop], (store,), node)
            self.out.append(store)
            return
        whole = self.cast(node, made, TileKind(memory.dtype, memory.shape))
        self.out.append(Store(memory, (Affine(0),) * len(memory.shape), memory.shape, whole))

    def _assign(self, node: ast.AST, target: ast.expr, value: ReadValue) -> None:
        match target:
            case ast.Name(id=name):
                self._assign_name(node, name, value)
            case ast.Tuple():
                if not isinstance(value, tuple) or len(value) != len(target.elts):
                    raise self.error(node, "as many names as values must stand here")
                for one, part in zip(target.elts, value, strict=True):
                    self._assign(node, one, part)
            case ast.Subscript():
                found = self.value(target.value)
                if not isinstance(found, Memory):
                    raise self.error(
                        target, f"{self.say(found)} has no elements that can be set",
                        "declare an array with its type: x: int32[4, 4] = 0",
                    )  # fmt: skip
                index, block, kept = self._index(target, found)
                self.out.append(Store(found, index, block, self.cast(node, value, TileKind(found.dtype, kept))))
            case _:
                raise self.error(target, "a value goes to a name or to an element")

    def _assign_name(self, node: ast.AST, name: str, value: ReadValue) -> None:
        known = self.names.get(name)
        if (
            name in self.places
            or isinstance(known, Builtin | StreamArray)
            or (isinstance(known, Memory) and known.is_tensor)
        ):
            raise self.error(
                node, f"{name!r} means something else already", "take another name, or store into it: x[:] = ..."
            )
        if isinstance(known, Memory):
            self._fill(node, known, value)
            return
        if not isinstance(value, (*RUNTIME, Memory)) and name not in self.kinds:
            self.names[name] = value  # a number that is known: a constant of the text
            if self._around():
                raise self.error(
                    node, f"{name!r} is set in a loop without a type", f"declare it before the loop: {name}: int32 = 0"
                )
            return
        made = self.runtime(node, value) if name not in self.kinds else self.cast(node, value, self.kinds[name])
        if self.kinds.setdefault(name, made.kind) != made.kind:
            raise self.error(
                node,
                f"{name!r} is {self.kinds[name]} and becomes {made.kind}",
                f"declare it first: {name}: {made.kind} = ...",
            )
        self.out.append(Assign(name, made))
        self.names[name] = Var(name, made.kind)

    def _around(self) -> bool:
        return self.depth > 0

    def _for(self, node: ast.For) -> None:
        call = node.iter
        word = self.value(call.func) if isinstance(call, ast.Call) else None
        if (
            not isinstance(call, ast.Call)
            or not isinstance(word, Builtin)
            or word.name not in ("range", "grid", "unroll")
        ):
            if isinstance(call, ast.Tuple | ast.List | ast.Name) and isinstance(items := self.value(call), tuple):
                self._unrolled(node, items)
                return
            raise self.error(
                node.iter, "a loop whose rounds are not known", "write for i in range(N), grid(M, N) or unroll(N)"
            )
        if call.keywords:
            raise self.error(call, "its arguments go by place")
        bounds = [self._settle(one, lambda e, n: e.number(n, "a loop's bound")) for one in call.args]
        if word.name == "grid":
            targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
            if len(targets) != len(bounds) or not bounds:
                raise self.error(node, f"{len(targets)} counters for {len(bounds)} loops")
            self._nested(node, list(zip(targets, [(0, size, 1) for size in bounds], strict=True)))
            return
        if not 1 <= len(bounds) <= 3:
            raise self.error(call, f"{word.name} takes one to three numbers")
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (bounds[0], bounds[1], (*bounds, 1)[2])
        if step == 0:
            raise self.error(call, "a step of 0")
        if word.name == "unroll":
            self._unrolled(node, tuple(range(start, stop, step)[: _MOST_UNROLLED + 1]))
        else:
            self._nested(node, [(node.target, (start, stop, step))])

    def _unrolled(self, node: ast.For, items: tuple[ReadValue, ...]) -> None:
        if len(items) > _MOST_UNROLLED:
            raise self.error(node, f"{len(items)} rounds written out", "loop with range()", f"at most {_MOST_UNROLLED}")
        for item in items:
            self._bind(node.target, item)
            self._statements(node.body)

    def _bind(self, target: ast.expr, value: ReadValue) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(target.elts) == len(value):
            for one, part in zip(target.elts, value, strict=True):
                self._bind(one, part)
        elif isinstance(target, ast.Name) and target.id not in self.places and target.id not in self.kinds:
            self.names[target.id] = value
        else:
            raise self.error(target, "a loop's counter needs a name of its own")

    def _nested(self, node: ast.For, loops: list[tuple[ast.expr, tuple[int, int, int]]]) -> None:
        if not loops:
            self._statements(node.body)
            return
        (target, (start, stop, step)), *inner = loops
        trip = len(range(start, stop, step))
        if trip == 0:
            return
        if trip == 1:
            self._bind(target, start)
            self._nested(node, inner)
            return
        name = target.id if isinstance(target, ast.Name) else "i"
        loop = self._loop(trip, name)
        self._bind(target, Affine.counter(loop, step, start))
        before, self.out = self.out, []
        self.depth += 1
        self._nested(node, inner)
        self.depth -= 1
        body, self.out = tuple(self.out), before
        if body:
            self.out.append(For(loop, trip, name, body, node))

    def _loop(self, trip: int, name: str) -> int:
        loop = len(self.trips)
        self.trips[loop], self.loop_names[loop] = trip, name
        return loop

    def _if(self, node: ast.If) -> None:
        test = self._settle(node.test, lambda e, n: e.value(n))
        if isinstance(test, bool | int):
            self._statements(node.body if test else node.orelse)
            return
        if not isinstance(test, Condition):
            raise self.error(
                node.test, f"the condition is {self.say(test)}, which is not known before a run",
                "choose between values with where(condition, one, other); loops and grids decide what runs",
            )  # fmt: skip
        self._when(test.tests, node.body)
        if node.orelse:
            for position, one in enumerate(test.tests):
                self._when((*test.tests[:position], one.opposite), node.orelse)

    def _when(self, tests: Tests, body: Sequence[ast.stmt]) -> None:
        before, self.out = self.out, []
        self.depth += 1
        self._statements(body)
        self.depth -= 1
        inside, self.out = tuple(self.out), before
        if inside:
            self.out.append(When(tests, inside))

    def chosen(self, node: ast.IfExp, test: ReadValue) -> ReadValue:
        """A value that a counter chooses."""
        if not isinstance(test, Condition) or len(test.tests) != 1:
            raise self.error(node, "a choice by more than one comparison", "choose in two steps, or with if")
        parts: list[tuple[Tests, list[Stmt], ReadValue]] = []
        for tests, side in ((test.tests, node.body), ((test.tests[0].opposite,), node.orelse)):
            before, self.out = self.out, []
            value = self.value(side)
            parts.append((tests, self.out, value))
            self.out = before
        values = self._alike(node, [value for _, _, value in parts])
        shape = self._common(node, values)
        name = self._temporary()
        for (tests, made, _), value in zip(parts, values, strict=True):
            self.out.append(When(tests, (*made, Assign(name, self._spread(node, value, shape)))))
        return Var(name, TileKind(values[0].kind.dtype, shape))

    def _temporary(self) -> str:
        self.temporaries += 1
        return f".{self.temporaries}"

    # -- streams

    def _put(self, call: ast.Call) -> None:
        assert isinstance(call.func, ast.Attribute)
        if len(call.args) != 1 or call.keywords:
            raise self.error(call, "put takes one value")
        value = self.value(call.args[0])
        stream, choices = self._ends(call, call.func.value)
        if isinstance(value, tuple):
            value = self._stacked(call, value)
        made = self.runtime(call, value)
        if made.kind.shape not in (stream.kind.shape, ()) and made.kind.lanes != 1:
            raise self.error(call, f"{stream.name} carries {stream.kind}, not {made.kind}")
        made = (
            self.cast(call, made, stream.kind)
            if made.kind.shape != stream.kind.shape or not stream.kind.shape
            else self.cast(call, made, TileKind(stream.kind.dtype))
        )
        for tests, port in choices:
            self.out.append(When(tests, (Put(port, made),)) if tests else Put(port, made))

    def method(self, node: ast.Call, on: ast.Attribute) -> ReadValue:
        if on.attr == "put":
            raise self.error(node, "put has no value", "let it stand alone on a line")
        if on.attr == "try_get":
            raise self.error(
                node, "try_get is not supported: what it finds depends on time, and a program's answer must not",
                "get() waits for the token",
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
            return stream, [((), self._port(node, stream, (), StreamSite(None, {}, node)))]
        self.settling, before = True, self.settling
        found = self.value(index)
        self.settling = before
        items = found if isinstance(found, tuple) else (found,)
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
            choices.append((tests, self._port(node, stream, at, StreamSite(index, settled, node))))
        return stream, choices

    def _port(self, node: ast.AST, stream: StreamArray, at: tuple[Any, ...], site: StreamSite) -> StreamEnd:
        check_index(self.source, node, stream, at, self.place)
        port = self.ports.get((stream.name, at))
        if port is None:
            port = self.ports[stream.name, at] = StreamEnd(f"{stream.name}{len(self.ports)}", stream.name, at)
        port.sites.append(site)
        return port

    # -- memories

    def indexed(self, node: ast.Subscript, found: ReadValue) -> ReadValue:
        if not isinstance(found, Memory):
            return super().indexed(node, found)
        index, block, kept = self._index(node, found)
        kind = TileKind(found.dtype, kept)
        name = self._temporary()  # loads happen in the order of the text, as gets do
        self.out.append(Assign(name, Fetch(found, index, block, kind)))
        return Var(name, kind)

    def whole(self, node: ast.AST, memory: Memory) -> Expr:
        name, kind = self._temporary(), TileKind(memory.dtype, memory.shape)
        start = (Affine(0),) * len(memory.shape)
        self.out.append(Assign(name, Fetch(memory, self._shifted(memory, start), memory.shape, kind)))
        return Var(name, kind)

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
    ) -> tuple[tuple[Affine, ...], tuple[int, ...], tuple[int, ...]]:
        """Where a block begins, its extents, and the shape that is left when plain indices are gone."""
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(items) > len(memory.shape):
            raise self.error(node, f"{len(items)} indices for {memory.dtype}{list(memory.shape)}")
        index: list[Affine] = []
        block: list[int] = []
        kept: list[int] = []
        for dim, size in enumerate(memory.shape):
            item = items[dim] if dim < len(items) else ast.Slice()
            low, extent = self._range(item, size)
            least, most = low.extremes(self.trips)
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
        return self._shifted(memory, index), tuple(block), tuple(kept)

    def _range(self, item: ast.expr, size: int) -> tuple[Affine, int]:
        def read(e: Expressions, node: ast.expr) -> ReadValue:
            return e.value(node)

        if not isinstance(item, ast.Slice):
            at = self._settle(item, read)
            if isinstance(at, bool) or not isinstance(at, int | Affine):
                raise self.error(
                    item, f"the index is {self.say(at)}", "indices are sums of counters and numbers; tables of values "
                    "that depend on data are not supported",
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

    # -- functions

    def inlined(self, node: ast.Call, function: OwnFunction) -> ReadValue:
        """The body of a function with its arguments in place of their names."""
        given = function.node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults or node.keywords:
            raise self.error(node, "functions take plain arguments, by place")
        if len(node.args) != len(given.args):
            raise self.error(node, f"{function.node.name} takes {len(given.args)} arguments")
        if self.calls > _DEEPEST:
            raise self.error(node, "functions are nested too deeply", limit=f"at most {_DEEPEST}")
        values = [self.value(one) for one in node.args]
        outer_names, outer_kinds, indexed = self.names, self.kinds, self.indexed_names
        prefix = f"{self._temporary()}."
        local = _renamed(function.node, prefix)
        self.names, self.kinds = dict(outer_names), dict(outer_kinds)
        self.names |= {prefix + one.arg: value for one, value in zip(given.args, values, strict=True)}
        self.indexed_names = indexed | _arrays_of(local)
        self.calls += 1
        try:
            *body, last = [*local.body, ast.Pass()] if not isinstance(local.body[-1], ast.Return) else local.body
            self._statements(body)
            return self.value(last.value) if isinstance(last, ast.Return) and last.value is not None else None
        finally:
            self.calls -= 1
            made = self.kinds
            self.names, self.kinds, self.indexed_names = outer_names, outer_kinds, indexed
            self.kinds |= {name: kind for name, kind in made.items() if name.startswith(".")}


def check_index(
    source: ProgramText, node: ast.AST, stream: StreamArray, at: tuple[Any, ...], place: tuple[int, ...]
) -> None:
    """An index of an array of streams that is not there is named with the instance."""
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in at)
    if not whole or len(at) != len(stream.dims) or any(not 0 <= i < n for i, n in zip(at, stream.dims, strict=True)):
        raise source.error(
            node, f"{stream.name}[{', '.join(map(str, at))}] is no stream",
            "leave that one out with an if on the place",
            f"{stream.name} has {list(stream.dims)}; this is instance {place}",
        )  # fmt: skip


def site_index(
    source: ProgramText, program: TaskProgram, task: TaskDef, site: StreamSite, place: tuple[int, ...]
) -> tuple[Any, ...]:
    """The channel that a site names for another instance."""
    if site.index is None:
        return ()
    names = {**site.bindings, **dict(zip(task.places, place, strict=True))}
    found = Expressions(source, names, {}).value(site.index)
    return found if isinstance(found, tuple) else (found,)


def _at(value: ReadValue, counters: Mapping[int, int]) -> ReadValue:
    return plain(_fixed(value, counters)) if isinstance(value, Affine) else value


def _fixed(value: Affine, counters: Mapping[int, int]) -> Affine:
    found = Affine(value.const)
    for loop, factor in value.terms:
        found = found.plus(Affine(factor * counters[loop]) if loop in counters else Affine(0, ((loop, factor),)))
    return found


def _arrays_of(function: ast.FunctionDef) -> set[str]:
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


def _as_load(node: ast.expr) -> ast.expr:
    """The target of an augmented assignment, as what is read."""
    match node:
        case ast.Name():
            return ast.copy_location(ast.Name(node.id, ast.Load()), node)
        case ast.Subscript():
            return ast.copy_location(ast.Subscript(node.value, node.slice, ast.Load()), node)
        case _:
            return node


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id not in self.names:
            return node
        return ast.copy_location(ast.Name(self.names[node.id], node.ctx), node)


def _renamed(function: ast.FunctionDef, prefix: str) -> ast.FunctionDef:
    """A copy whose own variables have names that nobody else has."""
    import copy

    copied = copy.deepcopy(function)
    own = {one.id for one in ast.walk(copied) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    own |= {one.arg for one in function.args.args}
    return _Rename({name: f"{prefix}{name}" for name in own}).visit(copied)


__all__ = ["check_index", "elaborate", "site_index"]
