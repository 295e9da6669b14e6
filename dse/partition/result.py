"""A finished partition, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.compiler.platforms import Resources, total
from penstock.dse.partition.graph import PlacementGraph, Wires
from penstock.dse.partition.site import Boundary, Site


@dataclass(frozen=True)
class Partition:
    """A die for everything. `proven` says that no other costs notably less."""

    site: Site
    graph: PlacementGraph
    dies: Mapping[str, str]
    method: str
    proven: bool = False

    @property
    def used(self) -> dict[str, Resources]:
        return {
            die: total([t.resources for t in self.graph.things if self.dies[t.name] == die]) for die in self.site.dies
        }

    @property
    def shares(self) -> dict[str, dict[str, float]]:
        return {die: used.share_of(self.site.limits[die]) for die, used in self.used.items()}

    @property
    def peak(self) -> float:
        """The largest share of any resource of any die: what balance lowers."""
        return max(share for shares in self.shares.values() for share in shares.values())

    @property
    def crossing_bits(self) -> int:
        """Bits times the links that they cross."""
        return sum(c.bits * len(self._crossed(c)) for c in self.graph.connections)

    def crossing(self, boundary: Boundary) -> tuple[Wires, ...]:
        """The connections over one link."""
        return tuple(c for c in self.graph.connections if boundary in self._crossed(c))

    def wires(self, boundary: Boundary) -> int:
        return sum(c.bits for c in self.crossing(boundary))

    @property
    def fits(self) -> bool:
        within = all(share <= 1 for shares in self.shares.values() for share in shares.values())
        return within and all(self.wires(b) <= b.wires for b in self.site.boundaries)

    def _crossed(self, connection: Wires) -> tuple[Boundary, ...]:
        return self.site.crossed(self.dies[connection.source], self.dies[connection.target])
