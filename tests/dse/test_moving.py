"""Divisions that are found by moving tasks: the exact partition refuses none, and seldom finds one where they end."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from benchmarks.task_graphs import SHAPES, random_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.jit import Compiled
from penstock.compiler.platforms import Platform, Resources, load_platform, total
from penstock.compiler.schedule import MemoryShape, MemoryUse
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.partition import (
    LargeMemories,
    PlacedThing,
    PlacementGraph,
    Site,
    Wires,
    divide,
    moving,
    partition,
    placement_graph,
    site_of,
)
from penstock.dse.partition.of_network import MEMORY_HANDSHAKE
from penstock.dse.partition.site import Boundary
from penstock.dse.space.external import STRIPES
from penstock.dse.space.tiling import TilingOptions
from tests.compiler.designs import Dense, build_network

U55C = load_platform("u55c")


def pair(wires: int, **limits: int) -> Site:
    """Two dies that are alike, and one link."""
    ends = ("a", "b")
    return Site("pair", dict.fromkeys(ends, Resources(**limits)), (Boundary(ends, wires, frozenset({"b"})),))


def is_divisible(graph: PlacementGraph, site: Site) -> bool:
    try:
        partition(graph, site, efforts=(0.1,))
    except PenstockError:
        return False
    return True


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_found_the_exact_partition_finds_too(shape: str) -> None:
    """At shares of the dies down to where nothing fits."""
    graph, known = random_graph(shape, 9, seed=3), list[bool]()
    for share in (0.5, 0.25, 0.2, 0.17, 0.14):
        site = site_of(U55C, share)
        found = divide(graph, site).excess <= 0
        known.append(is_divisible(graph, site))
        assert found == known[-1], share
    assert known[0]
    assert not known[-1]


@pytest.mark.parametrize("share", [0.2, 0.17])
def test_compiled_divisions_are_those_of_plain_python(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is annealed, and what is not."""
    monkeypatch.setattr(moving, "_STEPS", 3_000)
    graph, found = random_graph(SHAPES[0], 9, seed=3), list[moving.Division]()
    for compiled in (False, True):
        monkeypatch.setattr(Compiled, "pays", lambda *_, compiled=compiled: compiled)
        found.append(divide(graph, site_of(U55C, share)))
    assert found[0] == found[1]


def test_what_is_joined_by_wide_channels_stays_together() -> None:
    """Each kernel with what feeds it: one task alone, moved after the other, would cut its channel on the way."""
    fed = [("load", "words", "kernel"), ("other load", "other words", "other kernel")]
    things = tuple(PlacedThing(name, Resources(lut=30)) for names in fed for name in names)
    wires = tuple(Wires(f"{a}-{b}", a, b, 512) for names in fed for a, b in pairwise(names))
    graph = PlacementGraph(things, (*wires, Wires("result", "kernel", "other kernel", 8)))
    assert divide(graph, pair(8, lut=100)).excess == 0
    assert divide(graph, pair(7, lut=100)).excess == pytest.approx(1 / 7)
    assert divide(graph, pair(8, lut=85)).excess > 0
    assert not is_divisible(graph, pair(8, lut=85))


def test_memories_are_built_of_what_a_die_has() -> None:
    def use(name: str, kind: str, **area: int) -> MemoryUse:
        return MemoryUse(name, MemoryShape(1024, 256), kind, Resources(**area))

    ways = tuple((use(f"m{n}", "bram18", bram18=8), use(f"m{n}", "uram", uram=4)) for n in range(8))
    memories = [LargeMemories("load", ways)]
    graph = PlacementGraph((PlacedThing("outside", Resources(), "a"), PlacedThing("load", Resources(lut=1))),
                           (Wires("in", "outside", "load", 512),))  # fmt: skip
    assert divide(graph, pair(10, lut=10, bram18=40, uram=20), memories).excess == 0
    assert divide(graph, pair(10, lut=10, bram18=64), memories).excess == 0
    assert divide(graph, pair(10, lut=10, bram18=40, uram=4), memories).excess > 0


