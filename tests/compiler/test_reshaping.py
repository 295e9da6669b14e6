"""Reshapes on the way: the orders in which no token has to wait, and frames that are enlarged place by place."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from xdsl.dialects.builtin import f32

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.loops import canonical_itensor
from penstock.compiler.analysis.reshaping import merged_groups, reshaped_order
from penstock.compiler.analysis.spatial import spatial_loops
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.pipeline import prepare
from penstock.compiler.transforms.canonicalise import SIMPLIFY
from penstock.compiler.transforms.rewrite import run_rewrites
from penstock.compiler.transforms.split_loops import SplitLoops
from penstock.dse.space.fusion import fusion_graph
from tests.compiler.designs import divisors
from tests.compiler.frames import FRAMES, imported
from tests.frontend.models import Lambda, import_module, make, seeded

SIZES = st.sampled_from([1, 2, 3, 4, 6])


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[ITensorType, tuple[int, ...], tuple[int, ...]]:
    """Any order of a tensor, and a shape with some neighbouring dims merged or split."""
    groups = draw(st.lists(st.lists(SIZES, min_size=1, max_size=3), min_size=1, max_size=3))
    finer, coarser = tuple(size for group in groups for size in group), tuple(prod(group) for group in groups)
    source, result = (finer, coarser) if draw(st.booleans()) else (coarser, finer)
    element, loops = list[int](), list[tuple[int, int, int | None]]()
    for dim, size in enumerate(source):
        element.append(draw(st.sampled_from(divisors(size))))
        tile = draw(st.sampled_from([n for n in divisors(size) if n % element[dim] == 0]))
        loops += [(size // tile, tile, dim), (tile // element[dim], element[dim], dim)]
    order = draw(st.permutations(range(len(loops))))
    return canonical_itensor(element, f32, [loops[n] for n in order]), source, result


@settings(max_examples=300)
@given(given=reshapes())
def test_the_same_elements_pass_in_the_same_order(given: tuple[ITensorType, tuple[int, ...], tuple[int, ...]]) -> None:
    kind, source, result = given
    found = reshaped_order(kind, source, result)
    if found is not None:
        assert tuple(found.data_shape()) == result
        assert np.array_equal(found.places(), kind.places())
    if max(kind.element_shape) == 1 and len(source) > len(result):
        assert found is not None, "single elements pass in any order of merged dims"


@pytest.mark.parametrize(("element", "box"), [(2, (1, 2)), (8, (1, 8)), (16, (2, 8)), (32, (4, 8))])
def test_a_run_of_a_dim_is_a_box_of_those_that_it_splits_into(element: int, box: tuple[int, int]) -> None:
    """All channels of a pixel at once are all of each group of them."""
    channels = canonical_itensor([element], f32, [(32 // element, element, 0)])
    groups = reshaped_order(channels, (32,), (4, 8))
    assert groups is not None
    assert tuple(groups.element_shape) == box
    assert reshaped_order(groups, (4, 8), (32,)) == channels
    part = canonical_itensor([2, 4], f32, [(2, 2, 0), (2, 4, 1)])
    assert reshaped_order(part, (4, 8), (32,)) is None, "halves of two groups are no run"
    assert reshaped_order(canonical_itensor([12], f32, [(2, 12, 0)]), (24,), (3, 8)) is None


def test_shuffled_channels_pass_place_by_place() -> None:
    """Else a frame of windows was turned round, a number at a time."""
    layer, shape = FRAMES["shuffled channels"]
    graph = read_graph(prepare(imported(layer(), shape), "w8a8").module)
    held = fusion_graph(graph, default_design(graph, "u55c", 300.0)).edges.values()
    assert max(held) < min(tensor_bits(op.result) for op in graph.operations), "not even one frame waits"


def test_shapes_that_do_not_fit() -> None:
    assert merged_groups((2, 3, 4), (6, 4)) == [[0, 1], [2]]
    assert merged_groups((4, 3), (6, 2)) is None
    assert merged_groups((2, 3), (2, 3, 1)) is None


@pytest.mark.parametrize("name", ["enlarged and joined", "pixels from channels"])
def test_a_frame_that_is_enlarged_passes_row_by_row(name: str) -> None:
    """What it is joined with keeps its own loops, and no converter holds more than two rows of it twice."""
    layer, shape = FRAMES[name]
    graph = read_graph(prepare(imported(layer(), shape)).module)
    loops = spatial_loops(graph)
    assert set(loops) == {op.layer for op in graph.operations}
    rows_and_columns = {len(loops[op.layer]) for op in graph.operations if op.reductions}
    assert rows_and_columns == ({2} if name == "enlarged and joined" else {2, 4}), "pixels of a channel are places too"
    held = fusion_graph(graph, default_design(graph, "u55c", 300.0)).edges.values()
    most = max(tensor_bits(op.result) // op.trips[loops[op.layer][0]] for op in graph.operations)
    assert max(held) <= 4 * most


def test_reshapes_far_from_one_another_move_at_once() -> None:
    """Else a model of many layers took a walk through all of it for each step of each reshape."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.relu(one(x).reshape(2, 3, 2, 2)).amax(2) for one in m.many])

    program = import_module(
        make(lambda: Lambda(forward, many=nn.ModuleList(nn.Linear(5, 4) for _ in range(12)))), seeded((6, 5))
    )
    few, many = (
        [SplitLoops(max_steps=steps) if isinstance(one, SplitLoops) else one for one in SIMPLIFY] for steps in (4, 1000)
    )
    assert str(run_rewrites(few, program).module) == str(run_rewrites(many, program).module)
