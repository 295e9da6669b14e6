"""Simulation-guided shrinking: the fewest bits with which a run ends as early as before.

Deeper FIFOs never make a run later, so whatever fails keeps failing with less, and each failure says: at least one
of these FIFOs must be deeper. First every FIFO is made as shallow as it can be, in groups: in steps that
matter first, then slot by slot. Then, while the budget lasts, one FIFO at a time is deepened, to see whether others can
give up more for it. In small networks the cheapest depths that satisfy everything learned so far are tried last: when
they succeed, or cost as much as what is known, no choice of depths is better.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from penstock.dse.fifo.cost import total_bits
from penstock.dse.fifo.cover import FailedDepths, cheapest_cover
from penstock.dse.fifo.effort import SizingProgress
from penstock.dse.fifo.known_failures import KnownFailures
from penstock.dse.fifo.measure import MeasureDepths

Depths = dict[str, int]
_SMALL = 24  # FIFOs deeper than the least, up to which depths are proven to be the best
_GRAINS = (64, 1024)  # shares of a part's bits that a FIFO must still hold to be looked at, before each slot counts


@dataclass(frozen=True)
class Shrunk:
    """`bound` is what no sufficient choice of depths can be below, in bits.

    Of the FIFOs that are `open` it was not seen that they need all their slots: the budget ended before.
    """

    depths: Mapping[str, int]
    bits: int
    bound: int
    simulations: int
    open: tuple[str, ...] = ()


def shrink(
    measure: MeasureDepths,
    starts: Sequence[Mapping[str, int]],
    top: Mapping[str, int],
    bits: Mapping[str, int],
    *,
    allowed: tuple[int, ...],
    ahead: Collection[str] = (),
    least: int = 1,
    simulations: int = 1000,
    exhausted: Callable[[], bool] = lambda: False,
    known: KnownFailures | None = None,
    progress: SizingProgress = lambda _: None,
) -> Shrunk:
    """Shrink each of `starts`, all of them sufficient, and take the best on.

    `top` are the depths at which no FIFO can be full: the number of their tokens. Less is not enough of a limit, for
    a narrow FIFO that is deeper than it needs to be may let a wide one be shallow. What loads fetch `ahead` is a part
    of its own: it is so much that what kernels hand over would never matter beside it. It ends after so many
    simulations, or when the budget is `exhausted`.
    """
    known = known or KnownFailures(list(bits))
    search = _Search(measure, bits, allowed, least, simulations, exhausted, known, progress)
    lowest = total_bits(dict.fromkeys(bits, least), bits)
    best = dict(min(starts, key=lambda depths: total_bits(depths, bits)))
    for start in starts:
        largest = sorted(start, key=lambda n: -bits[n] * start[n])
        parts = [[n for n in largest if n not in ahead], [n for n in largest if n in ahead]]
        found = search.minimal(dict(start), parts)
        best = min(best, found, key=lambda depths: total_bits(depths, bits))
    best, bound = search.exchange(best, top), lowest
    if sum(d > least for d in best.values()) <= _SMALL:
        best, bound = search.improve(best, top, lowest)
    return Shrunk(best, total_bits(best, bits), bound, search.used, search.open(best))


class _Search:
    def __init__(
        self,
        measure: MeasureDepths,
        bits: Mapping[str, int],
        allowed: tuple[int, ...],
        least: int,
        simulations: int,
        exhausted: Callable[[], bool],
        known: KnownFailures,
        progress: SizingProgress,
    ) -> None:
        self.measure, self.bits, self.allowed, self.least = measure, bits, allowed, least
        self.budget, self.used, self.exhausted, self.progress = simulations, 0, exhausted, progress
        self.known = known
        self.failures: list[FailedDepths] = []

    @property
    def spent(self) -> bool:
        return self.used >= self.budget or self.exhausted()

    def tried(self, depths: Depths) -> Depths | None:
        """Depths that suffice, at most those given: what is never filled goes. None where they do not suffice."""
        if self.known.cover(depths) or any(
            all(depths[n] <= d for n, d in failure.items()) for failure in self.failures
        ):
            return None
        if not self._suffices(depths):
            return None
        high = self.held
        return {n: max(self.least, min(d, high[n])) for n, d in depths.items()}

    def minimal(self, depths: Depths, parts: Sequence[Sequence[str]]) -> Depths:
        """No FIFO alone could be shallower, where the budget lasts; what saves much of its part goes first."""
        for share, part in product(_GRAINS, parts):
            depths = self._shallower(depths, part, total_bits({n: depths[n] for n in part}, self.bits) // share)
        return self._shallower(depths, [n for part in parts for n in part], 0)

    def open(self, depths: Depths) -> tuple[str, ...]:
        """The FIFOs of which no simulation says that they need all their slots beside the others."""
        deep = [n for n, depth in depths.items() if depth > self.least]
        return tuple(n for n in deep if not self.known.cover(depths | {n: depths[n] - 1}))

    def _shallower(self, depths: Depths, order: Sequence[str], grain: int) -> Depths:
        """Groups go together first, and half way where they cannot go all the way. What could save no more than `grain`
        bits is left as it is."""
        short = dict.fromkeys(order, self.least - 1)  # what is known to be too little beside the others
        pending = [list(order)]

        def may_go(name: str) -> bool:
            left = depths[name] - max(self.least, short[name])
            return left * self.bits[name] > grain and depths[name] - short[name] > 1

        while pending and not self.spent:
            group = [n for n in pending.pop() if may_go(n)]
            if not group:
                continue
            half = {n: (depths[n] + max(self.least, short[n])) // 2 for n in group}
            lowest = {n: self.least if short[n] < self.least else half[n] for n in group}
            found = self.tried(depths | lowest)
            if found is None and len(group) > 1 and half != lowest:
                found = self.tried(depths | half)
            if found is not None:
                depths = found
                pending.append(group)
            elif len(group) == 1:
                short |= lowest
                pending.append(group)
            else:
                middle = len(group) // 2
                pending += [group[middle:], group[:middle]]
        return depths

    def exchange(self, best: Depths, top: Mapping[str, int]) -> Depths:
        """Deepen one FIFO, lower the others again and then it; keep what costs less, until nothing does."""
        cost = total_bits(best, self.bits)
        waiting = sorted(best, key=lambda n: self.bits[n])
        while waiting and not self.spent:
            name = waiting.pop(0)
            if best[name] >= top[name]:
                continue
            others = sorted((n for n in best if n != name), key=lambda n: -self.bits[n] * best[n])
            tried = self._shallower(best | {name: top[name]}, [*others, name], 0)
            if total_bits(tried, self.bits) < cost:
                best, cost = tried, total_bits(tried, self.bits)
                waiting.append(name)
        return best

    def improve(self, best: Depths, top: Mapping[str, int], lowest: int) -> tuple[Depths, int]:
        """Cheaper depths, if there are any, and the bound that is then known."""
        bound = lowest
        while not self.spent and bound < total_bits(best, self.bits):
            candidate = cheapest_cover(self.failures, self.bits, self.least)
            if candidate is None:
                break
            bound = total_bits(candidate, self.bits)
            if bound >= total_bits(best, self.bits):
                return best, total_bits(best, self.bits)
            found = self.tried(candidate)
            if found is not None:
                return found, total_bits(found, self.bits)
            self.failures.append(self._widened(candidate, top))
        return best, min(bound, total_bits(best, self.bits))

    def _widened(self, depths: Depths, top: Mapping[str, int]) -> FailedDepths:
        """The largest depths found around failing ones that still fail: they say the most."""
        wide = dict(depths)
        for name in sorted(wide, key=lambda n: -self.bits[n]):
            low, high = wide[name], top[name]
            if low >= high:
                continue
            if not self._suffices(wide | {name: high}):
                wide[name] = high
                continue
            while high - low > 1 and not self.spent:
                middle = (low + high) // 2
                if self._suffices(wide | {name: middle}):
                    high = middle
                else:
                    low = middle
            wide[name] = low
        # where even the deepest fails, depth is not what is missing
        return {n: d for n, d in wide.items() if d < top[n]}

    def _suffices(self, depths: Depths) -> bool:
        """Simulated; what fails is known from then on, and what was `held` by what does not."""
        self.used += 1
        found = self.measure(depths)
        if not found.within(self.allowed):
            self.known.add(depths)
            return False
        self.held = found.high_water
        self.progress(f"{total_bits(depths, self.bits):,} bits after {self.used} simulations")
        return True
