"""Kernels beside the largest converters walk otherwise where that costs no time, and tensors are turned around less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import cast

import pytest

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import (
    Held,
    converters_of,
    held_as_modelled,
    held_as_needed,
    held_between,
)
from penstock.dse.search import close_looks, turned, worth
from penstock.dse.search.close_looks import CloseLook
from penstock.dse.search.dies import DiesHold
from penstock.dse.search.second import Foretold, Rank, SecondProcess
from penstock.dse.search.turned import Counting, less_turned
from penstock.dse.search.ways import Way, alike_ways, other_ways, ways_of_both_sides
from penstock.dse.space.external import STRIPES
from penstock.dse.space.fitted import BURST, COMPACT, FAVOUR, FAVOURS, IN_TURN, SHARE, WALK, cap_of, outer_of
from penstock.dse.space.tiling import Choices, Params, TilingOptions, Value
from penstock.profiling.handed_over import handed_over
from penstock.profiling.network import TaskNetwork

QUERIES, KEYS, VALUES = (f"{WALK}.attn.{product}" for product in ("mm", "mm_2", "mm_3"))
SCORES, HIGHEST, SCORING = "convert.attn.add_4.block", f"{WALK}.attn.amax", f"{WALK}.attn.bmm"


class NoRoom(DiesHold):
    """Dies that hold nothing but the first that is asked about."""

    def excess(self, one: Evaluation) -> float:
        return float(one.params[HIGHEST] != "0")


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    program = prepare(import_model("zoo:gpt2?size=real&mode=decode&seq=1&cache=128"), "w8a8")
    return Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))


@pytest.fixture(scope="module")
def best(evaluator: Evaluator) -> Evaluation:
    """One token of a decoder block, with scores that come place by place and are looked through head by head."""
    setting = evaluator.space.fitted_setting()
    flowing = evaluator.space.fitting.flowing(evaluator.space.settings(setting))
    return evaluator.assume({**setting, **flowing, IN_TURN: True, HIGHEST: "0", SHARE: 40, STRIPES: 16})


@pytest.fixture(scope="module")
def found(evaluator: Evaluator, best: Evaluation) -> Evaluation:
    return less_turned(evaluator, evaluator.space.choices, best, DiesHold(evaluator))


def held(evaluator: Evaluator, one: Evaluation) -> int:
    return sum(converters_of(evaluator.assembler.network(one.design)).values())


def other(evaluator: Evaluator, best: Evaluation, count: Held = held_as_modelled) -> list[tuple[Way, dict[str, Value]]]:
    here = count(evaluator, best, evaluator.assembler.network(best.design))
    return list(other_ways(evaluator, evaluator.space.choices, best, here))


def ways(evaluator: Evaluator, best: Evaluation) -> list[Way]:
    return [way for way, _ in other(evaluator, best)]


def test_a_maximum_over_scores_is_taken_as_they_come(evaluator: Evaluator, best: Evaluation, found: Evaluation) -> None:
    assert found.feasible
    assert found.values[0] < 0.9 * best.values[0], "what waits less is faster, once several kernels are changed"
    assert held(evaluator, found) < 0.9 * held(evaluator, best)
    scores = [converters_of(evaluator.assembler.network(one.design)).get(SCORES, 0) for one in (best, found)]
    assert scores[1] <= scores[0] / 2


class SecondOf:
    """One that looks at what it is asked about when somebody waits for it, in that order, and never at a fifth one."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator, self.answers = evaluator, list[object]()
        self.left = list[Callable[[], object]]()
        self.used = list[CloseLook]()

    def work_for(self, _: Evaluator) -> None:
        pass

    def call(self, function: Callable[..., object], calls: Sequence[tuple[Params]]) -> range:
        first = len(self.answers) + len(self.left)
        self.answers += [None] * len(self.left)  # it does what it was asked for last
        self.left = [partial(function, self.evaluator, changes) for (changes,) in calls]
        return range(first, first + len(calls))

    def answer(self, number: int) -> object:
        if number < len(self.answers) and isinstance(said := self.answers[number], CloseLook):
            self.used.append(said)
            return said
        return None

    def awaited(self, number: int, seconds: float) -> object:
        assert number == len(self.answers), "it is at no other"
        assert 0 <= seconds < 60
        if len(self.answers) % 5 < 4:
            self.answers.append(self.left.pop(0)())
        return self.answer(number)


