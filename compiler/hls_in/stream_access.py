"""Streams that a kernel reads and writes; of an array of them, those that loop counters choose."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from penstock.compiler.hls_in.bindings import StreamView, unsupported
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph

MOST_LANES = 64
"""Streams of an array that loop counters may choose among."""


class StreamAccess:
    """The part of the walk that meets streams."""

    graph: ValueGraph
    path: KernelValue | None

    def take(self, place: list[Any], view: StreamView) -> KernelValue:
        found: KernelValue | None = None
        for lane, chosen in self._lanes(place, view):
            token = self.graph.access(
                "take", lane, view.streams.kind, view.streams.bits, signed=view.streams.signed, streams=view.streams,
                guard=self.graph.both(self.path, chosen), line=place[1],
            )  # fmt: skip
            found = token if found is None or chosen is None else self.graph.choose(chosen, token, found, place[1])
        assert found is not None
        return found

    def put(self, place: list[Any], view: StreamView, value: KernelValue) -> KernelValue:
        found = value
        for lane, chosen in self._lanes(place, view):
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


def _counted(node: KernelValue) -> bool:
    """Whether loop counters decide a value."""
    if node.linear is not None:
        return True
    return node.op in ("add", "sub", "mul", "rem", "div", "and", "shr") and all(map(_counted, node.args))
