"""What the names of a kernel stand for while it is walked through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.parsing import shown
from penstock.compiler.hls_in.storage import KernelArray, KernelStream, NumberKind
from penstock.compiler.hls_in.syntax import Tree


class NotKnown(Exception):
    """A value that no constants give, where there is no use in going on with it."""


@dataclass(eq=False)
class Slot:
    """A scalar variable. `path` is the condition under which it was declared: an assignment under the same is plain."""

    name: str
    kind: NumberKind
    bits: int
    signed: bool = True
    value: KernelValue | None = None
    path: KernelValue | None = None
    latest: tuple[KernelValue, KernelValue] | None = None
    """The last assignment under a condition: (condition, value). Whoever reads under it sees that value itself."""

    def read(self, path: KernelValue | None) -> KernelValue | None:
        if self.latest is not None and self.latest[0] is path:
            return self.latest[1]
        return self.value

    def write(self, value: KernelValue, path: KernelValue | None, graph: ValueGraph) -> None:
        if path is None or path is self.path or self.value is None:
            self.value, self.latest = value, None
        else:
            self.value, self.latest = graph.choose(path, value, self.value), (path, value)


@dataclass(frozen=True)
class ArrayView:
    """An array, or the part of it that some leading indices choose."""

    array: KernelArray
    prefix: tuple[KernelValue, ...] = ()
    offset: KernelValue | None = None
    """Of a pointer into it: how many words of the next dimension lie before."""


@dataclass(frozen=True)
class WordView:
    """One word of an array, named by reference."""

    array: KernelArray
    index: tuple[KernelValue, ...]


@dataclass(frozen=True)
class StreamView:
    streams: KernelStream
    prefix: tuple[KernelValue, ...] = ()


Binding = Slot | ArrayView | WordView | StreamView


@dataclass
class NameScope:
    """Names of a block; what is not found here is found around it."""

    around: NameScope | None = None
    names: dict[str, Binding] = field(default_factory=dict[str, Binding])

    def find(self, name: str) -> Binding | None:
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return None


def kind_of(type_: Tree) -> tuple[NumberKind, int, bool] | None:
    """Kind and bits of a scalar type, and whether it has a sign; None for what is no number."""
    match type_[0]:
        case "int":
            return ("bool", 1, True) if type_[1] == 1 else ("int", int(type_[1]), bool(type_[2]))
        case "float":
            return "float", 32, True
        case "double":
            return "double", 64, True
        case "half":
            return "half", 16, True
        case "fixed":
            return "fixed", int(type_[1]), bool(type_[2])
        case "reference":
            return kind_of(type_[1])
        case _:
            return None


def where(place: list[Any]) -> str:
    return f"{shown(place[0])}:{place[1]}:{place[2]}"


def unsupported(place: list[Any], what: str, instead: str) -> PenstockError:
    return PenstockError(code="unsupported-source", what=f"{what} is not supported", where=where(place), hint=instead)


INSTEAD = {
    "goto statement": "write loops and conditions",
    "switch statement": "write if ... else",
    "continue statement in a do loop": "write a while loop",
    "switch statement with a break under a condition": "write if ... else",
    "continue statement": "put the rest of the loop's body under the opposite condition",
    "continue in one of several conditions that both go on": "write one if ... else with what is left in each case",
    "for loop whose head a macro writes": "write for (int i = 0; i < N; i++)",
}
