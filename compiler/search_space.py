"""A search's space and single evaluations, for programs that search by themselves: `penstock space`, `evaluate`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from penstock.compiler.evidence import Evidence
from penstock.compiler.strict_record import Record


class ParameterInfo(Record):
    """One parameter of the space."""

    name: str
    values: tuple[bool | int | str, ...] = Field(description="numbers in ascending order, or in that of their meaning")
    usual: bool | int | str = Field(description="what it is where a setting does not say")
    needs: dict[str, tuple[bool | int | str, ...]] = Field(
        description="where it means something: parameters with such values"
    )


class SpaceInfo(Record):
    """What can be decided of a model on a device, what is wanted, and what no design can be better than."""

    model: str
    platform: str
    clock_mhz: float
    quantize: str | None
    objectives: tuple[str, ...] = Field(description="by the figure of each, the most important first; small is good")
    limits: tuple[str, ...] = Field(description="that the user gave")
    may_use: dict[str, int] = Field(description="of each resource, by the platform and these limits")
    parameters: tuple[ParameterInfo, ...]
    guess: dict[str, bool | int | str] = Field(description="a setting to begin with")
    bound: float = Field(description="what the first objective of no design is below")
    bound_reason: str


class EvaluatedSetting(Record):
    """What one setting means and costs."""

    params: dict[str, bool | int | str]
    feasible: bool
    values: tuple[float, ...] = Field(description="of the objectives, in their order")
    constraints: dict[str, float] = Field(description="by which part each limit is missed; not above 0: it is kept")
    figures: dict[str, float]
    explanation: str
    gap_pct: float | None = Field(description="above the bound of the first objective")
    digest: str = Field(description="of the design: equal ones are one design")
    design: dict[str, Any] = Field(description="its record, for penstock compile --design")
    evidence: Evidence = "modelled"
    error: str = Field(default="", description="why the setting means no design: then it has no figures")


class EvaluatedSettings(Record):
    """What `penstock evaluate --json` prints, in the order of the settings."""

    evaluated: tuple[EvaluatedSetting, ...]
