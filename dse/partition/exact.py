"""The best partition, as an integer program: crossing bits times distance, plus what imbalance costs.

The dies form a tree, so each link parts them in two; a connection crosses a link exactly if its ends are on
different sides. That makes the relaxation a minimum cut, and the program quick to solve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import RESOURCE_NAMES, Resources, total
from penstock.compiler.schedule import MemoryUse
from penstock.dse.partition.graph import LargeMemories, PlacementGraph
from penstock.dse.partition.greedy import greedy_partition
from penstock.dse.partition.moving import divide
from penstock.dse.partition.result import Partition
from penstock.dse.partition.site import Site
from penstock.dse.support.linear import LinearProgram, Solution

BALANCE_WEIGHT = 0.25
"""What a die filled to its limit costs, as a share of all bits of the design crossing once."""


def partition(
    graph: PlacementGraph,
    site: Site,
    *,
    balance_weight: float = BALANCE_WEIGHT,
    peak: float = 1.0,
    efforts: Sequence[float] = (0.2, 0.7),
    gap: float = 0.005,
) -> Partition:
    """The die of everything. `peak` is the largest share of a die's limits that may be used.

    It is within `gap` of the least possible cost if it is `proven`: most of the time would go into proving that.
    The next of the `efforts` is made only where the one before found nothing.

    Where nothing fits, the error says which resource or link is short, and by how much at least.
    """
    _check(graph.check(), site)
    if len(site.dies) == 1 and not _elastic_needed(graph, site, peak):
        return Partition(site, graph, {t.name: site.dies[0] for t in graph.things}, "exact", True)
    fixed = {t.name: t.die for t in graph.things if t.die is not None}
    if len(fixed) == len(graph.things):  # by a design's record: nothing is left to decide
        placed = Partition(site, graph, fixed, "exact", True)
        if placed.fits and placed.peak <= peak:
            return placed
    model = _Model(graph, site)
    model.minimise_crossing(balance_weight * sum(c.bits for c in graph.connections))
    model.limit(peak)
    for effort in efforts:
        try:
            found = model.program.solve(effort, gap)
        except PenstockError as error:
            if error.code != "solver-failed":
                raise
            continue
        if found is None:
            raise _shortage(graph, site, peak, efforts[-1])
        return Partition(site, graph, model.dies(found), "exact", found.proven)
    return _otherwise(graph, site, peak)  # nothing better was found


def partition_with_memories(
    graph: PlacementGraph,
    site: Site,
    memories: Sequence[LargeMemories],
    whole: Resources,
    *,
    balance_weight: float = BALANCE_WEIGHT,
    effort: float = 0.7,
    gap: float = 0.005,
) -> tuple[Partition, dict[str, MemoryUse]] | None:
    """A die for everything, and a way to build each of these memories, chosen together; None where nothing was found.

    All dies together hold no more than `whole`. The graph of the partition has the memories among its resources.
    """
    model = _Model(_check(graph.check(), site), site, memories)
    model.minimise_crossing(balance_weight * sum(c.bits for c in graph.connections))
    model.limit(1.0)
    model.limit_together(whole)
    try:
        found = model.program.solve(effort, gap)
    except PenstockError as error:
        if error.code != "solver-failed":
            raise
        moved = divide(graph, site, memories)
        if moved.excess > 0:
            return None
        placed = _with_memories(graph, site, memories, moved.dies, moved.uses, "moved")
        return (placed, dict(moved.uses)) if max(placed.graph.resources.share_of(whole).values()) <= 1 else None
    if found is None:
        return None
    built = model.built(found)
    return _with_memories(graph, site, memories, model.dies(found), built, "exact", found.proven), built


def _otherwise(graph: PlacementGraph, site: Site, peak: float) -> Partition:
    """By the greedy walk, or by moving tasks where that finds no place for all of them."""
    try:
        return greedy_partition(graph, site, peak)
    except PenstockError:
        moved = Partition(site, graph, divide(graph, site).dies, "moved")
        if moved.fits and moved.peak <= peak:
            return moved
        raise


def _with_memories(
    graph: PlacementGraph, site: Site, memories: Sequence[LargeMemories], dies: Mapping[str, str],
    built: Mapping[str, MemoryUse], method: str, proven: bool = False,
) -> Partition:  # fmt: skip
    more = {
        thing.name: total(
            [built[ways[0].name].area for one in memories if one.thing == thing.name for ways in one.ways]
        )
        for thing in graph.things
    }
    things = tuple([replace(thing, resources=thing.resources + more[thing.name]) for thing in graph.things])
    return Partition(site, replace(graph, things=things), dies, method, proven)


def _elastic_needed(graph: PlacementGraph, site: Site, peak: float) -> bool:
    return max(graph.resources.share_of(site.limits[site.dies[0]]).values()) > peak


class _Model:
    """Variables: what stands where, and which connection crosses which link."""

    def __init__(self, graph: PlacementGraph, site: Site, memories: Sequence[LargeMemories] = ()) -> None:
        self.graph, self.site, self.memories = graph, site, memories
        self.program = LinearProgram("partition")
        self.on: dict[str, dict[str, int]] = {}
        for thing in graph.things:
            self.on[thing.name] = {die: self.program.choice() for die in site.dies}
            self.program.row(dict.fromkeys(self.on[thing.name].values(), 1.0), "==", 1)
            if thing.die is not None:
                self.program.row({self.on[thing.name][thing.die]: 1}, "==", 1)
        self.counts = [self._counted(one) for one in memories]
        self.crosses: dict[str, list[tuple[int, int]]] = {b.name: [] for b in site.boundaries}
        for boundary in site.boundaries:
            for connection in graph.connections:
                if connection.bits and connection.source != connection.target:
                    crossed = self.program.variable(0, 1)
                    source, target = self.on[connection.source], self.on[connection.target]
                    for one, other in ((source, target), (target, source)):
                        beyond = sorted(boundary.beyond)  # of equal costs the solver takes one by the order of rows
                        row = {one[d]: 1.0 for d in beyond} | {other[d]: -1.0 for d in beyond}
                        self.program.row({**row, crossed: -1.0}, "<=", 0)
                    self.crosses[boundary.name].append((crossed, connection.bits))

    def _counted(self, one: LargeMemories) -> dict[str, list[int]]:
        """How many of these stand on each die, by way; none on a die on which their thing does not."""
        found: dict[str, list[int]] = {}
        for die, here in self.on[one.thing].items():
            found[die] = [self.program.variable(0, len(one.ways), whole=True) for _ in one.areas]
            self.program.row({**dict.fromkeys(found[die], 1.0), here: -float(len(one.ways))}, "==", 0)
        return found

    def dies(self, found: Solution) -> dict[str, str]:
        return {name: next(d for d, v in on.items() if found.chosen(v)) for name, on in self.on.items()}

    def built(self, found: Solution) -> dict[str, MemoryUse]:
        """Of memories that are alike it does not matter which is built in which way."""
        uses: dict[str, MemoryUse] = {}
        for one, counts in zip(self.memories, self.counts, strict=True):
            built = [sum(found.whole(on[way]) for on in counts.values()) for way in range(len(one.areas))]
            order = [way for way, count in enumerate(built) for _ in range(count)]
            for ways, way in zip(one.ways, order, strict=True):
                uses[ways[way].name] = ways[way]
        return uses

    def minimise_crossing(self, balance: float) -> None:
        for crossings in self.crosses.values():
            for crossed, bits in crossings:
                self.program.add_cost(crossed, bits)
        if balance:
            fullest = self.program.variable(0, None, cost=balance)
            for die, limits in self.site.limits.items():
                for name, limit in limits.items():
                    if limit and (row := self._use(die, name)):
                        self.program.row({v: use / limit for v, use in row.items()} | {fullest: -1.0}, "<=", 0)

    def limit(self, peak: float) -> None:
        for die, limits in self.site.limits.items():
            for name, limit in limits.items():
                if row := self._use(die, name):
                    self.program.row(row, "<=", limit * peak)
        for boundary in self.site.boundaries:
            self.program.row({v: float(bits) for v, bits in self.crosses[boundary.name]}, "<=", boundary.wires)

    def limit_together(self, whole: Resources) -> None:
        """Of all dies; what stands on them is there once."""
        for name, limit in whole.as_dict().items():
            row = {v: use for die in self.site.dies for v, use in self._use(die, name).items()}
            if row:
                self.program.row(row, "<=", limit)

    def limit_elastically(self, peak: float) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
        """Limits that may be exceeded at a price; the variables say by how much."""
        over: dict[tuple[str, str], int] = {}
        for die, limits in self.site.limits.items():
            for name, limit in limits.items():
                if row := self._use(die, name):
                    excess = self.program.variable(cost=1 / max(limit * peak, 1))
                    over[die, name] = excess
                    self.program.row({**row, excess: -1.0}, "<=", limit * peak)
        wires: dict[str, int] = {}
        for boundary in self.site.boundaries:
            excess = wires[boundary.name] = self.program.variable(cost=1 / max(boundary.wires, 1))
            row = {v: float(bits) for v, bits in self.crosses[boundary.name]}
            self.program.row({**row, excess: -1.0}, "<=", boundary.wires)
        return over, wires

    def _use(self, die: str, resource: str) -> dict[int, float]:
        fixed = {
            self.on[t.name][die]: float(use) for t in self.graph.things if (use := t.resources.as_dict()[resource])
        }
        return fixed | {
            variable: float(use)
            for one, counts in zip(self.memories, self.counts, strict=True)
            for variable, area in zip(counts[die], one.areas, strict=True)
            if (use := area.as_dict()[resource])
        }


def _check(graph: PlacementGraph, site: Site) -> PlacementGraph:
    for thing in graph.things:
        if thing.die is not None and thing.die not in site.limits:
            raise PenstockError(
                code="unknown-die", what=f"it is to stand on {thing.die!r}", where=thing.name,
                limit=f"{site.name} has " + ", ".join(site.dies), hint="name one of these dies",
            )  # fmt: skip
    return graph


def _shortage(graph: PlacementGraph, site: Site, peak: float, effort: float) -> PenstockError:
    """What is missing at least, found by letting every limit be exceeded at a price."""
    whole = Resources()
    for limits in site.limits.values():
        whole = whole + limits
    needs, have = graph.resources.as_dict(), whole.as_dict()
    missing = [(n, needs[n] - int(have[n] * peak)) for n in RESOURCE_NAMES if needs[n] > have[n] * peak]
    if missing:
        short = ", ".join(f"{name} by {by:,} of {needs[name]:,} needed" for name, by in missing)
        return _does_not_fit(f"all dies together are short of {short}", site, peak)
    model = _Model(graph, site)
    over, wires = model.limit_elastically(peak)
    found = model.program.solve(effort)
    assert found is not None  # every limit may be exceeded
    parts = [
        f"{die} is short of {name} by {_ceil(found.values[v]):,}"
        for (die, name), v in over.items()
        if found.values[v] > 1e-6
    ]
    parts += [
        f"link {name} is short of wires by {_ceil(found.values[v]):,}"
        for name, v in wires.items()
        if found.values[v] > 1e-6
    ]
    return _does_not_fit("; ".join(parts) or "no partition was found", site, peak)


def _ceil(value: float) -> int:
    return int(-(-(value - 1e-6) // 1))


def _does_not_fit(what: str, site: Site, peak: float) -> PenstockError:
    share = "" if peak == 1 else f", of which {peak:.0%} may be used"
    return PenstockError(
        code="does-not-fit", what=what, where=site.name,
        limit=f"{len(site.dies)} dies at the share of their resources that still routes{share}",
        hint="smaller tiles or fewer lanes, a larger platform, or tasks that can be split",
    )  # fmt: skip
