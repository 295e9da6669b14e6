"""Fusion: the greedy walk, the least traffic against brute force, and what grouped designs cost."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.space.fusion import FusionGraph, Tensor, exact_groups, fusion_graph, greedy_groups, in_sequence
from penstock.profiling.simulated import simulate_design
from tests.compiler.designs import Dense, build_network, designs, networks


@st.composite
def graphs(draw: st.DrawFn) -> FusionGraph:
    """Up to five kernels; each reads inputs or what earlier ones made, through converters of any size."""
    kernels = tuple("abcde"[: draw(st.integers(1, 5))])
    edges: dict[tuple[str, str], int] = {}
    readers: dict[str, list[str]] = {kernel: [] for kernel in kernels}
    inputs: list[str] = []
    for position, kernel in enumerate(kernels):
        for maker in kernels[:position]:
            if draw(st.booleans()):
                edges[maker, kernel] = draw(st.integers(0, 9))
                readers[maker].append(kernel)
        if draw(st.booleans()):
            inputs.append(kernel)
    tensors = [Tensor(draw(st.integers(1, 9)), k, tuple(r), draw(st.booleans())) for k, r in readers.items() if r]
    tensors += [Tensor(draw(st.integers(1, 9)), None, tuple(inputs))] if inputs else []
    return FusionGraph(kernels, edges, tuple(tensors))


def allowed(graph: FusionGraph, budget: int, groups: dict[str, int]) -> bool:
    forward = all(groups[maker] <= groups[reader] for maker, reader in graph.edges)
    return forward and all(bits <= budget for bits in graph.memory(groups).values())


@settings(max_examples=40)
@given(graph=graphs(), budget=st.integers(0, 20), most=st.integers(1, 4))
def test_exact_is_the_least_of_all(graph: FusionGraph, budget: int, most: int) -> None:
    every = [dict(zip(graph.kernels, g, strict=True)) for g in product(range(most), repeat=len(graph.kernels))]
    fitting = [graph.traffic(groups) for groups in every if allowed(graph, budget, groups)]
    found = exact_groups(graph, budget, most)
    assert (found is None) == (not fitting)
    if found is not None:
        assert allowed(graph, budget, found)
        assert graph.traffic(found) == min(fitting)
        assert set(found.values()) == set(range(len(set(found.values()))))


def test_a_choice_that_a_solvers_presolve_denies() -> None:
    """HiGHS 1.15 with its presolve calls this program infeasible."""
    edges = dict.fromkeys([("a", "c"), ("b", "c"), ("a", "d"), ("c", "e"), ("d", "e")], 0)
    made = {"a": ("c", "d"), "b": ("c",), "c": ("e",), "d": ("e",)}
    tensors = (*(Tensor(1, maker, readers) for maker, readers in made.items()), Tensor(1, None, ("a", "c", "d")))
    graph = FusionGraph(("a", "b", "c", "d", "e"), edges, tensors)
    found = exact_groups(graph, 0, 3)
    assert found is not None
    assert allowed(graph, 0, found)
    assert graph.traffic(found) == 7


@settings(max_examples=200)
@given(graph=graphs(), budget=st.integers(0, 20))
def test_greedy_keeps_to_the_budget_and_never_goes_back(graph: FusionGraph, budget: int) -> None:
    groups = greedy_groups(graph, budget)
    assert allowed(graph, budget, groups)
    assert in_sequence(groups) == groups


def test_paths_that_part_and_meet_hold_whole_tensors() -> None:
    """a goes to b and to c, which reads b too; the input goes to a and d, which reads c."""
    edges = {("a", "b"): 1, ("b", "c"): 0, ("a", "c"): 0, ("c", "d"): 0}
    tensors = (Tensor(100, "a", ("b", "c")), Tensor(10, "b", ("c",)), Tensor(7, "c", ("d",)), Tensor(5, None, ("a",)))
    graph = FusionGraph(("a", "b", "c", "d"), edges, tensors)
    assert graph.held({"a", "b"}) == 1
    assert graph.held({"a", "b", "c"}) == graph.held({"a", "b", "c", "d"}) == 1 + 100 + 100 + 10
    around = FusionGraph(graph.kernels, edges, (*tensors[:3], Tensor(5, None, ("a", "d"))))
    assert around.held({"a", "b", "c", "d"}) == 1 + 100 + 100 + 10 + 7 + 5 + 5
    assert greedy_groups(graph, 200) == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert exact_groups(graph, 200, 2) == {"a": 0, "b": 0, "c": 1, "d": 1}


@settings(max_examples=100)
@given(data=st.data(), graph=graphs())
def test_more_kernels_never_hold_less(data: st.DataObject, graph: FusionGraph) -> None:
    large = set(data.draw(st.lists(st.sampled_from(graph.kernels))))
    small = set(data.draw(st.lists(st.sampled_from(sorted(large))))) if large else set[str]()
    assert graph.held(small) <= graph.held(large)


def test_greedy_joins_the_latest_group_it_reads_from() -> None:
    edges = {("a", "b"): 5, ("b", "c"): 5, ("a", "c"): 1, ("c", "d"): 0}
    graph = FusionGraph(("a", "b", "c", "d"), edges, ())
    assert greedy_groups(graph, 4) == {"a": 0, "b": 1, "c": 2, "d": 2}
    assert greedy_groups(graph, 5) == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert greedy_groups(graph, 11) == {"a": 0, "b": 0, "c": 0, "d": 0}


@settings(max_examples=10)
@given(data=st.data())
def test_a_designs_graph_counts_what_its_converters_hold(data: st.DataObject) -> None:
    """One group for all is no more traffic; a group each has no converter between kernels."""
    program = data.draw(networks())
    design = replace(data.draw(designs(program.module)), groups={})
    graph = fusion_graph(read_graph(program.module), design)
    together = dict.fromkeys(graph.kernels, 0)
    apart = {kernel: number for number, kernel in enumerate(graph.kernels)}
    assert graph.traffic(together) == 0
    assert not any(graph.memory(apart).values())
    most = graph.memory(together)[0]
    assert most >= sum(graph.edges.values())
    assert set(greedy_groups(graph, most).values()) <= set(range(len(graph.kernels)))
    for groups in (greedy_groups(graph, 0), greedy_groups(graph, most)):
        lower(program, replace(design, groups=groups))


def two_layers(width: int = 16) -> Evaluator:
    layers = (Dense(width, False, False), Dense(width // 2, False, False))
    return Evaluator.create(build_network("int8", width // 2, width, layers, seed=2), "u55c")


@pytest.mark.parametrize("fusion", ["greedy", "exact"])
def test_the_budget_and_the_number_of_groups_are_searched(fusion: str) -> None:
    """Reductions outside: the second layer wants its rows again for every tile, from a buffer of 8 KiB."""
    evaluator = two_layers(64)
    space = evaluator.space
    assert space.choices["fusion"] == ("all", "greedy", "exact")
    assert space.conditions["most_groups"] == {"fusion": ("exact",)}
    assert space.conditions["converter_kib"] == {"fusion": ("greedy", "exact")}
    params = {**space.default_params(), "default_tile_size": 4, "order": "reduction-outer", "overall_unroll_size": 64}
    fused = evaluator.evaluate(params)
    graph = fusion_graph(space.graph, fused.design)
    assert not fused.design.groups
    together = graph.memory(dict.fromkeys(graph.kernels, 0))[0]
    budgets = (int(space.choices["converter_kib"][0]), int(space.choices["converter_kib"][-1]))
    small, large = (evaluator.evaluate({**params, "fusion": fusion, "converter_kib": kib}) for kib in budgets)
    assert budgets[0] * 8192 < together <= budgets[1] * 8192
    assert small.design.groups == {"fc0": 0, "fc0.relu": 0, "fc1": 1, "fc1.relu": 1}
    assert max(graph.memory(small.design.groups).values()) <= 8192
    assert large.design == fused.design
    assert small.figures.resources.bram18 < fused.figures.resources.bram18


def test_there_is_nothing_to_group() -> None:
    """Without external memory, or where all that passes fits the smallest budget."""
    layers = (Dense(64, False, False), Dense(32, False, False))
    without = Evaluator.create(build_network("int8", 32, 64, layers, seed=2), "ecp5-85k")
    small = Evaluator.create(build_network("int8", None, 64, layers, seed=2), "u55c")
    assert "fusion" not in {**without.space.choices, **small.space.choices}


def test_groups_run_one_after_the_other_and_move_what_the_graph_says() -> None:
    evaluator = two_layers()
    fused = evaluator.evaluate(evaluator.space.default_params()).design
    graph = fusion_graph(evaluator.space.graph, fused)
    groups = {"fc0": 0, "fc0.relu": 0, "fc1": 1, "fc1.relu": 1}
    together, apart = (evaluator.evaluate_design(replace(fused, groups=g, fifo_depths={})) for g in ({}, groups))
    assert apart.figures.latency > together.figures.latency
    tasks = {task.name: task for task in apart.figures.tasks}
    assert tasks["fc1"].start > tasks["fc0"].end
    assert graph.traffic(groups) == 2 * 8 * 16 * 8  # fc0.relu's result, written and read
    assert apart.cost.traffic_bytes - together.cost.traffic_bytes == graph.traffic(groups) // 8
    simulation = simulate_design(evaluator.assembler.network(apart.design), evaluator.platform, evaluator.clock_mhz)
    assert simulation.latency == pytest.approx(apart.figures.latency, rel=0.1)
    lowered = lower(evaluator.program, apart.design)
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison
