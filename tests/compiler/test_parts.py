"""Slices and concatenations of streams: cut out in passing where the order allows it, through a converter elsewhere."""

from __future__ import annotations

from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import i8

from penstock.compiler.analysis.loops import canonical_itensor
from penstock.compiler.analysis.parts import allows_parts, divisible, joined, part_of, row_major_words
from tests.compiler.test_converter import orders


def test_a_part_needs_no_buffer_where_the_order_allows_it() -> None:
    rows = canonical_itensor([1, 4], i8, [(8, 1, 0), (4, 4, 1)])
    assert divisible(rows, 1, [(0, 8), (8, 8)]) is rows
    assert part_of(rows, 1, 8) == canonical_itensor([1, 4], i8, [(8, 1, 0), (2, 4, 1)])


def test_tiled_order_is_converted() -> None:
    tiled = canonical_itensor([1, 4], i8, [(2, 8, 1), (8, 1, 0), (2, 4, 1)])
    assert not allows_parts(tiled, 1, [(0, 8), (8, 8)])
    assert divisible(tiled, 1, [(0, 8), (8, 8)]) == canonical_itensor([1, 4], i8, [(8, 1, 0), (4, 4, 1)])


def test_elements_shrink_to_what_divides_the_part() -> None:
    rows = canonical_itensor([1, 4], i8, [(8, 1, 0), (4, 4, 1)])
    assert divisible(rows, 1, [(0, 6), (6, 10)]).element_shape == (1, 2)


def test_a_cache_comes_in_whole_words() -> None:
    """512 tokens of 16 heads of 64: a word of 512 bits is the row of a head, one of 2,048 bits four of them."""
    cache = row_major_words((512, 16, 64), i8, 64)
    assert cache.element_shape == (1, 1, 64)
    assert row_major_words((512, 16, 64), i8, 256).element_shape == (1, 4, 64)
    whole = joined(cache, 0, [(0, 512), (512, 1)])
    assert whole.element_shape == (1, 1, 64), "the token that is appended comes at the same width"
    assert whole.data_shape() == (513, 16, 64)


@given(st.lists(st.integers(1, 24), min_size=1, max_size=3), st.integers(1, 64))
def test_words_cover_a_tensor_row_by_row(shape: list[int], lanes: int) -> None:
    kind = row_major_words(shape, i8, lanes)
    assert kind.data_shape() == tuple(shape)
    assert prod(kind.element_shape) <= lanes
    places = kind.places()
    assert (places[:, 1:] - places[:, :-1] == 1).all(), "a word is a run in memory"
    assert (places[:, 0].argsort() == range(len(places))).all()


@settings(max_examples=150)
@given(data=st.data())
def test_parts_join_to_the_whole(data: st.DataObject) -> None:
    """Cutting an order into parts and joining them again covers the same tensor with the same elements."""
    shape = data.draw(st.sampled_from([(8,), (4, 6), (2, 4, 4)]))
    kind = data.draw(orders(shape))
    dim = data.draw(st.integers(0, len(shape) - 1))
    cut = data.draw(st.integers(1, shape[dim] - 1))
    parts = [(0, cut), (cut, shape[dim] - cut)]
    whole = divisible(kind, dim, parts)
    assert whole.data_shape() == kind.data_shape()
    first = part_of(whole, dim, cut)
    assert first.data_shape()[dim] == cut
    again = joined(first, dim, parts)
    assert again.data_shape() == kind.data_shape()
    assert allows_parts(again, dim, parts)
