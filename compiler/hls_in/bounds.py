"""What bounds the initiation interval of a pipeline, before anything is placed: recurrences, ports, streams."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.compiler.hls_in.balance import balance
from penstock.compiler.hls_in.banks import port_bound
from penstock.compiler.hls_in.delays import REAL, Delays, is_product
from penstock.compiler.hls_in.dependence import pinned
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.ordering import needs, ordered, tokens_of, users_of
from penstock.compiler.hls_in.records import Pipeline, Straight
from penstock.compiler.hls_in.recurrences import IiLimit, QuickAdders, cycles_of, recurrence_of
from penstock.compiler.hls_in.storage import KernelArray

_EFFECTS = ("load", "store", "take", "put", "phi", "input")
_QUICK_STAGES = 4
"""Of an adder without DSPs."""


@dataclass
class IntervalBounds:
    """A pipeline's nodes in order, and what bounds its II but for ports and streams."""

    nodes: list[KernelValue]
    accesses: dict[KernelArray, list[KernelValue]]
    target: int
    limits: list[IiLimit] = field(default_factory=list[IiLimit])
    adders: QuickAdders = field(default_factory=QuickAdders)
    usual: int = 1
    """The II that its recurrences have with usual adders."""
    carried: set[KernelArray] = field(default_factory=set[KernelArray])
    """Memories through whose words something comes back."""


def bounds_of(item: Pipeline | Straight, delays: Delays) -> IntervalBounds:
    graph = item.graph
    if delays.reassociate and not graph.balanced:
        balance(graph, _Sums(item, frozenset(n.array for n in graph.nodes if n.op == "store" and n.array is not None)))
        graph.balanced = True
    nodes = _asked_for(item, ordered([n for n in graph.nodes if n.op != "dead"]))
    accesses: dict[KernelArray, list[KernelValue]] = {}
    for node in nodes:
        if node.op in ("load", "store") and node.array is not None:
            accesses.setdefault(node.array, []).append(node)
    delays.summed = _summed(nodes)
    delays.kept = {array for array, met in accesses.items() if _kept(item, met)}
    target = item.target if isinstance(item, Pipeline) else 1
    found = IntervalBounds(nodes, accesses, target, usual=target)
    if isinstance(item, Pipeline) and item.counters:
        for cycle in cycles_of(item, nodes):
            limits, usual = recurrence_of(item, cycle, delays, found.adders)
            found.limits += limits
            found.usual = max(found.usual, usual)
            if limits and cycle.start.array is not None:
                found.carried.add(cycle.start.array)
    return found


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
    asked |= {item.returned} if item.returned is not None else set()
    kept: list[KernelValue] = []
    for node in reversed(nodes):
        if node in asked or node.kind not in REAL or node.op in _EFFECTS:
            kept.append(node)
            asked.update(needs(node))
    return kept[::-1]


def _summed(nodes: list[KernelValue]) -> set[KernelValue]:
    """Products of integers that nobody but one addition asks for: slices add what they multiply."""
    users = users_of(nodes)

    def only_user(node: KernelValue) -> str:
        found = users.get(node, [])
        if len(found) != 1:
            return ""
        return only_user(found[0]) if found[0].op == "convert" else found[0].op

    return {node for node in nodes if is_product(node) and only_user(node) in ("add", "sub")}


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


def port_limit(array: KernelArray, met: list[KernelValue], delays: Delays) -> IiLimit:
    bound, reason = port_bound(array, met, delays.ports_of(array))
    return IiLimit(bound, reason, met[0].line, array)


def stream_limits(nodes: list[KernelValue]) -> list[IiLimit]:
    return [
        IiLimit(len(met), f"{len(met)} accesses an iteration to the stream {streams.name}", 0)
        for ((streams, _), _), met in tokens_of(nodes).items()
    ]
