"""Operator libraries against the figures that were read off real reports, and against bad files."""

from __future__ import annotations

from importlib.resources import files

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.operations import BY_NAME, ScalarOperation
from penstock.compiler.schedule import MemoryShape, bram18_count, build_memory, fifo_area, library_names, load_library
from penstock.compiler.schedule.bindings import implementations
from penstock.compiler.schedule.library import parse_library

FAST, SLOW = 300.0, 250.0


@pytest.mark.parametrize(
    ("op", "binding", "clock", "latency", "dsp", "ff", "lut"),
    [
        ("arith.addf", "dsp", FAST, 6, 2, 318, 198),
        ("arith.addf", "dsp", SLOW, 4, 2, 205, 220),
        ("arith.addf", "fabric", FAST, 4, 0, 243, 338),
        ("arith.mulf", "dsp", FAST, 3, 3, 143, 78),
        ("arith.mulf", "dsp", SLOW, 3, 3, 143, 78),
        ("math.exp", "dsp", FAST, 13, 7, 316, 748),
        ("reciprocal", "dsp", FAST, 13, 8, 286, 115),
        ("arith.divf", "fabric", FAST, 11, 0, None, None),
        ("arith.divf", "fabric", SLOW, 9, 0, 461, 770),
        ("arith.cmpf", "fabric", FAST, 1, 0, None, None),
    ],
)
def test_vitis_float_operators(
    op: str, binding: str, clock: float, latency: int, dsp: int, ff: int | None, lut: int | None
):
    row = load_library("vitis-ultrascale-plus", clock).find(op, 32, binding)
    assert (row.latency, row.dsp) == (latency, dsp)
    area = row.area(32)
    if ff is not None:
        assert (area.ff, area.lut) == (ff, lut)


def test_vitis_int8_products():
    library = load_library("vitis-ultrascale-plus", FAST)
    alone = library.find("arith.muli", 8)
    assert (alone.latency, alone.dsp, alone.area(8).lut) == (0, 0, 40)
    added = library.find("mac", 8)
    assert (added.latency, added.dsp) == (3, 1)


@pytest.mark.parametrize(
    ("op", "latency", "lut", "ff", "dsp"),
    [("arith.mulf", 4, 317, 174, 3), ("arith.addf", 5, 663, 259, 0), ("arith.divf", 27, 1455, 1947, 0)],
)
def test_open_float_cores(op: str, latency: int, lut: int, ff: int, dsp: int):
    row = load_library("open-ecp5", 100.0).find(op, 32)
    assert (row.latency, row.area(32).lut, row.area(32).ff, row.dsp) == (latency, lut, ff, dsp)
    assert row.evidence == "measured"


def test_the_slowest_table_that_is_fast_enough_is_taken():
    assert load_library("vitis-ultrascale-plus", 300.0).period_ns == 3.33
    assert load_library("vitis-ultrascale-plus", 260.0).period_ns == 3.33
    assert load_library("vitis-ultrascale-plus", 250.0).period_ns == 4.0
    assert load_library("vitis-ultrascale-plus", 101.0).period_ns == 4.0
    assert load_library("vitis-ultrascale-plus", 100.0).period_ns == 10.0


def test_a_slower_clock_takes_fewer_stages():
    """The rows that a table says of its own, as reports have them; the others are those of the faster clock."""
    slow, fast = (load_library("vitis-ultrascale-plus", mhz) for mhz in (100.0, 250.0))
    for op, binding, found in (
        ("arith.addf", "dsp", (3, 214, 227, 2)), ("arith.addf", "fabric", (3, 434, 168, 0)),
        ("arith.mulf", "dsp", (2, 135, 128, 3)), ("math.exp", "dsp", (7, 905, 324, 7)),
    ):  # fmt: skip
        row = slow.find(op, 32, binding)
        assert (row.latency, row.area(32).lut, row.area(32).ff, row.dsp) == found
        assert row.latency < fast.find(op, 32, binding).latency
    assert slow.find("arith.divf", 32).latency == 8
    assert slow.find("math.rsqrt", 32) == fast.find("math.rsqrt", 32)


