"""What a search tries before it proposes anything itself: the best walks, smaller ones, filled guesses."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf

from penstock.compiler.errors import PenstockError
from penstock.dse.bounds.bound import GoalBounds, LowerBound
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import much_between, needs_more_than
from penstock.dse.finishing.placement import place
from penstock.dse.search.descent import descend, rewalked
from penstock.dse.search.dies import NEARLY, DiesHold
from penstock.dse.search.effort import near_enough, usual_trials
from penstock.dse.search.fill import LANES, fill, fits
from penstock.dse.search.front import smaller
from penstock.dse.search.held import held
from penstock.dse.search.sampler_kinds import DEFAULT_SAMPLER, sampler_kind
from penstock.dse.search.samplers import within
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.shared import in_turn, shared
from penstock.dse.search.turned import AS_NEEDED, BOTH_SIDES, FOR_LESS, TRADED, less_turned
from penstock.dse.search.worth import ANY, foretell, rank_of
from penstock.dse.space.external import PREFETCH, STRIPES
from penstock.dse.space.fitted import BURST, COMPACT, FAVOUR, FITTED, IN_TURN, SHARE
from penstock.dse.space.grouping import BUDGET, FUSED, GREEDY
from penstock.dse.space.tasks import MAPPING
from penstock.dse.space.tiling import Choices, Params, Value
from penstock.dse.support.budgets import DEFAULT_GAP, QUICKLY_MODELLED

TILE = "default_tile_size"
_MOST_FILLED = 4
_MOST_REWALKED = 5
"""Relatives of the best of which other walks are tried where none of all finds a place."""
_MOST_PLACED = 12
"""Relatives of the best that are divided among the dies, as exactly as a finished design is, until one can be."""
_MOST_WAITING_OTHERWISE = 2
_AS_FAST = 1.02
"""By the model: it says less of where inputs that follow each other wait than a simulation does."""
_AIM = 0.9
"""Of what is much, where more is needed: once FIFOs are sized they mostly hold a little more than what is needed."""
_FEWER_OF = {SHARE: 3, STRIPES: 2, PREFETCH: 1}
"""How many smaller values of a parameter these take."""


@dataclass(frozen=True)
class SearchPlan:
    """How a search goes: what it tries first, how many trials it makes, and what ends it."""

    first: tuple[dict[str, Value], ...]
    modelled: int
    """Settings that were looked at to find the first."""
    trials: int
    bound: LowerBound
    enough: float
    """Of the first objective: so near to the bound that nothing better is worth looking for."""
    near_enough: bool
    """The first settings reach it."""


def plan(
    evaluator: Evaluator,
    choices: Choices,
    sampler: str,
    trials: int | None = None,
    gap: float = DEFAULT_GAP,
    second: SecondProcess | None = None,
) -> SearchPlan:
    """With so many trials, or as many as suit the space. An error where no design keeps to the limits."""
    bounds = GoalBounds(evaluator)
    bounds.check_possible()
    bound = bounds.of_goal()
    enough = near_enough(bound, gap)
    kernels = len(evaluator.space.graph.operations)
    if sampler_kind(sampler).walks:
        return SearchPlan((), 0, trials or usual_trials(choices, 0, kernels), bound, enough, near_enough=False)
    first, modelled = starting_settings(evaluator, choices, enough, second)
    found = [evaluator.evaluate(params) for params in first[:1]]
    done = any(one.feasible and one.values[0] <= enough for one in found)
    descended = modelled > 0 and sampler == DEFAULT_SAMPLER and all(_is_all(evaluator, one) for one in found)
    most = trials or usual_trials(choices, len(first), kernels, descended=descended)
    most = len(first) if MAPPING in choices else most
    return SearchPlan(first, modelled, min(most, len(first)) if done else most, bound, enough, done)


def starting_settings(
    evaluator: Evaluator,
    choices: Choices | None = None,
    enough: float = 0.0,
    second: SecondProcess | None = None,
) -> tuple[tuple[dict[str, Value], ...], int]:
    """What is tried first, and how many settings were modelled to find it; with `choices`, as far as these are open.

    What is as good as `enough` ends the descent.
    """
    choices = choices or evaluator.space.choices
    if MAPPING in choices:  # a task program: nothing is tiled
        return tuple({MAPPING: value} for value in choices[MAPPING]), 0
    found = descend(evaluator, choices, enough=enough, second=second)
    settings: list[dict[str, Value]] = []
    modelled = 0
    if found is not None:
        best = dict(found.best.params)
        less, more = smaller(evaluator, best, choices)
        fastest = min([best, *less[:1]], key=lambda one: rank_of(evaluator.assume(one)))
        dies = DiesHold(evaluator, second)
        divisible = _divisible(evaluator, fastest, choices, dies, second)
        turned = _turned_less(evaluator, (divisible or [fastest])[0], choices, dies, second)
        otherwise = waiting_otherwise(found.timed, found.best) if evaluator.goal.weighs_frames else []
        settings += [fastest, *turned, *divisible, best, *otherwise, *less]
        modelled = found.tried + more
    if set(choices["allocation"]) != {FITTED} and not (found is not None and _is_all(evaluator, found.best)):
        settings += [within(params, choices) for params in _guesses(evaluator)]
    return tuple(_new_and_fitting(evaluator, settings, second)), modelled


def _is_all(evaluator: Evaluator, best: Evaluation) -> bool:
    """Whether nothing but the best of a descent is worth a trial. Of models of many kernels guesses of other kinds, and
    what a sampler proposes after so few trials of so many parameters, are several times slower or miss a limit."""
    many = len(evaluator.space.graph.operations) > QUICKLY_MODELLED
    return many and best.feasible and len(evaluator.goal.objectives) == 1


def waiting_otherwise(timed: Sequence[Evaluation], best: Evaluation) -> list[dict[str, Value]]:
    """Designs as fast as the best in which rows and weights wait in other places, the best first.

    Two layers may take turns where the model has them work at once. One that waits elsewhere mostly does not do so in
    the same place, and which one is faster a simulation of a few inputs says.
    """
    kinds = {_waits(best.params): dict(best.params)}
    for one in timed:
        if one.feasible and one.values[0] <= best.values[0] * _AS_FAST:
            kinds.setdefault(_waits(one.params), dict(one.params))
    return list(kinds.values())[1 : 1 + _MOST_WAITING_OTHERWISE]


def _waits(params: Params) -> Hashable:
    """What says where tokens of several inputs wait."""
    said = (IN_TURN, STRIPES, f"{BURST}.", f"{COMPACT}.")
    return tuple(sorted((name, value) for name, value in params.items() if name.startswith(said)))


def _turned_less(
    evaluator: Evaluator, best: Params, choices: Choices, dies: DiesHold, second: SecondProcess | None
) -> list[dict[str, Value]]:
    """What holds less between kernels than the best that finds a place, and is as fast; first as the model has it, of
    many kernels then as FIFOs need it, if that is much, until it is not: also what is a little slower by the model for
    less, which a simulation may choose."""
    found = evaluator.assume(best)
    other = less_turned(evaluator, choices, found, dies, second)
    settings = [] if other is found else [dict(other.params)]
    much = much_between(evaluator.space.graph)
    if needs_more_than(_AIM * much, evaluator, other):
        for counting in (FOR_LESS, AS_NEEDED, TRADED, BOTH_SIDES):
            before, other = other, less_turned(evaluator, choices, other, dies, second, counting, enough=_AIM * much)
            settings = settings if other is before else [dict(other.params), *settings]
    return settings


def _divisible(
    evaluator: Evaluator, best: dict[str, Value], choices: Choices, dies: DiesHold, second: SecondProcess | None
) -> list[dict[str, Value]]:
    """Where the best finds no place on the dies, the best of its kind that does: limits of the chip know no dies.

    First, where little is exceeded, kernels are favoured less, one after the other, as long as dies and links are
    exceeded by less then: what is not the slowest loses lanes, and no time. Where weights come through many banks, a
    search of its own goes on with fewer of them and less of the limits (`held.py`). Smaller designs find a place as
    well, and those whose tensors pass through fewer banks or wait in shallower FIFOs: wires between dies are short
    where the words of many banks are joined, and memories beside the ports. These are divided as exactly as a finished
    design is. With fewer lanes and banks other walks of the largest kernels are the best: it matters more then which
    kernels work at the same time.
    """
    if len(evaluator.platform.dies) == 1:
        return []
    first = evaluator.assume(best)
    near: Evaluation | None = None
    if dies.excess(first) > 0:
        eased = dies.eased(first, choices) if dies.excess(first) <= NEARLY else None
        if eased is not None and _finds_a_place(evaluator, eased.params):
            return [dict(eased.params)]
        others = held(evaluator, choices, first, dies, second)
        near = next((one for one in others if _finds_a_place(evaluator, one.params)), None)
    elif evaluator.may_use == evaluator.platform.limits or _finds_a_place(evaluator, best):
        return []  # the division knows the platform's limits, and none that a user gave
    relatives = _relatives(evaluator, best, choices, near, second)
    if near is not None:  # of those that would be better, the ones that may be held
        relatives = [one for one in relatives if one.values < near.values and dies.excess(one) <= NEARLY]
    found = next((one for one in relatives[:_MOST_PLACED] if _finds_a_place(evaluator, one.params)), None)
    if near is not None and found is None:
        return [dict(near.params)]
    walked = (rewalked(evaluator, choices, one.params) for one in ([found] if found else relatives[:_MOST_REWALKED]))
    better = [one for one in walked if one is not None and one.feasible and not (found and one.values >= found.values)]
    for one in sorted(better, key=lambda one: one.values):
        if _finds_a_place(evaluator, one.params):
            return [dict(one.params)]
    return [] if found is None else [dict(found.params)]


def _relatives(
    evaluator: Evaluator, best: Params, choices: Choices, near: Evaluation | None, second: SecondProcess | None
) -> list[Evaluation]:
    """One of each kind of design that keeps to the limits with less of something, the best first.

    Also with no kernel favoured: what helps the best is seldom what helps others. Those that would be slower than what
    is `near` even if no FIFO were ever full are left out.
    """
    less = {name: [best[name], *_below(name, best, choices)] for name in _FEWER_OF if name in best and name in choices}
    changes = [dict(zip(less, values, strict=True)) for values in product(*less.values())]
    plain = {name: 100 if name.startswith(f"{FAVOUR}.") else value for name, value in best.items()}
    ways = dict.fromkeys(tuple({**way, **change}.items()) for way in (best, plain) for change in changes)
    states = [dict(way) for way in ways if dict(way) != best]
    look = partial(foretell, below=ANY if near is None else (0.0, near.values[0], inf))
    ways = ((state, None) for state in states)
    looks = in_turn(evaluator, second, ways, best, look, partial(look, evaluator))
    found = [said.found for _, said in looks if said.found is not None and said.found.feasible]
    kinds: dict[Hashable, Evaluation] = {}
    for one in sorted(found, key=lambda one: one.values):
        evaluator.is_told(one)
        kinds.setdefault(evaluator.meaning(one.design), one)
    return list(kinds.values())


def _below(name: str, best: Params, choices: Choices) -> list[Value]:
    """The next smaller values of a parameter, the largest first; none of one that there is not."""
    smaller = [value for value in choices.get(name, ()) if int(value) < int(best[name])]
    return sorted(smaller, key=int, reverse=True)[: _FEWER_OF[name]]


def _finds_a_place(evaluator: Evaluator, params: Params) -> bool:
    try:
        design = evaluator.assume(params).design.unallocated()
        network, library = evaluator.assembler.network(design), evaluator.assembler.library
        place(network, evaluator.platform, library, design, divide=True, limits=evaluator.may_use, best=False)
    except PenstockError:  # its trial would say why
        return False
    return True


def _new_and_fitting(
    evaluator: Evaluator, settings: Sequence[dict[str, Value]], second: SecondProcess | None
) -> list[dict[str, Value]]:
    """Each design once, and none that keeps no limit, unless none does."""
    fitting: dict[object, dict[str, Value]] = {}
    others: dict[object, dict[str, Value]] = {}
    for params in shared(evaluator, settings, second):
        try:
            found = evaluator.assume(params)
        except PenstockError:  # its trial would say why
            continue
        kept = fitting if found.feasible else others
        kept.setdefault(evaluator.meaning(found.design), params)
    return list((fitting or others).values()) or list(settings[:1])


def _guesses(evaluator: Evaluator) -> list[dict[str, Value]]:
    """The first guess, the best of its filled relatives, and bolder ones."""
    guess, *bolder = evaluator.space.first_settings()
    if not fits(evaluator, guess) and (grouped := _grouped(evaluator, guess)) is not None:
        bolder = [grouped, *bolder]
    filled: list[Evaluation] = []
    for params in _kinds(evaluator, [guess, *bolder]):
        if (full := fill(evaluator, params)) is not None:
            filled.append(evaluator.assume(full))
    best = sorted(filled, key=lambda one: one.values)[:_MOST_FILLED]
    paced = [] if not evaluator.space.paced_settings() else [evaluator.space.paced_settings()[-1]]
    return [guess, *(dict(one.params) for one in best), *bolder, *paced]


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
    if len(evaluator.space.graph.operations) > QUICKLY_MODELLED:
        yield from (dict(params) for params in first[:1] if params.get("fusion", FUSED) == FUSED)
        yield from (dict(params) for params in first if params.get("fusion", FUSED) != FUSED)
        return
    kinds = {tuple(sorted((name, value) for name, value in p.items() if name != LANES)): p for p in first}
    tiles = evaluator.space.choices[TILE]
    for params in kinds.values():
        yield dict(params)
        place = tiles.index(params[TILE])
        yield from ({**params, TILE: tile} for tile in tiles[place + 2 : place + 3])
