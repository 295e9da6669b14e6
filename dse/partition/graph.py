"""What is placed: things with resources, and how many wires run between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Resources, total
from penstock.compiler.schedule import MemoryUse


@dataclass(frozen=True)
class PlacedThing:
    """Something that stands on one die as a whole. `die` is set where the board leaves no choice."""

    name: str
    resources: Resources
    die: str | None = None


@dataclass(frozen=True)
class LargeMemories:
    """Memories of one thing that are alike, not counted among its resources: each may be built in any of these ways."""

    thing: str
    ways: tuple[tuple[MemoryUse, ...], ...]
    """Of each memory the same ways, in the same order."""

    def __post_init__(self) -> None:
        assert len({tuple([(use.kind, use.area) for use in ways]) for ways in self.ways}) == 1, "alike"

    @property
    def areas(self) -> tuple[Resources, ...]:
        return tuple([use.area for use in self.ways[0]])


@dataclass(frozen=True)
class Wires:
    """`bits` wires between two placed things, with all handshakes."""

    name: str
    source: str
    target: str
    bits: int


@dataclass(frozen=True)
class PlacementGraph:
    """Sources stand before their targets in `things`, where the design has such an order."""

    things: tuple[PlacedThing, ...]
    connections: tuple[Wires, ...]

    @property
    def resources(self) -> Resources:
        return total([thing.resources for thing in self.things])

    def pinned(self, dies: dict[str, str]) -> PlacementGraph:
        """The same graph with some things on dies of the caller's choice."""
        self.check_names(dies)
        return replace(self, things=tuple(replace(t, die=dies.get(t.name, t.die)) for t in self.things))

    def check_names(self, names: Iterable[str]) -> None:
        known = {t.name for t in self.things}
        if unknown := sorted(set(names) - known):
            raise PenstockError(
                code="unknown-task", what="there is no such task in the design", where=unknown[0],
                limit=f"{len(known)} tasks", hint="check the names in the design record",
            )  # fmt: skip

    def check(self) -> PlacementGraph:
        """The graph itself, if names are unique and connections end at things of it."""
        names = [t.name for t in self.things]
        if repeated := sorted({n for n in names if names.count(n) > 1}):
            raise PenstockError(code="bad-graph", what="two tasks have one name", where=repeated[0],
                                hint="give each a name of its own")  # fmt: skip
        for connection in self.connections:
            self.check_names((connection.source, connection.target))
            if connection.bits < 0:
                raise PenstockError(
                    code="bad-graph", what=f"a connection of {connection.bits} bits", where=connection.name,
                    limit="at least 0", hint="check the widths",
                )  # fmt: skip
        return self
