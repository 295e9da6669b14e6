"""One kernel of a design at a pace: the fewest lanes with which it keeps up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod, sqrt

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.platforms import Resources
from penstock.dse.lanes.costs import LaneCosts
from penstock.dse.lanes.factors import Lanes, cheapest, useful_factors


@dataclass(frozen=True)
class PacedKernel:
    """What the search for a pace asks of a kernel again and again."""

    op: TensorOp
    leader: str | None
    """The layer that it walks along with."""
    shared: tuple[int, ...]
    """Which of the leader's dims each of its own is."""
    work: int
    slowness: float
    part: float
    """Of a pace, that it may take."""
    hurry: int
    """How many times as fast as that it is beside its leader; 0 where it takes whole tokens."""
    options: tuple[Lanes, ...]
    single: Lanes | None
    """Its lanes, where somebody decided them."""
    least: Resources
    """Of one lane."""
    counts: bool
    """Whether its lanes are among those of which there may be so many."""
    in_turn: bool = False
    """The sum of all times counts: where it has no lanes for its part of a pace, it goes as fast as it can."""

    def keeping_up(self, pace: float, found: Mapping[str, Lanes]) -> Lanes | None:
        """The fewest lanes that keep up."""
        if self.single is not None:
            return self.single
        if self.leader is None:
            fewest = cheapest(self.options, pace * self.part / self.slowness)
            return self.options[0] if fewest is None and self.in_turn else fewest
        return self._alongside(found[self.leader].unroll, pace * self.part / self.hurry if self.hurry else 0.0)

    def _alongside(self, leading: tuple[int, ...], pace: float) -> Lanes:
        """As few lanes as keep up, parts of the tokens that the leader sends; at most all of a token.

        Of its outermost dims first: then one slice of a token after the other goes on, as it lies in the tensor and as
        whoever sums over the inner dims wants it. Parts of all slices at once would be turned around for that.
        """
        unroll = [leading[d] for d in self.shared]
        count = prod(unroll)
        for d in [d for d, lanes in enumerate(unroll) if lanes > 1]:
            lanes, others = unroll[d], count // unroll[d]
            unroll[d] = next((n for n in useful_factors(lanes) if self.work <= pace * n * others), lanes)
            count = others * unroll[d]
        return Lanes(-(-self.work // count), tuple(unroll))


def parts_in_turn(operations: Sequence[TensorOp], costs: LaneCosts, limits: Resources) -> dict[str, float]:
    """Of kernels that run one after the other, what part of a pace each may take.

    Lanes l_i for work w_i at a cost of c_i a lane make the sum of w_i / l_i least, for a given sum of c_i l_i, where
    every w_i / l_i is in proportion to the root of c_i w_i.
    """
    roots = dict[str, float]()
    for op in operations:
        lane = costs.of_lane(op, "") * 2 + costs.shared(op)  # of two lanes, which may share an operator
        share = lane.lut / max(1, limits.lut) + lane.dsp / max(1, limits.dsp)
        roots[op.layer] = sqrt(op.work * max(share, 1 / max(1, limits.lut)))
    longest = max(roots.values())
    return {layer: root / longest for layer, root in roots.items()}
