"""What a way to unroll a kernel says of results that are done together, and of each element that it reads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product
from math import ceil, prod

import numpy as np
import pytest
import torch

from benchmarks.explore import ExploreCase
from benchmarks.workloads import Formula
from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import Graph, TensorOp, read_graph
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import LoadedModel
from penstock.compiler.pipeline import prepare
from penstock.compiler.platforms import load_platform
from penstock.dse.bounds import bound, whole
from penstock.dse.bounds.bound import GoalBounds
from penstock.dse.bounds.needs import read_straight
from penstock.dse.bounds.ways import ITERATIONS, LANES, LEFT, LONG, PARTS, TOGETHER, iterations_of, lanes_of, ways_of
from penstock.dse.evaluation.assemble import Assembler
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.lanes.alignment import divisors
from penstock.dse.search.coordinates import Places
from penstock.dse.search.explore import explore
from tests.compiler.designs import Dense, build_network

AGAIN, KEEPING = 3, 2


@pytest.mark.parametrize("trips", [(6, 4), (12, 6), (1, 8), (9, 2)])
def test_no_results_are_done_more_apart_than_a_way_says(trips: tuple[int, int]) -> None:
    """Against every tile, unroll and order of rows and their terms: as many are done in so many cycles before the end.

    A sum rests in a memory, or stays in a register where its terms come one right after the other.
    """
    op = graph_of(lambda x: x.sum(-1), torch.ones(trips)).operations[0]
    assert (op.trips, op.reductions) == (trips, (1,))
    kept = ways_of(op, tuple((trip,) for trip in trips), [], again=AGAIN, keeping=KEEPING, operands=[(0, 1)])
    several = 0
    for unroll, rows in walks(trips):
        cycles, done = through(rows, trips[1] // unroll[1])
        several += sum(n == done[-1] for n in done) < sum(n > done[-1] - AGAIN - KEEPING for n in done)
        assert any(
            way[LANES] <= prod(unroll) and way[ITERATIONS] <= cycles
            and way[TOGETHER] <= sum(n >= done[-1] - (LONG - way[LEFT]) for n in done)
            for way in kept.tolist()
        ), (unroll, rows)  # fmt: skip
    assert several or trips[0] == 1, "some end with one result after the other"


def walks(trips: Sequence[int]) -> Iterator[tuple[tuple[int, ...], list[list[int]]]]:
    """The rows that every iteration adds to, of all tiles, unrolls and orders of loops over tiles and over points."""
    for tile in product(*map(divisors, trips)):
        for unroll in product(*map(divisors, tile)):
            for order, points in product(permutations((0, 1)), repeat=2):
                loops = [range(0, trips[d], tile[d]) for d in order] + [range(0, tile[d], unroll[d]) for d in points]
                found: list[list[int]] = []
                for at in product(*loops):
                    first = sum(n for d, n in zip((*order, *points), at, strict=True) if d == 0)
                    found.append(list(range(first, first + unroll[0])))
                yield unroll, found


def through(rows: Sequence[Sequence[int]], steps: int) -> tuple[int, list[int]]:
    """The fewest cycles of these iterations, and when each row has its last term, ascending."""
    last: dict[int, int] = {}
    apart = [n - last[row] for n, some in enumerate(rows) for row in some if row in last or last.update({row: n})]
    for n, some in enumerate(rows):
        apart += [n - last[row] for row in some if last.get(row, n) < n]
        last |= dict.fromkeys(some, n)
    near = min((one for one in apart if one > 0), default=0)
    every = 1 if steps == 1 else AGAIN if near == 1 else ceil((AGAIN + KEEPING) / near)
    return (len(rows) - 1) * every + 1, sorted(n * every for n in last.values())


def test_an_element_takes_as_many_iterations_as_lanes_leave() -> None:
    """Of a product of 6 x 10 by 10 x 8: an element of the first is there for 8 columns, which lanes share."""
    op = graph_of(lambda x, y: x @ y, torch.ones(6, 10), torch.ones(10, 8)).operations[0]
    (left,) = [dims for value, dims in zip(op.inputs, op.operand_dims, strict=True) if value is op.inputs[0]]
    loops = [d for d in left if d is not None]
    kept = ways_of(op, tuple((trip,) for trip in op.trips), [], operands=[loops])
    for unroll in product(*map(divisors, op.trips)):
        steps = [trip // u for trip, u in zip(op.trips, unroll, strict=True)]
        taken = 5 / prod(unroll[d] for d in loops) * prod(n for d, n in enumerate(steps) if d not in loops)
        good = (kept[:, LANES] <= prod(unroll)) & (kept[:, ITERATIONS] <= prod(steps))
        assert (iterations_of(kept[good], PARTS, 2, 5) <= taken * (1 + 1e-3)).any(), unroll
    alone = kept[np.argmin(kept[:, LANES])]
    assert 0.99 * 40 < iterations_of(alone[None], PARTS, 2, 5)[0] <= 40


def test_what_a_kernel_reads_as_another_made_it() -> None:
    """Neither what it repeats along no loop nor the model's inputs."""
    graph = graph_of(lambda x, y: ((x @ y) * 2 + 1).sum(-1), torch.ones(6, 10), torch.ones(10, 8))
    by_layer = {op.layer: read_straight(op, graph) for op in graph.operations}
    first, *others = graph.operations
    assert by_layer[first.layer] == {}
    for op in others:
        assert all(len(loops) == 2 and maker in by_layer for maker, loops in by_layer[op.layer].items())
    assert any(by_layer[op.layer] for op in others)


