"""Memory allocation: exact geometry, nothing over a limit, scarce blocks spared, shortages named."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import FAMILIES, Resources, load_platform, total
from penstock.compiler.schedule import (
    MemoryShape,
    OperatorLibrary,
    build_memory,
    fifo_area,
    fifo_choices,
    load_library,
    memory_choices,
    uram_count,
)
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.memory import StoredItem, allocate, memory_svg, memory_table, stored_items
from penstock.dse.memory.allocate import COMFORT, CROWDING
from penstock.dse.memory.items import WHOLE_CHIP
from penstock.dse.partition import partition, placement_graph, site_of
from tests.compiler.designs import Dense, build_network

ULTRASCALE, LATTICE = FAMILIES["ultrascale-plus"], FAMILIES["ecp5"]
VITIS = load_library("vitis-ultrascale-plus", 300.0)
ECP5 = load_library("open-ecp5", 100.0)


def stored(name: str, words: int, bits: int, *, rom: bool = False, copies: int = 1) -> StoredItem:
    return StoredItem(name, memory_choices(VITIS, name, MemoryShape(words, bits, rom=rom), copies=copies))


@pytest.mark.parametrize(("words", "bits", "blocks"), [(4096, 72, 1), (4097, 72, 2), (4096, 73, 2), (1, 1, 1)])
def test_ultraram_is_4096_words_of_72_bits(words: int, bits: int, blocks: int):
    assert uram_count(words, bits) == blocks


def test_36_bit_words_halve_a_block():
    """512 words of 72 bits are one whole 36-kbit block, 512 of 36 half of one."""
    for bits, blocks in ((72, "1 BRAM36"), (36, "1 BRAM18")):
        ways = memory_choices(VITIS, "m", MemoryShape(512, bits))
        assert next(c for c in ways if c.kind == "bram").blocks(ULTRASCALE) == blocks
    twice = memory_choices(VITIS, "m", MemoryShape(512, 36, loads=2))
    assert next(c for c in twice if c.kind == "bram").blocks(ULTRASCALE) == "1 BRAM36", "each port has half a word"
    uram = next(c for c in memory_choices(VITIS, "m", MemoryShape(4096, 144), copies=2) if c.kind == "uram")
    assert uram.blocks(ULTRASCALE) == "4 URAM"


@pytest.mark.parametrize("library", [VITIS, ECP5], ids=["vitis", "ecp5"])
@given(words=st.integers(1, 70000), bits=st.integers(1, 1024), rom=st.booleans())
@settings(max_examples=60)
def test_every_choice_holds_the_bits_and_the_first_is_the_usual(library: object, words: int, bits: int, rom: bool):
    assert library in (VITIS, ECP5)
    chosen = VITIS if library is VITIS else ECP5
    shape = MemoryShape(words, bits, rom=rom)
    ways = memory_choices(chosen, "m", shape)
    assert ways[0] == build_memory(chosen, "m", shape)
    assert len({w.kind for w in ways}) == len(ways)
    for way in ways:
        area = way.area
        held = area.ff + area.lut * chosen.memory.lut_words + area.bram18 * 18432 + area.uram * 4096 * 72
        assert held >= words * bits or words == 1
    assert not (rom and any(w.kind == "uram" for w in ways)), "UltraRAM cannot be initialised"


@given(depth=st.integers(1, 20000), bits=st.integers(1, 1024))
@settings(max_examples=60)
def test_fifos_have_the_usual_way_first(depth: int, bits: int):
    ways = fifo_choices(VITIS, "f", depth, bits)
    assert ways[0].area == fifo_area(VITIS, depth, bits)
    assert {"bram", "uram"} <= {w.kind for w in ways}
    assert all(w.bits == depth * bits for w in ways)


def test_there_is_room_for_what_would_not_fit_the_usual_way():
    """Ten buffers that would all be block RAM, where there is block RAM for six of them."""
    items = [stored(f"m{i}", 4096, 72) for i in range(10)]
    each = items[0].usual.area.bram18
    limits = Resources(lut=10**5, ff=10**5, bram18=6 * each, uram=8)
    found = allocate(items, {WHOLE_CHIP: limits})
    assert found.peak <= 1
    assert set(found.kinds(WHOLE_CHIP)) == {"bram", "uram"}


def test_the_least_scarce_resource_is_used():
    """With almost no block RAM to spare small memories go into LUTs, and with few LUTs into block RAM."""
    item = stored("m", 512, 32)
    lut = allocate([item], {WHOLE_CHIP: Resources(lut=10**6, ff=10**6, bram18=2)})
    assert lut.uses["m"].kind == "lutram"
    bram = allocate([item], {WHOLE_CHIP: Resources(lut=1000, ff=10**6, bram18=2000)})
    assert bram.uses["m"].kind == "bram"


@given(st.data())
@settings(max_examples=20)
def test_no_other_allocation_costs_less(data: st.DataObject):
    """Against every combination of ways, one by one; and a refusal only where none of them fits."""
    items = [
        stored(f"m{i}", data.draw(st.integers(2, 5000)), data.draw(st.integers(1, 200)), rom=data.draw(st.booleans()))
        for i in range(data.draw(st.integers(1, 4)))
    ]
    limits = Resources(
        lut=data.draw(st.integers(100, 20000)), ff=data.draw(st.integers(1, 20000)),
        bram18=data.draw(st.integers(1, 60)), uram=data.draw(st.integers(0, 6)),
    )  # fmt: skip
    peaks = [
        max(total([c.area for c in ways]).share_of(limits).values())
        for ways in itertools.product(*(i.choices for i in items))
    ]
    if min(peaks) > 1:
        for explain in (True, False):
            with pytest.raises(PenstockError) as caught:
                allocate(items, {WHOLE_CHIP: limits}, explain=explain)
            assert caught.value.code in ("memory-short", "memory-too-large")
        return
    found = allocate(items, {WHOLE_CHIP: limits})
    assert set(found.uses) == {i.name for i in items}
    costs = [cost(total([c.area for c in ways]), limits) for ways in itertools.product(*(i.choices for i in items))]
    fitting = [c for c, peak in zip(costs, peaks, strict=True) if peak <= 1]
    assert cost(found.used(WHOLE_CHIP), limits) == pytest.approx(min(fitting), rel=1e-4)


def cost(used: Resources, limits: Resources) -> float:
    shares = used.share_of(limits).values()
    return sum(shares) + CROWDING * max(0.0, max(shares) - COMFORT)


def test_a_small_memory_on_an_empty_chip_is_built_the_usual_way():
    limits = load_platform("u55c").limits
    items = [stored("table", 64, 32, rom=True), stored("weights", 4096, 32, rom=True), stored("word", 1, 32)]
    found = allocate(items, {WHOLE_CHIP: limits})
    assert {name: use.kind for name, use in found.uses.items()} == {i.name: i.usual.kind for i in items}


def test_a_shortage_names_resource_and_amount():
    items = [stored(f"m{i}", 4096, 72, rom=True) for i in range(4)]
    with pytest.raises(PenstockError, match=r"short of bram18 by 24 \(limit 40\)") as caught:
        allocate(items, {WHOLE_CHIP: Resources(lut=100, ff=100, bram18=40)})
    assert caught.value.code == "memory-short"
    with pytest.raises(PenstockError, match="short of lut by 50"):
        allocate([], {WHOLE_CHIP: Resources(lut=100)}, {WHOLE_CHIP: Resources(lut=150)})


def test_a_memory_wider_than_anything_is_named():
    wide = StoredItem("wide", fifo_choices(VITIS, "wide", 4096, 10**6))
    limits = load_platform("u55c").limits
    with pytest.raises(PenstockError, match="more than the die can hold") as caught:
        allocate([wide], {WHOLE_CHIP: limits})
    assert caught.value.where == "wide"


def test_a_region_that_does_not_exist_is_refused():
    with pytest.raises(PenstockError, match="slr7"):
        allocate([replace(stored("m", 16, 8), region="slr7")], {WHOLE_CHIP: Resources(lut=100)})


def test_ecp5_has_no_ultraram_and_its_luts_do_not_shift():
    limits = load_platform("ecp5-25k").limits
    item = StoredItem("m", memory_choices(ECP5, "m", MemoryShape(4096, 32)))
    fifo = StoredItem("f", fifo_choices(ECP5, "f", 60, 16))
    assert "srl" not in {c.kind for c in fifo.choices}
    assert next(c for c in item.choices if c.kind == "bram").blocks(LATTICE) == "8 DP16KD"
    found = allocate([item, fifo], {WHOLE_CHIP: limits})
    assert found.used(WHOLE_CHIP).uram == 0


def test_a_real_design_on_three_dies():
    """From the model to dies to memories: everything that the network stores is built once, on its own die."""
    program = build_network("int8", None, 16, (Dense(16, False, True), Dense(16, False, False)), seed=3)
    evaluator = Evaluator.create(program, "u55c")
    evaluation = evaluator.evaluate({})
    network = evaluator.assembler.network(evaluation.design)
    library = evaluator.assembler.library
    site = site_of(evaluator.platform)
    graph = placement_graph(network, evaluator.platform, library)
    assert graph.resources == evaluation.figures.resources
    placed = partition(graph, site)
    items = stored_items(network, library, placed.dies)
    assert total([i.usual.area for i in items]) + total([n.logic for t in network.tasks for n in t.nests]) == (
        graph.resources
    )
    found = allocate(items, site.limits)
    assert set(found.uses) == {i.name for i in items} >= set(network.channels)
    text, svg = memory_table(found, ULTRASCALE), memory_svg(found)
    assert all(name in text for name in found.uses)
    assert all(f">{die}<" in svg for die in site.dies)
    assert "prefers-color-scheme:dark" in svg


@pytest.mark.parametrize("library", [VITIS, ECP5], ids=["vitis", "ecp5"])
def test_a_fifo_wider_than_any_memory_is_named_with_what_it_would_take(library: OperatorLibrary):
    """A chip's memories side by side make wide words; at some width there are not enough of them."""
    limits = load_platform("u55c" if library is VITIS else "ecp5-25k").limits
    allocate([StoredItem("narrow", fifo_choices(library, "narrow", 512, 1024))], {WHOLE_CHIP: limits})
    with pytest.raises(PenstockError, match="more than the die can hold") as caught:
        allocate([StoredItem("wide", fifo_choices(library, "wide", 512, 4_000_000))], {WHOLE_CHIP: limits})
    assert caught.value.code == "memory-too-large"
    assert caught.value.where == "wide"
    assert "bram" in caught.value.limit
