"""FIFOs that hold what one input needs, where with those of the next ones they would hold much between kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import held_as_sized, much_between, needs_more_than
from penstock.dse.rungs import Bench
from penstock.dse.rungs.ahead import AskedElsewhere

_LESS, _NO_SLOWER, _BLOCK_BITS = 0.85, 0.92, 18 * 1024
"""What part of much may be left where time is given for less, or the pace of inputs for which nobody asked; bits of a
block RAM, which are to be saved then."""
_LIKELY = 0.6
"""Of what is much: who needs so much for one input may hold much. Who asks has nothing else to do meanwhile."""


def for_one_input(evaluator: Evaluator, found: Evaluation, sized: Callable[[], Evaluation]) -> Evaluation:
    """As it is `sized` for one input, where that holds less, if much is held and nothing asks for the next ones."""
    if not _may_be_for_one(evaluator) or (held := held_by(evaluator, found)) <= much_held(evaluator):
        return found
    other = sized()
    less = held_by(evaluator, other)
    if other.feasible < found.feasible or not is_less(evaluator, less, held, _NO_SLOWER):
        return found
    said = (
        f"FIFOs between kernels hold the {less:,} bits that one input needs; with {held:,} the next ones may follow "
        "sooner: --objective latency --objective throughput keeps that"
    )
    return replace(other, for_one_note=said)


def _may_be_for_one(evaluator: Evaluator) -> bool:
    goal = evaluator.goal
    return not (goal.weighs_frames or goal.sizes_for_one) and much_held(evaluator) < inf


def much_held(evaluator: Evaluator) -> float:
    """Bits between kernels from which on less is worth some effort."""
    return max(much_between(evaluator.space.graph), _BLOCK_BITS)


def held_by(evaluator: Evaluator, sized: Evaluation) -> int:
    return sum(held_as_sized(evaluator, sized.design).values())


def is_less(evaluator: Evaluator, less: int, held: int, share: float = _LESS) -> bool:
    """Whether it is worth a little time, or what leaves such a `share`, to hold that instead of what is much."""
    return less <= max(min(share * held, held - _BLOCK_BITS), much_held(evaluator))


def sized_ahead(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> AskedElsewhere | None:
    """A design that another process sizes for one input, while this process sizes it for those that follow.

    None where that will not be wanted, or nobody does it.
    """
    if bench.elsewhere is None or not _may_be_for_one(evaluator):
        return None
    asked = (evaluation, bench.fifo_simulations, bench.fifo_slack / 100)
    return AskedElsewhere.of(bench.elsewhere, evaluator, sized_where_it_may_be_wanted, asked, first=True)


def sized_where_it_may_be_wanted(
    evaluator: Evaluator, evaluation: Evaluation, simulations: int, tolerance: float
) -> Evaluation | str:
    """For one input, or why not: whoever asked says it otherwise."""
    try:
        if not needs_more_than(_LIKELY * much_held(evaluator), evaluator, evaluation, seen=True):
            return "it will hold little"
        return evaluator.tightened(evaluation, simulations=simulations, tolerance=tolerance, one_input=True)
    except PenstockError as error:
        return error.one_line()
