"""A task's body for one instance: conditions on its place are settled, functions inlined, everything has a type."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from math import prod

from penstock.compiler.tasks.affine import Affine, rounds_of
from penstock.compiler.tasks.conditions import TaskConditions, as_load
from penstock.compiler.tasks.expressions import RUNTIME
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.tables import kept_once, table_memory
from penstock.compiler.tasks.task_expressions import arrays_of, written_in
from penstock.compiler.tasks.tree import (
    Assign,
    For,
    Memory,
    Put,
    Stmt,
    Store,
    TaskBody,
    Var,
    When,
)
from penstock.compiler.tasks.values import (
    Builtin,
    OwnFunction,
    ReadValue,
    StreamArray,
    TaskDef,
    TaskProgram,
    TensorArgument,
)

MOST_STATEMENTS = 20_000
MOST_ROUNDS = 1 << 30
"""Of one loop: its counter is a C++ int."""
_MOST_UNROLLED = 4096
_DEEPEST = 32
_CALL = 8
"""What a call of a function counts as, in statements."""
_FILL_LANES = 64


def elaborate(source: ProgramText, program: TaskProgram, task: TaskDef, place: tuple[int, ...]) -> TaskBody:
    """The body of one instance of a task."""
    return _Elaborator(source, program, task, place).run()


class _Elaborator(TaskConditions):
    """Reads statements."""

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

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for one in body:
            self._count(one)
            self._statement(one)

    def _count(self, node: ast.AST, times: int = 1) -> None:
        """Of statements and calls of functions, written out, there is a limit."""
        self.count += times
        if self.count > MOST_STATEMENTS:
            raise self.error(
                node, "too many statements", "loop with range() instead of unroll(), and call functions that do not "
                "call others several times", f"at most {MOST_STATEMENTS}, with functions written out",
            )  # fmt: skip

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
                target = self._indexed_once(node.target)
                self._assign(node, target, self.value(
                    ast.copy_location(ast.BinOp(as_load(target), node.op, node.value), node)
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
            given = self.value(node.value) if node.value is not None else None
            if name not in self.written_names and (own := table_memory(self, node, name, kind, given)) is not None:
                self.names[name] = kept_once(self.arrays, own)
                return
            own = Memory(name, kind.dtype, kind.shape, False, (0,) * len(kind.shape))
            memory = self.names[name] = self.arrays.setdefault(name, own)
            if (memory.dtype, memory.shape) != (kind.dtype, kind.shape):
                raise self.error(node, f"{name!r} is {memory.dtype}{list(memory.shape)} already", "take another name")
            if node.value is not None:
                self._fill(node, memory, given)
            return
        if self.kinds.setdefault(name, kind) != kind:
            raise self.error(node, f"{name!r} is {self.kinds[name]} already")
        if node.value is not None:
            given = self.value(node.value)
            made = self._stacked(node, given) if isinstance(given, tuple) else given
            self.out.append(Assign(name, self.cast(node, made, kind)))
        self.names[name] = Var(name, kind)

    def _fill(self, node: ast.AST, memory: Memory, value: ReadValue) -> None:
        if isinstance(value, tuple):
            value = self._stacked(node, value)
        made = self.cast(node, value, TileKind(memory.dtype))
        if made.kind.shape == () and prod(memory.shape) > _FILL_LANES:
            loops = [self._loop(size, f"{memory.name}{dim}") for dim, size in enumerate(memory.shape)]
            store: Stmt = Store(
                memory, tuple(Affine.counter(loop) for loop in loops), (1,) * len(loops), made, declared=True
            )
            for loop, size in zip(reversed(loops), reversed(memory.shape), strict=True):
                store = For(loop, size, self.loop_names[loop], (store,), node)
            self.out.append(store)
            return
        whole = self.cast(node, made, TileKind(memory.dtype, memory.shape))
        self.out.append(Store(memory, (Affine(0),) * len(memory.shape), memory.shape, whole, declared=True))

    def _assign(self, node: ast.AST, target: ast.expr, value: ReadValue) -> None:
        match target:
            case ast.Name(id=name):
                self._assign_name(node, name, value)
            case ast.Tuple():
                parts = self.settled(self.rows_of(value))
                if not isinstance(parts, tuple) or len(parts) != len(target.elts):
                    found = f"{len(parts)} values" if isinstance(parts, tuple) else self.say(value)
                    raise self.error(node, f"{len(target.elts)} names for {found}", "let as many names stand here")
                for one, part in zip(target.elts, parts, strict=True):
                    self._assign(node, one, part)
            case ast.Subscript():
                found = self.value(target.value)
                if not isinstance(found, Memory):
                    raise self.error(
                        target, f"{self.say(found)} has no elements that can be set",
                        "declare an array with its type: x: int32[4, 4] = 0",
                    )  # fmt: skip
                index, block, kept, place = self._index(target, found)
                if place is None:
                    self.out.append(Store(found, index, block, self.cast(node, value, TileKind(found.dtype, kept))))
                    return
                left = (*kept[: place.axis], *kept[place.axis + 1 :])
                new = self.cast(node, value, TileKind(found.dtype, left))
                old = self._loaded(target, found, index, block, kept)
                self.out.append(Store(found, index, block, self.with_one(node, old, new, place)))
            case _:
                raise self.error(target, "a value goes to a name or to an element")

    def _indexed_once(self, target: ast.expr) -> ast.expr:
        """What is read and then set, with indices that take tokens, say, worked out before both."""
        if not isinstance(target, ast.Subscript):
            return target
        items = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        named = [self._named_value(one) if any(isinstance(n, ast.Call) for n in ast.walk(one)) else one
                 for one in items]  # fmt: skip
        index = named[0] if len(named) == 1 else ast.copy_location(ast.Tuple(named, ast.Load()), target)
        return ast.copy_location(ast.Subscript(target.value, index, target.ctx), target)

    def _named_value(self, node: ast.expr) -> ast.expr:
        found = self.value(node)
        if not isinstance(found, RUNTIME):
            return node
        kept = self.kept_now(found)
        self.names[kept.name] = kept
        return ast.copy_location(ast.Name(kept.name, ast.Load()), node)

    def _assign_name(self, node: ast.AST, name: str, value: ReadValue) -> None:
        known, depth = self.names.get(name), self.depth
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
            if known is not None and depth > self.known_at.get(name, self.base):
                raise self.error(
                    node, f"{name!r} is set in a loop without a type", f"declare it before the loop: {name}: int32 = 0"
                )
            self.names[name] = self.settled(value)  # a number that is known: a constant of the text
            self.known_at[name] = depth
            return
        if name not in self.kinds and depth > self.known_at.get(name, depth):
            raise self.error(
                node,
                f"{name!r} is a number before the loop and a value of the run in it",
                f"declare it before the loop: {name}: int32 = {self.names[name]}",
            )
        made = self.runtime(node, value) if name not in self.kinds else self.cast(node, value, self.kinds[name])
        if self.kinds.setdefault(name, made.kind) != made.kind:
            raise self.error(
                node,
                f"{name!r} is {self.kinds[name]} and becomes {made.kind}",
                f"declare it first: {name}: {made.kind} = ...",
            )
        self.out.append(Assign(name, made))
        self.names[name] = Var(name, made.kind)

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
        for item in self.settled_items(items):
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
        trip = rounds_of(start, stop, step)
        if trip > MOST_ROUNDS:
            raise self.error(node, f"a loop of {trip} rounds", "make it two loops", f"at most {MOST_ROUNDS}")
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
        self._leave()
        body, self.out = tuple(self.out), before
        if body:
            self.out.append(For(loop, trip, name, body, node))

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

    def inlined(self, node: ast.Call, function: OwnFunction) -> ReadValue:
        """The body of a function with its arguments in place of their names."""
        given = function.node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults or node.keywords:
            raise self.error(node, "functions take plain arguments, by place")
        if len(node.args) != len(given.args):
            raise self.error(node, f"{function.node.name} takes {len(given.args)} arguments")
        if self.calls > _DEEPEST:
            raise self.error(node, "functions are nested too deeply", limit=f"at most {_DEEPEST}")
        self._count(node, _CALL)
        values = [self.value(one) for one in node.args]
        outer_names, outer_kinds, indexed = self.names, self.kinds, self.indexed_names
        written = self.written_names
        prefix = f"{self._temporary()}."
        local = _renamed(function.node, prefix)
        self.names, self.kinds = dict(outer_names), dict(outer_kinds)
        self.names |= {prefix + one.arg: value for one, value in zip(given.args, values, strict=True)}
        self.indexed_names, self.written_names = indexed | arrays_of(local), written | written_in(local)
        self.calls, outer_base, self.base = self.calls + 1, self.base, self.depth
        try:
            *body, last = [*local.body, ast.Pass()] if not isinstance(local.body[-1], ast.Return) else local.body
            self._statements(body)
            return self.value(last.value) if isinstance(last, ast.Return) and last.value is not None else None
        finally:
            self.calls, self.base = self.calls - 1, outer_base
            made = self.kinds
            self.names, self.kinds, self.indexed_names = outer_names, outer_kinds, indexed
            self.written_names = written
            self.kinds |= {name: kind for name, kind in made.items() if name.startswith(".")}


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
