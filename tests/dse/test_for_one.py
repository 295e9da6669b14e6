"""What a chosen design holds between its kernels, where that is much: as one input needs, or another design's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.finishing import finish as finishing
from penstock.dse.finishing import for_one
from penstock.dse.finishing.finish import finish, finish_first
from penstock.dse.rungs import Bench, rank
from penstock.profiling.simulated import simulate_design
from tests.dse.test_finish import candidates, evaluator_of

BLOCK_BITS = 18 * 1024


@dataclass
class Sized:
    """Block RAMs that designs hold once they are sized, in the order in which they are."""

    bits: Sequence[float]
    known: list[Design] = field(default_factory=list[Design])

    def __call__(self, _: Evaluator, design: Design) -> dict[str, int]:
        if not any(design is one for one in self.known):
            self.known.append(design)
        place = [design is one for one in self.known].index(True)
        return {"channel": int(self.bits[place] * BLOCK_BITS)}


def as_they_are(_: Evaluator, found: Evaluation, __: object) -> Evaluation:
    """Where no FIFO would hold less of one input."""
    return found


@pytest.mark.parametrize(
    ("bits", "goal", "less"),
    [
        ((8, 5), "latency", True),
        ((8, 7.5), "latency", False),
        ((5, 1), "latency", False),
        ((6.5, 5.9), "latency", True),
        ((20, 18), "latency", True),
        ((20, 18.6), "latency", False),
        ((8, 5), "throughput", False),
    ],
)
def test_what_holds_much_holds_what_one_input_needs(
    bits: tuple[float, float], goal: str, less: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is asked how soon the next ones follow."""
    evaluator = replace(evaluator_of(), goal=Goal.of([goal]))
    evaluation, designs = evaluator.evaluate({"overall_unroll_size": 64}), Sized(bits)
    asked, tightened = list[bool](), Evaluator.tightened

    def sized(self: Evaluator, evaluation: Evaluation, **named: Any) -> Evaluation:
        asked.append(named["one_input"])
        return tightened(self, evaluation, **named)

    monkeypatch.setattr(Evaluator, "tightened", sized)
    monkeypatch.setattr(for_one, "held_as_sized", designs)
    monkeypatch.setattr(for_one, "much_between", lambda graph: 6.0 * BLOCK_BITS)
    done = finish(evaluator, evaluation)
    assert asked == ([False, True] if goal == "latency" and bits[0] > 6 else [False])
    assert ("one input needs" in done.evaluation.for_one_note) == less
    network = evaluator.assembler.network(done.design)
    free = simulate_design(network, evaluator.platform, evaluator.clock_mhz, frames=4, bounded=False).frame_ends
    ends = simulate_design(network, evaluator.platform, evaluator.clock_mhz, frames=4).frame_ends
    assert ends[0] == free[0], "it comes as soon"
    assert len(ends) == 4, "and the next ones come"