def test_no_figure_is_extrapolated_to_a_faster_clock():
    with pytest.raises(PenstockError, match="characterised up to 300 MHz"):
        load_library("vitis-ultrascale-plus", 400.0)


def test_composed_functions_cost_their_parts():
    """No report shows them, so the table says "estimate", and none is cheaper than what it is composed of."""
    library = load_library("vitis-ultrascale-plus", FAST)
    for op, parts in {
        "math.rsqrt": ("math.sqrt", "arith.divf"),
        "math.tanh": ("math.exp", "arith.addf", "arith.divf"),
        "math.erf": ("math.exp", "arith.mulf", "arith.addf"),
    }.items():
        row, made_of = library.find(op, 32), [library.find(part, 32) for part in parts]
        assert row.evidence == "estimate"
        assert row.latency >= sum(part.latency for part in made_of)
        assert row.area(32).lut >= sum(part.area(32).lut for part in made_of)


@pytest.mark.parametrize("row", [row for row in BY_NAME.values() if row.operator in BY_NAME], ids=lambda row: row.name)
def test_a_function_of_anothers_core_takes_its_figures_in_every_table(row: ScalarOperation):
    """Also where the search looks for it by its own name."""
    for name in library_names():
        library = load_library(name, 100.0)
        assert row.operator is not None
        assert library.find(row.name, 32) is library.find(row.operator, 32)
        assert implementations(library, row.name) == implementations(library, row.operator)


def test_an_operator_without_figures_is_named_not_guessed():
    with pytest.raises(PenstockError, match=r"math\.atan") as caught:
        load_library("vitis-ultrascale-plus", 300.0).find("math.atan", 32)
    assert caught.value.code == "unknown-operator"
    with pytest.raises(PenstockError, match="up to 32 bits"):
        load_library("open-ecp5", 100.0).find("arith.addf", 64)


def test_an_unknown_library_lists_the_known():
    with pytest.raises(PenstockError, match="open-ecp5"):
        load_library("nothing", 100.0)
    assert set(library_names()) >= {"open-ecp5", "vitis-ultrascale-plus"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("latency = 5\n", "", "'latency' is missing"),
        ("latency = 5\n", "latency = -5\n", "'latency' is -5"),
        ("lut = 663", "lut = -1", "'lut' is -1"),
        ('dsp = 3\nevidence = "measured"', 'dsp = 3\nevidence = "hearsay"', "'evidence' is 'hearsay'"),
        ("flushing = true", "flushing = 1", "'flushing' is 1"),
    ],
)
def test_a_bad_table_is_refused_by_the_fields_name(old: str, new: str, said: str):
    text = files("penstock.compiler.schedule").joinpath("operators", "open-ecp5-7.69ns.toml").read_text()
    assert old in text
    with pytest.raises(PenstockError, match=said):
        parse_library(text.replace(old, new, 1), "a table")


@pytest.mark.parametrize(
    ("words", "blocks"),
    [(512, 1), (600, 2), (1024, 2), (1500, 4), (8192, 16), (10240, 20), (16384, 32)],
)
def test_block_ram_of_32_bit_memories(words: int, blocks: int):
    """The rule that holds for 99.7 % of 28,057 reported memories: a power of two up to 8,192 words."""
    assert bram18_count(words, 32) == blocks


def test_small_memories_are_built_of_luts():
    library = load_library("vitis-ultrascale-plus", FAST)
    assert build_memory(library, "m", MemoryShape(64, 32)).area.lut == 33
    assert build_memory(library, "m", MemoryShape(128, 32)).area.lut == 65
    assert build_memory(library, "m", MemoryShape(129, 32)).kind == "bram"
    assert build_memory(library, "m", MemoryShape(1, 32)).area.ff == 32


def test_fifos_by_depth():
    library = load_library("vitis-ultrascale-plus", FAST)
    assert fifo_area(library, 2, 32).ff == 68
    assert fifo_area(library, 2, 32).bram18 == 0
    assert fifo_area(library, 64, 32).bram18 == 0
    assert fifo_area(library, 1024, 32).bram18 == 2
    costs = [fifo_area(library, d, 32) for d in (2, 16, 64, 128, 512, 4096)]
    assert [c.bram18 for c in costs] == sorted(c.bram18 for c in costs)
