"""Chains of additions as balanced trees, as `unsafe_math_optimizations` lets the tool build them."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable

from penstock.compiler.hls_in.graph import KernelValue, ValueGraph


def balance(graph: ValueGraph, comes_back: Callable[[KernelValue, int], bool]) -> None:
    """Rebuild every sum of floats whose parts nobody else uses: neighbours are added first, level by level.

    `comes_back(part, parts)`: the II that was asked for can only be met if this part of so many is added last.
    """
    uses = Count[KernelValue]()
    summed: set[KernelValue] = set()
    """Sums that are part of a larger one."""
    for node in graph.nodes:
        if node.op == "dead":
            continue
        for arg in (
            *node.args,
            *([node.guard] if node.guard is not None else []),
            *([node.follow] if node.follow is not None else []),
        ):
            uses[arg] += 1
    adds = [node for node in graph.nodes if node.op == "add" and node.kind in ("float", "half", "double")]
    for node in adds:
        summed.update(arg for arg in node.args if arg.op == "add" and arg.kind == node.kind and uses[arg] == 1)
    for root in adds:
        if root in summed:
            continue
        leaves, inner = _leaves(root, summed)
        if len(leaves) > 2:
            last = [leaf for leaf in leaves if comes_back(leaf, len(leaves))][:1]
            _rebuild(graph, root, [leaf for leaf in leaves if leaf not in last], inner, last)


def _leaves(root: KernelValue, summed: set[KernelValue]) -> tuple[list[KernelValue], list[KernelValue]]:
    leaves: list[KernelValue] = []
    inner: list[KernelValue] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node is root or node in summed:
            inner.append(node)
            waiting += reversed(node.args)
        else:
            leaves.append(node)
    return leaves, inner


def _rebuild(
    graph: ValueGraph, root: KernelValue, level: list[KernelValue], inner: list[KernelValue], last: list[KernelValue]
) -> None:
    """The last sum stays the node that it was, so that whoever uses it still does."""
    for node in inner[1:]:
        node.op = "dead"
    while len(level) > 2 - len(last):
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [
            graph.access("add", (pair[0], pair[1]), root.kind, root.bits, line=root.line) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
    first, second = [*last, *level]
    root.args = first, second
