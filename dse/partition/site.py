"""Where things can stand: the dies with what each leaves to a design, and the links between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import networkx as nx

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import RESOURCE_NAMES, Die, Platform, Resources


@dataclass(frozen=True)
class Boundary:
    """One link: `beyond` are the dies on its far side."""

    between: tuple[str, str]
    wires: int
    beyond: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.between[0]}–{self.between[1]}"


@dataclass(frozen=True)
class Site:
    """A board's dies as a tree: whatever runs between two dies crosses the links of one path."""

    name: str
    limits: dict[str, Resources]
    boundaries: tuple[Boundary, ...]

    @property
    def dies(self) -> tuple[str, ...]:
        return tuple(self.limits)

    def crossed(self, first: str, second: str) -> tuple[Boundary, ...]:
        return tuple(b for b in self.boundaries if (first in b.beyond) != (second in b.beyond))


def site_of(platform: Platform, share: float = 1.0) -> Site:
    """The platform's dies, each with its available resources times the share that still routes.

    `share` takes that much of the limits only, to leave room for others.
    """
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(d.name for d in platform.dies)
    graph.add_edges_from(link.between for link in platform.links)
    if not nx.is_tree(graph):
        raise PenstockError(
            code="unknown-topology", what="its dies do not form a chain or a tree", where=platform.name,
            limit=f"{graph.number_of_nodes()} dies, {graph.number_of_edges()} links",
            hint="the partition counts the wires of one path between any two dies",
        )  # fmt: skip
    fill = dict(platform.fill)
    boundaries: list[Boundary] = []
    for link in platform.links:
        near, far = link.between
        graph.remove_edge(near, far)
        boundaries.append(Boundary(link.between, link.wires, frozenset(nx.node_connected_component(graph, far))))
        graph.add_edge(near, far)
    return Site(platform.name, {d.name: _limits(d, fill, share) for d in platform.dies}, tuple(boundaries))


def _limits(die: Die, fill: dict[str, float], share: float) -> Resources:
    have = die.available.as_dict()
    return Resources(**{name: math.floor(have[name] * fill[name] * share + 1e-6) for name in RESOURCE_NAMES})
