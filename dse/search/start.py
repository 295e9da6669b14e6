"""What a search tries before it proposes anything itself: the first guess, the fullest designs, bolder guesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search.climb import climb
from penstock.dse.search.fill import LANES, fill, fits
from penstock.dse.search.samplers import within
from penstock.dse.space.grouping import BUDGET, FUSED, GREEDY
from penstock.dse.space.paced import PACED
from penstock.dse.space.tiling import Choices, Params, Value

TILE = "default_tile_size"
_MOST_FILLED = 4
_QUICKLY_MODELLED = 12
"""Kernels up to which more than the first guess is filled; larger tiles too, whose size limits lanes."""


def starting_settings(evaluator: Evaluator, choices: Choices | None = None) -> tuple[dict[str, Value], ...]:
    """The settings in their order; with `choices`, as far as these leave something open."""
    space = evaluator.space
    choices = choices or space.choices
    guess, *bolder = space.first_settings()
    if not fits(evaluator, guess) and (grouped := _grouped(evaluator, guess)) is not None:
        bolder = [grouped, *bolder]
    met = {evaluator.means(guess)}
    filled: list[tuple[tuple[float, ...], dict[str, Value]]] = []
    candidates = [fill(evaluator, params) for params in _kinds(evaluator, [guess, *bolder])]
    if PACED in choices["allocation"]:
        quick = len(space.graph.operations) <= _QUICKLY_MODELLED
        candidates += [_paced(evaluator)] if quick else []
        bolder += [] if quick else space.paced_settings()
    for found in candidates:
        if found is None or (meaning := evaluator.means(found)) in met:
            continue
        met.add(meaning)
        filled.append((evaluator.evaluate(found).values, found))
    best = [params for _, params in sorted(filled, key=lambda one: one[0])[:_MOST_FILLED]]
    settings = [within(params, choices) for params in (guess, *best, *bolder)]
    return tuple(params for place, params in enumerate(settings) if params not in settings[:place])


def _paced(evaluator: Evaluator) -> dict[str, Value] | None:
    """The best that is met on the way from the first paced settings."""
    filled = [found for params in evaluator.space.paced_settings() if (found := fill(evaluator, params)) is not None]
    if not filled:
        return None
    return climb(evaluator, min(filled, key=lambda params: evaluator.evaluate(params).values))


def _grouped(evaluator: Evaluator, params: Params) -> dict[str, Value] | None:
    """What does not fit together may fit in groups: with as much memory between kernels as fits on the fewest lanes."""
    fewest = evaluator.space.choices[LANES][0]
    for budget in reversed(evaluator.space.choices.get(BUDGET, ())):
        setting = {**params, "fusion": GREEDY, BUDGET: budget}
        if fits(evaluator, {**setting, LANES: fewest}):
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
