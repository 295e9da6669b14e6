"""Loops that run one after the other as tasks that run at the same time: which of them belong to one task."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.profiling.kernels.explore.accesses import WordAccess
from penstock.profiling.kernels.explore.loop_tree import SourceNode, SourceStatement


def tasks_of(nodes: Sequence[SourceNode], known: Collection[str], dims: Collection[str]) -> list[list[int]]:
    """Groups of nodes in the order of the program, or none where fewer than two tasks are left.

    An array has one producer and at most one consumer, and goes forward. Nodes between two that break this are one task
    with them: so several producers of an array become one. `known` are names that a task can be given, `dims` arrays.
    """
    if any(isinstance(n, SourceStatement) and not _declares_arrays(n, dims) for n in nodes):
        return []
    loops = [at for at, node in enumerate(nodes) if not isinstance(node, SourceStatement)]
    if any(nodes[at].accesses.opaque for at in loops) or len(loops) < 2:
        return []
    local = {name for n in nodes if isinstance(n, SourceStatement) for name in n.accesses.declared}
    groups = [[at] for at in loops]
    while (pair := _conflict(nodes, groups, local)) is not None:
        first, last = pair
        groups[first : last + 1] = [[at for group in groups[first : last + 1] for at in group]]
    names = {access.name for at in loops for access in nodes[at].accesses.touched} - _inside(nodes, loops)
    return groups if len(groups) > 1 and names <= set(known) else []


def _declares_arrays(node: SourceStatement, dims: Collection[str]) -> bool:
    return bool(node.accesses.declared) and node.accesses.declared <= set(dims)


def _inside(nodes: Sequence[SourceNode], loops: Sequence[int]) -> set[str]:
    """Names that loops declare or count with."""
    found = {name for at in loops for name in nodes[at].accesses.declared}
    waiting = [nodes[at] for at in loops]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, SourceStatement):
            found.add(node.span.variable)
            waiting += node.body
    return found


def _conflict(
    nodes: Sequence[SourceNode], groups: Sequence[Sequence[int]], local: Collection[str]
) -> tuple[int, int] | None:
    """The first and the last of groups that may not be tasks of their own."""
    inside = _inside(nodes, [at for group in groups for at in group])
    uses: dict[str, list[tuple[int, bool]]] = {}
    for number, group in enumerate(groups):
        touched: list[WordAccess] = [access for at in group for access in nodes[at].accesses.touched]
        for name in {access.name for access in touched if access.index} - inside:
            uses.setdefault(name, []).append((number, any(a.writes for a in touched if a.name == name)))
        for name in {access.name for access in touched if not access.index and access.writes} - inside:
            uses.setdefault(name, []).append((number, True))
    for name, found in uses.items():
        numbers = [number for number, _ in found]
        writers = [number for number, writes in found if writes]
        if len(writers) > 1:
            return min(writers), max(writers)
        alone = len(found) == 1
        passed_on = name in local and len(found) == 2 and writers == numbers[:1]
        if not alone and not passed_on:
            return min(numbers), max(numbers)
    return None
