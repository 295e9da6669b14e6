"""What the API gives of measurements: kept profiles, how far rungs of evidence differ, why a design was chosen."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import Field

from penstock.db import Transaction
from penstock.services.api.answers.schemas import Given


class ToolProfiles(Given):
    tool: str
    evidence: str
    profiles: int = Field(description="kept now")
    uses: int = Field(description="how often they spared a measurement, or were waited for")
    seconds: float = Field(description="what they took to measure")


class ProfileStatistics(Given):
    """The measurements that all runs share. A run's own are in its explanation."""

    hits: int = Field(description="asked for and kept already")
    misses: int = Field(description="measured because nobody had")
    waits: int = Field(description="measured by another worker at that time")
    failures: int = Field(description="measurements that failed; these are not kept")
    evicted: int = Field(description="removed because nobody used them and no run cites them")
    seconds_saved: float
    measuring: int = Field(description="kernels and designs that are being measured now")
    tools: list[ToolProfiles]


class RungDifferenceOut(Given):
    """Over designs that two rungs of evidence measured."""

    family: str = Field(description="platforms that share an operator library")
    weaker: str
    stronger: str
    designs: int
    median_ratio: float = Field(description="stronger over weaker cycles")
    typical: float = Field(description="half of the designs are off by no more than this share of the stronger figure")
    worst: float


class RungDifferences(Given):
    items: list[RungDifferenceOut]


class Explanation(Given):
    """What a run's search learned. `why`, `rung_errors` and `profiles` are as in its report.json."""

    run: str
    why: dict[str, Any] | None = Field(description="null: the run has not chosen yet")
    rung_errors: list[dict[str, Any]]
    correction: str
    profiles: dict[str, Any] | None = Field(description="null: no tool was asked")
    differences: list[RungDifferenceOut] = Field(description="of the designs that this run was the last to measure")


def profiles_out(tx: Transaction) -> ProfileStatistics:
    counts, kinds = tx.profiles.counts(), tx.profiles.kinds()
    whole = {name: round(value) for name, value in counts.items() if name != "seconds_saved"}
    return ProfileStatistics(
        **whole,
        seconds_saved=round(counts["seconds_saved"], 3),
        measuring=tx.profiles.claimed(),
        tools=[ToolProfiles(**asdict(kind)) for kind in kinds],
    )


def differences_out(tx: Transaction, run_id: str | None = None) -> list[RungDifferenceOut]:
    """Of the designs that one run was the last to measure, or of all."""
    return [RungDifferenceOut(**asdict(one)) for one in tx.rung_pairs.differences(run_id)]
