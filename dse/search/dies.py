"""Whether the dies hold a design, asked quickly; and what is nearly the same, and held.

The limits of the chip know no dies, and the fastest design fills the chip: with lanes that cost no time to give up.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf

from penstock.compiler.analysis.graph import TensorOp
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.lanes.neighbours import alike
from penstock.dse.memory import stored_items
from penstock.dse.partition import divide, large_memories, placement_graph, site_of
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.shared import in_turn, unlike
from penstock.dse.search.worth import foretell
from penstock.dse.space.external import PREFETCH
from penstock.dse.space.fitted import FAVOUR, SHARE, WALK
from penstock.dse.space.tiling import Choices, Params

NEARLY = 0.6
"""By so much limits may be exceeded where a few kernels with fewer lanes may be enough."""
_MOST_EASED, _ROUNDS, _LITTLE_SLOWER, _ALMOST = 12, 2, 1.05, 0.1
"""Kernels that are changed, how often all are tried, how many times as long a run may take with that, and by which part
limits may be exceeded where other walks are worth a look."""
_MOST_IN_VAIN, _MOST_REWALKED = 6, 2
"""Of all that would be faster beside the best if the dies held it, how many are made smaller in vain, and how many of
these with other walks too: one takes as long as ten looks, with walks as some hundreds."""


@dataclass(frozen=True)
class DiesHold:
    """The dies of an evaluator's platform; each design is divided once."""

    evaluator: Evaluator
    second: SecondProcess | None = None
    _excess: dict[Hashable, float] = field(default_factory=dict[Hashable, float], compare=False)
    _in_vain: list[Evaluation] = field(default_factory=list[Evaluation], compare=False)

    def excess(self, one: Evaluation) -> float:
        """By which part limits of dies and links are exceeded, in the best division that is found."""
        meaning = self.evaluator.meaning(one.design)
        if meaning not in self._excess:
            self._excess[meaning] = self._divided(one)
        return self._excess[meaning]

    def is_told(self, one: Evaluation, excess: float) -> None:
        """What another process found."""
        self.evaluator.is_told(one)
        self._excess.setdefault(self.evaluator.meaning(one.design), excess)

    def eased(self, best: Evaluation, choices: Choices, *, rewalked: bool = True) -> Evaluation | None:
        """With some kernels favoured least, the largest first, loads that run less far ahead, or less of all limits, as
        far as dies and links are exceeded by less with that; where little is missing, `rewalked` too: tokens between
        dies are narrower with some walks, of which there are hundreds to look at.

        None where they are exceeded still, or it takes notably longer.
        """
        found, most = best, best.values[0] * _LITTLE_SLOWER
        for _ in range(_ROUNDS):
            before = found
            found = self._with_less(found, list(self._less(found.params, choices)), most)
            if rewalked and 0 < self.excess(found) <= _ALMOST:
                found = self._with_less(found, list(self._walked(choices)), most)
            if found is before or self.excess(found) <= 0:
                break
        return found if self.excess(found) <= 0 else None

    def eased_of_many(self, one: Evaluation, choices: Choices) -> Evaluation | None:
        """The same of any that would be faster, until too many were in vain: a search has one such allowance."""
        if len(self._in_vain) >= _MOST_IN_VAIN:
            return None
        found = self.eased(one, choices, rewalked=len(self._in_vain) < _MOST_REWALKED)
        if found is None:
            self._in_vain.append(one)
        return found

    def _with_less(self, found: Evaluation, ways: Sequence[Params], most: float) -> Evaluation:
        """What exceeds limits of dies by less, one way after the other, and takes no longer than that."""
        look = partial(_no_slower, most=most)
        here = partial(look, self.evaluator, dies=self)
        looked = set[Hashable]()
        while ways and self.excess(found) > 0:
            base = found.params
            all_ways = (({**base, **way}, n) for n, way in enumerate(ways, 1))
            new = unlike(self.evaluator.means, all_ways, looked)
            for (tried, meaning), (other, excess) in in_turn(self.evaluator, self.second, new, base, look, here):
                looked.add(meaning)
                if other is not None and excess < self.excess(found):
                    self.is_told(other, excess)
                    found, ways = other, ways[tried:]
                    break
            else:
                break
        return found

    def _walked(self, choices: Choices) -> Iterator[Params]:
        """Each of the largest kernels with every other walk."""
        for name in (f"{WALK}.{op.layer}" for group in self._alike for op in group):
            yield from ({name: walk} for walk in choices.get(name, ()))

    @cached_property
    def _alike(self) -> list[list[TensorOp]]:
        """The largest kernels, those together that are alike."""
        space = self.evaluator.space
        largest = sorted(space.fitting.leading, key=lambda op: -op.work)[:_MOST_EASED]
        return alike(largest, space.graph)

    def _less(self, params: Params, choices: Choices) -> Iterator[Params]:
        """What dies may hold more easily."""
        for group in self._alike:
            names = [name for op in group if (name := f"{FAVOUR}.{op.layer}") in choices]
            if names:
                yield {name: choices[name][0] for name in names}
        for name in (PREFETCH, SHARE):
            values = choices.get(name, ())
            if params.get(name) in values[1:]:
                yield {name: values[values.index(params[name]) - 1]}

    def _divided(self, one: Evaluation) -> float:
        library, platform = self.evaluator.assembler.library, self.evaluator.platform
        network = self.evaluator.assembler.network(replace(one.design, memories={}, allocated_for=""))
        usual = {item.name: item.usual for item in stored_items(network, library)}
        memories = large_memories(network, library, usual)
        apart = [ways[0].name for one in memories for ways in one.ways]
        graph = placement_graph(network, platform, library, usual, apart)
        return divide(graph, site_of(platform), memories).excess


def _no_slower(
    evaluator: Evaluator, params: Params, *, most: float, dies: DiesHold | None = None
) -> tuple[Evaluation | None, float]:
    """A setting that takes no longer than that, and by which part dies are exceeded."""
    one = foretell(evaluator, params, (0.0, most, inf)).found
    if one is None or not one.feasible:
        return None, inf
    return one, (dies or DiesHold(evaluator)).excess(one)
