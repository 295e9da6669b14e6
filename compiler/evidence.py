"""Where a figure comes from: the one table of all kinds of evidence. Every list, label and page is taken from it.

Figures of different evidence are never added up or ranked in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Evidence = Literal["modelled", "simulated", "open-rtl", "csynth", "cosim", "implemented", "board"]

EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)
"""From the weakest to the strongest."""

Route = Literal["open", "vitis"]
"""Whose tools make it: the free ones with our SystemVerilog, or AMD's with our C++."""
Look = Literal["model", "simulation", "tool", "built"]
"""How its label looks on a page: evidence of one look is about as hard."""


@dataclass(frozen=True)
class EvidenceKind:
    """What is to be known of one kind of evidence."""

    meaning: str
    look: Look
    ranks: bool = True
    """Whether a search may judge its best designs by it: then it is a rung, and `penstock.dse.rungs` has a function."""
    route: Route | None = None
    """What the platform and the machine must have for it; None: nothing."""
    licensed: bool = False
    """A design takes the tool minutes to hours and a licence: workers share them, a step of its own for each design."""


EVIDENCE_KINDS: Mapping[Evidence, EvidenceKind] = {
    "modelled": EvidenceKind("computed in closed form from the design", "model"),
    "simulated": EvidenceKind("executed or replayed in software", "simulation"),
    "open-rtl": EvidenceKind("measured on our SystemVerilog with Verilator and yosys", "tool", route="open"),
    "csynth": EvidenceKind("from the HLS tool's synthesis report", "tool", route="vitis", licensed=True),
    "cosim": EvidenceKind("from the HLS tool's RTL co-simulation", "tool", route="vitis", licensed=True),
    "implemented": EvidenceKind("after place and route", "built", ranks=False),
    "board": EvidenceKind("measured on the device", "built", ranks=False),
}

RUNGS: tuple[Evidence, ...] = tuple(name for name in EVIDENCE if EVIDENCE_KINDS[name].ranks)
"""What a search may judge its best designs by, from the weakest to the strongest."""
DEFAULT_RUNG: Evidence = "simulated"

LICENSED: tuple[Evidence, ...] = tuple(name for name in RUNGS if EVIDENCE_KINDS[name].licensed)


def by_route(route: Route) -> tuple[Evidence, ...]:
    """The rungs that one route's tools give."""
    return tuple(name for name in RUNGS if EVIDENCE_KINDS[name].route == route)


def one_of(names: Sequence[str]) -> str:
    """Names as a sentence lists them: `a, b or c`."""
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names)