def nearly_full(seed: int) -> tuple[PlacementGraph, Site]:
    """Three dies, and tasks that fill them as divided here to 98 %: two sets of ports, each for three products."""
    draw, on, area, wires = Random(seed), dict[str, str](), dict[str, Resources](), list[Wires]()

    def put(die: str, name: str, *needs: int) -> str:
        on[name], area[name] = die, Resources(**dict(zip(("lut", "ff", "dsp", "bram18"), needs, strict=True)))
        return name

    for half, products in enumerate(("aaa", "bcc")):
        ports = [put("ab"[half], f"port {half} {n}", 4, 10, 0, draw.choice((4, 8))) for n in range(16)]
        wires += [Wires(f"{port} outside", "outside", port, 512 + MEMORY_HANDSHAKE) for port in ports]
        for place, die in enumerate(products):
            size = draw.choice((100, 140, 200))
            join = put(die, f"join {half} {place}", 2, 20, 0, 0)
            product = put(die, f"product {half} {place}", size, size, 2 * size, 0)
            wires += [Wires(f"{port} {join}", port, join, 514) for port in ports]
            wires.append(Wires(f"{join} words", join, product, 16 * 512))
    for n in range(30):
        small = draw.choice((0, 0, 10, 100)), draw.choice((0, 0, 0, 8, 20))
        put("abc"[n // 10], f"other {n}", draw.randrange(2, 60), draw.randrange(2, 60), *small)
    others = [name for name in on if name.startswith(("product", "other"))]
    for n in range(60):
        one = draw.choice(others)
        near = [other for other in others if other != one and (on[other] == on[one] or draw.random() < 0.06)]
        wires.append(Wires(f"wires {n}", one, draw.choice(near), draw.choice((34, 130, 514, 1026))))
    names = list(on)
    draw.shuffle(names)
    on["outside"], area["outside"] = "a", Resources()
    links: list[Boundary] = []
    for near, far, beyond in (("a", "b", frozenset("bc")), ("b", "c", frozenset("c"))):
        crossing = sum(one.bits for one in wires if (on[one.source] in beyond) != (on[one.target] in beyond))
        links.append(Boundary((near, far), int(crossing * 1.05), beyond))
    used = {die: total([area[name] for name in names if on[name] == die]).as_dict() for die in "abc"}
    limits = {die: Resources(**{kind: int(n * 1.02) + 1 for kind, n in uses.items()}) for die, uses in used.items()}
    things = (PlacedThing("outside", Resources(), "a"), *(PlacedThing(name, area[name]) for name in names))
    return PlacementGraph(things, tuple(wires)), Site("nearly full", limits, tuple(links))


@pytest.mark.parametrize("seed", range(4))
def test_on_dies_that_are_nearly_full_there_is_hardly_any_excess(seed: int) -> None:
    """Where moves that are better at once end, limits are exceeded by a half."""
    assert divide(*nearly_full(seed)).excess < 0.05


def streaming(platform: Platform, rows: int | None, *widths: int) -> Evaluator:
    program = build_network("int8", rows, widths[0], tuple(Dense(n, False, False) for n in widths), seed=3)
    return Evaluator(program, platform, platform.clock_mhz, options=TilingOptions(weights="stream"))


def test_a_port_that_serves_several_tensors_in_turn_has_its_wires_once() -> None:
    evaluator = streaming(U55C, None, 64, 64, 64)
    network = evaluator.assembler.network(evaluator.space.design({**evaluator.space.fitted_setting(), STRIPES: 16}))
    serving = [t for t in network.tasks if len([p for n in t.nests for p in n.ports if p.kind == "external"]) > 1]
    assert serving
    graph = placement_graph(network, U55C, evaluator.assembler.library)
    for task in serving:
        widths = {port.bits for nest in task.nests for port in nest.ports if port.kind == "external"}
        found = sorted(c.bits for c in graph.connections if (c.source, c.target) == ("hbm", task.name))
        assert found == sorted(bits + MEMORY_HANDSHAKE for bits in widths)