def test_results_that_are_done_together_make_a_bound_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products and their weighted sum: seven rows or more of a product end together, and wait for the sum."""
    evaluator = ExploreCase("gesummv", 100).evaluator()
    found = GoalBounds(evaluator).latency().value
    monkeypatch.setattr(bound, "_MOST_TOGETHER", 0)
    assert GoalBounds(evaluator).latency().value < found <= 4258


@pytest.mark.parametrize("made", [1, 2, 3, 8, 12])
@pytest.mark.parametrize("taken", [1, 2, 3, 8, 12])
def test_tokens_become_others_as_late_as_a_bound_says(made: int, taken: int) -> None:
    """Along one dim: what is as wide passes at once; what takes neither whole tokens nor whole parts, a stage later."""
    layers = (Dense(24, False, False), Dense(5, False, False))
    program = build_network("float32", 1, 6, layers, seed=0)
    first, then, last, *_ = read_graph(program.module).operations
    design = default_design(read_graph(program.module), "xcu280", 300.0)
    lanes = {first.layer: (1, made, 1), then.layer: (1, made), last.layer: (1, 1, taken)}
    kernels = {name: replace(design.kernels[name], tile=own, unroll=own) for name, own in lanes.items()}
    design = replace(design, kernels={**design.kernels, **kernels})
    network = Assembler(program, load_platform("xcu280"), 300.0).network(design)
    between = [task for task in network.tasks if task.layer == f"convert.{then.layer}"]
    if made == taken:
        assert not between
        return
    stages = [port.stage for task in between for nest in task.nests for port in nest.ports if port.direction == "write"]
    begun = [port.stage for task in between for nest in task.nests for port in nest.ports if port.direction == "read"]
    several = made % taken == 0 or taken % made == 0
    assert sum(stages) - sum(begun) + len(between) >= 1 + (not several)


def test_lanes_that_are_told_are_beaten_by_no_others() -> None:
    """Of what an operand is taken in by, each number of lanes is kept, and ways that count as one say from which to
    which they have."""
    op = graph_of(lambda x, y: x @ y, torch.ones(1, 12), torch.ones(12, 8)).operations[0]
    (summed,) = op.reductions
    sizes = tuple((trip,) for trip in op.trips)
    kept = ways_of(op, sizes, [], operands=[], told=[summed])
    few, many = lanes_of(kept, PARTS)
    assert set(few.tolist()) == set(many.tolist()) == set(divisors(12))
    assert len(kept) > len(ways_of(op, sizes, [], operands=[]))
    fewest, most = lanes_of(kept.min(axis=0)[None], PARTS)
    assert (fewest.tolist(), most.tolist()) == ([1], [12])


def test_tokens_of_other_widths_make_a_bound_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row through two layers; the search finds a design of 91 cycles."""
    program = prepare(
        import_loaded(
            LoadedModel(
                "formula", "test", Formula(lambda x, w, v: x @ w @ v),
                (torch.ones(1, 48), torch.ones(48, 32), torch.ones(32, 16)),
            )
        )
    )  # fmt: skip
    free = Evaluator.create(program, "xcu280")
    evaluator = replace(free, goal=Goal.of([], ["dsp<=400"]).on(free.platform))
    found = GoalBounds(evaluator).latency().value
    monkeypatch.setattr(whole, "_PASSED_ON", 0)
    assert GoalBounds(evaluator).latency().value < found <= explore(evaluator, 4).best.evaluation.values[0]


def graph_of(formula: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> Graph:
    program = prepare(import_loaded(LoadedModel("formula", "test", Formula(formula), inputs)))
    graph = read_graph(program.module)
    assert all(isinstance(op, TensorOp) for op in graph.operations)
    return graph


@pytest.mark.parametrize("seed", range(3))
def test_no_design_of_a_search_is_below_what_results_done_together_say(seed: int) -> None:
    """Sums that others read one by one: of sizes of all kinds, under few DSPs, on arrays and on external memory."""
    draw = random.Random(seed)
    m, n = draw.randint(5, 40), draw.randint(5, 40)
    formula, inputs = draw.choice(
        [
            (lambda a, x: a.T @ (a @ x), (torch.ones(m, n), torch.ones(n))),
            (lambda a, b, x: (a @ x) * 1.5 + (b @ x) * 2, (torch.ones(m, n), torch.ones(m, n), torch.ones(n))),
            (lambda x, a: (x @ a) * 3 + 1, (torch.ones(2, m), torch.ones(m, n))),
        ]
    )
    program = prepare(import_loaded(LoadedModel("formula", "test", Formula(formula), inputs)))
    free = Evaluator.create(program, draw.choice(["xcu280", "zcu104"]))
    evaluator = replace(free, goal=Goal.of([], [f"dsp<={draw.choice([8, 20, 50])}"]).on(free.platform))
    found = explore(evaluator, 12)
    places = Places(evaluator.space.choices, evaluator.space.conditions)
    rows = places.at_random(40, np.random.default_rng(seed)).tolist()
    tried = [*(one.evaluation for one in found.tried), *(evaluator.evaluate(places.params(tuple(r))) for r in rows)]
    assert all(found.bound.value <= one.values[0] for one in tried if one is not None and one.feasible)
