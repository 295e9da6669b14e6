"""Operations of one iteration in cycles: list scheduling with the operators and ports that an interval leaves.

Whoever could start in a cycle does so in the order of what still has to follow; who finds no operator or port free in
this cycle of the interval waits for the next. Adders of floats follow their parts at once: the tool builds some more of
them before it makes a pipeline longer.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from penstock.compiler.hls_in.addresses import Moment
from penstock.compiler.hls_in.banks import Bank, bank_of
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.storage import KernelArray


@dataclass
class Placer:
    """`nodes` stand after what they need; `fabric` are adders without DSPs, `cyclic` pairs of them that follow each
    other in a cycle of dependences, `free` memories that the tool cuts as it likes."""

    nodes: list[KernelValue]
    ii: int
    delays: Delays
    needs: Callable[[KernelValue], list[KernelValue]]
    fabric: set[KernelValue]
    cyclic: set[tuple[KernelValue, KernelValue]]
    pipelined: bool
    free: set[KernelArray]
    starts: dict[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    there: dict[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    """The cycle at whose end a node's value is there, to be kept for those who use it later."""
    ends: list[int] = field(default_factory=list[int])
    units: dict[str, int] = field(default_factory=dict[str, int])
    _taken: Count[tuple[str, int]] = field(default_factory=Count[tuple[str, int]])
    _ports: Count[tuple[KernelArray, Bank, int]] = field(default_factory=Count[tuple[KernelArray, Bank, int]])

    def place(self) -> None:
        known = set(self.nodes)
        needed = {node: [other for other in self.needs(node) if other in known] for node in self.nodes}
        users: dict[KernelValue, list[KernelValue]] = {node: [] for node in self.nodes}
        for node, others in needed.items():
            for other in set(others):
                users[other].append(node)
        missing = {node: len(set(others)) for node, others in needed.items()}
        follows = self._follows(users)
        wanted = Count(name for node in self.nodes if (name := self._unit(node)) is not None)
        self.units = {name: -(-n // self.ii) if self.pipelined else 1 for name, n in wanted.items()}
        ready: dict[KernelValue, Moment] = {}
        heap = [(0, 0.0, -follows[n], i, 0, n) for i, n in enumerate(self.nodes) if not missing[n]]
        number = {node: i for i, node in enumerate(self.nodes)}
        heapify(heap)
        while heap:
            at, offset, urgent, i, tries, node = heappop(heap)
            entered = self.delays.enter(node, at, offset)
            if entered[0] > at:
                heappush(heap, (entered[0], entered[1], urgent, i, tries, node))
                continue
            if not self._room(node, at, tries):
                heappush(heap, (at + 1, 0.0, urgent, i, tries + 1, node))
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
                    heappush(heap, (moment[0], moment[1], -follows[user], number[user], 0, user))

    def _after(self, node: KernelValue, user: KernelValue, ready: dict[KernelValue, Moment]) -> Moment:
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
        if name is not None:
            if self._taken[name, slot] >= self.units[name] and not (self.pipelined and self.delays.has_quick(node)):
                return False
            self._taken[name, slot] += 1
        array = node.array
        if node.op in ("load", "store") and array is not None and self.pipelined:
            if array in self.free or array.registers:
                return True
            bank = bank_of(node)
            if self._ports[array, bank, slot] >= (1 if array.shared else self.delays.ports) and tries < self.ii:
                return False
            self._ports[array, bank, slot] += 1
        return True
