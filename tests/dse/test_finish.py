"""What a search does with its best designs: ranked by a rung, finished, passed over where they find no place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Platform, load_platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.fifo import total_bits
from penstock.dse.finishing import finish as finishing
from penstock.dse.finishing import for_one
from penstock.dse.finishing.finish import finish, finish_first
from penstock.dse.finishing.placement import Placement, place
from penstock.dse.rungs import FRAMES, Bench, Ranked, rank, rank_beaten, ranking, simulated
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import outlook_of, simulate_design
from penstock.services.jobs import search as choosing
from tests.compiler.designs import Dense, build_network

BLOCK_BITS = 18 * 1024


def evaluator_of(platform: Platform | None = None) -> Evaluator:
    """Two layers and a connection around both."""
    program = build_network("int8", None, 16, (Dense(16, False, True), Dense(16, False, False)), seed=3)
    board = platform or load_platform("u55c")
    return Evaluator(program, board, board.clock_mhz)


def candidates(evaluator: Evaluator) -> list[Evaluation]:
    return [evaluator.evaluate({"overall_unroll_size": size}) for size in (8, 64, 16)]


def test_a_rung_ranks_the_best_by_its_own_figures() -> None:
    evaluator = evaluator_of()
    said: list[str] = []
    ranked = rank(evaluator, candidates(evaluator), "simulated", Bench(line=said.append))
    assert said == [f"{number} of 3" for number in range(3)], "where it stands, while long simulations are made"
    assert [r.measured.evidence for r in ranked if r.measured] == ["simulated"] * len(ranked)
    latencies = [r.measured.latency for r in ranked if r.measured]
    assert latencies == sorted(latencies)
    for one in ranked:
        network = evaluator.assembler.network(one.candidate.design)
        run = simulate_design(network, evaluator.platform, evaluator.clock_mhz)
        assert one.measured is not None
        assert one.measured.latency == run.latency
    wanted = replace(evaluator, goal=Goal.of(["resources", "latency"]))
    smallest = rank(wanted, candidates(wanted), "simulated")
    shares = [max(r.candidate.shares.values()) for r in smallest]
    assert shares == sorted(shares)


def test_equal_designs_are_measured_once_and_only_the_best() -> None:
    evaluator = evaluator_of()
    one, *others = candidates(evaluator)
    assert len(rank(evaluator, [one, one, *others], "modelled")) == 3
    [best] = rank(evaluator, [one, *others], "modelled", best=1)
    assert best.candidate.values == min(c.values for c in (one, *others))


def test_of_equally_fast_designs_the_one_that_holds_less_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = evaluator_of()
    one, two, three = candidates(evaluator)
    ranked = rank(evaluator, [one, two, three], "simulated")
    fastest = ranked[0].measured
    alike = [replace(ranked[0], candidate=each, measured=fastest) for each in (one, replace(one, params={}))]
    holds = {id(alike[0].candidate): 9, id(alike[1].candidate): 5}
    monkeypatch.setattr(ranking, "held_between", lambda _, each, held: holds[id(each)])
    assert ranking.in_order(evaluator, alike) == alike[::-1]
    assert ranking.in_order(evaluator, ranked) == ranked, "what is slower is not asked"


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
    monkeypatch.setattr(for_one, "needs_more_than", lambda *_: needed)
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


def test_what_a_rung_cannot_measure_comes_last_with_its_reason() -> None:
    evaluator = evaluator_of()
    first, second, _ = candidates(evaluator)
    stuck = replace(first, design=first.design.with_fifo_depths(dict.fromkeys(first.design.fifo_depths, 1)))
    with pytest.raises(PenstockError, match="stops for ever"):
        simulated(evaluator, stuck, Bench())
    ranked = rank(evaluator, [stuck, second], "simulated")
    assert [r.candidate for r in ranked] == [second, stuck]
    assert "stops for ever" in ranked[1].failure


def test_long_simulations_of_designs_that_cannot_be_the_best_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = evaluator_of()
    everything = rank(evaluator, candidates(evaluator), "simulated")
    assert not any(one.beaten for one in everything), "short ones are made"
    monkeypatch.setattr(ranking, "SHORT", 0)
    ranked = rank(evaluator, candidates(evaluator), "simulated")
    assert ranked[0] == everything[0]
    beaten = [one for one in ranked if one.beaten]
    assert beaten
    assert all("cannot be the best" in one.failure and one.measured is None for one in beaten)
    for one in everything:
        assert one.measured is not None
        network = evaluator.assembler.network(one.candidate.design)
        least = outlook_of(network, evaluator.platform, evaluator.clock_mhz).least
        assert least <= one.measured.latency
        assert one.measured.interval is None or least <= one.measured.interval
    assert rank_beaten(evaluator, ranked, "simulated", Bench()) == everything
    best, *_, slowest = everything
    assert rank_beaten(evaluator, ranked, "simulated", Bench(), best) == ranked, "none may be better than the best"
    assert [one.beaten for one in rank_beaten(evaluator, ranked, "simulated", Bench(), slowest)] != [
        one.beaten for one in ranked
    ], "those that may be better than the slowest are measured"


def test_a_finished_design_is_sized_and_placed_and_loses_no_input() -> None:
    evaluator = evaluator_of()
    evaluation = evaluator.evaluate({"overall_unroll_size": 64})
    done = finish(evaluator, evaluation)
    network = evaluator.assembler.network(done.design)
    bits = {name: c.bits for name, c in network.channels.items() if c.kind == "stream"}
    assert total_bits(done.design.fifo_depths, bits) < total_bits(evaluation.design.fifo_depths, bits)
    assert set(done.design.dies) == {task.name for task in network.tasks}
    assert set(bits) <= set(done.design.memories)
    free = simulate_design(network, evaluator.platform, evaluator.clock_mhz, frames=2 * FRAMES, bounded=False)
    run = simulate_design(network, evaluator.platform, evaluator.clock_mhz, frames=2 * FRAMES)
    assert run.frame_ends == free.frame_ends
    assert finish(evaluator, evaluation, simulate=False).design.fifo_depths == evaluation.design.fifo_depths


def test_depths_to_keep_are_kept() -> None:
    evaluator = evaluator_of()
    evaluation = evaluator.evaluate({})
    name = next(iter(evaluation.design.fifo_depths))
    given = evaluator.evaluate_design(evaluation.design.with_fifo_depths({name: 7}))
    kept = finish(evaluator, given, keep={name: 7}).design.fifo_depths
    assert kept[name] == 7
    assert kept != given.design.fifo_depths, "the others are sized"


def test_a_record_knows_what_its_depths_were_found_for() -> None:
    design = finish(evaluator_of(), evaluator_of().evaluate({})).design
    read = Design.from_json(design.to_json())
    assert read.current() is read
    deeper = replace(read, fifo_depths={**read.fifo_depths, next(iter(read.fifo_depths)): 99})
    assert deeper.current() is deeper, "depths that a person changed stay"
    changed = replace(read, kernels={n: replace(k, weights="stream") for n, k in read.kernels.items()}).current()
    assert (changed.fifo_depths, changed.dies, changed.memories) == ({}, {}, {})
    with pytest.raises(PenstockError, match="allocated_for"):
        Design.from_json({**design.to_json(), "allocated_for": 3})


def test_what_fits_the_chip_but_none_of_its_dies_is_passed_over() -> None:
    """A task cannot be divided: of dies with few DSPs, many lanes of one layer find none."""
    board = load_platform("u55c")
    narrow = tuple(replace(d, resources=replace(d.resources, dsp=d.reserved.dsp + 18)) for d in board.dies)
    evaluator = evaluator_of(replace(board, dies=narrow))
    wide, slim = evaluator.evaluate({"overall_unroll_size": 64}), evaluator.evaluate({"overall_unroll_size": 8})
    assert {name for name, excess in wide.constraints.items() if excess > 0} == {"dies"}
    limit = max(d.available.dsp for d in narrow) * dict(board.fill)["dsp"]
    assert limit < max(t.resources.dsp for t in wide.figures.tasks)
    assert [r.candidate for r in rank(evaluator, [slim, wide], "simulated")] == [slim]
    ranked = [*rank(evaluator, [wide], "simulated"), *rank(evaluator, [slim], "simulated")]
    done, taken, passed = finish_first(evaluator, ranked)
    assert taken.candidate is slim
    assert list(passed) == [0]
    assert "dsp" in passed[0]
    assert done.design.kernels == slim.design.kernels
    alone, _, passed = finish_first(evaluator, ranked[:1])
    assert passed == {}
    assert "dsp" in alone.placement.undivided, "where nothing can be divided, the dies are left to the tools"
    assert alone.design.dies == {}
    assert set(alone.placement.allocation.limits) == {"chip"}
    pinned = replace(wide, design=replace(wide.design, dies={next(iter(done.design.dies)): "slr0"}))
    with pytest.raises(PenstockError, match="dsp"):
        finish(evaluator, pinned)


def test_what_no_die_holds_at_its_smallest_is_passed_over_unsized(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is asked for again with the same sizings is not sized again."""
    board = load_platform("u55c")
    narrow = tuple(replace(d, resources=replace(d.resources, dsp=d.reserved.dsp + 18)) for d in board.dies)
    evaluator = evaluator_of(replace(board, dies=narrow))
    wide, slim = evaluator.evaluate({"overall_unroll_size": 64}), evaluator.evaluate({"overall_unroll_size": 8})
    ranked = [*rank(evaluator, [wide], "simulated"), *rank(evaluator, [slim], "simulated")]
    sized: list[Design] = []
    tightened = Evaluator.tightened

    def told(self: Evaluator, evaluation: Evaluation, **named: Any) -> Evaluation:
        sized.append(evaluation.design)
        return tightened(self, evaluation, **named)

    monkeypatch.setattr(Evaluator, "tightened", told)
    sizings: dict[str, Evaluation] = {}
    done, _, passed = finish_first(evaluator, ranked, sizings=sizings)
    assert list(passed) == [0]
    assert sized == [slim.design]
    again, _, _ = finish_first(evaluator, ranked, sizings=sizings)
    assert again.design == done.design
    assert sized == [slim.design]


