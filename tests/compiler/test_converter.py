"""Converters against brute force: random pairs of stream orders replayed through the planned blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import i8
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.converter import ConverterPlan, LoopOf, plan_converter
from penstock.compiler.analysis.live_range import live_maximum
from penstock.compiler.analysis.loops import canonical_itensor, itensor_loops
from penstock.compiler.analysis.walks import SliceWalk, positions, read_walk
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.errors import PenstockError

Element = tuple[int, ...]


@st.composite
def orders(draw: st.DrawFn, shape: tuple[int, ...]) -> ITensorType:
    """A way to stream a tensor of this shape: nested divisions of each dim, shuffled, some of it repeated."""
    loops: list[tuple[int, int, int | None]] = []
    element: list[int] = []
    for dim, extent in enumerate(shape):
        lanes = draw(st.sampled_from([d for d in range(1, extent + 1) if extent % d == 0]))
        inner = draw(st.sampled_from([d for d in range(lanes, extent + 1) if extent % d == 0 and d % lanes == 0]))
        element.append(lanes)
        loops += [(extent // inner, inner, dim), (inner // lanes, lanes, dim)]
    positions = draw(st.permutations(range(len(loops))))
    chosen = [loops[p] for p in positions]
    for dim in range(len(shape)):  # the coarse loop of a dim stays outside its fine loop, as tiling makes them
        first, second = (i for i, loop in enumerate(chosen) if loop[2] == dim)
        coarse, fine = loops[2 * dim], loops[2 * dim + 1]
        chosen[first], chosen[second] = coarse, fine
    if draw(st.booleans()):
        chosen.insert(draw(st.integers(0, len(chosen))), (2, 1, None))
    return canonical_itensor(element, i8, chosen)


@st.composite
def windows(draw: st.DrawFn, shape: tuple[int, ...]) -> ITensorType:
    """A way to stream a tensor in slices that may overlap; each dim is one loop or two, in any order, some repeated."""
    loops: list[tuple[int, int, int | None]] = []
    element: list[int] = []
    for dim, extent in enumerate(shape):
        size = draw(st.integers(1, extent))
        step = draw(st.sampled_from([s for s in range(1, size + 1) if (extent - size) % s == 0]))
        trips = (extent - size) // step + 1
        factor = draw(st.sampled_from([f for f in range(1, trips + 1) if trips % f == 0]))
        element.append(size)
        loops += [(trips // factor, step * factor, dim), (factor, step, dim)]
    for _ in range(draw(st.integers(0, 2))):
        loops.append((draw(st.integers(2, 3)), 1, None))
    return canonical_itensor(element, i8, draw(st.permutations(loops)))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[ITensorType, ITensorType]:
    shape = draw(st.sampled_from([(8,), (12,), (4, 6), (8, 8), (6, 9), (2, 4, 4)]))
    kinds = st.one_of(orders(shape), windows(shape))
    return draw(kinds), draw(kinds)


def elements(kind: ITensorType) -> Iterator[list[Element]]:
    """The elements of each token, in the order of the stream."""
    for corner in kind.offsets():
        spans = [range(c, c + e) for c, e in zip(corner, kind.element_shape, strict=True)]
        yield list(itertools.product(*spans))


def walk(loops: tuple[LoopOf, ...], rank: int) -> Iterator[Element]:
    for counters in itertools.product(*(range(trip) for trip, _, _ in loops)):
        corner = [0] * rank
        for counter, (_, step, dim) in zip(counters, loops, strict=True):
            if dim is not None:
                corner[dim] += counter * step
        yield tuple(corner)


@settings(max_examples=200)
@given(pair=pairs())
def test_replay(pair: tuple[ITensorType, ITensorType]) -> None:
    """Writing blocks in the source's order and reading them in the target's gives the target's stream."""
    source, target = pair
    plan, rank = plan_converter(source, target), len(source.element_shape)
    incoming, outgoing = elements(source), elements(target)
    for _ in walk(plan.shared, rank):
        block: dict[Element, Element] = {}
        for corner in walk(plan.source, rank):
            token = next(incoming)
            spans = [range(c, c + e) for c, e in zip(corner, source.element_shape, strict=True)]
            for place, element in zip(itertools.product(*spans), token, strict=True):
                assert all(p < extent for p, extent in zip(place, plan.block, strict=True))
                block[place] = element
        for corner in walk(plan.target, rank):
            spans = [range(c, c + e) for c, e in zip(corner, target.element_shape, strict=True)]
            assert [block[place] for place in itertools.product(*spans)] == next(outgoing)
    assert next(incoming, None) is None
    assert next(outgoing, None) is None


