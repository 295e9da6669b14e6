"""Partition: better than the greedy walk at equal balance, within every limit, and clear about what is short."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.task_graphs import SHAPES, random_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import DieLink, Platform, Resources, load_platform, parse_platform
from penstock.compiler.schedule import MemoryShape, MemoryUse
from penstock.dse.partition import (
    LargeMemories,
    Partition,
    PlacedThing,
    PlacementGraph,
    Site,
    Wires,
    greedy_partition,
    partition,
    partition_svg,
    partition_table,
    partition_with_memories,
    site_of,
)
from penstock.dse.support.linear import LinearProgram, RowSense

U55C = site_of(load_platform("u55c"))


@pytest.mark.parametrize("shape", SHAPES)
def test_fewer_bits_cross_than_in_the_greedy_partition_at_equal_balance(shape: str):
    graph = random_graph(shape, 18, seed=1)
    greedy = greedy_partition(graph, U55C)
    exact = partition(graph, U55C, balance_weight=0, peak=greedy.peak, gap=0)
    assert exact.fits
    assert exact.proven
    assert exact.peak <= greedy.peak + 1e-9
    assert exact.crossing_bits < greedy.crossing_bits


class Ordered(frozenset[str]):
    """A set whose order is known; that of any other differs from process to process."""

    order: tuple[str, ...]

    def __iter__(self) -> Iterator[str]:
        return iter(self.order)


def test_a_design_stands_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch):
    """What the solver takes of equally good partitions follows the order of its rows' factors."""
    row, graph = LinearProgram.row, random_graph(SHAPES[0], 6, seed=1)

    def rows_with(backwards: bool) -> list[list[tuple[int, float]]]:
        found: list[list[tuple[int, float]]] = []

        def recorded(self: LinearProgram, factors: Mapping[int, float], sense: RowSense, limit: float) -> None:
            found.append(list(factors.items()))
            row(self, factors, sense, limit)

        def ordered(dies: frozenset[str]) -> Ordered:
            made = Ordered(dies)
            made.order = tuple(sorted(dies, reverse=backwards))
            return made

        monkeypatch.setattr(LinearProgram, "row", recorded)
        site = replace(U55C, boundaries=tuple(replace(b, beyond=ordered(b.beyond)) for b in U55C.boundaries))
        assert max(len(b.beyond) for b in site.boundaries) > 1
        partition(graph, site)
        return found

    assert rows_with(backwards=True) == rows_with(backwards=False)


def small_site() -> Site:
    """Three dies of very little, in a row."""
    little = Resources(lut=100, ff=100)
    return replace(U55C, limits=dict.fromkeys(U55C.dies, little))


@given(st.data())
@settings(max_examples=15)
def test_no_other_placement_is_cheaper(data: st.DataObject):
    """Against all placements of a few tasks, one by one."""
    site = small_site()
    things = tuple(PlacedThing(f"t{i}", Resources(lut=data.draw(st.integers(10, 60)))) for i in range(5))
    pairs = data.draw(st.lists(st.sampled_from([*itertools.combinations(range(5), 2)]), min_size=2, unique=True))
    wires = tuple(Wires(f"c{a}{b}", f"t{a}", f"t{b}", data.draw(st.integers(1, 64))) for a, b in pairs)
    graph = PlacementGraph(things, wires)
    all_of_them = [
        Partition(site, graph, {t.name: d for t, d in zip(things, dies, strict=True)}, "all")
        for dies in itertools.product(site.dies, repeat=5)
    ]
    fitting = [p.crossing_bits for p in all_of_them if p.fits]
    if fitting:
        found = partition(graph, site, balance_weight=0, gap=0)
        assert found.fits
        assert found.crossing_bits == min(fitting)
    else:
        with pytest.raises(PenstockError, match="short of lut by"):
            partition(graph, site)


def test_balance_is_paid_for_in_bits():
    graph = random_graph("chain", 8, seed=3)
    together = partition(graph, U55C, balance_weight=0)
    apart = partition(graph, U55C, balance_weight=100)
    assert apart.peak < together.peak
    assert apart.crossing_bits >= together.crossing_bits


def test_a_design_that_is_too_large_says_by_how_much():
    graph = PlacementGraph((PlacedThing("a", Resources(uram=600)), PlacedThing("b", Resources(uram=300))), ())
    with pytest.raises(PenstockError, match="uram by 132 of 900 needed"):
        partition(graph, U55C)


def test_a_task_that_no_die_holds_names_die_and_resource():
    """All dies together have enough, but a task is not cut in two."""
    graph = PlacementGraph((PlacedThing("big", Resources(uram=300)),), ())
    with pytest.raises(PenstockError, match=r"slr\d is short of uram by 44"):
        partition(graph, U55C)


def test_wires_between_dies_are_limited_too():
    most = Resources(lut=95)
    graph = PlacementGraph((PlacedThing("a", most), PlacedThing("b", most)), (Wires("wide", "a", "b", 30000),))
    with pytest.raises(PenstockError, match=r"link slr\d–slr\d is short of wires by 9,840") as caught:
        partition(graph, small_site())
    assert caught.value.code == "does-not-fit"


