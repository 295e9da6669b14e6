"""Tiles and words in external memory: the paper's example, and every layout against a replay of its addresses."""

from __future__ import annotations

import itertools
import math
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import Attribute

from penstock.compiler.analysis.loops import canonical_itensor
from penstock.compiler.analysis.packing import choose_layout, split_at_tiles, word_address, word_order
from penstock.compiler.analysis.walks import LoopOf, read_walk
from penstock.compiler.dialects.itensor import ITensorType, LayoutAttr
from penstock.compiler.layout import Layout, pack, unpack
from tests.compiler.designs import divisors

TILES: list[LoopOf] = [(4, 16, 0), (4, 16, 1)]


def kind(element: list[int], loops: list[LoopOf], dtype: Attribute = i8) -> ITensorType:
    return canonical_itensor(element, dtype, loops)


def test_the_example_of_the_paper() -> None:
    """Section 4.2: a 64 x 64 tensor of bytes in tiles of 16 x 16 packs to 4x4x16x16 and widens to 512 bits."""
    for element, inside in (([16, 16], []), ([2, 4], [(8, 2, 0), (4, 4, 1)])):
        stream = kind(element, [*TILES, *inside])
        layout = choose_layout(stream, 512)
        assert layout is not None
        assert layout.tile == (16, 16)
        assert layout.lanes * 8 == 512
        grid = layout.words((64, 64))
        assert grid[:2] == (4, 4)
        assert tuple(n * w for n, w in zip(grid[2:], layout.word, strict=True)) == (16, 16)
        tensor = np.arange(64 * 64).reshape(64, 64)
        tiles = tensor.reshape(4, 16, 4, 16).transpose(0, 2, 1, 3)
        packed = pack(tensor, layout)
        assert packed.shape == (*grid, *layout.word)
        assert np.array_equal(unpack_tiles(packed, layout), tiles)
        assert LayoutAttr.of(layout).packed(stream).get_shape() == grid


def unpack_tiles(packed: np.ndarray, layout: Layout) -> np.ndarray:
    """Words back to 16 x 16 tiles."""
    height, width = layout.word
    return packed.transpose(0, 1, 2, 4, 3, 5).reshape(4, 4, packed.shape[2] * height, packed.shape[3] * width)


@pytest.mark.parametrize(
    ("stream", "bits", "word"),
    [
        (kind([1, 16], [(64, 1, 0), (4, 16, 1)]), 512, (1, 64)),  # words run along the rows as the stream does
        (kind([1, 16], [(4, 16, 1), (64, 1, 0)]), 512, (4, 16)),  # and down a band where it goes down
        (kind([1, 16], [(64, 1, 0), (4, 16, 1)], f32), 512, (1, 16)),
        (kind([1, 16], [(64, 1, 0), (4, 16, 1)]), 64, (1, 8)),  # a narrow port: two words a slice
        (kind([1, 10], [(40, 1, 0)], f32), 512, (1, 2)),  # ten do not fill a word of a power of two
        (kind([1, 1], [(40, 1, 0), (77, 1, 1)]), 512, None),  # an odd row
        (kind([1, 4], [(2, 1, None), (8, 4, 1)]), 512, (1, 32)),  # sent twice, but it lies there once
        (kind([4], [(5, 2, 0)]), 512, None),  # windows overlap
    ],
)
def test_words(stream: ITensorType, bits: int, word: tuple[int, ...] | None) -> None:
    layout = choose_layout(stream, bits)
    assert (layout and layout.word) == word


