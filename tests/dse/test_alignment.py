"""HIDA's alignment: its own example (Listing 1, tables 4 to 6), and what holds for any dataflow."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.pipeline import prepare
from penstock.compiler.platforms import load_platform
from penstock.dse.lanes.alignment import (
    Along,
    BufferWalk,
    LoopNest,
    bank_factors,
    connections,
    parallel_factors,
    unroll_factors,
    unrolling_order,
)
from penstock.dse.lanes.steps import loop_nests
from penstock.dse.space.aligned_by import AlignedBy
from penstock.dse.space.tiling import TilingOptions, TilingSpace
from penstock.services.jobs.search_settings import space_options
from tests.compiler.frames import imported

LOAD_A = LoopNest("Node0", (32, 16), writes=(BufferWalk.of("A", 0, 1),))
LOAD_B = LoopNest("Node1", (16, 16), writes=(BufferWalk.of("B", 0, 1),))
MULTIPLY = LoopNest(
    "Node2",
    (16, 16, 16),
    writes=(BufferWalk.of("C", 0, 1),),
    reads=(BufferWalk("A", ((0, 2), (2, 1))), BufferWalk.of("B", 2, 1)),  # A[i*2][k], B[k][j]
)
ALONG: tuple[Along, ...] = ("parallel", "reduction", "balanced")
LISTING_1 = (LOAD_A, LOAD_B, MULTIPLY)
HALF, ONE, TWO, NONE = Fraction(1, 2), Fraction(1), Fraction(2), Fraction(0)


def test_table_4_the_connections_of_listing_1():
    over_a, over_b = connections(LISTING_1)
    assert (over_a.source, over_a.target, over_a.buffer) == ("Node0", "Node2", "A")
    assert over_a.source_to_target.permutation == (0, None, 1)
    assert over_a.target_to_source.permutation == (0, 2)
    assert over_a.source_to_target.scaling == (HALF, ONE)
    assert over_a.target_to_source.scaling == (TWO, NONE, ONE)
    assert (over_b.source, over_b.target, over_b.buffer) == ("Node1", "Node2", "B")
    assert over_b.source_to_target.permutation == (None, 1, 0)
    assert over_b.target_to_source.permutation == (2, 1)
    assert over_b.source_to_target.scaling == (ONE, ONE)
    assert over_b.target_to_source.scaling == (NONE, ONE, ONE)


def test_the_order_of_listing_1():
    assert [nest.name for nest in unrolling_order(LISTING_1)] == ["Node2", "Node0", "Node1"]


def test_table_5_parallel_factors():
    assert [nest.intensity for nest in LISTING_1] == [512, 256, 4096]
    assert parallel_factors(LISTING_1, 32) == {"Node0": 4, "Node1": 2, "Node2": 32}
    assert set(parallel_factors(LISTING_1, 32, by_intensity=False).values()) == {32}


def test_tables_5_and_6_unroll_factors_and_banks():
    """All of table 5, and all of table 6 but B under IA and naive: see the test below."""
    wanted = {
        (True, True): ({"Node0": (4, 1), "Node1": (1, 2)}, {"A": (8, 1), "B": (1, 8)}),
        (True, False): ({"Node0": (2, 2), "Node1": (1, 2)}, {"A": (8, 2)}),
        (False, True): ({"Node0": (8, 4), "Node1": (4, 8)}, {"A": (8, 4), "B": (4, 8)}),
        (False, False): ({"Node0": (4, 8), "Node1": (4, 8)}, {"A": (8, 8)}),
    }
    for (intensity, connection), (factors, banks) in wanted.items():
        found = unroll_factors(LISTING_1, 32, by_intensity=intensity, by_connection=connection)
        assert found == factors | {"Node2": (4, 8, 1)}
        for buffer, cut in (banks | {"C": (4, 8)}).items():
            assert bank_factors(LISTING_1, found, buffer) == cut


def test_the_banks_of_table_6_that_table_5_contradicts():
    """Under IA and naive, table 6 has B in banks of [2, 8] and [8, 8]. Node1's factors of table 5 do not need them.

    As many lanes along its other loop do: the two tables show different runs of a choice between equals.
    """
    multiply = {"Node0": (2, 2), "Node2": (4, 8, 1)}
    assert bank_factors(LISTING_1, multiply | {"Node1": (1, 2)}, "B") == (1, 8)
    assert bank_factors(LISTING_1, multiply | {"Node1": (2, 1)}, "B") == (2, 8)
    assert bank_factors(LISTING_1, multiply | {"Node1": (4, 8)}, "B") == (4, 8)
    assert bank_factors(LISTING_1, multiply | {"Node1": (8, 4)}, "B") == (8, 8)


@st.composite
def chains(draw: st.DrawFn) -> tuple[LoopNest, ...]:
    """Products of matrices one after the other, each read straight or transposed."""
    sizes = draw(st.lists(st.sampled_from([2, 3, 4, 6, 8, 12, 16]), min_size=3, max_size=5))
    nests: list[LoopNest] = []
    for i in range(len(sizes) - 2):
        rows, inner, columns = sizes[0], sizes[i + 1], sizes[i + 2]
        read = BufferWalk.of(f"T{i}", 0, 2) if i == 0 or draw(st.booleans()) else BufferWalk.of(f"T{i}", 2, 0)
        trips = (rows, columns, inner) if read.dims[0][0] == 0 else (inner, columns, rows)
        nests.append(LoopNest(f"n{i}", trips, writes=(BufferWalk.of(f"T{i + 1}", 0, 1),), reads=(read,)))
    return tuple(nests)


@given(chains(), st.sampled_from([1, 2, 7, 16, 64]), st.sampled_from(ALONG))
@settings(max_examples=60)
def test_factors_are_legal_and_neighbours_agree(nests: tuple[LoopNest, ...], most: int, along: Along):
    share = parallel_factors(nests, most)
    found = unroll_factors(nests, most, along=along)
    for nest in nests:
        factors = found[nest.name]
        assert prod(factors) <= share[nest.name]
        assert all(trip % factor == 0 for trip, factor in zip(nest.trips, factors, strict=True))
    for link in connections(nests):
        asked = link.source_to_target.constraints(found[link.source])
        for want, factor in zip(asked, found[link.target], strict=True):
            assert want is None or want % factor == 0 or factor % want == 0


def test_what_reads_windows_is_connected_with_what_makes_the_frame():
    """Through both slides, along rows and columns with the windows' step, and not along their places."""
    body = nn.Sequential(nn.Conv2d(2, 4, 1), nn.Conv2d(4, 8, 3, stride=2))
    nests = loop_nests(read_graph(prepare(imported(body, (1, 2, 9, 9))).module))
    by_name = {nest.name: nest for nest in nests}
    (link,) = [one for one in connections(nests) if one.target == "1"]
    walked = {own: made for own, made in enumerate(link.source_to_target.permutation) if made is not None}
    (frame,) = [read for read in by_name["1"].reads if read.buffer == link.buffer]
    assert [n for _, n in frame.dims] == [1, 2, 2]
    assert [by_name["1"].trips[own] for own in walked] == [4, 4, 4]
    assert sorted(link.source_to_target.scaling) == [HALF, HALF, ONE]


