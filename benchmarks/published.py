"""The published figures of the workloads: cycles of C/RTL co-simulation, DSPs and LUTs, from the tables in data/."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLES = ("compare", "polybench", "mlps", "transformers", "cnns")
BUDGETS = (220, 2560, 9024)
LEAST_DSP = 100
"""Designs of fewer DSPs are baselines that nobody optimised; they count under every budget, but get no row."""
_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Published:
    """One published design. `budget` is the number of DSPs that its authors allowed, where they say so."""

    framework: str
    workload: str
    cycles: int
    dsp: int
    lut: int
    budget: int | None = None

    @property
    def label(self) -> str:
        return f"{self.framework}, {self.dsp} DSP"

    def counts_at(self, budget: int) -> bool:
        """Whether it is compared at a budget: it keeps to it, or was made for it though it takes a few more."""
        return self.dsp <= budget or self.budget == budget


@cache
def published(workload: str) -> tuple[Published, ...]:
    """Every design whose co-simulation passed, each once, the fastest first; what failed has no cycles."""
    found = dict.fromkeys(one for one in _rows() if one.workload == workload)
    return tuple(sorted(found, key=lambda one: (one.cycles, one.dsp)))


def rivals(workload: str) -> tuple[Published, ...]:
    """The published designs that are worth a comparison at exactly their DSPs and LUTs."""
    distinct = {(one.framework, one.cycles, one.dsp): one for one in published(workload) if one.dsp >= LEAST_DSP}
    return tuple(distinct.values())


def _rows() -> Iterator[Published]:
    for table in TABLES:
        with (_DATA / f"streamhls_table_{table}.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                if row["RTL Status"] == "Pass":
                    yield _read(row)


def _read(row: Mapping[str, str]) -> Published:
    """`Opt5_220` is Stream-HLS' fifth level under 220 DSPs, `Opt1` its first under its default budget."""
    framework, cycles, dsp, lut = row["Framework"], int(row["RTL Cycles"]), int(row["DSP"]), int(row["LUT"])
    if not framework.startswith("Opt"):
        return Published(framework, row["Kernel"], cycles, dsp, lut)
    level, _, budget = framework.partition("_")
    return Published(f"Stream-HLS {level}", row["Kernel"], cycles, dsp, lut, int(budget) if budget else None)
