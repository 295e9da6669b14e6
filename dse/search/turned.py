"""The same design with less between its kernels, where that costs no time.

A converter holds what one kernel makes until another reads it in another order: whole tensors where the orders differ
in their slowest dim. A FIFO holds what its reader is too slow for, or takes in tokens that are wider than they come. A
descent through many kernels comes to those of the most work alone, so that a maximum over rows, say, walks otherwise
than what makes the rows, or has twenty times its lanes. Here kernels on both sides of the channels that hold most walk
otherwise, alone, with all around them in step, or with those that do the same to the same tensor, get fewer lanes or
more, or take in bursts sooner. Where much waits time is lost as well: often what holds less is faster, sometimes only
once two kernels are changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.remembered import setting_key
from penstock.dse.evaluation.waiting import Held, held_as_modelled, held_as_needed
from penstock.dse.search.close_looks import held_in, look_closely
from penstock.dse.search.dies import NEARLY, DiesHold
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.shared import in_turn, unlike
from penstock.dse.search.ways import Way, WaysAround, alike_ways, other_ways, ways_of_both_sides
from penstock.dse.space.tiling import Choices

_FASTER, _NEAR = 0.998, 1.5
"""What part of the time may be left; how many times what is enough may be held where small gains may lead to it."""


@dataclass(frozen=True)
class Counting:
    """How bits are counted, at most how many settings are looked at, and how many of them after the last gain."""

    held: Held
    most_looks: int
    most_fruitless: int
    slower: float = 1.002
    """So many times the least may be reached on the way to what is as good again."""
    fewer: float = 0.98
    """What part of the bits may be left."""
    at_last: float = 0.0
    """The same of the best of all, once, where none leaves so few: others may be worth it then."""
    trades: bool = False
    """What is slower by no more than that is taken as well."""
    ways: WaysAround = other_ways
    """What is changed."""
    eased: bool = True
    """What is faster and not held by the dies is made smaller, as far as a search may try that."""
    fitted: bool = False
    """Also settings whose first design is that of others, or slow: what fits of these may be neither."""


AS_MODELLED = Counting(held_as_modelled, 256, 64)
FOR_LESS = Counting(held_as_needed, 24, 24, slower=1.02, fewer=0.85, trades=True, ways=alike_ways)
"""By the model: what it says of designs that wait otherwise is off by a percent or two, so a simulation decides. What
FIFOs need takes several looks to say."""
AS_NEEDED = Counting(held_as_needed, 48, 24)
TRADED = Counting(held_as_needed, 192, 80, slower=1.01, fewer=0.97, at_last=0.985, trades=True)
"""All ways around the largest channels are about eighty. Of smaller gains those that come first lead nowhere."""
BOTH_SIDES = Counting(
    held_as_needed, 96, 64, slower=1.01, fewer=0.985, trades=True, ways=ways_of_both_sides, eased=False, fitted=True
)  # fmt: skip
"""Most are told to be far slower, in no time: what a kernel walks slowly has few lanes there. To make one smaller takes
as long as all of them."""


def less_turned(
    evaluator: Evaluator,
    choices: Choices,
    best: Evaluation,
    dies: DiesHold,
    second: SecondProcess | None = None,
    counting: Counting = AS_MODELLED,
    enough: float = 0,
) -> Evaluation:
    """What holds notably less between kernels or is faster, is as good, and stands on the dies if `best` does; or else
    `best`. It ends when no more than `enough` bits are held."""
    now = settled = best
    waits, most = held_in(evaluator, best, counting.held), max(0.0, dies.excess(best))
    held, least = sum(waits.values()), best.values[0]
    if held <= enough:
        return best
    means = setting_key if counting.fitted else evaluator.means
    looked, last = {means(best.params)}, 0
    tried = set[Way]()  # what is no better mostly is not with other kernels changed either
    at_last = counting.at_last
    while True:
        found, next_best = None, None
        below = (0.0, least * counting.slower, inf)
        look = partial(look_closely, below=below, most=most, held=counting.held, fitted=counting.fitted)
        ways = ((state, way) for way, state in counting.ways(evaluator, choices, now, waits) if way not in tried)
        left = min(counting.most_looks, last + counting.most_fruitless) + 1 - len(looked)
        new, here = islice(unlike(means, ways, looked), max(left, 0)), partial(look, evaluator, dies=dies)
        for (way, meaning), seen in in_turn(evaluator, second, new, now.params, look, here):
            looked.add(meaning)
            tried.add(way)
            other, excess, waiting = seen.found, seen.excess, seen.held
            if other is None or not other.feasible:
                continue
            dies.is_told(other, excess)
            if counting.eased and _is_faster(other, now) and most < excess <= NEARLY:
                smaller = dies.eased_of_many(other, choices)
                if smaller is not None and dies.excess(smaller) <= most:
                    other, waiting = smaller, held_in(evaluator, smaller, counting.held)
            if waiting is None:
                continue
            one = other, waiting, sum(waiting.values())
            if _is_faster(other, now) or one[2] <= held * counting.fewer:
                found = one
                break
            if one[2] <= held * at_last and (next_best is None or one[2] < next_best[2]):
                next_best = one
        if found is None and next_best is not None and held <= enough * _NEAR:
            found, at_last = next_best, 0.0
            tried.clear()
        if found is None:
            return settled
        if _is_faster(found[0], now):
            tried.clear()
        now, waits, held = found
        least, last = min(least, now.values[0]), len(looked)
        if counting.trades or now.values <= settled.values:  # else the other would be chosen again
            settled = now
            if held <= enough:
                return settled


def _is_faster(one: Evaluation, now: Evaluation) -> bool:
    return one.values[0] < now.values[0] * _FASTER