def test_a_space_without_work_or_neighbours_gives_all_kernels_as_much():
    """What a search may be asked for by `--aligned-by`: figure 11's groups."""
    body = nn.Sequential(nn.Conv2d(2, 4, 1), nn.Conv2d(4, 8, 3), nn.Conv2d(8, 6, 1))
    program = prepare(imported(body, (1, 2, 6, 6)))

    def lanes(by: AlignedBy) -> dict[str, tuple[int, ...]]:
        options = TilingOptions(aligned_by=by, parallel_factor=8)
        space = TilingSpace(read_graph(program.module), load_platform("u55c"), 100.0, None, options)
        kernels = space.design({"allocation": "aligned", "default_tile_size": 8}).kernels
        return {layer: kernels[layer].unroll for layer in ("0", "1", "2")}

    works = {op.layer: op.work for op in read_graph(program.module).operations}
    busiest = max(works.values())
    for by in get_args(AlignedBy):
        shared = {layer: max(1, 8 * works[layer] // busiest) for layer in ("0", "1", "2")}
        most = shared if by in ("both", "intensity") else dict.fromkeys(shared, 8)
        assert all(prod(unroll) <= most[layer] for layer, unroll in lanes(by).items()), by
    assert sum(map(prod, lanes("neither").values())) > sum(map(prod, lanes("both").values()))
    assert TilingOptions(aligned_by="connection") == space_options({"aligned_by": "connection"})


def test_lanes_that_are_allowed_only():
    found = unroll_factors(LISTING_1, 32, allowed={"Node2": [(1, 2), (1, 2, 4), (1,)]})
    assert found["Node2"] == (2, 4, 1)
