"""Chains of additions as balanced trees: of floats as `unsafe_math_optimizations` lets the tool build them, of integers
as it always does (EXPRESSION_BALANCE, UG1399)."""

from __future__ import annotations

from collections import Counter as Count
from typing import Protocol

from penstock.compiler.hls_in.graph import KernelValue, ValueGraph


class SumParts(Protocol):
    """What a pipeline says of the parts of its sums."""

    def comes_back(self, part: KernelValue) -> bool:
        """Whether a part is what the iteration before has left."""
        ...

    def must_be_last(self, part: KernelValue, parts: int) -> bool:
        """Whether the II that was asked for can only be met if this part of so many is added last."""
        ...


_BALANCED = ("float", "half", "double", "int")


def balance(graph: ValueGraph, asked: SumParts) -> None:
    """Rebuild every sum whose parts nobody else uses: neighbours are added first, level by level.

    What comes back from the iteration before stands in the first pair of the second half, and halves are halved again;
    with two others it is added last, by the usual adder. Of integers it is added last.
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
    adds = [node for node in graph.nodes if node.op == "add" and node.kind in _BALANCED and node.linear is None]
    for node in adds:
        own = (arg for arg in node.args if arg.op == "add" and arg.kind == node.kind and arg.linear is None)
        summed.update(arg for arg in own if uses[arg] == 1)
    for root in adds:
        if root in summed:
            continue
        leaves, inner = _leaves(root, summed)
        if len(leaves) > 2:
            for node in inner[1:]:
                node.op = "dead"
            root.args = _halves(graph, root, leaves, asked)


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


def _halves(
    graph: ValueGraph, root: KernelValue, leaves: list[KernelValue], asked: SumParts
) -> tuple[KernelValue, KernelValue]:
    """What the last sum adds. It stays the node that it was, so that whoever uses it still does."""
    back = next((leaf for leaf in leaves if asked.comes_back(leaf)), None)
    if back is None:
        left, right = _levels(graph, root, leaves, 2)
        return left, right
    others = [leaf for leaf in leaves if leaf is not back]
    root.usual = len(others) == 2
    if root.usual or root.kind == "int" or asked.must_be_last(back, len(leaves)):
        return back, _levels(graph, root, others, 1)[0]
    half = len(leaves) // 2
    return _halved(graph, root, others[:half]), _halved(graph, root, [back, *others[half:]])


def _levels(graph: ValueGraph, root: KernelValue, level: list[KernelValue], least: int) -> list[KernelValue]:
    while len(level) > least:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [_sum(graph, root, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level


def _halved(graph: ValueGraph, root: KernelValue, parts: list[KernelValue]) -> KernelValue:
    if len(parts) == 1:
        return parts[0]
    half = 2 if len(parts) == 3 else len(parts) // 2
    return _sum(graph, root, _halved(graph, root, parts[:half]), _halved(graph, root, parts[half:]))


def _sum(graph: ValueGraph, root: KernelValue, left: KernelValue, right: KernelValue) -> KernelValue:
    return graph.access("add", (left, right), root.kind, root.bits, line=root.line)
