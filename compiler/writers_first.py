"""In which order tasks stand: writers before their readers, and those that feed each other in a circle together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

import networkx as nx

_Task = TypeVar("_Task", bound=Hashable)


def circles_in(tasks: Iterable[_Task], edges: Iterable[tuple[_Task, _Task]]) -> list[tuple[_Task, ...]]:
    """Tasks whose tokens come back to them, each set of them once, in the order in which they are given."""
    order = {task: number for number, task in enumerate(tasks)}
    graph: nx.DiGraph[_Task] = nx.DiGraph()
    graph.add_nodes_from(order)
    graph.add_edges_from(edges)
    found = [sorted(one, key=order.__getitem__) for one in nx.strongly_connected_components(graph)]
    return sorted((tuple(one) for one in found if len(one) > 1), key=lambda one: order[one[0]])


def writers_first(sources: Mapping[_Task, Collection[_Task]]) -> list[tuple[_Task, ...]]:
    """Tasks one by one, or a whole circle at once, each after all that they read from. `sources` are what a task reads
    from; as far as it may be, the order in which they are given is kept."""
    circles = circles_in(sources, ((writer, task) for task, writers in sources.items() for writer in writers))
    together = {task: circle for circle in circles for task in circle}
    groups = dict.fromkeys(together.get(task, (task,)) for task in sources)
    waiting = {group: {w for task in group for w in sources[task]} - set(group) for group in groups}
    left, found = set(sources), list[tuple[_Task, ...]]()
    while waiting:
        ready = [group for group, writers in waiting.items() if writers.isdisjoint(left)]
        found += ready
        for group in ready:
            del waiting[group]
            left.difference_update(group)
    return found
