"""`block(...)` in a program: streams and tasks that stand as one piece, written by the front end of a model's layers.

A piece is a function of the file under `@block("what it is made of")`: its arguments are ends, each a stream of numbers
in the order of a tensor's elements; it declares streams and tasks as a program does. A call gives it streams or tensors
of the program. Its tasks are called after it, and mistakes in them are told at the call.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import cast

from penstock.compiler.errors import nearest
from penstock.compiler.tasks.expressions import Expressions
from penstock.compiler.tasks.kinds import TileKind, name_of
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.values import Builtin, ReadValue, StreamArray, TensorArgument

WORD = "block"
OPTIONS = ("layers", "lanes", "name")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")
_MOST = 16
_MOST_LANES = 64


@dataclass(frozen=True)
class BlockCall:
    """What a call says: a model, which of its layers, how many lanes its sums have, what its tasks are called after."""

    model: str
    layers: tuple[str, ...]
    lanes: int
    name: str
    ends: tuple[ast.expr, ...] = field(compare=False)
    node: ast.Call = field(compare=False)

    @property
    def made_of(self) -> tuple[str, tuple[str, ...], int]:
        return self.model, self.layers, self.lanes


def read_call(source: ProgramText, node: ast.Call) -> BlockCall:
    """A call, or the decorator of a piece; what it says is written right there."""
    given: dict[str, object] = {"layers": (), "lanes": 1, "name": ""}
    for one in node.keywords:
        if one.arg not in OPTIONS:
            raise source.error(
                one.value, f"{one.arg} is no argument of block", nearest(one.arg or "", OPTIONS, "leave it out"),
                ", ".join(OPTIONS),
            )  # fmt: skip
        try:
            given[one.arg] = ast.literal_eval(one.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise source.error(one.value, f"{one.arg} is not written out", "write a text or a number here") from None
    first = node.args[0] if node.args else node
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        raise source.error(
            first, "block takes a model and its ends", 'write block("zoo:mlp", pixels, scores), or the name of an '
            ".onnx or .mlir file beside the program", "a model is a text that stands right here",
        )  # fmt: skip
    layers, lanes, name = given["layers"], given["lanes"], given["name"]
    named = _texts(layers)
    if named is None:
        raise source.error(node, "layers are texts", 'write layers="fc1", or layers=("fc1", "fc1.relu")')
    if not isinstance(lanes, int) or isinstance(lanes, bool) or not 1 <= lanes <= _MOST_LANES:
        raise source.error(node, f"{lanes!r} lanes", limit=f"a whole number from 1 to {_MOST_LANES}")
    if not isinstance(name, str) or (name and not _NAME.fullmatch(name)):
        raise source.error(node, f"{str(name)[:60]!r} cannot name tasks", "letters, digits and underscores")
    return BlockCall(first.value, named, lanes, name, tuple(node.args[1:]), node)


def _texts(given: object) -> tuple[str, ...] | None:
    if isinstance(given, str):
        return (given,)
    found = cast("tuple[object, ...]", given) if isinstance(given, tuple) else (None,)
    return tuple(map(str, found)) if all(isinstance(one, str) for one in found) else None


def calls_in(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls that stand alone on a line of a program."""
    for function in tree.body:
        for one in function.body if isinstance(function, ast.FunctionDef) else ():
            match one:
                case ast.Expr(value=ast.Call(func=ast.Name(id="block")) as call):
                    yield call
                case _:
                    pass


