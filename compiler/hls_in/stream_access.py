"""Streams that a kernel reads and writes; of an array of them, those that loop counters choose."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from penstock.compiler.hls_in.bindings import StreamView, unsupported
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.storage import KernelStream, NumberKind

MOST_LANES = 64
"""Streams of an array that loop counters may choose among."""


StreamLane = tuple[KernelStream, tuple[int, ...]]


@dataclass
class Branches:
    """A condition on data whose two branches are walked through: what both do to a stream happens in any case."""

    condition: KernelValue
    path: KernelValue | None
    """What holds around it."""
    inside: KernelValue | None = None
    """What holds in the branch in hand."""
    second: bool = False
    met: dict[tuple[str, StreamLane], list[KernelValue]] = field(
        default_factory=dict[tuple[str, StreamLane], "list[KernelValue]"]
    )
    """Tokens that the first branch takes and puts and the second has not, in order."""


class StreamAccess(ABC):
    """The part of the walk that meets streams."""

    graph: ValueGraph
    path: KernelValue | None
    branches: list[Branches]

    @abstractmethod
    def convert(self, node: KernelValue, kind: NumberKind, bits: int, signed: bool = True) -> KernelValue: ...

    @contextlib.contextmanager
    def both_branches(self, condition: KernelValue) -> Generator[None]:
        self.branches.append(Branches(condition, self.path))
        try:
            yield
        finally:
            self.branches.pop()

    def in_branch(self, second: bool) -> None:
        """The branch begins: a stream is met in it as in the other one, or under its condition alone."""
        self.branches[-1].inside, self.branches[-1].second = self.path, second

    def _in_both(
        self, op: str, lane: StreamLane, path: KernelValue | None, deep: int
    ) -> tuple[Branches, KernelValue] | None:
        """The branches around, and what the first has done to a stream that the second does now."""
        around = self.branches[deep] if 0 <= deep < len(self.branches) else None
        if around is None or path is None or around.inside is not path or is_counted(around.condition):
            return None
        met = around.met.get((op, lane), [])
        return (around, met.pop(0)) if around.second and met else None

    def _met(self, op: str, lane: StreamLane, node: KernelValue, deep: int) -> KernelValue:
        around = self.branches[deep] if 0 <= deep < len(self.branches) else None
        if around is not None and around.inside is node.guard and not around.second:
            around.met.setdefault((op, lane), []).append(node)
        return node

    def _take_one(self, place: list[Any], streams: KernelStream, lane: tuple[KernelValue, ...]) -> KernelValue:
        one, deep = _lane(streams, lane), len(self.branches) - 1
        both = self._in_both("take", one, self.path, deep)
        if both is not None:
            both[1].guard = both[0].path
            return both[1]
        token = self.graph.access(
            "take", lane, streams.kind, streams.bits, signed=streams.signed, streams=streams, guard=self.path,
            line=place[1],
        )  # fmt: skip
        return self._met("take", one, token, deep)

    def _put_one(
        self, place: list[Any], streams: KernelStream, lane: tuple[KernelValue, ...], value: KernelValue
    ) -> KernelValue:
        one, path, deep = _lane(streams, lane), self.path, len(self.branches) - 1
        while (both := self._in_both("put", one, path, deep)) is not None:
            around, earlier = both
            earlier.op = "dead"
            first = earlier.args[0]
            if first.kind != value.kind:
                first, value = (self.convert(v, streams.kind, streams.bits, streams.signed) for v in (first, value))
            value, path, deep = self.graph.choose(around.condition, first, value, place[1]), around.path, deep - 1
        node = self.graph.access(
            "put", (value, *lane), value.kind, streams.bits, streams=streams, guard=path, line=place[1]
        )
        return self._met("put", one, node, deep)

    def take(self, place: list[Any], view: StreamView) -> KernelValue:
        found: KernelValue | None = None
        for lane, chosen in self._lanes(place, view):
            if chosen is None:
                return self._take_one(place, view.streams, lane)
            token = self.graph.access(
                "take", lane, view.streams.kind, view.streams.bits, signed=view.streams.signed, streams=view.streams,
                guard=self.graph.both(self.path, chosen), line=place[1],
            )  # fmt: skip
            found = token if found is None else self.graph.choose(chosen, token, found, place[1])
        assert found is not None
        return found

    def put(self, place: list[Any], view: StreamView, value: KernelValue) -> KernelValue:
        found = value
        for lane, chosen in self._lanes(place, view):
            if chosen is None:
                return self._put_one(place, view.streams, lane, value)
            found = self.graph.access(
                "put", (value, *lane), value.kind, view.streams.bits, streams=view.streams,
                guard=self.graph.both(self.path, chosen), line=place[1],
            )  # fmt: skip
        return found

    def _lanes(
        self, place: list[Any], view: StreamView
    ) -> Iterator[tuple[tuple[KernelValue, ...], KernelValue | None]]:
        """The streams that an index may mean, each with the condition that it does."""
        streams = view.streams
        if len(view.prefix) != len(streams.dims):
            raise unsupported(place, "a whole array of streams as a value", "name one of its streams")
        moving = [node for node in view.prefix if not node.constant]
        if not moving:
            yield view.prefix, None
            return
        if prod(streams.dims) > MOST_LANES or not all(map(_counted, moving)):
            raise unsupported(
                place, "a stream chosen by a value that loop counters do not decide",
                "unroll the loop over the array of streams",
            )  # fmt: skip
        for lane in product(*(range(n) for n in streams.dims)):
            chosen: KernelValue | None = None
            for node, at in zip(view.prefix, lane, strict=True):
                chosen = self.graph.both(chosen, self.graph.compare("==", node, self.graph.constant(at), place[1]))
            if chosen is None or not chosen.constant or chosen.value:
                yield tuple(self.graph.constant(at) for at in lane), chosen


def _lane(streams: KernelStream, lane: tuple[KernelValue, ...]) -> StreamLane:
    return streams, tuple(int(node.value or 0) for node in lane)


def is_counted(condition: KernelValue) -> bool:
    """Whether loop counters decide a condition."""
    if condition.op in ("logic", "not"):
        return all(map(is_counted, condition.args))
    return condition.constant or (condition.op == "compare" and all(map(_counted, condition.args)))


def _counted(node: KernelValue) -> bool:
    """Whether loop counters decide a value."""
    if node.linear is not None:
        return True
    return node.op in ("add", "sub", "mul", "rem", "div", "and", "shr") and all(map(_counted, node.args))
