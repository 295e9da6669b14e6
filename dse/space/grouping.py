"""How many kernels stand together on the chip: all, or as many as a budget of memory between them allows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.design import Design
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.platforms import Platform
from penstock.dse.space.fusion import exact_groups, fusion_graph, greedy_groups

FUSED, GREEDY, EXACT = "all", "greedy", "exact"
BUDGET, MOST_GROUPS = "converter_kib", "most_groups"
GROUPED_BY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    BUDGET: {"fusion": (GREEDY, EXACT)},
    MOST_GROUPS: {"fusion": (EXACT,)},
}
_REMEMBERED = 256
_MOST_EXACT = 12
"""Kernels up to which the least traffic is looked for: an integer program a design."""
_BITS_PER_KIB = 8 * 1024
_WORTH_GROUPING = 8
"""KiB that might be held between kernels: less is a handful of block RAMs."""


def grouping_choices(graph: Graph, platform: Platform) -> dict[str, tuple[int | str, ...]]:
    """Parameters where there is something to group, and a memory for what passes between groups.

    Budgets end where any design would be within them: a converter holds no more than its tensor twice, nor a FIFO.
    """
    count = len(graph.operations)
    most_held = 2 * sum(
        tensor_bits(value) for op in graph.operations for value in op.inputs if not graph.is_param(value)
    )
    most_held /= _BITS_PER_KIB
    limits = platform.limits
    on_chip = (limits.bram18 * 18 + limits.uram * 288) / 8
    budgets = tuple(4**n for n in range(12) if 4**n < min(most_held, on_chip))
    if count < 2 or not platform.memories or most_held < _WORTH_GROUPING:
        return {}
    if count > _MOST_EXACT:
        return {"fusion": (FUSED, GREEDY), BUDGET: budgets}
    most = tuple(n for n in (2, 3, 4, 6) if n <= count)
    return {"fusion": (FUSED, GREEDY, EXACT), BUDGET: budgets, MOST_GROUPS: most}


@dataclass(frozen=True)
class Grouping:
    """One way to group, with at most so much memory between the kernels of each group."""

    how: str
    kib: int
    most: int

    def groups(self, graph: Graph, design: Design) -> dict[str, int]:
        """The groups of a design's kernels; none where all are together."""
        fusion, budget = fusion_graph(graph, design), self.kib * _BITS_PER_KIB
        found = exact_groups(fusion, budget, self.most) if self.how == EXACT else None
        if found is None:  # so few groups need more memory: as many as it takes
            found = greedy_groups(fusion, budget)
        return found if len(set(found.values())) > 1 else {}


class KnownGroups:
    """The latest groups: a fitted setting is asked for again and again with a little less for its operators."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, tuple[dict[str, int], Graph]] = OrderedDict()

    def of(self, grouping: Grouping, design: Design, graph: Graph) -> dict[str, int]:
        walks = tuple((layer, k.tile, k.unroll, k.order) for layer, k in design.kernels.items())
        key = (grouping, id(graph), walks)
        if key not in self._known:
            self._known[key] = (grouping.groups(graph, design), graph)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key][0]
