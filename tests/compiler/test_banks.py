"""Banks and words by their definition: every access of every iteration, element by element."""

from __future__ import annotations

import itertools
from collections import defaultdict
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.analysis.banks import Access, Geometry, Linear, geometry_of
from penstock.compiler.schedule import MemoryShape, load_library, memory_choices


def moving(lanes: tuple[int, ...], steps: tuple[int, ...], trips: tuple[int, ...], *, writes: bool = False) -> Access:
    """A loop a dim, which moves the access by so many elements."""
    corner = tuple(Linear(tuple(s * (i == dim) for i in range(len(trips))), 0) for dim, s in enumerate(steps))
    return Access(lanes, corner, trips, writes)


@st.composite
def met(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Access]]:
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)))
    accesses: list[Access] = []
    for _ in range(draw(st.integers(1, 3))):
        lanes = tuple(draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0])) for size in shape)
        steps = tuple(draw(st.sampled_from([n, max(1, n // 2)])) for n in lanes)
        trips = tuple((size - n) // step + 1 for size, n, step in zip(shape, lanes, steps, strict=True))
        accesses.append(moving(lanes, steps, trips, writes=draw(st.booleans())))
    return shape, accesses


def place_of(geometry: Geometry, element: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Bank, word and lane of an element."""
    granules = [n // d.granule for n, d in zip(element, geometry.dims, strict=True)]
    banks = tuple(q % d.banks for q, d in zip(granules, geometry.dims, strict=True))
    words = tuple(q // d.banks for q, d in zip(granules, geometry.dims, strict=True))
    return banks, words, tuple(n % d.granule for n, d in zip(element, geometry.dims, strict=True))


@given(met(), st.sampled_from([8, 64, 4096]))
@settings(max_examples=80)
def test_every_access_meets_whole_words_of_banks_of_their_own(
    drawn: tuple[tuple[int, ...], list[Access]], widest: int
) -> None:
    shape, accesses = drawn
    geometry = geometry_of(shape, accesses, 8, widest)
    assert geometry.lanes * 8 <= widest
    assert geometry.banks * geometry.words * geometry.lanes >= prod(shape)
    for access in accesses:
        for counters in itertools.product(*(range(trip) for trip in access.trips)):
            corner = [sum(f * c for f, c in zip(one.factors, counters, strict=True)) for one in access.corner]
            ranges = [range(at, at + n) for at, n in zip(corner, access.lanes, strict=True)]
            found: dict[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]] = defaultdict(list)
            for element in itertools.product(*ranges):
                bank, word, lane = place_of(geometry, element)
                found[bank].append((word, lane))
            for touched in found.values():
                assert len({word for word, _ in touched}) == 1, "two words of one bank in one slot"
                assert len(touched) == geometry.lanes, "a word in part"


def test_a_writer_of_rows_and_a_reader_of_columns_part_every_lane() -> None:
    """The case in which three ways to count words once gave three answers."""
    accesses = [moving((8, 1), (8, 1), (4, 32), writes=True), moving((1, 8), (1, 8), (32, 4))]
    shape, geometry = MemoryShape.of((32, 32), 32, accesses)
    assert (shape.banks, shape.words, shape.word_bits) == (64, 16, 32)
    assert [(d.granule, d.banks) for d in geometry.dims] == [(1, 8), (1, 8)]
    assert shape.gather_luts == 8 * 32 * 2, "each lane of the reader finds its word in one of eight banks"


def test_lanes_that_are_always_together_are_one_word() -> None:
    accesses = [moving((1, 8), (1, 8), (4, 4), writes=True), moving((1, 16), (1, 16), (4, 2))]
    shape, _ = MemoryShape.of((4, 32), 8, accesses)
    assert (shape.banks, shape.words, shape.word_bits) == (2, 8, 64)


@pytest.mark.parametrize(("loads", "stores", "kinds"), [(1, 1, True), (2, 1, True), (1, 2, False)])
def test_luts_have_one_write_port(loads: int, stores: int, kinds: bool) -> None:
    library = load_library("vitis-ultrascale-plus", 300.0)
    ways = {use.kind: use for use in memory_choices(library, "m", MemoryShape(64, 32, loads=loads, stores=stores))}
    assert ("lutram" in ways) == kinds
    if kinds:
        assert ways["lutram"].area.lut == 33 * loads
