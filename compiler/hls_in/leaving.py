"""Functions that are left before their end: what follows happens in the other cases, and results are choices."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass

from penstock.compiler.hls_in.bindings import unsupported, where
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.records import Region
from penstock.compiler.hls_in.syntax import Tree


@dataclass(frozen=True)
class Leaving:
    """Under which condition, beside the one that holds anyway, a function was left, and with what."""

    when: KernelValue | None = None
    """None: it was not left."""
    value: KernelValue | None = None


class Returns(ABC):
    """The part of the walk that knows `return`."""

    graph: ValueGraph
    path: KernelValue | None
    left: Leaving
    items: list[Region] | None
    beyond: list[tuple[str, str]]

    @abstractmethod
    def statements(self, trees: list[Tree]) -> None: ...

    @abstractmethod
    def stays(self, branch: Tree | None) -> bool:
        """Whether statements have loops, or call what has."""
        ...

    @contextlib.contextmanager
    def under(self, condition: KernelValue | None) -> Generator[None]:
        """What is walked here happens under a condition; a function that is left here is left under it."""
        path, before = self.path, self.left
        self.path, self.left = self.graph.both(path, condition), Leaving(None, None)
        try:
            yield
        finally:
            inner = self.left
            if inner.when is not None:
                inner = Leaving(self.graph.both(condition, inner.when), inner.value)
            self.path, self.left = path, self._then(before, inner)

    def leave(self, value: KernelValue | None) -> None:
        self.left = self._then(self.left, Leaving(self.graph.constant(1, "bool", 1), value))

    def _then(self, before: Leaving, after: Leaving) -> Leaving:
        """Who was left before cannot be left again."""
        if before.when is None or after.when is None:
            return before if after.when is None else after
        value = before.value if before.value is not None else after.value
        if before.value is not None and after.value is not None:
            value = self.graph.choose(before.when, before.value, after.value)
        return Leaving(self.graph.either(before.when, after.when), value)

    def still_there(self, rest: list[Tree]) -> None:
        """What follows statements that may leave the function."""
        before = self.left
        assert before.when is not None
        if before.when.constant or not rest:
            return
        if self.items is not None and any(map(self.stays, rest)):
            # cycles are those of a run that goes on
            self.beyond.append((where(rest[0][1]), "what follows a return that data decide"))
            self.left = Leaving()
            self.statements(rest)
            return
        self.unless_left(lambda: self.statements(rest))

    def unless_left(self, walk: Callable[[], object]) -> None:
        """What happens if the function was not left before."""
        before, path = self.left, self.path
        if before.when is not None:
            self.path = self.graph.both(path, self.graph.negate(before.when))
        self.left = Leaving()
        walk()
        self.path, self.left = path, self._then(before, self.left)

    @contextlib.contextmanager
    def in_a_loop(self, tree: Tree) -> Generator[None]:
        """No iteration may leave the function."""
        around, self.left = self.left, Leaving()
        yield
        if self.left.when is not None:
            hint = "let the loop run to its end, keep the result in a variable, and return it after the loop"
            raise unsupported(tree[1], "a return in a loop", hint)
        self.left = around
