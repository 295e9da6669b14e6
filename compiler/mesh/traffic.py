"""What a transfer occupies: which links and channels, for how long a byte, when it is loaded alone or shared."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.mesh.machine import Machine, MeshNetwork, MeshPlace

Floats = NDArray[np.float64]
MeshShare = tuple[int, ...]
"""The dims of the cores along which one transfer serves all."""


@dataclass(frozen=True)
class Group:
    """Cores that one transfer serves; the first of them in `cores` that works reads it."""

    cores: tuple[int, ...]
    leader: int
    occupied: tuple[tuple[int, float], ...]
    """Of every link and channel: cycles a byte. Links come first, then channels."""
    start: float


@dataclass(frozen=True)
class Traffic:
    machine: Machine

    @cached_property
    def size(self) -> int:
        return len(self.machine.links) + len(self.machine.channels)

    @cached_property
    def _groups(self) -> dict[MeshShare, list[Group]]:
        return {}

    @cached_property
    def _vectors(self) -> dict[MeshShare, Floats]:
        return {}

    @cached_property
    def shares(self) -> tuple[MeshShare, ...]:
        """All ways to share, not to share first."""
        dims = [d for d in range(len(self.machine.extents)) if self.machine.extents[d] > 1 and self.possible(d)]
        return tuple(one for n in range(len(dims) + 1) for one in itertools.combinations(dims, n))

    def groups(self, share: MeshShare) -> list[Group]:
        """The cores by who shares, with what their transfers occupy."""
        if share not in self._groups:
            machine = self.machine
            whole = share
            rest = [range(1) if d in whole else range(n) for d, n in enumerate(machine.extents)]
            index = {core: i for i, core in enumerate(machine.cores)}
            found: list[Group] = []
            for corner in itertools.product(*rest):
                spans = [range(n) if d in whole else [corner[d]] for d, n in enumerate(machine.extents)]
                cores = tuple(index[core] for core in itertools.product(*spans))
                found.append(self._group(corner, whole, cores, index))
            self._groups[share] = found
        return self._groups[share]

    def possible(self, dim: int) -> bool:
        return bool(self.machine.along[dim]) or self.machine.shares_scratchpad[dim]

    def _group(
        self, corner: MeshPlace, whole: tuple[int, ...], cores: tuple[int, ...], index: dict[MeshPlace, int]
    ) -> Group:
        machine = self.machine
        leader = list(corner)
        networks: list[tuple[int, MeshNetwork]] = []
        for dim in whole:
            if machine.shares_scratchpad[dim]:
                continue
            network = machine.along[dim][0]
            networks.append((dim, network))
            if not network.open:  # a ring may begin anywhere: those of neighbours begin at different ports
                leader[dim] = sum(c for d, c in enumerate(corner) if d != dim) % machine.extents[dim]
        occupied, start = self._from_outside(tuple(leader))
        at = [tuple(leader)]
        for dim, network in networks:
            reached = list(at)
            for place in at:
                now = place
                for _ in range(machine.extents[dim] - 1):
                    link = self._link[network.name, machine.scratchpad_of(now)]
                    occupied[link] = occupied.get(link, 0.0) + 1 / network.bandwidth
                    step = list(now)
                    step[dim] = (step[dim] + 1) % machine.extents[dim]
                    now = tuple(step)
                    reached.append(now)
            at = reached
        start += max((network.start for _, network in networks), default=0.0)
        return Group(cores, index[tuple(leader)], tuple(sorted(occupied.items())), start)

    @cached_property
    def _link(self) -> dict[tuple[str, tuple[str, MeshPlace]], int]:
        return {(link.network, link.source): i for i, link in enumerate(self.machine.links)}

    def _from_outside(self, core: MeshPlace) -> tuple[dict[int, float], float]:
        """A tile lies across all channels, or is in the nearest."""
        machine, occupied, start = self.machine, dict[int, float](), 0.0
        target = machine.scratchpad_of(core)
        ways = [(i, machine.route(channel, target)) for i, channel in enumerate(machine.channels)]
        assert machine.outside is not None
        if not machine.outside.interleaved:
            ways = [min(ways, key=lambda way: len(way[1]))]
        for channel, way in ways:
            part, at = 1 / len(ways), len(machine.links) + channel
            occupied[at] = occupied.get(at, 0.0) + part / machine.outside.bandwidth
            for link in way:
                occupied[link] = occupied.get(link, 0.0) + part / machine.links[link].bandwidth
                start = max(start, machine.links[link].start)
        return occupied, start

    def vector(self, share: MeshShare) -> Floats:
        """Cycles a byte that every link and channel is occupied when all groups load a tile."""
        if share not in self._vectors:
            found = np.zeros(self.size)
            for group in self.groups(share):
                for at, cycles in group.occupied:
                    found[at] += cycles
            self._vectors[share] = found
        return self._vectors[share]

    @cached_property
    def _worst(self) -> dict[tuple[tuple[MeshShare, ...], bytes], Floats]:
        return {}

    def worst(self, shares: tuple[MeshShare, ...], active: NDArray[np.bool_]) -> Floats:
        """Cycles a byte by share, when the active cores load a tile: of those links alone that may be the busiest."""
        key = shares, active.tobytes()
        if key not in self._worst:
            found = np.zeros((len(shares), self.size))
            for row, share in enumerate(shares):
                for group in self.groups(share):
                    if active[list(group.cores)].any():
                        for at, cycles in group.occupied:
                            found[row, at] += cycles
            links = np.unique(found.round(12), axis=1).T
            more = (links[None, :, :] >= links[:, None, :]).all(axis=2).sum(axis=1)
            self._worst[key] = links[more == 1].T.copy()
        return self._worst[key]

    def start(self, share: MeshShare) -> float:
        return max(group.start for group in self.groups(share))