def test_a_slower_design_that_can_be_divided_comes_before_one_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it was not simulated at first, since it cannot be the best."""
    board = load_platform("u55c")
    narrow = tuple(replace(d, resources=replace(d.resources, dsp=d.reserved.dsp + 18)) for d in board.dies)
    evaluator = evaluator_of(replace(board, dies=narrow))
    wide, slim = evaluator.evaluate({"overall_unroll_size": 64}), evaluator.evaluate({"overall_unroll_size": 8})
    monkeypatch.setattr(ranking, "SHORT", 0)
    monkeypatch.setattr(choosing, "rank", lambda *_: [
        *rank(evaluator, [wide], "simulated"), Ranked(slim, None, "not simulated", beaten=True),
    ])  # fmt: skip
    choice = choosing.choose(evaluator, {0: wide, 1: slim}, "simulated")
    assert (choice.trial, choice.finished.placement.undivided) == (1, "")


def test_what_finds_a_place_as_it_was_modelled_is_sized_though_smaller_it_finds_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Divisions are found by chance: with other FIFOs, also shallower ones, one may not be found again."""
    evaluator = evaluator_of()
    candidate = candidates(evaluator)[0]

    def found_as_modelled(network: TaskNetwork, *given: Any, **named: Any) -> Placement:
        design: Design = given[2]
        if not design.dies and design.fifo_depths != candidate.design.fifo_depths:
            raise PenstockError(code="does-not-fit", what="no division was found", where="here", hint="none")
        return place(network, *given, **named)

    monkeypatch.setattr(finishing, "place", found_as_modelled)
    done, _, passed = finish_first(evaluator, rank(evaluator, [candidate], "simulated"))
    assert not passed
    assert done.placement.undivided == ""
    assert done.design.fifo_depths != candidate.design.fifo_depths


