"""What a search does with its best designs: ranked by a rung, finished, passed over where they find no place."""

from __future__ import annotations

from dataclasses import replace
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
from penstock.dse.finishing.finish import finish, finish_first
from penstock.dse.finishing.placement import Placement, place
from penstock.dse.rungs import FRAMES, Bench, Ranked, rank, rank_beaten, ranking, simulated
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import outlook_of, simulate_design
from penstock.services.jobs import search as choosing
from tests.compiler.designs import Dense, build_network


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
