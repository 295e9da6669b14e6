"""Operations of one iteration in cycles: list scheduling with the operators and ports that an interval leaves.

Whoever could start in a cycle does so in the order of what still has to follow; who finds no operator or port free in
this cycle of the interval waits for the next. Adders of floats follow their parts at once: the tool builds some more of
them before it makes a pipeline longer. Operators of a cycle of dependences that fills the interval follow each other
without a gap: such a ring begins when all that it takes in will be there in time, and with places for all of it.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise

from penstock.compiler.hls_in.banks import Bank, bank_of, word_of
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.ordering import tokens_of, users_of
from penstock.compiler.hls_in.storage import KernelArray
from penstock.compiler.schedule.timing import Moment


@dataclass
class Placer:
    """`nodes` stand after what they need; `fabric` are adders without DSPs, `cyclic` pairs of them that follow each
    other in a cycle of dependences, `rings` such cycles that have no cycle to spare, `more` how many operators of a
    name are built beyond the least."""

    nodes: list[KernelValue]
    ii: int
    delays: Delays
    needs: Callable[[KernelValue], list[KernelValue]]
    fabric: set[KernelValue]
    cyclic: set[tuple[KernelValue, KernelValue]]
    pipelined: bool
    rings: list[list[KernelValue]]
    more: dict[str, int] = field(default_factory=dict[str, int])
    bounded: bool = False
    """Adders of floats wait too."""
    due: Mapping[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    """When nodes must have begun at the latest; whoever waits for an operator then does so in this order."""
    starts: dict[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    there: dict[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    """The cycle at whose end a node's value is there, to be kept for those who use it later."""
    ends: list[int] = field(default_factory=list[int])
    units: dict[str, int] = field(default_factory=dict[str, int])
    _ready: dict[KernelValue, Moment] = field(default_factory=dict[KernelValue, Moment])
    _taken: Count[tuple[str, int]] = field(default_factory=Count[tuple[str, int]])
    _held: dict[KernelValue, list[tuple[KernelValue, int]]] = field(
        default_factory=dict[KernelValue, list[tuple[KernelValue, int]]]
    )
    """Of the first of a ring: all of it, and how many cycles later each begins."""
    _early: dict[tuple[KernelValue, KernelValue], int] = field(
        default_factory=dict[tuple[KernelValue, KernelValue], int]
    )
    """By how many cycles a value may come after the first of a ring, since a later one takes it in."""
    _in_turn: set[tuple[KernelValue, KernelValue]] = field(default_factory=set[tuple[KernelValue, KernelValue]])
    """Tokens of a stream that pass one after the other."""
    _kept: set[KernelValue] = field(default_factory=set[KernelValue])
    """Operators of rings that have begun: their places are taken already."""
    _ports: Count[tuple[KernelArray, Bank, int]] = field(default_factory=Count[tuple[KernelArray, Bank, int]])
    _words: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    """Words of several elements that are met in a cycle: each has taken its port."""
    _stored: dict[tuple[object, ...], KernelValue] = field(default_factory=dict[tuple[object, ...], KernelValue])
    """Words that the iteration stores, and the first that does."""

    @property
    def depth(self) -> int:
        return max(self.ends, default=0) + 1

    def place(self) -> None:
        known = set(self.nodes)
        needed = {node: [other for other in self.needs(node) if other in known] for node in self.nodes}
        self._in_turn = {pair for met in tokens_of(self.nodes).values() for pair in pairwise(met)}
        for earlier, later in self._in_turn:
            needed[later].append(earlier)
        users: dict[KernelValue, list[KernelValue]] = {node: [] for node in self.nodes}
        for node, others in needed.items():
            for other in set(others):
                users[other].append(node)
        urgent = {node: -after for node, after in self._follows(users).items()}
        urgent.update(self.due)
        self._hold_rings(needed, users)
        missing = {node: len(set(others)) for node, others in needed.items()}
        wanted = Count(name for node in self.nodes if (name := self._unit(node)) is not None)
        self.units = {
            name: min(n, -(-n // self.ii) + self.more.get(name, 0)) if self.pipelined else 1
            for name, n in wanted.items()
        }
        ready = self._ready
        heap = [(0, 0.0, urgent[n], i, 0, n) for i, n in enumerate(self.nodes) if not missing[n]]
        number = {node: i for i, node in enumerate(self.nodes)}
        heapify(heap)
        while heap:
            at, offset, before, i, tries, node = heappop(heap)
            entered = self.delays.enter(node, at, offset)
            if entered[0] > at:
                heappush(heap, (entered[0], entered[1], before, i, tries, node))
                continue
            if not self._room(node, at, tries):
                heappush(heap, (at + 1, 0.0, before, i, tries + 1, node))
                continue
            self.starts[node] = at
            ready[node] = self.delays.leave(node, *entered, node in self.fabric)
            self.there[node] = ready[node][0] - (ready[node][0] > at and not ready[node][1])
            if self.delays.counts(node):
                self.ends.append(at + self.delays.stages(node, quick=node in self.fabric))
            for user in users[node]:
                missing[user] -= 1
                if not missing[user]:
                    moment = max((self._after(other, user, ready) for other in needed[user]), default=(0, 0.0))
                    heappush(heap, (moment[0], moment[1], urgent[user], number[user], 0, user))

    def latest(self) -> dict[KernelValue, int]:
        """When each node could begin at the latest, with all rings and all ends where they are."""
        users = users_of(self.nodes, self.needs)
        found: dict[KernelValue, int] = {}
        fixed = {node for ring in self.rings for node in ring}
        for node in reversed(self.nodes):
            takes = self._ready[node][0] - self.starts[node]
            behind = [found[user] - takes for user in users.get(node, ()) if user in found]
            found[node] = self.starts[node] if node in fixed or not behind else max(self.starts[node], min(behind))
        return found

    def _hold_rings(
        self, needed: dict[KernelValue, list[KernelValue]], users: dict[KernelValue, list[KernelValue]]
    ) -> None:
        """A ring begins when all that its later operators take in will be there in time."""
        for ring in self.rings:
            head, at = ring[0], 0
            own = set(needed[head])
            behind = self._behind(head, users) if len(ring) > 1 else set[KernelValue]()
            self._held[head] = []
            for node in ring:
                self._held[head].append((node, at))
                for other in needed[node] if node is not head else ():
                    if other not in behind and other not in own and (other, head) not in self._early:
                        self._early[other, head] = at
                        needed[head].append(other)
                        users[other].append(head)
                at += self.delays.stages(node, quick=True)

    def _behind(self, head: KernelValue, users: dict[KernelValue, list[KernelValue]]) -> set[KernelValue]:
        """What needs a node, and the node itself."""
        found, waiting = {head}, [head]
        while waiting:
            more = [user for user in users[waiting.pop()] if user not in found]
            found.update(more)
            waiting += more
        return found

    def _after(self, node: KernelValue, user: KernelValue, ready: dict[KernelValue, Moment]) -> Moment:
        if (node, user) in self._in_turn:
            return self.starts[node] + 1, 0.0
        if (node, user) in self._early:
            return ready[node][0] - self._early[node, user], ready[node][1]
        if (node, user) in self.cyclic and node in self.fabric:
            return self.starts[node] + self.delays.stages(node, quick=True), 0.0
        return ready[node]

    def _unit(self, node: KernelValue) -> str | None:
        return self.delays.unit(node, node in self.fabric)

    def _follows(self, users: dict[KernelValue, list[KernelValue]]) -> dict[KernelValue, float]:
        """Cycles from a node's start to the end of all that needs it."""
        found: dict[KernelValue, float] = {}
        for node in reversed(self.nodes):
            stages = self.delays.stages(node, quick=node in self.fabric)
            found[node] = (stages + 1 if stages else 0.1) + max((found[user] for user in users[node]), default=0.0)
        return found

    def _room(self, node: KernelValue, at: int, tries: int) -> bool:
        """Whether the operator or port that a node needs is free in a cycle; it is taken then."""
        slot = at % self.ii if self.pipelined else at
        name = self._unit(node)
        if node in self._held and name is not None:
            slots = Count((at + later) % self.ii for _, later in self._held[node])
            if tries < self.ii and any(self._taken[name, slot] + n > self.units[name] for slot, n in slots.items()):
                return False
            for slot, n in slots.items():
                self._taken[name, slot] += n
            self._kept.update(one for one, _ in self._held[node])
        elif name is not None and node not in self._kept:
            waits = self.bounded or not (self.pipelined and self.delays.has_quick(node))
            if self._taken[name, slot] >= self.units[name] and waits:
                return False
            self._taken[name, slot] += 1
        array = node.array
        if node.op in ("load", "store") and array is not None:
            if array.registers:
                return True
            if node.op == "store" and not self._first_store(node):
                return True
            bank, word = bank_of(node), word_of(node)
            if word is not None and (array, bank, word, node.op, at) in self._words:
                return True
            taken = self._ports[array, bank, slot] >= self.delays.ports_of(array)
            if taken and (tries < self.ii or not self.pipelined):
                return False
            self._ports[array, bank, slot] += 1
            if word is not None:
                self._words.add((array, bank, word, node.op, at))
        return True

    def _first_store(self, node: KernelValue) -> bool:
        """Whether no store of this word has its port already: under several conditions one stores a choice."""
        key = (node.array, *(arg.linear or arg for arg in node.index))
        return self._stored.setdefault(key, node) is node