def test_a_finished_design_keeps_to_the_users_limits_too() -> None:
    """Memories are built of what the user left, not of what the platform has."""
    evaluator = evaluator_of()
    free = finish(evaluator, candidates(evaluator)[0], simulate=False)
    used = free.placement.resources
    assert used.lut > 0
    limit = used.lut - 1
    tight = replace(evaluator, goal=Goal.of([], [f"lut<={limit}"]).on(evaluator.platform))
    done = finish(tight, tight.evaluate_design(candidates(evaluator)[0].design), simulate=False)
    assert done.placement.resources.lut <= limit
    assert done.evaluation.figures.resources == done.placement.resources
    assert done.evaluation.feasible, "it is judged by what its memories are built of"


def test_a_design_stands_where_it_did_before_its_fifos_were_sized(monkeypatch: pytest.MonkeyPatch) -> None:
    """A division of what is nearly full is found by chance: with other FIFOs it may not be found again."""
    evaluator = evaluator_of()
    candidate = candidates(evaluator)[0]
    asked: list[Design] = []

    def found_by_chance(network: TaskNetwork, *given: Any, **named: Any) -> Placement:
        design: Design = given[2]
        asked.append(design)
        if design.fifo_depths != candidate.design.fifo_depths and not design.dies:
            raise PenstockError(code="does-not-fit", what="no division was found", where="here", hint="none")
        return place(network, *given, **named)

    monkeypatch.setattr(finishing, "place", found_by_chance)
    finished = finish(evaluator, candidate, divide=True)
    sized, before, again = asked
    assert sized.fifo_depths == again.fifo_depths != before.fifo_depths == candidate.design.fifo_depths
    assert again.dies
    assert finished.placement.partition.fits
    assert {finished.placement.partition.dies[task] == die for task, die in again.dies.items()} == {True}
    with pytest.raises(PenstockError, match="no division"):
        finish(evaluator, candidate, divide=False)