class Beside:
    """Another process that has done what it is asked at once, or is gone."""

    def __init__(self, gone: bool) -> None:
        self.gone, self.answers = gone, list[object]()

    def work_for(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def call(self, function: Callable[..., object], calls: Sequence[tuple[Any, ...]], *, first: bool = False) -> range:
        assert first, "what else it was asked can wait"
        self.answers += [function(self.evaluator, *arguments) for arguments in calls]
        return range(len(self.answers) - len(calls), len(self.answers))

    def awaited(self, number: int, seconds: float) -> object:
        return None if self.gone else self.answers[number]


@pytest.mark.parametrize(("needed", "gone", "here"), [(True, False, 1), (True, True, 2), (False, False, 2)])
def test_another_process_sizes_for_one_input_meanwhile_where_much_is_needed(
    needed: bool, gone: bool, here: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = evaluator_of()
    evaluation, other = evaluator.evaluate({"overall_unroll_size": 64}), Beside(gone)
    monkeypatch.setattr(for_one, "much_between", lambda graph: 6.0 * BLOCK_BITS)
    monkeypatch.setattr(for_one, "needs_more_than", lambda *_, **__: needed)
    monkeypatch.setattr(for_one, "held_as_sized", Sized((8, 5)))
    alone = finish(evaluator, evaluation)
    asked, tightened = list[bool](), Evaluator.tightened

    def sized(self: Evaluator, evaluation: Evaluation, **named: Any) -> Evaluation:
        asked.append(named["one_input"])
        return tightened(self, evaluation, **named)

    monkeypatch.setattr(Evaluator, "tightened", sized)
    monkeypatch.setattr(for_one, "held_as_sized", Sized((8, 5)))
    assert finish(evaluator, evaluation, bench=Bench(elsewhere=other)) == alone
    assert len(other.answers) == 1
    assert len(asked) - isinstance(other.answers[0], Evaluation) == here
    throughput = replace(evaluator, goal=Goal.of(["throughput"]))
    finish(throughput, evaluation, bench=Bench(elsewhere=other))
    assert len(other.answers) == 1, "nobody asks for fewer of one input then"


@pytest.mark.parametrize(
    ("later", "bits", "sized", "chosen"),
    [
        (0, (8, 5), 2, 1),
        (0, (8, 7), 2, 0),
        (0, (6.5, 5.9), 2, 1),
        (0, (5, 1), 1, 0),
        (9, (8, 5), 2, 1),
        (11, (8, 5), 0, 0),
    ],
)
def test_what_holds_much_once_it_is_sized_leaves_its_place_to_what_is_nearly_as_good(
    later: int, bits: tuple[float, float], sized: int, chosen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so many thousandths more time; as near as a search may end to its bound, and where it saves a block RAM."""
    evaluator, designs = evaluator_of(), Sized(bits)
    one = rank(evaluator, candidates(evaluator)[:1], "simulated")[0]
    assert one.measured is not None
    first = replace(one, measured=replace(one.measured, latency=1000))
    candidate = replace(one.candidate, params={"overall_unroll_size": 8, "unroll_along": "all"})
    other = replace(one, candidate=candidate, measured=replace(one.measured, latency=1000 + later))
    monkeypatch.setattr(finishing, "for_one_input", as_they_are)
    monkeypatch.setattr(for_one, "held_as_sized", designs)
    monkeypatch.setattr(for_one, "much_between", lambda graph: 6.0 * BLOCK_BITS)
    done, taken, passed = finish_first(evaluator, [first, other])
    assert taken is (first, other)[chosen]
    assert len(designs.known) == sized
    assert not sized or done.design is designs.known[chosen]
    assert list(passed) == ([0] if chosen else []), "the better one says why another was taken"
    for_bits = replace(evaluator, goal=Goal.of(["latency", "fifo_bits"]))
    assert finish_first(for_bits, [first, other])[1] is first, "whoever asks for few bits has said what comes first"


def test_what_cannot_be_finished_instead_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = evaluator_of()
    first = rank(evaluator, candidates(evaluator)[:1], "simulated")[0]
    other = replace(first, candidate=replace(first.candidate, params={"n": 1}))
    usual = finishing.finish

    def failing(evaluator: Evaluator, evaluation: Evaluation, **named: Any) -> finishing.Finished:
        if evaluation.params == {"n": 1}:
            raise PenstockError(code="sizing-failed", what="its depths do not suffice", where="here")
        return usual(evaluator, evaluation, **named)

    monkeypatch.setattr(finishing, "finish", failing)
    monkeypatch.setattr(finishing, "for_one_input", as_they_are)
    monkeypatch.setattr(for_one, "held_as_sized", Sized((8, 5)))
    monkeypatch.setattr(for_one, "much_between", lambda graph: 6.0 * BLOCK_BITS)
    assert finish_first(evaluator, [first, other])[1:] == (first, {})


@pytest.mark.parametrize(("bits", "sized", "chosen"), [((5,), 1, 1), ((7, 9), 2, 1), ((8, 7), 2, 0)])
def test_what_is_known_to_need_much_is_sized_only_where_nothing_else_holds_little(
    bits: tuple[float, ...], sized: int, chosen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs little is sized first; where it holds much all the same, both are compared."""
    evaluator, designs = evaluator_of(), Sized(bits)
    first = rank(evaluator, candidates(evaluator)[:1], "simulated")[0]
    other = replace(first, candidate=replace(first.candidate, params={"overall_unroll_size": 8}))
    monkeypatch.setattr(finishing, "for_one_input", as_they_are)
    monkeypatch.setattr(finishing, "needs_more_than", lambda much, _, one, **__: one is first.candidate)
    monkeypatch.setattr(for_one, "held_as_sized", designs)
    monkeypatch.setattr(for_one, "much_between", lambda graph: 6.0 * BLOCK_BITS)
    done, taken, passed = finish_first(evaluator, [first, other])
    assert (len(designs.known), taken) == (sized, (first, other)[chosen])
    assert list(passed) == ([0] if chosen else [])
    assert done.design in designs.known


def test_what_is_seen_to_need_more_than_it_is_told_to_is_not_sized(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator, designs = evaluator_of(), Sized((8,))
    first = rank(evaluator, candidates(evaluator)[:1], "simulated")[0]
    other = replace(first, candidate=replace(first.candidate, params={"overall_unroll_size": 8}))
    monkeypatch.setattr(finishing, "for_one_input", as_they_are)
    monkeypatch.setattr(finishing, "needs_more_than", lambda *_, seen=False: seen)
    monkeypatch.setattr(for_one, "held_as_sized", designs)
    monkeypatch.setattr(for_one, "much_between", lambda graph: 6.0 * BLOCK_BITS)
    assert finish_first(evaluator, [first, other])[1:] == (first, {})
    assert len(designs.known) == 1
