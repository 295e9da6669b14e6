"""Where everything of a design stands and what its memories are built of, in one step; into the design record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.platforms import Family, Platform, Resources, total
from penstock.compiler.schedule import MemoryUse, OperatorLibrary
from penstock.dse.memory import Allocation, allocate, allocate_whole, memory_svg, memory_table, stored_items
from penstock.dse.memory.items import WHOLE_CHIP, decided
from penstock.dse.partition import (
    LargeMemories,
    Partition,
    PlacementGraph,
    Site,
    large_memories,
    partition,
    partition_svg,
    partition_table,
    partition_with_memories,
    placement_graph,
    site_of,
)
from penstock.dse.partition import divide as division
from penstock.profiling.network import TaskNetwork

NO_PLACE = ("does-not-fit", "memory-short", "memory-too-large")
"""Codes of errors that say that a design finds no place on the platform's dies."""
_FAR = 0.6
"""By so much the best division that moving tasks finds may exceed limits where exact ways are tried still."""


@dataclass(frozen=True)
class Placement:
    """A die for every task, and a way to build every memory of each die."""

    partition: Partition
    allocation: Allocation
    family: Family
    undivided: str = ""
    """Why the tasks are not divided among the dies, if they are not: all stand on the chip as a whole."""

    @property
    def resources(self) -> Resources:
        """What the whole design takes, its memories built as they were allocated."""
        return total([self.allocation.used(region) for region in self.allocation.limits])

    def record(self, design: Design) -> Design:
        """The design with both in it; external memory has no choice and is not recorded."""
        if self.undivided:
            return design.with_placement({}, {name: use.kind for name, use in self.allocation.uses.items()})
        fixed = {t.name for t in self.partition.graph.things if t.die is not None and t.resources == Resources()}
        dies = {task: die for task, die in self.partition.dies.items() if task not in fixed}
        return design.with_placement(dies, {name: use.kind for name, use in self.allocation.uses.items()})

    def svg(self) -> str:
        """Both pictures, one below the other, as HTML that needs nothing else."""
        return f"<div>{partition_svg(self.partition)}</div><div>{memory_svg(self.allocation)}</div>"

    def table(self) -> str:
        return f"{partition_table(self.partition)}\n{memory_table(self.allocation, self.family)}"


def place(
    network: TaskNetwork,
    platform: Platform,
    library: OperatorLibrary,
    design: Design | None = None,
    *,
    divide: bool = False,
    limits: Resources | None = None,
    best: bool = True,
) -> Placement:
    """Place a scheduled design on a platform; what the design record says already is kept.

    A design that fits the chip, but not its dies with each task on one, is refused with `divide` or where the record
    names dies; else where its tasks stand is left to the tools, which may divide tasks too.
    Memories are first built for the chip as a whole, so that no die is asked for more of a scarce kind than there
    is, then tasks are placed, then the memories of each die are built for good. Where the tasks find no place so, what
    large memories are built of is chosen together with the dies: loads stand beside external memory, and may have it
    full of one kind and empty of the other. With `limits` of the chip below the
    platform's, the first of these stands, since no die knows of them. Who only asks whether there is a place need not
    have the `best` one, for which an integer program takes seconds: what moving tasks finds will do.
    """
    kinds = dict(design.memories) if design is not None else {}
    site = site_of(platform)
    of_tasks = {t.name: total([n.logic for n in t.nests]) for t in network.tasks}
    limits = limits or platform.limits
    whole = allocate_whole(network, library, limits, kinds)
    graph = placement_graph(network, platform, library, whole.uses)
    if design is not None:
        _check_dies(design.dies, [t.name for t in network.tasks], site)
        graph = graph.pinned(dict(design.dies))
    undivided, uses = "", dict(whole.uses)

    def built_on(placed: Partition, built: Mapping[str, MemoryUse]) -> Placement:
        chosen = kinds | {name: use.kind for name, use in built.items()}
        if limits != platform.limits:
            chosen |= {name: use.kind for name, use in {**uses, **built}.items()}
        here = decided(stored_items(network, library, placed.dies), chosen)
        logic = {die: total([a for t, a in of_tasks.items() if placed.dies[t] == die]) for die in site.dies}
        return Placement(placed, allocate(here, site.limits, logic), platform.family, undivided)

    if not best and (moved := division(graph, site)).excess <= 0:
        with suppress(PenstockError):  # each die has enough of all kinds together, and one may lack blocks of one kind
            return built_on(Partition(site, graph, moved.dies, "moved"), dict[str, MemoryUse]())
    memories = large_memories(network, library, uses, kinds)
    names = [ways[0].name for one in memories for ways in one.ways]
    besides = placement_graph(network, platform, library, uses, names).pinned(dict(design.dies) if design else {})
    if divide and len(site.dies) > 1 and not (design is not None and design.dies):
        _check_near(division(besides, site, memories).excess, site)
    try:
        placed, built = _divided(graph, besides, memories, site, limits)
    except PenstockError as error:
        if error.code != "does-not-fit" or divide or (design is not None and design.dies):
            raise
        undivided, site = error.one_line(), Site(platform.name, {WHOLE_CHIP: limits}, ())
        things = tuple(replace(t, die=None) for t in graph.things)
        placed, built = partition(replace(graph, things=things), site), dict[str, MemoryUse]()
    return built_on(placed, built)


def _divided(
    graph: PlacementGraph, besides: PlacementGraph, memories: Sequence[LargeMemories], site: Site, limits: Resources
) -> tuple[Partition, Mapping[str, MemoryUse]]:
    """With memories as they are in the graph; or what is besides them, and what they are built of then.

    The latter is tried first where moving tasks finds no division of the former: to prove that there is none takes an
    integer program longer than both other ways.
    """
    seldom = bool(memories) and division(graph, site).excess > 0
    if seldom and (found := partition_with_memories(besides, site, memories, limits)) is not None:
        return found
    try:
        return partition(graph, site), {}
    except PenstockError as error:
        if error.code != "does-not-fit" or seldom or not memories:
            raise
        if (found := partition_with_memories(besides, site, memories, limits)) is None:
            raise
        return found


def _check_near(excess: float, site: Site) -> None:
    """Refuse what is far from divisible before integer programs look for a division, which takes them long."""
    if excess > _FAR:
        raise PenstockError(
            code="does-not-fit", where=site.name,
            what=f"the best division that was found exceeds what dies and links have by {excess:.0%}, all added up",
            limit=f"{len(site.dies)} dies at the share of their resources that still routes",
            hint="smaller tiles or fewer lanes, fewer stripes, or a larger platform",
        )  # fmt: skip


def _check_dies(dies: Mapping[str, str], tasks: Sequence[str], site: Site) -> None:
    """What a design record says of dies must be of tasks and dies that there are."""
    for task, die in dies.items():
        if task not in tasks:
            raise PenstockError(
                code="unknown-task", what="there is no such task in the design", where=f"dies.{task}",
                limit=f"{len(tasks)} tasks",
                hint=nearest(task, tasks, "check the names in the design record"),
            )  # fmt: skip
        if die not in site.dies:
            raise PenstockError(
                code="unknown-die", what=f"there is no die {die!r}", where=f"dies.{task}",
                limit=f"{site.name} has " + ", ".join(site.dies), hint="name one of these dies",
            )  # fmt: skip
