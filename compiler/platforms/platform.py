"""What a board offers: dies with resources, memories, links between dies, clocks. Plain records.

Positions are tuples of any length, and dies, memories and links are named: enough to describe a mesh of
cores with the same records later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms.board import Board
from penstock.compiler.platforms.families import Family
from penstock.compiler.platforms.resources import RESOURCE_NAMES, Resources, total

MEMORY_EFFICIENCY = 0.85
"""No memory system sustains more of its peak."""


@dataclass(frozen=True)
class Die:
    """One region with resources of its own. `reserved` is what the board's shell keeps of them."""

    name: str
    position: tuple[int, ...]
    resources: Resources
    reserved: Resources

    @property
    def available(self) -> Resources:
        return self.resources - self.reserved


@dataclass(frozen=True)
class ExternalMemory:
    """An external memory of `ports` equal ports, attached to one die."""

    name: str
    kind: str
    die: str
    gigabytes: float
    ports: int
    port_gb_s: float
    port_bits: int

    @property
    def gb_s(self) -> float:
        """Peak bandwidth of all ports together, in 10^9 bytes a second."""
        return self.ports * self.port_gb_s

    @property
    def sustained_gb_s(self) -> float:
        """What it delivers for long."""
        return self.gb_s * MEMORY_EFFICIENCY

    def port_bits_a_cycle(self, clock_mhz: float) -> float:
        """What one port delivers for long in a cycle of a kernel."""
        return self.port_gb_s * MEMORY_EFFICIENCY * 8e3 / clock_mhz


@dataclass(frozen=True)
class DieLink:
    """Wires between two neighbouring dies."""

    between: tuple[str, str]
    wires: int


@dataclass(frozen=True)
class Platform:
    """A device or board."""

    name: str
    title: str
    part: str
    shell: str
    family: Family
    clock_mhz: float
    max_clock_mhz: float
    fill: tuple[tuple[str, float], ...]
    dies: tuple[Die, ...]
    memories: tuple[ExternalMemory, ...]
    links: tuple[DieLink, ...]
    board: Board | None = None
    """Pins and oscillator, where it is a board that bitstreams are made for."""
    arguments: str = "external"
    """What inputs and outputs are: `external` memory behind ports, or `arrays` on the chip, banked as is needed."""

    @property
    def operators(self) -> str:
        """The operator library whose figures hold on it."""
        return self.family.operators

    @property
    def has_array_arguments(self) -> bool:
        return self.arguments == "arrays"

    @property
    def fastest_memory(self) -> ExternalMemory | None:
        """The external memory that serves all ports of a design; None where the host's link does.

        Memories that are alike, as the modules of a card are, serve them together, and count as one of all their ports.
        """
        alike = self.fastest_memories
        if len(alike) < 2:
            return alike[0] if alike else None
        name, gigabytes = " and ".join(one.name for one in alike), sum(one.gigabytes for one in alike)
        return replace(alike[0], name=name, gigabytes=gigabytes, ports=sum(one.ports for one in alike))

    @property
    def fastest_memories(self) -> tuple[ExternalMemory, ...]:
        """What `fastest_memory` consists of: its ports are theirs, one memory after the other."""
        by_kind: dict[tuple[object, ...], list[ExternalMemory]] = {}
        for one in self.memories:
            by_kind.setdefault((one.kind, one.ports, one.port_gb_s, one.port_bits, one.gigabytes), []).append(one)
        none: list[ExternalMemory] = []
        return tuple(max(by_kind.values(), key=lambda alike: sum(one.gb_s for one in alike), default=none))

    @property
    def available(self) -> Resources:
        """What all dies together leave to a design, before the safe fill is applied."""
        return total([die.available for die in self.dies])

    @property
    def limits(self) -> Resources:
        """The most a design may use: what is available times the share that still routes."""
        share = dict(self.fill)
        have = self.available.as_dict()
        return Resources(**{name: math.floor(have[name] * share[name] + 1e-6) for name in RESOURCE_NAMES})

    def check_clock(self, clock_mhz: float) -> float:
        """The clock itself, if the platform's figures reach that far; else an error that says how far."""
        if not 0 < clock_mhz <= self.max_clock_mhz:
            raise PenstockError(
                code="clock-out-of-range",
                what=f"a clock of {clock_mhz:g} MHz was asked for",
                where=self.name,
                limit=f"its operators are known up to {self.max_clock_mhz:g} MHz",
                hint=f"ask for at most {self.max_clock_mhz:g}; the default is {self.clock_mhz:g}",
            )
        return clock_mhz
