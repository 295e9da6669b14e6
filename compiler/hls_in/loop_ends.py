"""Ends of loops that numbers of the top decide: what is known of them, and where values are asked for, how far they go.

There such a loop goes round as often as LOOP_TRIPCOUNT says, and does nothing from its end on.
"""

from __future__ import annotations

from penstock.compiler.hls_in.bindings import where
from penstock.compiler.hls_in.functions import Functions
from penstock.compiler.hls_in.graph import KernelValue, leaves_of
from penstock.compiler.hls_in.loops import Head
from penstock.compiler.hls_in.patterns import conjuncts
from penstock.compiler.hls_in.records import DataTurns
from penstock.compiler.hls_in.storage import Counter
from penstock.compiler.hls_in.syntax import Tree


class LoopEnds(Functions):
    turns: list[DataTurns]
    given: set[KernelValue]
    """The top's numbers, as it gets them."""
    around: list[tuple[Head, KernelValue]]
    """Loops that are no pipelines and stand around, with their variables."""

    def goes(self, tree: Tree, head: Head, counter: Counter | None = None, lanes: int = 1) -> None:
        """Notes between which values a loop's variable goes."""
        if head.end is not None:
            begin = head.begin if head.begin is not None else self.graph.constant(head.first)
            at, name = where(tree[1]), head.variable
            self.turns.append(DataTurns(begin, head.end, head.sign, head.step, head.trip, at, name, counter, lanes))

    def goes_on(self, head: Head, at: KernelValue) -> KernelValue | None:
        """Where values are asked for: whether a loop whose ends the top's numbers decide goes on with its variable at a
        value; None for every other loop."""
        if not self.rolled or head.end is None or head.begin is not None or abs(head.step) != 1 or head.sign == "!=":
            return None
        if head.end.constant or not leaves_of(head.end) <= self.given:
            return None
        return self.graph.compare(head.sign, at, self.graph.copied(head.end))

    def stopped_at(self, head: Head) -> KernelValue | None:
        """Where the variable of such a loop stands after it."""
        begun = self.graph.constant(head.first)
        goes = self.goes_on(head, begun)
        if goes is None or head.end is None:
            return None
        past = self.graph.constant(head.step if head.sign in ("<=", ">=") else 0)
        return self.graph.choose(goes, self.graph.operate("add", self.graph.copied(head.end), past, "int", 32), begun)

    def only_goes_on(self) -> bool:
        known = {self.goes_on(head, value) for head, value in self.around}
        return all(term in known for term in conjuncts(self.path))
