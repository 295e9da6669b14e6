"""The bound of a search: below every design of small spaces, near to good ones, and its own words when nothing fits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from math import ceil, prod

import numpy as np
import pytest
import torch

from benchmarks import kernel_designs
from benchmarks.explore import ExploreCase
from benchmarks.workloads import Formula
from penstock.compiler.analysis.graph import TensorOp, read_graph
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import LoadedModel
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.dse.bounds.bound import MEMORY, OPERATORS, OVERLAP, GoalBounds, LowerBound, lower_bound
from penstock.dse.bounds.lanes import DimSizes, fewest_lanes, lanes_of_dim, sizes_of
from penstock.dse.bounds.needs import needs_of, reshaped
from penstock.dse.bounds.operators import body_of
from penstock.dse.bounds.overlap import Overlap, Working
from penstock.dse.bounds.ways import ways_of
from penstock.dse.evaluation import objectives
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import FIFO_BITS, OBJECTIVES, Goal, Objective
from penstock.dse.evaluation.traffic import least_traffic_bits
from penstock.dse.lanes.alignment import divisors
from penstock.dse.search.coordinates import Places
from penstock.dse.search.explore import explore
from penstock.dse.space.tiling import TilingOptions
from tests.compiler.designs import Dense, build_network

PLATFORMS = ("u55c", "zcu104", "ecp5-45k", "xcu280")


@cache
def network(seed: int) -> Program:
    draw = random.Random(seed)
    layers = tuple(Dense(draw.randint(1, 12), False, draw.random() < 0.5) for _ in range(draw.randint(1, 3)))
    kind = draw.choice(["float32", "int8"])
    return build_network(kind, draw.randint(1, 6), draw.randint(1, 12), layers, seed=seed)


@pytest.mark.parametrize("seed", range(8))
def test_no_design_of_a_small_space_is_below_the_bound(seed: int) -> None:
    """Hundreds of settings of each space, drawn evenly, others for each objective: under no limit, and tight ones."""
    platform = PLATFORMS[seed % len(PLATFORMS)]
    options = TilingOptions(max_lanes=4) if seed % 3 == 0 else TilingOptions()
    free = Evaluator.create(network(seed), platform, options=options)
    limit = {"dsp": max(2, free.platform.limits.dsp // 300), "lut": max(2, free.platform.limits.lut // 20)}
    for limits in ([], [f"dsp<={limit['dsp']}", f"lut<={limit['lut']}"]):
        for number, objective in enumerate(OBJECTIVES):
            evaluator = replace(free, goal=Goal.of([objective], limits).on(free.platform))
            bound = lower_bound(evaluator)
            places = Places(evaluator.space.choices, evaluator.space.conditions)
            rows = places.at_random(20, np.random.default_rng([seed, len(limits), number]))
            found = [evaluator.evaluate(places.params(tuple(row))) for row in rows.tolist()]
            assert all(bound.value <= one.values[0] * (1 + 1e-9) for one in found if one.feasible), bound


def test_an_objective_of_one_row_can_be_searched_before_it_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = Objective("fifos", FIFO_BITS, "bits", "what all FIFOs together hold", FIFO_BITS, "bits of FIFOs")
    monkeypatch.setattr(objectives, "OBJECTIVES", {**OBJECTIVES, bits.name: bits})
    evaluator = Evaluator.create(network(0), "u55c", goal=Goal.of(["fifos"]))
    bound = lower_bound(evaluator)
    assert (bound.figure, bound.value) == (FIFO_BITS, 0)
    assert evaluator.evaluate({}).values[0] > 0


SLOW = ("FeedForward", "atax", "MultiHeadSelfAttention1")


@pytest.mark.parametrize("name", ["gemm", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_bound_is_below_what_searches_have_reached_and_near_to_the_best(name: str) -> None:
    earlier = kernel_designs.earlier_cycles(name)
    evaluator = kernel_designs.evaluator_of(name)
    bounds = {dsp: GoalBounds(kernel_designs.limited(evaluator, dsp)).latency() for dsp in earlier}
    assert all(bounds[dsp].value <= reached for dsp, reached in earlier.items())
    assert name != "gemm" or sum(bounds[dsp].gap(reached) < 0.03 for dsp, reached in earlier.items()) >= 6


@pytest.mark.parametrize("name", [pytest.param("attention-small", marks=pytest.mark.slow), "residual-one-row"])
def test_no_design_that_a_search_meets_is_below_what_kernels_wait_for(name: str) -> None:
    """Softmax, heads, and sums that part and meet again: their rows are needed whole."""
    evaluator = ExploreCase(name, 1000).evaluator()
    bound = GoalBounds(evaluator).latency()
    assert bound.reason.startswith("kernels wait"), "waiting says more than the operators' amounts"
    places = Places(evaluator.space.choices, evaluator.space.conditions)
    met = [evaluator.space.fitted_setting() | {n: v[0] for n, v in evaluator.space.fitting.choices.items()}]
    met += [places.params(tuple(row)) for row in places.at_random(30, np.random.default_rng(0)).tolist()]
    assert all(bound.value <= one.values[0] for one in map(evaluator.evaluate, met) if one.feasible)


def test_a_kernel_waits_for_whole_sums_of_the_one_before_the_last() -> None:
    """Of one row, the third layer begins when the first has ended; of many, after one of them, or a little less."""
    for rows, share in ((1, 1.0), (6, 1 / 6)):
        layers = (Dense(8, False, False), Dense(5, False, False), Dense(4, False, False))
        evaluator = Evaluator.create(build_network("float32", rows, 7, layers, seed=0), "xcu280")
        graph, library = evaluator.space.graph, evaluator.assembler.library
        needs = needs_of(graph, {op.layer: body_of(op, library, graph) for op in graph.operations})
        first, *_, last = [op.layer for op in graph.operations if op.reductions]
        assert share * 6 / 7 <= needs.before[last][first].share <= share
        assert share * 6 / 7 <= needs.after[first][last].share <= share


def test_elements_of_a_part_are_followed_through_other_shapes() -> None:
    assert reshaped((6, 8), (48,), (2, 8)) == (16,)
    assert reshaped((48,), (6, 8), (48,)) == (6, 8)
    assert reshaped((48,), (6, 8), (16,)) == (1, 1), "which of them is not known"
    assert reshaped((4, 6), (1, 4, 6), (3, 1)) == (1, 3, 1)


@pytest.mark.parametrize("trips", [(7,), (6, 10), (3, 4, 5), (1, 13, 2)])
def test_fewest_lanes_are_those_of_all_lanes(trips: tuple[int, ...]) -> None:
    """Against every way to unroll, each dim padded to what its lanes ask for."""
    ways = {
        unroll: prod(ceil(trip / lanes) for trip, lanes in zip(trips, unroll, strict=True))
        for unroll in product(*(range(1, trip + 1) for trip in trips))
    }
    for most in range(1, prod(trips) + 1):
        fewest = min((prod(unroll) for unroll, left in ways.items() if left <= most), default=None)
        assert fewest_lanes(trips).within(most) == fewest
    assert fewest_lanes(trips).within(0) is None


def test_limits_that_exclude_every_design_are_named_before_any_trial() -> None:
    evaluator = Evaluator.create(network(1), "xcu280")
    tight = replace(evaluator, goal=Goal.of([], ["lut<=40"]).on(evaluator.platform))
    with pytest.raises(PenstockError, match="of 40 lut that may be used, one lane a kernel takes at least") as caught:
        explore(tight, 1)
    assert caught.value.code == "nothing-fits"


def test_a_search_ends_where_the_best_is_near_enough() -> None:
    evaluator = kernel_designs.limited(kernel_designs.evaluator_of("gemm"), 220)
    found = explore(evaluator, 40)
    assert found.stopped_early
    assert len(found.tried) < 40
    assert found.bound.gap(found.best.evaluation.values[0]) <= 0.01
    assert "220 dsp" in found.bound.reason


@pytest.mark.parametrize(
    ("trips", "sizes", "lanes"),
    [
        ((7, 6), ((7,), (6,)), 5),
        ((4, 9), ((4,), (9, 10)), 36),
        ((2, 3, 5), ((2,), (3,), (5,)), 30),
        ((5, 4, 4), ((5, 6), (4,), (4,)), 8),
    ],
)
def test_ways_to_walk_say_the_least_of_lanes_iterations_parts_and_trees(
    trips: tuple[int, ...], sizes: DimSizes, lanes: int
) -> None:
    """Against every tile, unroll and order of loops, each walked: one of those that are kept is as good in everything.

    Before a part is done, and from when its first may begin to the end.
    """
    op, last = _sum_of(trips), len(trips) - 1
    parts = [
        tuple(1 if d != last else trip for d, trip in enumerate(trips)),
        tuple(trip if d != last else 1 for d, trip in enumerate(trips)),
        tuple(max(trip // 2, 1) for trip in trips),
    ]
    kept = ways_of(op, sizes, parts, lanes)
    walked: set[tuple[int, ...]] = set()
    for padded in product(*sizes):
        for tile in product(*map(divisors, padded)):
            for unroll in product(*map(divisors, tile)):
                if prod(unroll) > lanes or any(u > trip for u, trip in zip(unroll, trips, strict=True)):
                    continue
                steps = [size // u for size, u in zip(padded, unroll, strict=True)]
                tree = max((unroll[last] - 1).bit_length() + (steps[last] > 1) - 1, 0)
                for order in permutations(range(len(trips))):
                    done = _walk(trips, padded, tile, unroll, order, last)
                    for before in (True, False):
                        counted = [_part_of(done, part, trips, before=before) for part in parts]
                        walked.add((prod(unroll), prod(steps), tree, *counted))
    for way in sorted(walked):
        assert (kept <= np.array(way)).all(axis=1).any(), way
    assert {tuple(way[:3]) for way in kept.tolist()} <= {way[:3] for way in walked}, "none that no design has"


def _walk(
    trips: tuple[int, ...], padded: Sequence[int], tile: Sequence[int], unroll: Sequence[int], order: Sequence[int],
    summed: int,
) -> list[tuple[range, ...]]:  # fmt: skip
    """The indices along each dim that every iteration has: loops over tiles, inside them over points, sums outside."""
    points = sorted(order, key=lambda d: d != summed)
    loops = [range(0, padded[d], tile[d]) for d in order] + [range(0, tile[d], unroll[d]) for d in points]
    found: list[tuple[range, ...]] = []
    for at in product(*loops):
        first = [0] * len(trips)
        for d, begin in zip((*order, *points), at, strict=True):
            first[d] += begin
        found.append(tuple(range(first[d], min(first[d] + unroll[d], trip)) for d, trip in enumerate(trips)))
    return found


def _part_of(done: Sequence[tuple[range, ...]], part: Sequence[int], trips: Sequence[int], *, before: bool) -> int:
    """The iterations until all of a box of indices is done, or from the first that has one of them to the end."""
    wanted = [range(count) if before else range(trip - count, trip) for count, trip in zip(part, trips, strict=True)]
    meets = [
        all(max(mine.start, box.start) < min(mine.stop, box.stop) for mine, box in zip(one, wanted, strict=True))
        for one in done
    ]
    return len(done) - meets[::-1].index(True) if before else len(done) - meets.index(True)


def test_what_needs_all_of_the_outermost_dim_waits_for_all_its_tiles_but_the_last() -> None:
    """Of 4 rows of 6 terms: 2 rows and 2 first terms before all 4 have one; or 3 terms of all and 3 of one row."""
    kept = ways_of(_sum_of((4, 6)), ((4,), (6,)), [(1, 6), (4, 1)], lanes=1).tolist()
    assert sorted(way[3:] for way in kept) == [[6, 14], [15, 4]]


def test_a_running_sum_is_added_to_step_after_step() -> None:
    """Seven terms by one lane, where an addition takes four cycles and a memory two: whatever else there is to do."""
    whole, first = (1, 7), (1, 1)
    ways = ways_of(_sum_of((2, 7)), ((2,), (7,)), [whole, first], again=4, keeping=2).tolist()
    assert sorted({lanes for lanes, *_ in ways}) == [1, 2, 7, 14]
    assert [1, 40, 0, 37, 1] in ways, "each step of one row beside the same of the other, every three cycles"
    assert [1, 53, 0, 25, 1] in ways, "one row after the other, each step four cycles after the one before"
    assert [2, 25, 0, 25, 1] in ways, "two rows at once, in registers"
    assert [7, 2, 2, 1, 1] in ways, "what is summed at once is not added to again"


@pytest.mark.parametrize("seed", range(4))
def test_no_kernel_of_a_design_is_through_sooner_than_its_ways_say(seed: int) -> None:
    """Schedules of random settings: intervals of running sums in memories and registers among them."""
    evaluator = Evaluator.create(network(seed), PLATFORMS[-seed % len(PLATFORMS)])
    space, sizes, library = evaluator.space, sizes_of(evaluator.space), evaluator.assembler.library
    keeping = library.memory.load_latency + library.memory.store_latency
    ways = {
        op.layer: ways_of(op, sizes[op.layer], [], again=body_of(op, library, space.graph).again, keeping=keeping)
        for op in space.graph.operations
    }
    places, slow = Places(space.choices, space.conditions), 0
    for row in places.at_random(60, np.random.default_rng(seed)).tolist():
        design = space.design(places.params(tuple(row)))
        tasks = {task.layer: task for task in evaluator.evaluate_design(design).figures.tasks}
        for op in space.graph.operations:
            task, lanes = tasks[op.layer], prod(design.kernels[op.layer].unroll)
            through = (task.iterations - 1) * task.ii + 1
            assert (ways[op.layer][:, :2] <= (lanes, through)).all(axis=1).any(), (op.layer, lanes, through)
            slow += task.ii > 1
    assert slow or all(body_of(op, library, space.graph).again < 2 for op in space.graph.operations)


@pytest.mark.parametrize("seed", range(8))
def test_no_pipeline_begins_or_ends_sooner_than_tokens_and_operators_say(seed: int) -> None:
    """Of random settings: when each kernel reads first, and how many stages pass from there to a result."""
    evaluator = Evaluator.create(network(seed), PLATFORMS[seed % len(PLATFORMS)])
    bounds, space, read = GoalBounds(evaluator), evaluator.space, evaluator.assembler.library.read_stage
    places, near = Places(space.choices, space.conditions), 0
    for row in places.at_random(60, np.random.default_rng(seed)).tolist():
        design = space.design(places.params(tuple(row)))
        tasks = {task.layer: task for task in evaluator.evaluate_design(design).figures.tasks}
        for op in space.graph.operations:
            task, body, kernel = tasks[op.layer], bounds.bodies[op.layer], design.kernels[op.layer]
            terms = prod(kernel.unroll[d] for d in op.reductions)
            in_steps = terms < prod(op.trips[d] for d in op.reductions)
            trees = body.added * max((terms - 1).bit_length() + in_steps - 1, 0)
            assert task.start + read >= bounds.chains.before[op.layer], (op.layer, design)
            assert task.depth >= 1 + read + body.one_term + trees, (op.layer, design)
            near += task.depth <= 3 + read + body.one_term + trees
    assert near, "some have hardly any stages besides"


def test_an_array_that_may_be_one_word_is_there_at_once_and_others_take_a_memory_to_answer() -> None:
    """Of 2 and of 300 elements, of which 10 DSPs never take all at once; a token leaves the stage after the word."""
    for inputs, cycles in ((2, 1), (300, 3)):
        free = Evaluator.create(build_network("float32", 1, inputs, (Dense(3, False, False),), seed=0), "xcu280")
        bounds = GoalBounds(replace(free, goal=Goal.of([], ["dsp<=10"]).on(free.platform)))
        first = next(op.layer for op in bounds.graph.operations if op.reductions)
        assert bounds.chains.before[first] == cycles


def test_ways_of_a_large_nest_are_few_and_stand_below_all_that_they_stand_for() -> None:
    trips = (96, 120, 90)
    kept = ways_of(_sum_of(trips), tuple((trip,) for trip in trips), [(1, 1, 90), (96, 1, 90)])
    assert len(kept) <= 800
    draw = random.Random(0)
    divisors = [[n for n in range(1, trip + 1) if trip % n == 0] for trip in trips]
    for _ in range(200):
        u = [draw.choice(some) for some in divisors]
        s = [trip // n for trip, n in zip(trips, u, strict=True)]
        way = [prod(u), prod(s), max((u[2] - 1).bit_length() + (s[2] > 1) - 1, 0), s[2], s[0] * s[2]]
        assert (kept <= way).all(axis=1).any(), u


@cache
def _sum_of(trips: tuple[int, ...]) -> TensorOp:
    """A sum along the last dim."""
    module = Formula(lambda x: x.sum(-1))
    program = prepare(import_loaded(LoadedModel("sum", "test", module, (torch.ones(trips),))))
    (found,) = read_graph(program.module).operations
    assert found.trips == trips
    assert found.reductions == (len(trips) - 1,)
    return found


def test_a_dim_that_nothing_pads_has_lanes_that_divide_it() -> None:
    assert lanes_of_dim(13, (13,)) == [1, 13]
    assert lanes_of_dim(13, (13, 14, 15)) == [1, 2, 3, 5, 7, 13]
    assert fewest_lanes((13,), ((13,),)).within(12) == 13
    assert fewest_lanes((13,), ((13, 14, 15),)).within(12) == 2


@pytest.mark.parametrize("seed", range(4))
def test_designs_pad_dims_to_no_other_sizes_than_the_bound_knows(seed: int) -> None:
    """Settings of every way to share out lanes: each dim of each design is as long as one of its sizes."""
    evaluator = Evaluator.create(network(seed), PLATFORMS[seed])
    space, sizes = evaluator.space, sizes_of(evaluator.space)
    places = Places(space.choices, space.conditions)
    padded = 0
    for row in places.at_random(150, np.random.default_rng(seed)).tolist():
        design = space.design(places.params(tuple(row)))
        longer = space.dims.padded(design)
        for op in space.graph.operations:
            for d, trip in enumerate(op.trips):
                size = longer.get(space.dims.of_loop(op, d), trip)
                assert size in sizes[op.layer][d]
                assert size % design.kernels[op.layer].unroll[d] == 0
                padded += size != trip
    assert padded > 0 or not any(len(some) > 1 for dims in sizes.values() for some in dims)


def test_whole_lanes_say_more_than_any_numbers_of_lanes() -> None:
    """Of few rows: lanes along rows leave more to wait for, lanes along sums longer trees."""
    evaluator = ExploreCase("mlp-one-row", 1000).evaluator()
    bounds = GoalBounds(evaluator)
    needs = needs_of(bounds.graph, bounds.bodies)
    working = [Working(one.layer, one.lanes, one.needed) for one in bounds.kernels]
    least = float(bounds.latency().terms[OPERATORS])
    any_numbers = Overlap(working, bounds.chains, needs, bounds.limits, least).shortest()
    assert bounds.latency().terms[OVERLAP] > any_numbers


def test_a_reason_says_what_is_left_out_only_where_a_design_is_far_above() -> None:
    bound = LowerBound("latency_cycles", 100.0, "why", {OPERATORS: 90.0, OVERLAP: 100.0})
    assert bound.reason_beside(125) == "why"
    assert bound.reason_beside(126).startswith("why (a loose bound: it leaves out that tokens pass in bursts")
    assert LowerBound("traffic_bytes", 0.0, "why", {"inputs and results": 0.0}).reason_beside(5) == "why"


def test_caches_that_rows_are_joined_to_pass_as_well() -> None:
    program = prepare(import_model("zoo:gpt2?size=small&mode=decode&seq=1&cache=512"), "w8a8")
    evaluator = Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))
    graph, setting = evaluator.space.graph, evaluator.space.fitted_setting()
    least = least_traffic_bits(graph, with_weights=True)
    of_operations = {value for op in graph.operations for value in op.inputs}
    caches = sum(tensor_bits(value) for value in graph.arguments if value not in of_operations)
    assert caches > least / 4, "nothing computes with a cache before it is joined"
    bound = GoalBounds(evaluator).latency()
    memory = evaluator.platform.fastest_memory
    assert memory is not None
    cycles_a_bit = evaluator.clock_mhz / (8e3 * memory.sustained_gb_s)
    assert bound.terms[MEMORY] > least * cycles_a_bit + 60, "the first word takes an access, and the last is used"
    flowing = evaluator.space.fitting.flowing(evaluator.space.settings(setting))
    for more in ({}, flowing, {"stripes": 16}, {**flowing, "stripes": 16}):
        one = evaluator.evaluate({**setting, **more})
        assert one.cost.traffic_bytes * 8 >= least
        assert one.figures.latency >= bound.value
