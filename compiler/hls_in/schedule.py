"""When each operation of a pipeline happens, as Vitis' scheduler decides it: II with its reason, depth, operators.

The rules and where they were seen are in README.md of this folder. Times are (cycle, nanoseconds into it).
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.compiler.hls_in.addresses import AddressPlan, AddressPlanner
from penstock.compiler.hls_in.balance import balance
from penstock.compiler.hls_in.banks import port_bound
from penstock.compiler.hls_in.delays import REAL, Delays, is_product
from penstock.compiler.hls_in.dependence import distance, pinned
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.placing import Placer
from penstock.compiler.hls_in.records import Pipeline, Straight
from penstock.compiler.hls_in.sharing import adders_beyond, as_short, rings_apart
from penstock.compiler.hls_in.storage import KernelArray

_MOST_LOADS = 512
_EFFECTS = ("load", "store", "take", "put", "phi", "input")
_QUICK_STAGES = 4
"""Of an adder without DSPs."""


@dataclass(frozen=True)
class IiLimit:
    """A lower bound of the initiation interval."""

    ii: int
    reason: str
    line: int
    array: KernelArray | None = None
    """The memory whose ports it is."""


@dataclass
class ScheduledPipeline:
    ii: int
    depth: int
    limits: list[IiLimit]
    units: dict[str, int]
    """Floating-point and other shared operators by name, as many as are built."""
    starts: dict[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    there: dict[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    """The cycle at whose end each value is there."""
    addresses: AddressPlan = field(default_factory=AddressPlan)
    flushes: bool = False
    """What has entered goes on while the next iteration waits for input."""

    @property
    def limit(self) -> IiLimit | None:
        return max(self.limits, key=lambda bound: bound.ii, default=None)


@dataclass(frozen=True)
class _Cycle:
    """A value that comes back: from `start` to `end` in one iteration, used again `distance` later."""

    start: KernelValue
    end: KernelValue
    distance: int
    register: bool


def schedule(item: Pipeline | Straight, delays: Delays) -> ScheduledPipeline:
    graph = item.graph
    if delays.reassociate and not graph_balanced(item):
        balance(graph, _Sums(item, frozenset(n.array for n in graph.nodes if n.op == "store" and n.array is not None)))
        item.__dict__["balanced"] = True
    nodes = _asked_for(item, _ordered([n for n in graph.nodes if n.op != "dead"]))
    target = item.target if isinstance(item, Pipeline) else 1
    limits: list[IiLimit] = []
    fabric: set[KernelValue] = set()
    accesses: dict[KernelArray, list[KernelValue]] = {}
    for node in nodes:
        if node.op in ("load", "store") and node.array is not None:
            accesses.setdefault(node.array, []).append(node)
    delays.summed = _summed(nodes)
    delays.kept = {array for array, met in accesses.items() if _kept(item, met)}
    cyclic: set[tuple[KernelValue, KernelValue]] = set()
    rings: list[tuple[int, list[KernelValue]]] = []
    usual = target
    if isinstance(item, Pipeline) and item.counters:
        for cycle in _cycles(item, nodes):
            found, first = _recurrence(item, cycle, delays, fabric, cyclic, rings)
            limits, usual = limits + found, max(usual, first)
    free: set[KernelArray] = set()
    if isinstance(item, Pipeline):
        ports = {array: _port_limit(array, met, delays) for array, met in accesses.items() if not array.registers}
        own = {array for array in ports if cut_by_itself(array, accesses[array])}
        usual = max([usual, *(limit.ii for array, limit in ports.items() if array not in own)])
        free = {array for array in own if ports[array].ii > usual}
        limits += [limit for array, limit in ports.items() if array not in free] + _streams(nodes)
    delays.addresses = AddressPlanner(item, nodes, delays.library, free).plan()
    ii = max([target, *(limit.ii for limit in limits)])
    limits = [limit for limit in limits if limit.ii > 1]
    tight = [ring for latency, ring in rings if latency == ii]
    names = (delays.unit(node) for node in nodes if not delays.has_quick(node))
    shared = {name for name in names if name is not None}

    own_rings = rings_apart(nodes, fabric, tight, ii, delays)

    def place(more: int, adders: Mapping[str, int] | None = None) -> Placer:
        extra = {**dict.fromkeys(shared, more), **own_rings, **(adders or {})}
        placer = Placer(
            nodes, ii, delays, _needs, fabric, cyclic, isinstance(item, Pipeline), tight, free, extra,
            bounded=adders is not None,
        )  # fmt: skip
        placer.place()
        return placer

    placer, more = place(0), 0
    if tight and placer.depth > ii:
        placer, more = as_short(placer, place, len(nodes))
    if tight and (adders := adders_beyond(nodes, fabric, ii, delays, lambda adders: place(len(nodes), adders))):
        placer = place(more, adders)
    return ScheduledPipeline(
        ii, placer.depth, limits, placer.units, placer.starts, placer.there, delays.addresses,
        isinstance(item, Pipeline) and item.flushes,
    )  # fmt: skip


@dataclass(frozen=True)
class _Sums:
    """What a pipeline says of the parts of its sums, for `balance`."""

    item: Pipeline | Straight
    stored: frozenset[KernelArray]

    def comes_back(self, part: KernelValue) -> bool:
        """A variable that the nest carries, or a word that the innermost loop does not move, perhaps begun anew."""
        if not isinstance(self.item, Pipeline) or not self.item.counters:
            return False
        if part.op == "select":
            return any(self.comes_back(arg) for arg in part.args[1:])
        if part.op == "phi":
            return part.follow is not None
        return part.op == "load" and part.array in self.stored and not self._moves(part)

    def _moves(self, load: KernelValue) -> bool:
        assert isinstance(self.item, Pipeline)
        innermost = self.item.counters[-1]
        return any(a.linear is None or innermost in dict(a.linear.terms) for a in load.args)

    def must_be_last(self, part: KernelValue, parts: int) -> bool:
        if not isinstance(self.item, Pipeline) or self.item.target == 1 or part.op != "load":
            return False
        return _QUICK_STAGES * (parts - 1).bit_length() > self.item.target


def _asked_for(item: Pipeline | Straight, nodes: list[KernelValue]) -> list[KernelValue]:
    """Without arithmetic of a pipeline whose result nobody asks for: a double that was a float again at once, say."""
    if not isinstance(item, Pipeline):
        return nodes
    asked = {one.after for one in item.carried} | {n.follow for n in item.graph.nodes if n.follow is not None}
    kept: list[KernelValue] = []
    for node in reversed(nodes):
        if node in asked or node.kind not in REAL or node.op in _EFFECTS:
            kept.append(node)
            asked.update(_needs(node))
    return kept[::-1]


def _summed(nodes: list[KernelValue]) -> set[KernelValue]:
    """Products of integers that nobody but one addition asks for: slices add what they multiply."""
    users: dict[KernelValue, list[KernelValue]] = {}
    for node in nodes:
        for arg in _needs(node):
            users.setdefault(arg, []).append(node)

    def only_user(node: KernelValue) -> str:
        found = users.get(node, [])
        if len(found) != 1:
            return ""
        return only_user(found[0]) if found[0].op == "convert" else found[0].op

    return {node for node in nodes if is_product(node) and only_user(node) in ("add", "sub")}


def graph_balanced(item: Pipeline | Straight) -> bool:
    return bool(item.__dict__.get("balanced"))


def _ordered(nodes: list[KernelValue]) -> list[KernelValue]:
    """Every node after what it needs."""
    known = set(nodes)
    return _in_order(nodes, lambda node: [other for other in _needs(node) if other in known])


def _in_order(roots: list[KernelValue], needed: Callable[[KernelValue], Iterable[KernelValue]]) -> list[KernelValue]:
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


def _needs(node: KernelValue) -> list[KernelValue]:
    return [*node.args, *([node.guard] if node.guard is not None else []), *node.after]


def _cycles(item: Pipeline, nodes: list[KernelValue]) -> list[_Cycle]:
    found: list[_Cycle] = []
    loads: dict[KernelArray, list[KernelValue]] = {}
    for node in nodes:
        if node.op == "load" and node.array is not None:
            loads.setdefault(node.array, []).append(node)
        if node.op == "phi" and node.follow is not None:
            found.append(_Cycle(node, node.follow, 1, register=True))
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
            found.append(_Cycle(load, store, apart, register=still and apart == 1 and (item.explicit or not flattened)))
    return found


def _kept(item: Pipeline | Straight, met: list[KernelValue]) -> bool:
    """Whether the innermost loop meets one word of a memory alone, which its first iteration has filled."""
    if not isinstance(item, Pipeline) or not item.counters or not any(node.op == "store" for node in met):
        return False
    innermost = item.counters[-1]
    words = {tuple(a.linear for a in node.index) for node in met}
    still = all(linear is not None and innermost not in dict(linear.terms) for word in words for linear in word)
    return (
        still and len(words) == 1 and all(pinned(node.guard).get(innermost) == 0 for node in met if node.op == "store")
    )


def _partners(store: KernelValue, loads: list[KernelValue]) -> list[KernelValue]:
    """Loads that may read what a store has written; of very many only those of the same word."""
    if len(loads) <= _MOST_LOADS:
        return loads
    index = [node.linear for node in store.args[1:]]
    return [load for load in loads if [node.linear for node in load.args] == index]


def _recurrence(
    item: Pipeline,
    cycle: _Cycle,
    delays: Delays,
    fabric: set[KernelValue],
    cyclic: set[tuple[KernelValue, KernelValue]],
    rings: list[tuple[int, list[KernelValue]]],
) -> tuple[list[IiLimit], int]:
    """The bound of one cycle of dependences, and the II with usual adders and words that stay in their memory.

    Where a pragma asks for more, adders of fewer stages are taken.
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
        latency = delays.loop_latency(slow, True, cycle.register)
        if latency < usual:
            fabric.update(quick)
            cyclic.update(pairwise(slow))
            if cycle.distance == 1 and quick == (ring := [node for node in slow if node.op != "load"]):
                rings.append((latency, ring))
    bound = -(-latency // cycle.distance)
    after = f"{cycle.distance} iteration{'s' * (cycle.distance > 1)}"
    reason = f"{_between_uses(slow, cycle)}, {latency} cycles, needed again after {after}"
    stored = delays.loop_latency(slow, False, register=cycle.start.array is None)
    return [IiLimit(bound, reason, slow[-1].line)], -(-stored // cycle.distance)


def _between_uses(nodes: list[KernelValue], cycle: _Cycle) -> str:
    name = cycle.start.array.name if cycle.start.array is not None else "a variable"
    kinds = ", ".join(sorted({n.op for n in nodes}))
    return f"{len(nodes)} operation{'s' * (len(nodes) > 1)} ({kinds}) between two uses of {name}"


def _chain(cycle: _Cycle, delays: Delays) -> int:
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


def _walked(nodes: list[KernelValue], cycle: _Cycle, delays: Delays, offset: float) -> tuple[int, float]:
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
    return _in_order([end], lambda node: () if node is start else _values(node))


def _port_limit(array: KernelArray, met: list[KernelValue], delays: Delays) -> IiLimit:
    bound, reason = port_bound(array, met, delays.ports_of(array))
    return IiLimit(bound, reason, met[0].line, array)


def cut_by_itself(array: KernelArray, accesses: list[KernelValue]) -> bool:
    """Whether the tool may partition a memory on its own account: one of the design's own (not an argument), without
    a pragma about it, met at addresses that loop counters decide. It does so where the II needs it."""
    if array.argument or array.constant or array.partition or array.reshape or array.storage:
        return False
    return all(arg.linear is not None for n in accesses for arg in n.index)


def _streams(nodes: list[KernelValue]) -> list[IiLimit]:
    met = Count((node.streams, node.op, _lane(node)) for node in nodes if node.op in ("take", "put"))
    return [
        IiLimit(count, f"{count} accesses an iteration to the stream {streams.name}", 0)
        for (streams, _, _), count in met.items() if streams is not None
    ]  # fmt: skip


def _lane(node: KernelValue) -> tuple[int, ...]:
    index = node.args[1:] if node.op == "put" else node.args
    return tuple(int(arg.value or 0) for arg in index)