@pytest.mark.parametrize("count", [held_as_modelled, held_as_needed])
def test_a_second_process_changes_nothing(evaluator: Evaluator, best: Evaluation, count: Held) -> None:
    """It says as well whether the dies hold a design, and what waits in it."""
    second, counting, choices = SecondOf(evaluator), Counting(count, 24, 12), evaluator.space.choices
    alone = less_turned(evaluator, choices, best, DiesHold(evaluator), counting=counting)
    dies = DiesHold(evaluator)
    with_it = less_turned(evaluator, choices, best, dies, cast(SecondProcess, second), counting)
    assert with_it.params == alone.params
    said = [(one.found, one) for one in second.used if one.found is not None and one.held is not None]
    assert said
    for found, one in said:
        assert (dies.excess(found), sum((one.held or {}).values())) == (
            one.excess,
            held_between(evaluator, found, count),
        )


def test_the_many_walks_of_one_kernel_leave_looks_for_the_others(
    evaluator: Evaluator, best: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The product before the scores has 44 other walks, the maximum of them 9."""
    looks, means = list[str](), list[object]()

    def nothing(_: Evaluator, params: Params, below: Rank) -> Foretold:
        assert below[1] >= best.values[0], "what is as good is wanted"
        means.append(evaluator.means(params))
        looks.extend(name for name, value in params.items() if value != best.params[name])
        return Foretold(None, None, None)

    monkeypatch.setattr(close_looks, "foretell", nothing)
    assert less_turned(evaluator, evaluator.space.choices, best, DiesHold(evaluator)) is best
    kernels = dict.fromkeys(looks)
    assert len(kernels) > 2
    assert max(looks.count(name) for name in kernels) < len(looks) / 2
    assert len(means) == len(set(means)), "walks of few lanes that mean the same design are one look"


def test_walks_in_step_with_the_other_side_come_first(evaluator: Evaluator, best: Evaluation) -> None:
    """Scores come place by place: the maximum of them is looked for so first, with many lanes or few."""
    walks = [str(way.value) for way in ways(evaluator, best) if way.name == HIGHEST and not way.in_step]
    along = [walk for walk in walks if outer_of(walk) == "1"]
    assert len(along) > 2
    assert walks[: len(along)] == along


def test_lanes_and_bursts_are_changed_in_small_steps(evaluator: Evaluator, best: Evaluation) -> None:
    """What looks through scores faster than they come takes them in as wide tokens, which wait until they are whole."""
    found: dict[str, list[Value]] = {}
    for way in ways(evaluator, best):
        found.setdefault(way.name, []).append(way.value)
    assert {name.partition(".")[0] for name in found} == {WALK, FAVOUR, BURST, COMPACT}
    favoured = [values for name, values in found.items() if name.startswith(FAVOUR)]
    here = FAVOURS.index(100)
    assert {abs(FAVOURS.index(int(values[0])) - here) for values in favoured} == {1}


def test_what_fifos_hold_counts_as_well(evaluator: Evaluator, best: Evaluation, found: Evaluation) -> None:
    """As the model has it: three converters less would be no gain if a FIFO held as much more."""
    assert held_between(evaluator, found) < 0.9 * held_between(evaluator, best)


def test_what_dies_do_not_hold_and_what_is_not_open_stays(evaluator: Evaluator, best: Evaluation) -> None:
    choices = {name: (best.params[name],) for name in evaluator.space.choices if name in best.params}
    assert less_turned(evaluator, choices, best, DiesHold(evaluator)) is best
    kept = less_turned(evaluator, evaluator.space.choices, best, NoRoom(evaluator))
    assert kept.params[HIGHEST] == "0"


def test_only_so_many_are_made_smaller_in_vain(
    evaluator: Evaluator, best: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One takes as long as ten looks: a search would spend minutes on what the dies do not hold."""
    eased = list[bool]()

    class Full(DiesHold):
        def excess(self, one: Evaluation) -> float:
            return 0.0 if one is best else 0.5

        def eased(self, best: Evaluation, choices: Choices, *, rewalked: bool = True) -> Evaluation | None:
            eased.append(rewalked)

    def alike(_: Evaluator, params: Params, below: Rank) -> Foretold:
        return Foretold(None, None, None, replace(best, params=dict(params)))

    monkeypatch.setattr(close_looks, "foretell", alike)
    monkeypatch.setattr(turned, "_is_faster", lambda one, now: True)
    full = Full(own := replace(evaluator))  # which is told what is not so
    for _ in range(2):  # the passes of a search share what may be tried
        assert less_turned(own, own.space.choices, best, full) is best
        assert eased == [True, True, False, False, False, False]
    eased.clear()
    counting = Counting(held_as_modelled, 64, 64, eased=False)
    assert less_turned(own, own.space.choices, best, Full(own), counting=counting) is best
    assert not eased, "nor any that is looked at for less alone"


def held_by_both(_: Evaluator, one: Evaluation, network: TaskNetwork) -> dict[str, int]:
    """Twice as much where keys and values are made in different orders."""
    bits = 1 if one.params[KEYS] == one.params[VALUES] else 2
    return {name: bits for name in network.channels if name.startswith(("attn_mm_2__", "attn_mm_3__"))}


@pytest.fixture(scope="module")
def apart(evaluator: Evaluator, best: Evaluation) -> Evaluation:
    return evaluator.assume({**best.params, KEYS: "0", VALUES: "1"})


def test_kernels_that_are_alike_change_together(evaluator: Evaluator, apart: Evaluation) -> None:
    """Keys and values are equal products of one tensor: with one of them alone nothing is gained here."""
    choices, counting = evaluator.space.choices, Counting(held_by_both, 64, 32)
    both = [state for way, state in other(evaluator, apart, held_by_both) if way.with_alike]
    assert any(state[KEYS] == state[VALUES] != apart.params[VALUES] for state in both)
    found = less_turned(evaluator, choices, apart, DiesHold(evaluator), counting=counting)
    assert found.params[KEYS] == found.params[VALUES]


def test_for_less_only_they_change_until_it_is_enough(
    evaluator: Evaluator, best: Evaluation, apart: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the model has it a little slower."""
    looked, foretold = list[Params](), close_looks.foretell

    def told(evaluator: Evaluator, params: Params, below: Rank) -> Foretold:
        looked.append(params)
        return foretold(evaluator, params, below)

    monkeypatch.setattr(close_looks, "foretell", told)
    counting, counts = Counting(held_by_both, 24, 24, 1.5, 0.7, trades=True, ways=alike_ways), list[int]()
    together = sum(held_by_both(evaluator, best, evaluator.assembler.network(best.design)).values())
    for enough in (0, 1.5 * together):
        looked.clear()
        found = less_turned(
            evaluator, evaluator.space.choices, apart, DiesHold(evaluator), counting=counting, enough=enough
        )  # fmt: skip
        assert found.params[KEYS] == found.params[VALUES]
        assert {n for params in looked for n in params if params[n] != apart.params[n]} <= {QUERIES, KEYS, VALUES}
        counts.append(len(looked))
    assert counts[0] > counts[1]


def held_in_scores(_: Evaluator, one: Evaluation, __: TaskNetwork) -> dict[str, int]:
    """Less where scores are made place by place, few at once, and looked through so."""
    bits = 1 if (one.params[SCORING], outer_of(one.params[HIGHEST])) == ("1-fine", "1") else 2
    return {SCORES: bits}


class ByPlaces(DiesHold):
    """Dies that hold what makes scores place by place: head by head it is faster with these walks, and no converter."""

    def excess(self, one: Evaluation) -> float:
        return float(outer_of(one.params[SCORING]) != "1")


def test_both_sides_of_a_converter_walk_along_one_dim(evaluator: Evaluator, best: Evaluation) -> None:
    """A product that gives scores, and the maximum of them behind the converter, which has its slowest dim then."""
    choices = evaluator.space.choices
    found = list(ways_of_both_sides(evaluator, choices, best, {SCORES: 3, "another": 9}))
    assert {way.name for way, _ in found} == {SCORING}
    assert {outer_of(way.value) for way, _ in found} == {"0", "1"}, "along a sum scores come in no order"
    for way, state in found:
        (behind,) = way.others
        assert behind[0] == HIGHEST
        assert outer_of(behind[1]).startswith(outer_of(way.value))
        assert {n for n, value in state.items() if value != best.params[n]} <= {SCORING, HIGHEST}
    lanes = {(cap_of(way.value), cap_of(way.others[0][1])) for way, _ in found}
    assert {("-fine", "-fine"), ("-fine", "")} <= lanes, "as many at once, or as many as it likes"
    assert not list(ways_of_both_sides(evaluator, choices, best, {SCORES: 1, "another": 99})), "it is not worth it"
    counting = Counting(held_in_scores, 64, 64, slower=9, fewer=0.7, trades=True, ways=ways_of_both_sides, fitted=True)
    turned = less_turned(evaluator, choices, best, ByPlaces(evaluator), counting=counting)
    assert turned.params[SCORING] == "1-fine"
    assert outer_of(turned.params[HIGHEST]) == "1"


@pytest.mark.parametrize(("at_last", "enough", "taken"), [(0.0, 70, False), (0.9, 70, True), (0.9, 50, False)])
def test_the_best_of_small_gains_is_taken_where_there_is_no_other(
    evaluator: Evaluator, best: Evaluation, at_last: float, enough: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If what is held is not far from enough."""

    def held_by_some(_: Evaluator, one: Evaluation, network: TaskNetwork) -> dict[str, int]:
        bits = {"1": 100, "1-fine": 89, "0": 85}.get(str(one.params[SCORING]), 88)
        return {name: bits for name in network.channels if name.startswith("attn_bmm__")}

    def as_fast(_: Evaluator, params: Params, below: Rank) -> Foretold:
        return Foretold(None, None, None, replace(best, params=dict(params)))

    class AllHold(DiesHold):
        def excess(self, one: Evaluation) -> float:
            return 0.0

    monkeypatch.setattr(close_looks, "foretell", as_fast)
    dies = AllHold(own := replace(evaluator))  # which is told what is not so
    counting = Counting(held_by_some, 64, 64, fewer=0.5, at_last=at_last, trades=True)
    here = sum(held_by_some(own, best, own.assembler.network(best.design)).values())
    found = less_turned(own, own.space.choices, best, dies, counting=counting, enough=here * enough / 100)
    assert found.params[SCORING] == ("0" if taken else "1")


def test_what_fits_of_a_slow_first_design_may_be_looked_at(
    evaluator: Evaluator, best: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worth, "_by_first_design", lambda *_: (inf,))
    look = partial(close_looks.look_closely, evaluator, best.params, below=(inf,), most=1.0, held=held_as_modelled)
    assert look().found is None
    seen = look(fitted=True)
    assert seen.found is not None
    assert (seen.found.values, sum((seen.held or {}).values())) == (best.values, held_between(evaluator, best))


@pytest.mark.parametrize("trades", [False, True])
def test_for_less_a_little_time_is_given_by_any_kernel(evaluator: Evaluator, best: Evaluation, trades: bool) -> None:
    def held_by_slower(_: Evaluator, one: Evaluation, network: TaskNetwork) -> dict[str, int]:
        bits = 1 if one.values[0] > best.values[0] else 2
        return {name: bits for name in network.channels if name.startswith("attn_mm_2__")}

    counting = Counting(held_by_slower, 32, 32, slower=1.5, fewer=0.7, trades=trades)
    found = less_turned(evaluator, evaluator.space.choices, best, DiesHold(evaluator), counting=counting)
    assert (found.values[0] > best.values[0]) is trades


def test_what_fifos_need_is_told_nearly_as_sizing_finds_it(evaluator: Evaluator, found: Evaluation) -> None:
    sized = evaluator.tightened(found)
    network = evaluator.assembler.network(sized.design)
    bits = {n: c.bits * c.words * sized.design.fifo_depths.get(n, c.depth) for n, c in network.channels.items()}
    holds = sum(bits[name] for name in handed_over(network))
    assert 0.9 * holds < held_between(evaluator, found, held_as_needed) < 1.25 * holds
    assert held_between(evaluator, found) > 1.5 * holds, "as soon as they may, more tokens wait"
