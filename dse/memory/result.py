"""A finished allocation of memories, and what it takes of each region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.compiler.platforms import Resources, total
from penstock.compiler.schedule import MemoryUse


@dataclass(frozen=True)
class Allocation:
    """How everything is built. `logic` is what the rest of the design takes of each region."""

    uses: Mapping[str, MemoryUse]
    regions: Mapping[str, str]
    limits: Mapping[str, Resources]
    logic: Mapping[str, Resources]
    proven: bool = True

    def memory(self, region: str) -> Resources:
        return total([use.area for name, use in self.uses.items() if self.regions[name] == region])

    def used(self, region: str) -> Resources:
        return self.memory(region) + self.logic.get(region, Resources())

    def kinds(self, region: str) -> dict[str, int]:
        """How many memories of each kind a region holds."""
        found: dict[str, int] = {}
        for name, use in self.uses.items():
            if self.regions[name] == region:
                found[use.kind] = found.get(use.kind, 0) + 1
        return found

    @property
    def peak(self) -> float:
        return max(s for region, limit in self.limits.items() for s in self.used(region).share_of(limit).values())
