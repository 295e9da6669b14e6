"""How often the loops of a nest turn at all lengths that a call may say, and when its guards hold whatever it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.nest import GuardAttr, Loop, Term
from penstock.compiler.lengths import ByLength, Length

_MOST_TRIED = 4096
"""Counters of a loop that are tried one by one."""


@dataclass(frozen=True)
class Extents:
    """The loops of a nest, at one length or, with `lengths`, at all of them."""

    loops: Sequence[Loop]
    lengths: Sequence[Length] = ()

    @staticmethod
    def of_trips(trips: Sequence[int]) -> Extents:
        return Extents([Loop(f"d{i}", trip) for i, trip in enumerate(trips)])

    @cached_property
    def least(self) -> tuple[int, ...]:
        """Trips where they are fewest."""
        return tuple([self._ends(loop)[0] for loop in self.loops])

    @cached_property
    def most(self) -> tuple[int, ...]:
        return tuple([self._ends(loop)[1] for loop in self.loops])

    def always_first(self, guard: GuardAttr) -> bool:
        """Whether a guard holds in the first iteration, at every length."""
        return all(self._holds(term, ByLength((), 0)) for term in guard.terms)

    def always_last(self, guard: GuardAttr) -> bool:
        return all(self._holds(term, self.loops[term.loop].number.plus(-1)) for term in guard.terms)

    def exclusive(self, a: GuardAttr, b: GuardAttr) -> bool:
        """Whether two guards hold in no iteration together at any length, as one loop's counter alone tells."""
        for position, loop in enumerate(self.loops):
            terms = [t for t in (*a.terms, *b.terms) if t.loop == position]
            if not terms:
                continue
            if loop.number.factors or any(t.number.factors for t in terms):
                if self._never(loop, terms):
                    return True
            elif loop.trip <= _MOST_TRIED and not any(all(t.of(i) for t in terms) for i in range(loop.trip)):
                return True
        return False

    def _ends(self, loop: Loop) -> tuple[int, int]:
        return (loop.trip, loop.trip) if loop.count is loop.law is None else loop.number.ends(self.lengths)

    def _holds(self, term: Term, counter: ByLength) -> bool:
        """Whether a comparison holds for a counter at every length, as far as the two numbers' distance tells."""
        if term.every or term.comparison == "in":
            return not counter.factors and not term.number.factors and bool(term.of(counter.offset))
        low, high = counter.add(term.number.times(-1)).ends(self.lengths)
        match term.comparison:
            case "eq":
                return low == high == 0
            case "ne":
                return low > 0 or high < 0
            case "ge":
                return low >= 0
            case _:
                return high <= 0

    def _never(self, loop: Loop, terms: Sequence[Term]) -> bool:
        """Whether no counter of the loop fulfils all terms at any length, as far as two of them tell."""
        plain = [term for term in terms if not term.every and term.comparison != "in"]
        said = {sign: [t.number for t in plain if t.comparison == sign] for sign in ("eq", "ne", "ge", "le")}
        if any(number in said["ne"] for number in said["eq"]):
            return True
        lows = [ByLength((), 0), *said["eq"], *said["ge"]]
        highs = [loop.number.plus(-1), *said["eq"], *said["le"]]
        return any(high.add(low.times(-1)).ends(self.lengths)[1] < 0 for low in lows for high in highs)


def extents_of(op: nest.NestOp) -> Extents:
    """How often a nest's loops turn, at all lengths that a call may say."""
    return Extents(op.loops.data, lengths_of_nest(op))


def lengths_of_nest(op: nest.NestOp) -> tuple[Length, ...]:
    task = op.parent_op()
    top = task.parent_op() if task is not None else None
    return top.lengths.data if isinstance(top, stream.TopOp) and top.lengths is not None else ()
