"""Converters that regroup: the plan replayed on random sizes, what it keeps, and models whose lanes do not divide."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, lcm, prod
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from xdsl.dialects.builtin import i8

from penstock.compiler.analysis.converter import plan_converter
from penstock.compiler.analysis.converting import choose_plan
from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.loops import canonical_itensor
from penstock.compiler.analysis.regroup import RegroupPlan, plan_regroup
from penstock.compiler.analysis.walks import read_walk
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.pipeline import Lowered, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from tests.compiler.frames import imported
from tests.compiler.test_chain import check_csim
from tests.rtl.rtl_batch import Core, build, check_whole


def regrouped(first: int, second: int, blocks: int, inner: int) -> tuple[ITensorType, ITensorType]:
    """Blocks one after the other of slices of `first`, and of `second` places; at each so many rows."""
    extent = blocks * lcm(first, second)
    kinds = (canonical_itensor([1, n], i8, [(extent // n, n, 1), (inner, 1, 0)]) for n in (first, second))
    one, other = kinds
    return one, other


@settings(max_examples=300)
@given(first=st.integers(1, 24), second=st.integers(1, 24), blocks=st.integers(1, 3), inner=st.integers(1, 3))
def test_replay(first: int, second: int, blocks: int, inner: int) -> None:
    """Every slice holds the places that it should, the faster side never waits, and no more is kept than must be."""
    source, target = regrouped(first, second, blocks, inner)
    plan = plan_regroup(source, target)
    if first == second:
        assert plan is None
        return
    assume(plan is not None)
    assert plan is not None
    tokens = [list(range(n, n + first)) for n in range(0, plan.block, first)]
    before, sent, taken = [[-1] * first] * plan.depth, list[list[int]](), iter(tokens)
    for slot in range(plan.slots):
        newest = next(taken) if plan.reads >> slot & 1 else before[-1]
        known = [place for token in (*before, newest) for place in token]
        if plan.writes >> slot & 1:
            (start,) = (one for one, slots in plan.picks.items() if slots >> slot & 1)
            sent.append(known[start : start + second])
        before = [*before, newest][1:]
    assert sent == [list(range(n, n + second)) for n in range(0, plan.block, second)]
    assert next(taken, None) is None
    assert prod(trip for trip, _, _ in plan.outer) * plan.slots * inner == max(
        read_walk(one).tokens for one in (source, target)
    )
    alive = plan_converter(source, target).live_max
    assert plan.elements <= alive - gcd(first, second) * (inner > 1) + first * inner
    assert plan.elements < plan_converter(source, target).ping_pong_elements


def test_nine_become_sixteen() -> None:
    """Three tokens of nine where two blocks would hold 288 elements."""
    plan = choose_plan(*regrouped(9, 16, 2, 1))
    assert isinstance(plan, RegroupPlan)
    assert (plan.slots, plan.depth, plan.elements) == (16, 2, 18)
    assert plan_converter(*regrouped(9, 16, 2, 1)).ping_pong_elements == 288


def lanes_that_do_not_divide(first: int, second: int) -> Lowered:
    body = nn.Sequential(nn.Conv2d(2, 12, 1), nn.ReLU(), nn.Conv2d(12, 12, 3, groups=12))
    program = prepare(imported(body, (1, 2, 4, 5)), "w8a8")
    graph = read_graph(program.module)
    design = default_design(graph, "u55c", 300.0, "w8a8")
    kernels = dict(design.kernels)
    for op in graph.operations:
        lanes = first if op.layer.startswith(("0", "1")) else second
        unroll = tuple(lanes if trip == 12 else 1 for trip in op.trips)
        kernels[op.layer] = replace(kernels[op.layer], unroll=unroll)
    return lower(program, replace(design, kernels=kernels))


PAIRS = ((2, 3), (6, 4), (3, 4))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_levels_agree(first: int, second: int) -> None:
    lowered = lanes_that_do_not_divide(first, second)
    assert "regroup" in str(lowered.stream)
    assert all(one.equal for one in verify_levels(lowered, make_inputs(lowered, random_sets=1)))


@pytest.mark.slow
def test_csim_and_rtl_agree(tmp_path: Path) -> None:
    """More lanes become fewer and fewer become more, in C++ and cycle by cycle in SystemVerilog."""
    batch = [lanes_that_do_not_divide(*pair) for pair in PAIRS]
    check_csim(batch, tmp_path)
    cores = [Core(lowered, str(number)) for number, lowered in enumerate(batch)]
    for core, program in zip(cores, build(cores), strict=True):
        check_whole(core, program, frames=2)
