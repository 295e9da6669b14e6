"""Whether the dies hold a design, asked quickly; and what is nearly the same, and held.

The limits of the chip know no dies, and the fastest design fills the chip: with lanes that cost no time to give up.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.memory import stored_items
from penstock.dse.partition import divide, large_memories, placement_graph, site_of
from penstock.dse.space.fitted import FAVOUR
from penstock.dse.space.tiling import Choices

_MOST_EASED, _LITTLE_SLOWER = 12, 1.05
"""Kernels that are favoured less, and how many times as long a run may take with that."""


@dataclass(frozen=True)
class DiesHold:
    """The dies of an evaluator's platform; each design is divided once."""

    evaluator: Evaluator
    _excess: dict[Hashable, float] = field(default_factory=dict[Hashable, float], compare=False)

    def excess(self, one: Evaluation) -> float:
        """By which part limits of dies and links are exceeded, in the best division that is found."""
        meaning = self.evaluator.meaning(one.design)
        if meaning not in self._excess:
            self._excess[meaning] = self._divided(one)
        return self._excess[meaning]

    def eased(self, best: Evaluation, choices: Choices) -> Evaluation | None:
        """With some kernels favoured least, the largest first, as far as dies and links are exceeded by less with that.

        None where they are exceeded still, or it takes notably longer.
        """
        found, most = best, best.values[0] * _LITTLE_SLOWER
        leading = sorted(self.evaluator.space.fitting.leading, key=lambda op: -op.work)
        names = [name for op in leading[:_MOST_EASED] if (name := f"{FAVOUR}.{op.layer}") in choices]
        for name in names:
            if self.excess(found) <= 0:
                break
            try:
                other = self.evaluator.assume({**found.params, name: choices[name][0]})
            except PenstockError:  # it cannot be laid out
                continue
            if other.feasible and other.values[0] <= most and self.excess(other) < self.excess(found):
                found = other
        return found if self.excess(found) <= 0 else None

    def _divided(self, one: Evaluation) -> float:
        library, platform = self.evaluator.assembler.library, self.evaluator.platform
        network = self.evaluator.assembler.network(replace(one.design, memories={}, allocated_for=""))
        usual = {item.name: item.usual for item in stored_items(network, library)}
        memories = large_memories(network, library, usual)
        apart = [ways[0].name for one in memories for ways in one.ways]
        graph = placement_graph(network, platform, library, usual, apart)
        return divide(graph, site_of(platform), memories).excess
