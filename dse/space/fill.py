"""As many lanes as the device holds: the largest setting of a kind whose modelled design keeps every limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compiler.errors import PenstockError
from dse.evaluate import Evaluator
from dse.space.grouping import BUDGET, FUSED, GREEDY
from dse.tiling import Params, Value

LANES, TILE = "overall_unroll_size", "default_tile_size"
_MOST_FILLED = 4
_QUICKLY_MODELLED = 12
"""Kernels up to which more than the first guess is filled; larger tiles too, whose size limits lanes."""


def starting_settings(evaluator: Evaluator) -> tuple[dict[str, Value], ...]:
    """What a search tries before it proposes anything itself: its first guess, the fullest designs, bolder guesses."""
    guess, *bolder = evaluator.space.first_settings()
    if not _fits(evaluator, guess) and (grouped := _grouped(evaluator, guess)) is not None:
        bolder = [grouped, *bolder]
    met = {evaluator.meaning(evaluator.space.design(guess))}
    filled: list[tuple[tuple[float, ...], dict[str, Value]]] = []
    for params in _kinds(evaluator, [guess, *bolder]):
        found = fill(evaluator, params)
        if found is None or (meaning := evaluator.meaning(evaluator.space.design(found))) in met:
            continue
        met.add(meaning)
        filled.append((evaluator.evaluate(found).values, found))
    best = [params for _, params in sorted(filled, key=lambda one: one[0])[:_MOST_FILLED]]
    settings = [guess, *best, *bolder]
    return tuple(params for place, params in enumerate(settings) if params not in settings[:place])


def fill(evaluator: Evaluator, params: Params) -> dict[str, Value] | None:
    """The same setting with the most lanes that fit, found by bisection; None where not even the fewest do.

    More lanes mostly take more of everything; where they do not, a larger setting that fits may be passed over, but
    what is found fits.
    """
    sizes = evaluator.space.choices[LANES]
    low, high = 0, len(sizes)  # sizes below `low` fit, the one at `high` does not
    while low < high:
        middle = (low + high) // 2
        if _fits(evaluator, {**params, LANES: sizes[middle]}):
            low = middle + 1
        else:
            high = middle
    return {**params, LANES: sizes[low - 1]} if low else None


def _grouped(evaluator: Evaluator, params: Params) -> dict[str, Value] | None:
    """What does not fit together may fit in groups: with as much memory between kernels as fits on the fewest lanes."""
    fewest = evaluator.space.choices[LANES][0]
    for budget in reversed(evaluator.space.choices.get(BUDGET, ())):
        setting = {**params, "fusion": GREEDY, BUDGET: budget}
        if _fits(evaluator, {**setting, LANES: fewest}):
            return fill(evaluator, setting)
    return None


def _kinds(evaluator: Evaluator, first: Sequence[Mapping[str, Value]]) -> Iterator[dict[str, Value]]:
    """The first settings that differ in more than lanes, with their own tiles and with four times as large ones.

    Of a model that takes seconds to model, the first guess alone.
    """
    if len(evaluator.space.graph.operations) > _QUICKLY_MODELLED:
        yield from (dict(params) for params in first[:1] if params.get("fusion", FUSED) == FUSED)
        yield from (dict(params) for params in first if params.get("fusion", FUSED) != FUSED)
        return
    kinds = {tuple(sorted((name, value) for name, value in p.items() if name != LANES)): p for p in first}
    tiles = evaluator.space.choices[TILE]
    for params in kinds.values():
        yield dict(params)
        place = tiles.index(params[TILE])
        yield from ({**params, TILE: tile} for tile in tiles[place + 2 : place + 3])


def _fits(evaluator: Evaluator, params: Params) -> bool:
    try:
        return evaluator.evaluate(params).feasible
    except PenstockError:  # so many lanes cannot even be scheduled, or laid out
        return False
