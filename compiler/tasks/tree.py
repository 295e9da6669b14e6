"""A task's body with everything settled that is known before a run: typed expressions and statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

from penstock.compiler.arrays import Array
from penstock.compiler.tasks.affine import Affine, Tests
from penstock.compiler.tasks.kinds import TileKind


@dataclass(eq=False, frozen=True)
class Memory:
    """A tensor of the program, or an array of the task; `offset` is where an instance's part begins."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    is_tensor: bool
    offset: tuple[int, ...] = ()
    table: Array | None = None
    """The numbers of an array that nothing stores into."""

    @cached_property
    def parameter(self) -> str:
        """What a table is called among the program's weights: equal tables of one name are one."""
        return "" if self.table is None else f"{self.name}_{sha256(self.table.tobytes()).hexdigest()[:12]}"


@dataclass(eq=False, frozen=True)
class Const:
    value: float | int
    kind: TileKind


@dataclass(eq=False, frozen=True)
class Var:
    name: str
    kind: TileKind


@dataclass(eq=False, frozen=True)
class Fetch:
    """A block of a memory that begins at `index`."""

    memory: Memory
    index: tuple[Affine, ...]
    block: tuple[int, ...]
    kind: TileKind
    node: ast.AST | None = None
    """Where the text says so."""


@dataclass(eq=False, frozen=True)
class Apply:
    """One scalar operation on every lane; all arguments have the result's shape."""

    op: str
    args: tuple[Expr, ...]
    kind: TileKind


@dataclass(eq=False, frozen=True)
class Shuffle:
    """Lane i of the result is lane `lanes[i]` of the argument."""

    arg: Expr
    lanes: tuple[int, ...]
    kind: TileKind


@dataclass(eq=False, frozen=True)
class Join:
    """Values of one kind as one with a first dim that counts them."""

    args: tuple[Expr, ...]
    kind: TileKind


@dataclass(eq=False, frozen=True)
class Fold:
    """Lanes along one dim combined: add, max or min."""

    op: str
    arg: Expr
    axis: int
    kind: TileKind


Expr = Const | Var | Fetch | Apply | Shuffle | Join | Fold


@dataclass(eq=False, frozen=True)
class StreamSite:
    """Where the text names a channel: for each instance its index is worked out anew."""

    index: ast.expr | None
    bindings: Mapping[str, object]
    """What the names in the index mean there, but for the instance's own place in the grid."""
    at: Callable[[tuple[int, ...]], tuple[object, ...]]
    """The index at another place."""
    node: ast.AST = field(compare=False)


@dataclass(eq=False, frozen=True)
class StreamEnd:
    """One end of a channel: all sites that name it. Equal instances have equal ports, on channels of their own."""

    name: str
    stream: str
    channel: tuple[int, ...]
    """The channel's index in its array, for the instance that the body was made for."""
    sites: list[StreamSite] = field(default_factory=list[StreamSite])


@dataclass(eq=False, frozen=True)
class Get:
    var: str
    port: StreamEnd
    kind: TileKind


@dataclass(eq=False, frozen=True)
class Put:
    port: StreamEnd
    value: Expr


@dataclass(eq=False, frozen=True)
class Assign:
    var: str
    value: Expr


@dataclass(eq=False, frozen=True)
class Store:
    memory: Memory
    index: tuple[Affine, ...]
    block: tuple[int, ...]
    value: Expr
    declared: bool = False
    """Whether it is the value that the memory's declaration gives."""


@dataclass(eq=False, frozen=True)
class For:
    """A loop of so many rounds; `name` is what the program calls its counter."""

    loop: int
    trip: int
    name: str
    body: tuple[Stmt, ...]
    node: ast.AST = field(compare=False)


@dataclass(eq=False, frozen=True)
class When:
    """Statements that run in the rounds in which all tests hold."""

    tests: Tests
    body: tuple[Stmt, ...]


@dataclass(eq=False, frozen=True)
class Decision:
    """Something that an instance's place settled: an expression of the text, or the place along an axis itself."""

    came_out: object
    at: Callable[[tuple[int, ...]], object]
    """What it is at another place."""
    node: ast.expr | None = None
    bindings: Mapping[str, object] = field(default_factory=dict[str, object])
    axis: int | None = None


Simple = Get | Put | Assign | Store
Stmt = Simple | For | When


@dataclass(eq=False)
class TaskBody:
    """A task's body for one or more equal instances."""

    statements: tuple[Stmt, ...]
    arrays: dict[str, Memory]
    ports: dict[tuple[str, tuple[int, ...]], StreamEnd]
    trips: dict[int, int]
    names: dict[int, str]
    decisions: list[Decision]
    """What was settled by the instance's place: another instance is equal if all of it comes out the same."""

    @cached_property
    def tensors(self) -> tuple[Memory, ...]:
        """The tensors that it meets, once each."""
        found = {m.name: m for s in walk(self.statements) for m in memories_of(s) if m.is_tensor}
        return tuple(found.values())


def walk(statements: Sequence[Stmt]) -> Iterator[Simple]:
    """Every simple statement, in the order of the text."""
    for one in statements:
        if isinstance(one, For | When):
            yield from walk(one.body)
        else:
            yield one


def expressions(statement: Simple) -> Iterator[Expr]:
    """All values that a statement is made of, parts before wholes."""
    if not isinstance(statement, Get):
        yield from parts_of(statement.value)


def parts_of(value: Expr) -> Iterator[Expr]:
    """A value and all that it is made of, parts before wholes."""
    match value:
        case Apply(args=args) | Join(args=args):
            for one in args:
                yield from parts_of(one)
        case Shuffle(arg=arg) | Fold(arg=arg):
            yield from parts_of(arg)
        case _:
            pass
    yield value


def memories_of(statement: Simple) -> Iterator[Memory]:
    """What a statement loads from, and stores to."""
    for value in expressions(statement):
        if isinstance(value, Fetch):
            yield value.memory
    if isinstance(statement, Store):
        yield statement.memory
