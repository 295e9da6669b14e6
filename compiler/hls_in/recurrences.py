"""Values and words that come back from an iteration to a later one, and how many cycles that takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.dependence import distance
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.ordering import in_order
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.storage import KernelArray

_MOST_LOADS = 512


@dataclass(frozen=True)
class IiLimit:
    """A lower bound of the initiation interval."""

    ii: int
    reason: str
    line: int
    array: KernelArray | None = None
    """The memory whose ports it is."""


@dataclass(frozen=True)
class Cycle:
    """A value that comes back: from `start` to `end` in one iteration, used again `distance` later."""

    start: KernelValue
    end: KernelValue
    distance: int
    register: bool


@dataclass
class QuickAdders:
    """Adders without DSPs that a pipeline takes."""

    fabric: set[KernelValue] = field(default_factory=set[KernelValue])
    cyclic: set[tuple[KernelValue, KernelValue]] = field(default_factory=set[tuple[KernelValue, KernelValue]])
    """Pairs of them that follow each other in a cycle of dependences."""
    rings: list[tuple[int, list[KernelValue]]] = field(default_factory=list[tuple[int, list[KernelValue]]])
    """Such cycles with the cycles that they take, of which nothing but these adders is."""


def cycles_of(item: Pipeline, nodes: list[KernelValue]) -> list[Cycle]:
    found: list[Cycle] = []
    loads: dict[KernelArray, list[KernelValue]] = {}
    for node in nodes:
        if node.op == "load" and node.array is not None:
            loads.setdefault(node.array, []).append(node)
        if node.op == "phi" and node.follow is not None:
            found.append(Cycle(node, node.follow, 1, register=True))
    innermost = item.counters[-1]
    flattened = len(item.counters) > 1
    for store in nodes:
        if store.op != "store" or store.array is None:
            continue
        for load in _partners(store, loads.get(store.array, [])):
            apart, told = distance(store, load, item.counters), item.apart.get(store.array, store.array.apart)
            if apart is None or told == 0:
                continue
            apart = max(apart, told or 1)
            still = all(
                node.linear is not None and innermost not in dict(node.linear.terms) for node in load.args
            ) and all(a.linear == b.linear for a, b in zip(store.args[1:], load.args, strict=True))
            found.append(Cycle(load, store, apart, register=still and apart == 1 and (item.explicit or not flattened)))
    return found


def _partners(store: KernelValue, loads: list[KernelValue]) -> list[KernelValue]:
    """Loads that may read what a store has written; of very many only those of the same word."""
    if len(loads) <= _MOST_LOADS:
        return loads
    index = [node.linear for node in store.args[1:]]
    return [load for load in loads if [node.linear for node in load.args] == index]


def recurrence_of(item: Pipeline, cycle: Cycle, delays: Delays, adders: QuickAdders) -> tuple[list[IiLimit], int]:
    """The bound of one cycle of dependences, and the II with usual adders and words that stay in their memory.

    Where a pragma asks for more, adders of fewer stages are taken, one after the other as the source adds. Where what
    comes back is added last, by the usual adder, the one before it is of the others.
    """
    path = _longest(cycle.start, cycle.end, delays)
    if path is None:
        return [], 1
    slow = [node for node in path if delays.stages(node)]
    chain = _chain(cycle, delays)
    if chain > max(delays.loop_latency(slow, False, cycle.register), 1):
        bound = -(-chain // cycle.distance)
        reason = f"{_between_uses(path[1:], cycle)}, {chain} cycles one after the other"
        return [IiLimit(bound, reason, path[-1].line)], bound
    if not slow:
        return [], 1
    usual = delays.loop_latency(slow, False, cycle.register)
    latency = usual
    if item.explicit and usual > item.target * cycle.distance:
        quick = [node for node in slow if delays.has_quick(node)]
        last = (node for node in slow if node.usual)
        adders.fabric.update(arg for node in last for arg in node.args if arg not in path and delays.has_quick(arg))
        latency = delays.loop_latency(slow, True, cycle.register)
        if latency < usual:
            adders.fabric.update(quick)
            adders.cyclic.update(pairwise(slow))
            if cycle.distance == 1 and quick == (ring := [node for node in slow if node.op != "load"]):
                adders.rings.append((latency, ring))
    bound = -(-latency // cycle.distance)
    after = f"{cycle.distance} iteration{'s' * (cycle.distance > 1)}"
    reason = f"{_between_uses(slow, cycle)}, {latency} cycles, needed again after {after}"
    stored = delays.loop_latency(slow, False, register=cycle.start.array is None)
    return [IiLimit(bound, reason, slow[-1].line)], -(-stored // cycle.distance)


def _between_uses(nodes: list[KernelValue], cycle: Cycle) -> str:
    name = cycle.start.array.name if cycle.start.array is not None else "a variable"
    kinds = ", ".join(sorted({n.op for n in nodes}))
    return f"{len(nodes)} operation{'s' * (len(nodes) > 1)} ({kinds}) between two uses of {name}"


def _chain(cycle: Cycle, delays: Delays) -> int:
    """Cycles around a cycle of dependences through integers and words at addresses that come back: as many as their
    delays fill. 0 where an operator of several stages is in it, of which `loop_latency` knows."""
    nodes = _between(cycle.start, cycle.end)
    if any(delays.row(node) is not None for node in nodes):
        return 0
    at, offset = _walked(nodes, cycle, delays, 0.0)
    if not cycle.register:
        return at + 1
    if at == 0:
        return 1
    again, more = _walked(nodes, cycle, delays, offset)  # the next iteration begins in the cycle that ends this one
    return at if (again, more) <= (at, offset) else at + 1


def _walked(nodes: list[KernelValue], cycle: Cycle, delays: Delays, offset: float) -> tuple[int, float]:
    """When what comes back is there again: the cycle, and nanoseconds into it."""
    there: dict[KernelValue, tuple[int, float]] = {}
    for node in nodes:
        begun = max((there[arg] for arg in _values(node) if arg in there), default=None)
        if node is cycle.start:
            there[node] = delays.leave(node, 0, 0.0, quick=False) if not cycle.register else (0, offset)
        elif node is cycle.end and node.op == "store" and begun is not None:
            return begun
        elif begun is not None:
            there[node] = delays.leave(node, *delays.enter(node, *begun), quick=False)
    return there.get(cycle.end, (0, 0.0))


def _longest(start: KernelValue, end: KernelValue, delays: Delays) -> list[KernelValue] | None:
    """The path from one node to another with most cycles, or None if there is none."""
    best: dict[KernelValue, tuple[float, KernelValue | None]] = {}
    for node in _between(start, end):
        if node is start:
            best[node] = 0.0, None
            continue
        found = [(best[arg][0], arg) for arg in _values(node) if arg in best]
        if found:
            length, arg = max(found, key=lambda pair: pair[0])
            best[node] = length + (delays.stages(node) or 0.01), arg
    if end not in best:
        return None
    path: list[KernelValue] = []
    node: KernelValue | None = end
    while node is not None:
        path.append(node)
        node = best[node][1]
    return path[::-1]


def _values(node: KernelValue) -> tuple[KernelValue, ...]:
    """What must be known for a value, or before a word is written: also where, and whether at all."""
    guarded = node.op == "store" and node.guard is not None
    return (*node.args, node.guard) if guarded and node.guard is not None else node.args


def _between(start: KernelValue, end: KernelValue) -> list[KernelValue]:
    """Nodes that `end` needs, in order, up to `start`."""
    return in_order([end], lambda node: () if node is start else _values(node))