@settings(max_examples=100)
@given(data=st.data())
def test_equal_orders_have_equal_types(data: st.DataObject) -> None:
    """The canonical type depends on the order of the tokens only, not on how the loops were written."""
    kind = data.draw(orders((8, 8)))
    split: list[tuple[int, int, int | None]] = []
    for trip, step, dim in itensor_loops(kind):
        factor = data.draw(st.sampled_from([d for d in range(1, trip + 1) if trip % d == 0]))
        split += [(trip // factor, step * factor, dim), (factor, step, dim)]
    assert canonical_itensor(kind.element_shape, i8, split) == kind


def slices(kind: SliceWalk) -> list[frozenset[Element]]:
    corners = walk(kind.loops, len(kind.element))
    return [
        frozenset(itertools.product(*(range(c, c + e) for c, e in zip(corner, kind.element, strict=True))))
        for corner in corners
    ]


def replayed_live_maximum(source: SliceWalk, target: SliceWalk) -> int:
    """The definition, slice by slice and element by element."""
    wanted = slices(target)
    last = {element: number for number, token in enumerate(wanted) for element in token}
    seen: set[Element] = set()
    alive: set[Element] = set()
    taken = most = 0
    for token in slices(source):
        alive |= {element for element in token - seen if element in last}
        seen |= token
        most = max(most, len(alive))
        while taken < len(wanted) and wanted[taken] <= seen:
            alive -= {element for element in wanted[taken] if last[element] == taken}
            taken += 1
    assert taken == len(wanted)
    assert not alive
    return most


def block_live_max(plan: ConverterPlan) -> int:
    """Elements alive at once within one trip of the shared loops: what one block must hold at least."""
    return live_maximum(SliceWalk(plan.source_element, plan.source), SliceWalk(plan.target_element, plan.target))


@settings(max_examples=300)
@given(pair=pairs())
def test_live_maximum_is_that_of_a_replay(pair: tuple[ITensorType, ITensorType]) -> None:
    source, target = pair
    plan = plan_converter(source, target)
    assert plan.live_max == replayed_live_maximum(read_walk(source), read_walk(target))
    inside = SliceWalk(source.element_shape, plan.source), SliceWalk(target.element_shape, plan.target)
    assert block_live_max(plan) == replayed_live_maximum(*inside)
    assert block_live_max(plan) <= plan.block_elements


@settings(max_examples=100)
@given(pair=pairs(), scale=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)))
def test_live_maximum_scales(pair: tuple[ITensorType, ITensorType], scale: tuple[int, int, int]) -> None:
    """Coarser elements in coarser steps are the same orders of larger pieces."""

    def scaled(kind: SliceWalk) -> SliceWalk:
        return SliceWalk(
            tuple(size * factor for size, factor in zip(kind.element, scale, strict=False)),
            tuple((trip, step if dim is None else step * scale[dim], dim) for trip, step, dim in kind.loops),
        )

    source, target = read_walk(pair[0]), read_walk(pair[1])
    factor = 1
    for number, _ in zip(scale, source.element, strict=False):
        factor *= number
    assert live_maximum(scaled(source), scaled(target)) == factor * live_maximum(source, target)


def test_live_maximum_of_a_million_elements() -> None:
    """A transpose keeps all rows but the last, less the first column, which leaves as it comes."""
    rows = SliceWalk((1, 1), ((1000, 1, 0), (1000, 1, 1)))
    columns = SliceWalk((1, 1), ((1000, 1, 1), (1000, 1, 0)))
    assert live_maximum(rows, columns) == 999 * 999 + 1


def test_rows_to_tiles_need_one_row_less_than_the_block() -> None:
    rows = canonical_itensor([1, 4], i8, [(8, 1, 0), (16, 4, 1)])
    tiles = canonical_itensor([4, 4], i8, [(2, 4, 0), (16, 4, 1)])
    plan = plan_converter(rows, tiles)
    assert plan.block == (4, 64)
    assert plan.live_max == block_live_max(plan) == 3 * 64 + 4


def test_repeated_blocks_are_kept_once_when_both_repeat() -> None:
    """A repeat that both orders share costs nothing block by block, but everything if the reader runs ahead."""
    rows = canonical_itensor([1, 8], i8, [(3, 1, None), (8, 1, 0)])
    plan = plan_converter(rows, canonical_itensor([1, 4], i8, [(3, 1, None), (8, 1, 0), (2, 4, 1)]))
    assert plan.shared == ((3, 1, None), (8, 1, 0))
    assert (plan.block_elements, block_live_max(plan), plan.live_max) == (8, 8, 64)


