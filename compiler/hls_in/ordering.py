"""Nodes of a graph, each after what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.storage import KernelStream


def ordered(nodes: list[KernelValue]) -> list[KernelValue]:
    """Every node after what it needs."""
    known = set(nodes)
    return in_order(nodes, lambda node: [other for other in needs(node) if other in known])


def in_order(roots: list[KernelValue], needed: Callable[[KernelValue], Iterable[KernelValue]]) -> list[KernelValue]:
    """The roots and all that they need, each after what it needs."""
    seen: set[KernelValue] = set()
    result: list[KernelValue] = []
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        node, done = waiting.pop()
        if done:
            result.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        waiting.append((node, True))
        waiting += [(other, False) for other in needed(node) if other not in seen]
    return result


def needs(node: KernelValue) -> list[KernelValue]:
    return [*node.args, *([node.guard] if node.guard is not None else []), *node.after]


def users_of(
    nodes: Iterable[KernelValue], needed: Callable[[KernelValue], Iterable[KernelValue]] = needs
) -> dict[KernelValue, list[KernelValue]]:
    """Which of these need a node, as often as they do."""
    found: dict[KernelValue, list[KernelValue]] = {}
    for node in nodes:
        for other in needed(node):
            found.setdefault(other, []).append(node)
    return found


Lane = tuple[KernelStream, tuple[int, ...]]
"""One stream of an array of them."""


def lane_of(node: KernelValue) -> Lane:
    """The stream that a token is taken from or put into."""
    index = node.args[1:] if node.op == "put" else node.args
    assert node.streams is not None
    return node.streams, tuple(int(arg.value or 0) for arg in index)


def tokens_of(nodes: Iterable[KernelValue]) -> dict[tuple[Lane, str], list[KernelValue]]:
    """The tokens that an iteration takes from each stream and puts into it, in order."""
    found: dict[tuple[Lane, str], list[KernelValue]] = {}
    for node in nodes:
        if node.op in ("take", "put"):
            found.setdefault((lane_of(node), node.op), []).append(node)
    return found
