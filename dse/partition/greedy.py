"""The baseline: tasks in order, each on the die that costs the fewest crossing bits at the moment."""

from __future__ import annotations

from collections import defaultdict

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Resources
from penstock.dse.partition.graph import PlacementGraph, Wires
from penstock.dse.partition.result import Partition
from penstock.dse.partition.site import Site

_STEP = 0.02


def greedy_partition(graph: PlacementGraph, site: Site, peak: float = 1.0) -> Partition:
    """Place everything in order, no die fuller than a share that is raised until all of it fits."""
    graph.check()
    touching: dict[str, list[Wires]] = defaultdict(list)
    for connection in graph.connections:
        touching[connection.source].append(connection)
        touching[connection.target].append(connection)
    share = _even_share(graph, site)
    while share <= peak + _STEP:
        dies = _fill(graph, site, touching, min(share, peak))
        if dies is not None and (found := Partition(site, graph, dies, "greedy")).fits:
            return found
        share += _STEP
    raise PenstockError(
        code="does-not-fit", what="the greedy walk finds no place for every task", where=site.name,
        limit=f"{len(graph.things)} tasks on {len(site.dies)} dies", hint="use the exact partition",
    )  # fmt: skip


def _even_share(graph: PlacementGraph, site: Site) -> float:
    """What each die holds if everything could be cut to size."""
    whole = Resources()
    for limits in site.limits.values():
        whole = whole + limits
    return max(graph.resources.share_of(whole).values())


def _fill(graph: PlacementGraph, site: Site, touching: dict[str, list[Wires]], share: float) -> dict[str, str] | None:
    pinned = {t.name: t.die for t in graph.things if t.die is not None}
    dies: dict[str, str] = dict(pinned)
    used = dict.fromkeys(site.dies, Resources())
    for thing in graph.things:
        if thing.name in pinned:
            used[pinned[thing.name]] = used[pinned[thing.name]] + thing.resources
    for thing in graph.things:
        if thing.name in pinned:
            continue
        costs: list[tuple[float, float, str]] = []
        for die in site.dies:
            fullest = max((used[die] + thing.resources).share_of(site.limits[die]).values())
            if fullest <= share:
                costs.append((_added_bits(thing.name, die, dies, site, touching), fullest, die))
        if not costs:
            return None
        die = min(costs)[2]
        dies[thing.name] = die
        used[die] = used[die] + thing.resources
    return dies


def _added_bits(name: str, die: str, dies: dict[str, str], site: Site, touching: dict[str, list[Wires]]) -> float:
    bits = 0
    for connection in touching[name]:
        other = connection.target if connection.source == name else connection.source
        if other in dies:
            bits += connection.bits * len(site.crossed(die, dies[other]))
    return bits