@pytest.mark.parametrize(
    ("stream", "bits", "stripes", "word", "room"),
    [
        (kind([1, 60], [(7, 1, 0)]), 512, 1, (1, 60), 64),  # a row, and nothing behind it
        (kind([1, 60], [(7, 1, 0)]), 512, 8, (7, 60), 512),  # all rows for eight ports
        (kind([1, 90], [(7, 1, 0)]), 512, 1, (1, 45), 64),  # a part of a row
        (kind([1, 4], [(9, 1, 0), (25, 4, 1)]), 512, 1, (1, 20), 32),  # as much of a row as goes into it evenly
        (kind([1, 1], [(40, 1, 0), (61, 1, 1)], f32), 512, 1, None, 0),  # a prime row is longer than a word
        (kind([1, 48], [(7, 1, 0)]), 512, 1, (1, 48), 64),  # a third of the words
        (kind([1, 24], [(7, 1, 0)]), 512, 1, (1, 24), 32),
        (kind([1, 16], [(5, 1, 0), (4, 16, 1)]), 512, 1, (1, 64), 0),  # those of powers of two are as wide
        (kind([1, 12], [(5, 1, 0), (4, 12, 1)], f32), 512, 1, (1, 12), 16),
    ],
)
def test_words_with_room(stream: ITensorType, bits: int, stripes: int, word: tuple[int, ...] | None, room: int) -> None:
    layout = choose_layout(stream, bits, stripes, room_from=1)
    assert (layout and layout.word) == word
    assert (layout.room if layout is not None else 0) == room
    if layout is not None:
        assert layout.stripes == max(1, layout.lanes * 8 // bits) or stream.dtype == f32


def test_what_passes_in_few_words_has_no_room() -> None:
    rows = {n: choose_layout(kind([1, 60], [(n, 1, 0)]), 512, room_from=256) for n in (17, 18)}
    assert [layout and (layout.word, layout.room) for layout in rows.values()] == [((1, 4), 0), ((1, 60), 64)]


@st.composite
def streams(draw: st.DrawFn, shape: tuple[int, ...]) -> ITensorType:
    """An order of a tensor: lanes, points and tiles of each dim, in any order, with or without repeats."""
    element: list[int] = []
    loops: list[LoopOf] = []
    for dim, size in enumerate(shape):
        tile = draw(st.sampled_from(divisors(size)))
        lanes = draw(st.sampled_from(divisors(tile)))
        element.append(lanes)
        loops += [(size // tile, tile, dim), (tile // lanes, lanes, dim)]
    if draw(st.booleans()):
        loops.append((2, 1, None))
    shuffled = draw(st.permutations(loops))
    ordered = sorted(shuffled, key=lambda loop: (loop[2] is not None, 0))
    for dim in range(len(shape)):  # a tile's loop stands outside the one over its points
        places = [i for i, loop in enumerate(ordered) if loop[2] == dim]
        pair = sorted((ordered[i] for i in places), key=lambda loop: -loop[1])
        for place, loop in zip(places, pair, strict=True):
            ordered[place] = loop
    return canonical_itensor(element, draw(st.sampled_from([i8, f32])), ordered)


SHAPES = st.sampled_from([(8, 12), (16, 6), (24,), (4, 6, 8), (5, 8)])


@settings(max_examples=150)
@given(data=st.data(), shape=SHAPES, bits=st.sampled_from([16, 32, 64, 128, 512]), roomy=st.booleans())
def test_every_stream_finds_its_words(data: st.DataObject, shape: tuple[int, ...], bits: int, roomy: bool) -> None:
    """The layout of one stream, read for another: every word's address holds the slice that its order names."""
    layout = choose_layout(data.draw(streams(shape)), bits, room_from=1 if roomy else math.inf)
    assume(layout is not None)
    assert layout is not None
    other = data.draw(streams(shape))
    words = word_order(other, layout)
    assert words.data_shape() == shape
    loops = split_at_tiles(read_walk(words).loops, layout)
    assert loops is not None
    address = word_address(loops, layout)
    tensor = np.arange(prod(shape)).reshape(shape)
    packed = pack(tensor, layout)
    assert np.array_equal(unpack(packed, layout, shape), tensor)
    counters = itertools.product(*(range(trip) for trip, _, _ in loops))
    for corner, counter in zip(words.offsets(), counters, strict=True):
        window = tuple(slice(c, c + w) for c, w in zip(corner, layout.word, strict=True))
        word = packed[tuple(address.eval(list(counter), []))].reshape(-1)
        assert np.array_equal(word[: prod(layout.word)], tensor[window].reshape(-1))
        assert not word[prod(layout.word) :].any()
        assert word.size == layout.lanes == 1 << (layout.lanes - 1).bit_length()
