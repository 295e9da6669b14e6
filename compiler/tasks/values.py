"""What names of a task program stand for while it is read: types, streams, tensors, tasks, functions."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.compiler.dialects.injected import Injected
from penstock.compiler.tasks.affine import Affine, Remainder, Tests
from penstock.compiler.tasks.kinds import DTYPES, GridLayout, TileKind
from penstock.compiler.tasks.schedules import GridOfPlaces, MappingLimits, Schedule
from penstock.compiler.tasks.tree import Expr, Memory

BUILTINS = frozenset({
    "range", "grid", "unroll", "min", "max", "abs", "len", "where", "matmul", "exp", "sqrt", "tanh", "sigmoid",
    "transpose", "stack", "broadcast", "sum", "Layout", "Stream", "task", "program", "bundle", "chain", "fit",
    "inject", "implements", "fixed", "block", "place_on", "feed", "collect",
})  # fmt: skip


@dataclass(frozen=True)
class Builtin:
    """A word of the language."""

    name: str


@dataclass(eq=False, frozen=True)
class OwnFunction:
    """A Python function of the file, which is inlined where it is called."""

    node: ast.FunctionDef


@dataclass(frozen=True)
class Condition:
    """Tests on counters, known round by round."""

    tests: Tests


@dataclass(eq=False, frozen=True)
class StreamArray:
    """A declared stream, or an array of them. A depth of 0 is left to the tool."""

    name: str
    kind: TileKind
    depth: int
    dims: tuple[int, ...]
    node: ast.AST = field(compare=False)

    def channel(self, index: tuple[int, ...]) -> str:
        return "_".join([self.name, *map(str, index)])


@dataclass(frozen=True)
class StreamKind:
    """`Stream[T, shape, depth]` before it has a name."""

    kind: TileKind
    depth: int
    dims: tuple[int, ...] = ()


@dataclass(eq=False, frozen=True)
class TensorArgument:
    """An argument of the program."""

    name: str
    kind: TileKind
    node: ast.AST = field(compare=False)


@dataclass(frozen=True)
class Placed:
    """`T[shape] @ Layout(...)`, or a layout alone."""

    layout: GridLayout
    kind: TileKind | None = None


ReadValue: TypeAlias = (
    int | float | str | tuple["ReadValue", ...] | Affine | Remainder | Condition | TileKind | GridLayout | Placed
    | Builtin | OwnFunction | StreamArray | StreamKind | TensorArgument | Memory | Expr | None
)  # fmt: skip
"""A number, a tuple, an `Affine`, a type, a declared thing, or an expression of the task."""


@dataclass(eq=False, frozen=True)
class TaskDef:
    """A task over a grid: `places` are what its body calls an instance's place."""

    name: str
    grid: tuple[int, ...]
    places: tuple[str, ...]
    layouts: Mapping[str, GridLayout]
    node: ast.FunctionDef
    line: str


@dataclass(eq=False, frozen=True)
class TaskInjection:
    """`inject(task, name, ...)`: a body written by hand, and where the program says so."""

    task: str
    body: Injected
    node: ast.AST = field(compare=False)


@dataclass(eq=False, frozen=True)
class TaskProgram:
    """A program as it was read: `constants` are all static names that its tasks may use."""

    name: str
    tensors: Mapping[str, TensorArgument]
    streams: Mapping[str, StreamArray]
    tasks: tuple[TaskDef, ...]
    constants: Mapping[str, ReadValue]
    node: ast.FunctionDef
    schedule: Schedule = ()
    """How its instances share elements, as it says itself."""
    limits: MappingLimits | None = None
    """What a search is to fit it into, if it says so."""
    bodies: tuple[TaskInjection, ...] = ()
    """Bodies of tasks that were written by hand, for a search to choose from."""
    places: GridOfPlaces | None = None
    """Where its elements are to stand, if it says so."""
    implements: tuple[str, ...] = ()
    """Layers of a model in whose place it may stand, as the model calls them."""


def words() -> dict[str, ReadValue]:
    """The language's own names."""
    kinds: dict[str, ReadValue] = {name: TileKind(ir) for name, ir in DTYPES.items()}
    return kinds | {name: Builtin(name) for name in BUILTINS}