class CalledBlocks:
    """The pieces of a file, and what calls put into a program."""

    def __init__(self, source: ProgramText, expressions: Expressions) -> None:
        self.source, self.expressions = source, expressions
        self.pieces: dict[tuple[str, tuple[str, ...], int], ast.FunctionDef] = {}
        self.used: set[str] = set()

    def take(self, function: ast.FunctionDef) -> bool:
        """Whether a function of the file is a piece, which is kept."""
        for decorator in function.decorator_list:
            if self._is_word(decorator.func if isinstance(decorator, ast.Call) else decorator):
                if not isinstance(decorator, ast.Call):
                    raise self.source.error(decorator, "a block says what it is made of", f'write @{WORD}("a name")')
                self._check_ends(function)
                self.pieces[read_call(self.source, decorator).made_of] = function
                return True
        return False

    def statements(self, node: ast.Call) -> list[ast.stmt] | None:
        """The streams and tasks that a call stands for; None of another call."""
        if not self._is_word(node.func):
            return None
        call = read_call(self.source, node)
        piece = self.pieces.get(call.made_of)
        if piece is None:
            raise self.source.error(
                node.args[0], f"there is no block {call.model[:80]!r}",
                "write zoo:NAME?key=value, or a plain name of an .onnx or .mlir file beside the program",
                "Python models run code, which a program may not: export one to ONNX",
            )  # fmt: skip
        name = call.name or piece.name
        if name in self.used:
            raise self.source.error(node, f"there is a block {name!r} already", f'write name="{name}2"')
        self.used.add(name)
        if len(self.used) > _MOST:
            raise self.source.error(node, "too many blocks", limit=f"at most {_MOST} in a program")
        for word in ("range", "unroll", "stack", "task", "Stream"):
            if self.expressions.names.get(word) != Builtin(word):
                raise self.source.error(node, f"{word!r} means something else here, and a block needs it")
        return placed([*self._joined(call, piece, name), *_renamed(piece, name)], node)

    def _check_ends(self, function: ast.FunctionDef) -> None:
        """Every argument has the type of a tensor."""
        given = function.args
        odd = [*given.posonlyargs, *given.kwonlyargs, *(one for one in (given.vararg, given.kwarg) if one)]
        for one in (*odd, *given.args):
            kind = None if one in odd or one.annotation is None else self.expressions.value(one.annotation)
            if not isinstance(kind, TileKind) or not kind.shape:
                raise self.source.error(
                    one, f"the end {one.arg} has no type with a shape", f"write {one.arg}: int8[16]"
                )

    def _is_word(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == WORD and self.expressions.names.get(WORD) == Builtin(WORD)

    def _joined(self, call: BlockCall, piece: ast.FunctionDef, name: str) -> Iterator[ast.stmt]:
        """A stream for each end, and a task that moves between it and what the call gives."""
        own = piece.args.args
        if len(own) != len(call.ends):
            listed = ", ".join(f"{one.arg}: {ast.unparse(one.annotation)}" for one in own if one.annotation)
            raise self.source.error(
                call.node, f"{name} has {len(own)} ends, {len(call.ends)} are given", "give it what goes in, then what "
                "comes out, in their order", listed[:400],
            )  # fmt: skip
        written = _put_into(piece)
        for end, given in zip(own, call.ends, strict=True):
            assert end.annotation is not None
            kind = self.expressions.value(end.annotation)
            assert isinstance(kind, TileKind)
            found = self.expressions.value(given)
            self._check(given, end.arg, kind, found)
            stream, number = f"{name}_{end.arg}", name_of(kind.dtype)
            gives = end.arg in written
            task = f"{name}_{'give' if gives else 'take'}_{end.arg}"
            yield from ast.parse(f"{stream} = Stream[{number}]").body
            body = _moves(found, ast.unparse(given), stream, kind, gives=gives)
            text = "\n".join([f"@task\ndef {task}():", *body])
            yield from ast.parse(text).body

    def _check(self, node: ast.expr, end: str, kind: TileKind, found: ReadValue) -> None:
        """Types and shapes at the boundary."""
        if isinstance(found, TensorArgument):
            if found.kind.dtype != kind.dtype or _plain(found.kind.shape) != _plain(kind.shape):
                raise self.source.error(
                    node, f"{found.name} is {found.kind}, and the block's {end} is {kind}",
                    f"write {found.name}: {kind}", "dims of one element may be left out",
                )  # fmt: skip
        elif isinstance(found, StreamArray) and not found.dims:
            token = found.kind
            if token.dtype != kind.dtype:
                raise self.source.error(
                    node, f"{found.name} carries {token}, and the block's {end} is {kind}",
                    f"write {found.name} = Stream[{name_of(kind.dtype)}], or cast in a task between them",
                )  # fmt: skip
            inner = _plain(token.shape)
            if token.lanes > _MOST_LANES or (inner and _plain(kind.shape)[-len(inner) :] != inner):
                raise self.source.error(
                    node, f"{found.name} carries {token}, which is no row of the block's {end}: {kind}",
                    "send numbers one by one, or whole last dims", f"at most {_MOST_LANES} numbers a token",
                )  # fmt: skip
        else:
            raise self.source.error(
                node, f"{self.expressions.say(found)} is no end of a block",
                "give a stream, or a tensor of the program", f"{end} is {kind}",
            )  # fmt: skip


def _plain(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(one for one in shape if one != 1)


def _put_into(piece: ast.FunctionDef) -> set[str]:
    """The ends that tasks of a piece put into."""
    return {
        one.value.id for one in ast.walk(piece)
        if isinstance(one, ast.Attribute) and one.attr == "put" and isinstance(one.value, ast.Name)
    }  # fmt: skip


def _loops(shape: tuple[int, ...]) -> tuple[list[str], str, str]:
    """Lines of loops over all elements, the place of one, and what stands before their body."""
    heads = [f"{'    ' * (d + 1)}for i{d} in range({size}):" for d, size in enumerate(shape)]
    return heads, ", ".join(f"i{d}" for d in range(len(shape))), "    " * (len(shape) + 1)


def _moves(found: ReadValue, given: str, stream: str, kind: TileKind, *, gives: bool) -> list[str]:
    """The body of a task between what the call gives and the block: to the block, or from it."""
    if isinstance(found, TensorArgument):
        heads, at, inside = _loops(found.kind.shape)
        return [*heads, inside + (f"{given}[{at}] = {stream}.get()" if gives else f"{stream}.put({given}[{at}])")]
    assert isinstance(found, StreamArray)
    shape, lanes = found.kind.shape, found.kind.lanes
    head = f"    for i in range({prod(kind.shape) // lanes}):"
    if gives:
        return [head, f"        {given}.put({_stacked(stream, shape)})"]
    parts = [f"[{_place(lane, shape)}]" for lane in range(lanes)] if shape else [""]
    return [head, f"        token = {given}.get()", *(f"        {stream}.put(token{part})" for part in parts)]


def _stacked(stream: str, shape: tuple[int, ...]) -> str:
    """A tile of what is got, one by one."""
    if not shape:
        return f"{stream}.get()"
    return f"stack([{', '.join([_stacked(stream, shape[1:])] * shape[0])}])"


def _place(lane: int, shape: tuple[int, ...]) -> str:
    found: list[str] = []
    for size in reversed(shape):
        found.insert(0, str(lane % size))
        lane //= size
    return ", ".join(found)


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)


def _renamed(piece: ast.FunctionDef, name: str) -> list[ast.stmt]:
    """The body with everything that it declares called after the block."""
    body = copy.deepcopy(piece.body)
    own = {one.arg for one in piece.args.args}
    for one in body:
        if isinstance(one, ast.FunctionDef):
            own.add(one.name)
        elif isinstance(one, ast.Assign):
            own |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    rename = _Rename({each: f"{name}_{each}" for each in own})
    return [rename.visit(one) for one in body]


def placed(statements: list[ast.stmt], call: ast.Call) -> list[ast.stmt]:
    """With the place of the call, where mistakes are told."""
    for one in statements:
        for node in ast.walk(one):
            if "lineno" in node._attributes:
                ast.copy_location(node, call)
    return statements