@pytest.mark.parametrize(
    ("source", "target", "shared", "block"),
    [
        ([(8, 1, 0)], [(2, 4, 0), (4, 1, 0)], ((8, 1, 0),), (1, 4)),  # one loop, however it is written
        ([(4, 2, 0)], [(8, 1, 0)], ((4, 2, 0),), (2, 4)),  # the source is coarser
        ([(8, 1, 0)], [(4, 2, 0)], ((4, 2, 0),), (2, 4)),  # the target is coarser
        ([(6, 4, 0)], [(4, 6, 0)], ((2, 12, 0),), (12, 4)),  # neither divides the other
        ([(2, 4, 0), (4, 4, 1), (4, 1, 0)], [(8, 1, 0), (4, 4, 1)], ((2, 4, 0),), (4, 16)),
        ([(4, 1, None), (8, 1, 0)], [(6, 1, None), (8, 1, 0)], ((2, 1, None),), (8, 4)),  # both repeat, in part
        ([(8, 1, 0)], [(3, 1, None), (8, 1, 0)], (), (8, 4)),  # only one repeats
        ([(4, 1, 0), (2, 4, 0)], [(8, 1, 0)], (), (8, 4)),  # every fourth row: no common blocks of rows
    ],
)
def test_shared_loops(
    source: list[LoopOf], target: list[LoopOf], shared: tuple[LoopOf, ...], block: tuple[int, int]
) -> None:
    def kind(loops: list[LoopOf]) -> ITensorType:
        rows = min((step for _, step, dim in loops if dim == 0), default=1)
        columns = 4 if all(dim != 1 for _, _, dim in loops) else 1
        return canonical_itensor([rows, columns if columns == 4 else 4], i8, loops)

    plan = plan_converter(kind(source), kind(target))
    assert plan.shared == shared
    assert plan.block == block


def test_windows_over_rows_need_the_rows_of_one_window() -> None:
    """3 rows at a time, one row further each time: the whole is the block, three rows are alive."""
    rows = canonical_itensor([1, 5], i8, [(8, 1, 0)])
    window = canonical_itensor([3, 5], i8, [(6, 1, 0)])
    plan = plan_converter(rows, window)
    assert plan.block == (8, 5)
    assert plan.live_max == 15
    both = plan_converter(window, canonical_itensor([3, 1], i8, [(6, 1, 0), (5, 1, 1)]))
    assert both.shared == ((6, 1, 0),)
    assert both.block == (3, 5)


def test_gaps_are_refused_when_the_reader_wants_what_lies_in_them() -> None:
    gaps = canonical_itensor([1, 4], i8, [(4, 2, 0)])
    every = canonical_itensor([1, 4], i8, [(7, 1, 0)])
    with pytest.raises(PenstockError, match="leaves out elements of dim 0 that its reader wants") as caught:
        plan_converter(gaps, every)
    assert caught.value.code == "bad-order"
    assert plan_converter(every, gaps).live_max == 4
    with pytest.raises(PenstockError, match="leaves out elements of dim 0"):
        plan_converter(every, canonical_itensor([1, 4], i8, [(8, 1, 0)]))


@pytest.mark.parametrize(
    ("iter_map", "what"),
    [
        (AffineMap.from_callable(lambda a, b: (a, a + b)), "one loop moves along two data dims"),
        (AffineMap.from_callable(lambda a, b: (a * 2, b)), "not a plain sum of loops"),
        (AffineMap.from_callable(lambda a, b: (a + 1, b)), "not a plain sum of loops"),
    ],
)
def test_orders_that_are_no_plain_walk_are_refused(iter_map: AffineMap, what: str) -> None:
    skewed = ITensorType.of([1, 1], i8, [4, 4], [1, 1], iter_map)
    with pytest.raises(PenstockError, match=what):
        plan_converter(skewed, canonical_itensor([1, 1], i8, [(4, 1, 0), (4, 1, 1)]))


def test_positions_are_in_the_order_of_the_loops() -> None:
    assert positions([(2, 1, 0), (3, 2, 0)]).tolist() == [0, 2, 4, 1, 3, 5]


def test_figure_5() -> None:
    """Order (b) to order (c): an 8x2 block, two tiles, four with ping-pong, one shared loop."""
    b = ITensorType.of([4, 2], i8, [4, 2], [2, 4], AffineMap.from_callable(lambda d0, d1: (d1, d0)))
    c = ITensorType.of([4, 2], i8, [4, 2, 2], [2, 1, 4], AffineMap.from_callable(lambda d0, d1, d2: (d2, d0)))
    plan = plan_converter(b, c)
    assert plan.block == (8, 2)
    assert plan.shared == ((4, 2, 1),)
    tile = 4 * 2
    assert plan.block_elements == 2 * tile
    assert plan.ping_pong_elements == 4 * tile
    assert plan.live_max == 2 * tile


def test_width_changes_need_one_wide_token() -> None:
    """From 4 lanes to 16 of one row: the shared loop is split off and the block is one target token."""
    narrow = canonical_itensor([1, 4], i8, [(8, 1, 0), (16, 4, 1)])
    wide = canonical_itensor([1, 16], i8, [(8, 1, 0), (4, 16, 1)])
    assert plan_converter(narrow, wide).block == (1, 16)
    assert plan_converter(wide, narrow).block == (1, 16)
