"""In which order tasks stand: writers before their readers, and those that feed each other in a circle together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

import networkx as nx

_Task = TypeVar("_Task", bound=Hashable)


def circles_in(tasks: Iterable[_Task], edges: Iterable[tuple[_Task, _Task]]) -> list[tuple[_Task, ...]]:
    """Tasks whose tokens come back to them, each set of them once, in the order in which they are given."""
    sources: dict[_Task, set[_Task]] = {task: set() for task in tasks}
    for writer, reader in edges:
        sources[reader].add(writer)
    return [] if len(_steps(sources)) == len(sources) else _circles(sources)


def writers_first(sources: Mapping[_Task, Collection[_Task]]) -> list[tuple[_Task, ...]]:
    """Tasks one by one, or a whole circle at once, each after all that they read from. `sources` are what a task reads
    from; as far as it may be, the order in which they are given is kept."""
    steps = _steps(sources)
    if len(steps) == len(sources):  # as in most networks
        return [(task,) for task in sorted(sources, key=steps.__getitem__)]
    together = {task: circle for circle in _circles(sources) for task in circle}
    groups = dict.fromkeys(together.get(task, (task,)) for task in sources)
    above = {group: {together.get(w, (w,)) for task in group for w in sources[task]} for group in groups}
    return sorted(groups, key=_steps(above).__getitem__)


def _circles(sources: Mapping[_Task, Collection[_Task]]) -> list[tuple[_Task, ...]]:
    order = {task: number for number, task in enumerate(sources)}
    graph: nx.DiGraph[_Task] = nx.DiGraph()
    graph.add_nodes_from(order)
    graph.add_edges_from((writer, task) for task, writers in sources.items() for writer in writers)
    found = [sorted(one, key=order.__getitem__) for one in nx.strongly_connected_components(graph) if len(one) > 1]
    return sorted((tuple(one) for one in found), key=lambda one: order[one[0]])


def _steps(sources: Mapping[_Task, Collection[_Task]]) -> dict[_Task, int]:
    """After how many steps a task can stand, where all stand at once that wait for none; those in circles never do.

    What a task reads from itself it does not wait for.
    """
    readers: dict[_Task, list[_Task]] = {task: [] for task in sources}
    waits: dict[_Task, int] = {}
    for task, writers in sources.items():
        above = {w for w in writers if w != task}
        waits[task] = len(above)
        for writer in above:
            readers[writer].append(task)
    found = {task: 0 for task, count in waits.items() if not count}
    ready = list(found)
    for task in ready:  # grows meanwhile
        for reader in readers[task]:
            waits[reader] -= 1
            found[reader] = max(found.get(reader, 0), found[task] + 1)
            if not waits[reader]:
                ready.append(reader)
    return {task: step for task, step in found.items() if not waits[task]}
