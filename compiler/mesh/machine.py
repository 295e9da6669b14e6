"""An array of cores as plain facts, made of a `df` module; what does not fit together is said by name."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir.affine import AffineMap

from penstock.compiler.dialects.affine import evaluate_map
from penstock.compiler.errors import PenstockError

CODE = "bad-mesh"
MOST_CORES = 4096
MOST_PARTS = 64
MOST_WAYS_OUT = 1 << 16
"""From every core to every channel."""
MeshPlace = tuple[int, ...]
MeshNode = tuple[str, MeshPlace]
"""A memory: whose it is, and where."""


@dataclass(frozen=True)
class MeshUnit:
    """`types` are the numbers it computes with; without any, with all."""

    name: str
    kind: str
    shape: tuple[int, ...]
    cycles: float
    start: float
    count: int
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeshMemory:
    name: str
    dims: tuple[str, ...]
    size: int
    bandwidth: float
    interleaved: bool


@dataclass(frozen=True)
class MeshNetwork:
    """Links of one kind, from memories to memories."""

    name: str
    source: str
    target: str
    map: AffineMap
    bandwidth: float
    start: float
    open: bool


@dataclass(frozen=True)
class Link:
    """One wire of a network, in the direction in which it carries."""

    network: str
    source: MeshNode
    target: MeshNode
    bandwidth: float
    start: float


@dataclass(frozen=True)
class Machine:
    """`cores` stand along `core_dims`; each works on the scratchpad that `mux` says."""

    name: str
    title: str
    clock_mhz: float
    dims: dict[str, int]
    core_dims: tuple[str, ...]
    units: tuple[MeshUnit, ...]
    memories: dict[str, MeshMemory]
    scratchpad: str
    mux: AffineMap
    networks: tuple[MeshNetwork, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.core_dims) <= 2:
            raise refused(self.name, f"the cores have {len(self.core_dims)} dims", "one or two", "fold dims into one")
        counted = {"cores": self.core_dims, **{f"places of {one.name}": one.dims for one in self.memories.values()}}
        for what, dims in counted.items():  # before any of them is listed
            if (count := math.prod(self.dims[name] for name in dims)) > MOST_CORES:
                raise refused(self.name, f"{count} {what} are too many", f"at most {MOST_CORES}", "describe a part")
        counted = {"networks": len(self.networks), "dims": len(self.dims), "memories": len(self.memories)}
        for what, count in counted.items():
            if count > MOST_PARTS:
                raise refused(self.name, f"{count} {what} are too many", f"at most {MOST_PARTS}", "describe a part")
        if not self.outside:
            raise refused(self.name, "there is no memory but the scratchpads", "", "add a memory that tensors lie in")
        if (ways := len(self.cores) * len(self.channels)) > MOST_WAYS_OUT:
            what = f"{len(self.cores)} cores with {len(self.channels)} channels each are too many"
            raise refused(self.name, what, f"at most {MOST_WAYS_OUT:,} ways, not {ways:,}", "describe a part")
        for core in self.cores:
            self.scratchpad_of(core)
        for core, memory in itertools.product(self.cores, self.channels):
            self.route(memory, self.scratchpad_of(core))

    @cached_property
    def extents(self) -> tuple[int, ...]:
        return tuple(self.dims[name] for name in self.core_dims)

    @cached_property
    def cores(self) -> list[MeshPlace]:
        return list(itertools.product(*(range(size) for size in self.extents)))

    @cached_property
    def outside(self) -> MeshMemory | None:
        """The memory that tensors lie in: the largest that is no scratchpad."""
        others = [memory for memory in self.memories.values() if memory.name != self.scratchpad]
        return max(others, key=lambda memory: memory.size, default=None)

    @cached_property
    def channels(self) -> list[MeshNode]:
        return [] if self.outside is None else [(self.outside.name, place) for place in self.places(self.outside)]

    def places(self, memory: MeshMemory) -> list[MeshPlace]:
        return list(itertools.product(*(range(self.dims[name]) for name in memory.dims)))

    @cached_property
    def capacity(self) -> int:
        return self.memories[self.scratchpad].size

    def scratchpad_of(self, core: MeshPlace) -> MeshNode:
        return self._place(self.scratchpad, evaluate_map(self.mux, core), f"the mux of core {core}")

    def _place(self, memory: str, place: MeshPlace, where: str) -> MeshNode:
        dims = self.memories[memory].dims
        if len(place) != len(dims) or any(not 0 <= p < self.dims[d] for p, d in zip(place, dims, strict=True)):
            sizes = " x ".join(str(self.dims[d]) for d in dims)
            raise refused(
                self.name, f"{where} leads to {memory}{list(place)}, which is nowhere", f"{memory} has {sizes} places",
                "let the map end inside (`mod` closes a ring), or mark the network `open`",
            )  # fmt: skip
        return memory, place

    @cached_property
    def links(self) -> list[Link]:
        found: list[Link] = []
        for network in self.networks:
            for place in self.places(self.memories[network.source]):
                to = evaluate_map(network.map, place)
                sizes = [self.dims[d] for d in self.memories[network.target].dims]
                if network.open and any(not 0 <= p < size for p, size in zip(to, sizes, strict=True)):
                    continue
                target = self._place(network.target, to, f"link {network.name} from {network.source}{list(place)}")
                found.append(Link(network.name, (network.source, place), target, network.bandwidth, network.start))
        return found

    @cached_property
    def _leaving(self) -> dict[MeshNode, list[tuple[int, MeshNode]]]:
        """Where one gets to from every memory. What joins two kinds of memories carries both ways."""
        found: dict[MeshNode, list[tuple[int, MeshNode]]] = {}
        for index, link in enumerate(self.links):
            found.setdefault(link.source, []).append((index, link.target))
            if link.source[0] != link.target[0]:
                found.setdefault(link.target, []).append((index, link.source))
        return found

    @cached_property
    def _ways(self) -> dict[MeshNode, dict[MeshNode, tuple[int, MeshNode]]]:
        return {}

    def route(self, source: MeshNode, target: MeshNode) -> tuple[int, ...]:
        """The links of a shortest way, in their order."""
        if source not in self._ways:
            came: dict[MeshNode, tuple[int, MeshNode]] = {}
            waiting = deque([source])
            while waiting:
                at = waiting.popleft()
                for link, to in self._leaving.get(at, []):
                    # a memory of tensors is an end: nothing passes through it
                    if to != source and to not in came:
                        came[to] = (link, at)
                        if to[0] == self.scratchpad:
                            waiting.append(to)
            self._ways[source] = came
        came, found, at = self._ways[source], list[int](), target
        while at != source:
            if at not in came:
                raise refused(
                    self.name, f"no path leads from {source[0]}{list(source[1])} to {target[0]}{list(target[1])}", "",
                    "add a network between them, or close the ring",
                )  # fmt: skip
            link, at = came[at]
            found.append(link)
        return tuple(reversed(found))

    @cached_property
    def along(self) -> list[list[MeshNetwork]]:
        """By dim of the cores: the networks that go along it, and no other."""
        return [self._along(dim) for dim in range(len(self.extents))]

    def _along(self, dim: int) -> list[MeshNetwork]:
        name = self.core_dims[dim]
        memory = self.memories[self.scratchpad]
        if name not in memory.dims:
            return []
        at = memory.dims.index(name)
        return [
            network
            for network in self.networks
            if network.source == network.target == self.scratchpad
            and all(
                (evaluate_map(network.map, place)[i] != place[i]) == (i == at)
                for place in self.places(memory)[:2]
                for i in range(len(memory.dims))
                if self.dims[memory.dims[i]] > 1
            )
        ]

    @cached_property
    def shares_scratchpad(self) -> list[bool]:
        """By dim of the cores: whether those along it work on one scratchpad."""
        return [self._shares_scratchpad(dim) for dim in range(len(self.extents))]

    def _shares_scratchpad(self, dim: int) -> bool:
        places = [tuple(at if i == dim else 0 for i in range(len(self.extents))) for at in range(self.extents[dim])]
        return len({self.scratchpad_of(place) for place in places}) == 1 and self.extents[dim] > 1

    @cached_property
    def sharing(self) -> int:
        """How many cores have one scratchpad."""
        return math.prod(self.extents[d] for d in range(len(self.extents)) if self.shares_scratchpad[d])

    @cached_property
    def outside_bandwidth(self) -> float:
        """Bytes a cycle of all channels together."""
        assert self.outside is not None
        return self.outside.bandwidth * len(self.channels)

    def unit(self, kind: str, numbers: str = "") -> MeshUnit | None:
        """The first of a kind; of those for some types of numbers alone, one that computes with `numbers`."""
        fits = (unit for unit in self.units if unit.kind == kind)
        return next((unit for unit in fits if not numbers or not unit.types or numbers in unit.types), None)


def refused(name: str, what: str, limit: str, hint: str) -> PenstockError:
    return PenstockError(code=CODE, what=what, where=f"mesh {name}", limit=limit, hint=hint)


def only(found: Sequence[str], name: str, what: str) -> str:
    """The one of a kind that there must be."""
    if len(found) != 1:
        raise refused(name, f"{len(found)} {what}", f"there is one; found {', '.join(found) or 'none'}", "leave one")
    return found[0]