def test_what_the_board_fixes_stays_where_it_is():
    graph = PlacementGraph(
        (PlacedThing("hbm", Resources(), "slr2"), PlacedThing("load", Resources(lut=10))),
        (Wires("c", "hbm", "load", 512),),
    )
    found = partition(graph, U55C, balance_weight=0)
    assert dict(found.dies) == {"hbm": "slr2", "load": "slr2"}
    with pytest.raises(PenstockError, match="'slr9'"):
        partition(graph.pinned({"load": "slr9"}), U55C)
    with pytest.raises(PenstockError, match="no such task"):
        graph.pinned({"store": "slr0"})


def test_one_die_needs_no_choice():
    graph = random_graph("chain", 4, seed=1)
    found = partition(graph, site_of(load_platform("zcu104")))
    assert set(found.dies.values()) == set(found.site.dies)
    with pytest.raises(PenstockError, match="short of"):
        partition(random_graph("chain", 60, seed=1), site_of(load_platform("zcu104")))


def test_a_ring_of_dies_is_refused():
    board = load_platform("u55c")
    ring: Platform = replace(board, links=(*board.links, DieLink(("slr0", "slr2"), 100)))
    with pytest.raises(PenstockError, match="chain or a tree"):
        site_of(ring)


@pytest.mark.parametrize(
    ("old", "new"), [("lut = 434560", "lut = -1"), ("wires = 20160", "wires = -5"), ("wires = 20160", "")]
)
def test_a_platform_file_with_wrong_numbers_never_gets_here(old: str, new: str):
    text = files("penstock.compiler.platforms").joinpath("data", "u55c.toml").read_text()
    with pytest.raises(PenstockError, match="u55c"):
        parse_platform(text.replace(old, new, 1), "platform u55c")


@pytest.mark.parametrize(
    ("things", "wires", "said"),
    [
        (["a", "a"], [], "two tasks have one name"),
        (["a"], [Wires("c", "a", "b", 1)], "no such task"),
        (["a", "b"], [Wires("c", "a", "b", -1)], "a connection of -1 bits"),
    ],
)
def test_graphs_that_make_no_sense_are_refused(things: list[str], wires: list[Wires], said: str):
    graph = PlacementGraph(tuple(PlacedThing(n, Resources()) for n in things), tuple(wires))
    with pytest.raises(PenstockError, match=said):
        partition(graph, U55C)


def test_picture_and_table_show_dies_links_and_tasks():
    found = partition(random_graph("residual", 24, seed=1), U55C)
    svg, text = partition_svg(found), partition_table(found)
    for die, used in found.used.items():
        assert f">{die}<" in svg
        assert f"{used.lut:,} of" in svg
    for boundary in found.site.boundaries:
        assert f"{found.wires(boundary):,} of {boundary.wires:,} wires" in svg
        assert boundary.name in text
    assert svg.count("<svg") == svg.count("</svg>") == 1
    assert "prefers-color-scheme:dark" in svg
    assert all(f"t{i}" in text for i in range(24))


def loads(count: int, near: str) -> tuple[PlacementGraph, tuple[LargeMemories, ...]]:
    """Tasks beside external memory with a FIFO each, which may be block RAM or UltraRAM."""
    shape = MemoryShape(4096, 512)
    ways = {"bram": Resources(bram18=114), "uram": Resources(uram=8)}
    things = tuple([PlacedThing(f"load{n}", Resources(lut=100), near) for n in range(count)])
    memories = tuple([
        LargeMemories(name, (tuple([MemoryUse(f"{name}.fifo", shape, kind, area) for kind, area in ways.items()]),))
        for name in (one.name for one in things)
    ])  # fmt: skip
    return PlacementGraph(things, ()), memories


def test_what_memories_are_built_of_is_chosen_with_the_dies():
    """Ten FIFOs are more block RAM than a die has, and fewer bits than it has of both kinds together."""
    graph, memories = loads(10, "slr0")
    found = partition_with_memories(graph, U55C, memories, load_platform("u55c").limits)
    assert found is not None
    placed, built = found
    assert placed.fits
    assert len(built) == 10
    assert placed.used["slr0"].bram18 <= U55C.limits["slr0"].bram18 < 10 * 114
    kinds = [use.kind for use in built.values()]
    assert placed.used["slr0"].uram == 8 * kinds.count("uram") > 0
    assert placed.used["slr0"].bram18 == 114 * kinds.count("bram")


def test_memories_of_all_dies_keep_to_the_users_limit():
    graph, memories = loads(6, "slr0")
    found = partition_with_memories(graph, U55C, memories, Resources(lut=10_000, bram18=3 * 114, uram=100))
    assert found is not None
    assert [use.kind for use in found[1].values()].count("bram") <= 3
    assert partition_with_memories(graph, U55C, memories, Resources(lut=10_000, bram18=114, uram=8)) is None
