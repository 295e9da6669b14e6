"""What a search learned, as records of a report: why its design, how far rungs differ, what tools were spared."""

from __future__ import annotations

from pydantic import Field

from penstock.compiler.evidence import Evidence
from penstock.compiler.package.record import Cycles, Record, Share


class NeighbourInfo(Record):
    """The chosen design with one parameter one step away."""

    parameter: str
    value: bool | int | str
    other: bool | int | str
    latency_cycles: Cycles
    objective_ratio: float | None = Field(description="to the chosen design's; null: it could not be modelled")
    resource_share: Share
    binding: str = Field(description="the resource that is nearest to its limit, or farthest beyond it")
    feasible: bool
    same_design: bool
    failure: str = ""


class ImportanceInfo(Record):
    parameter: str
    share: float = Field(
        ge=0, le=1, description="of the variance of the objective's logarithm, beyond the parameters before it"
    )


class WhyInfo(Record):
    """Why the chosen design: all of it is modelled, as the search was."""

    evidence: Evidence
    objective: str
    sentences: tuple[str, ...]
    neighbours: tuple[NeighbourInfo, ...]
    left_out: int = Field(description="steps that were not modelled, of a space with very many parameters")
    importances: tuple[ImportanceInfo, ...]
    trials: int
    picture: str = Field(description="SVG")


class RungErrorInfo(Record):
    """What designs on record say of one rung of evidence against the next that measured them."""

    weaker: Evidence
    stronger: Evidence
    family: str = Field(description="platforms that share an operator library")
    this_model: bool = Field(description="of this model alone; else of all models")
    designs: int
    median_ratio: float = Field(description="stronger over weaker")
    typical: float = Field(description="half of the designs are off by no more than this share")
    worst: float
    believed: bool = Field(description="whether there are enough designs to correct a ranking by them")
    sentence: str


class BoundInfo(Record):
    """What no design of the search's space can be better than, under the limits that were given."""

    figure: str = Field(description="that of the first objective")
    value: float
    reached: float = Field(description="by the chosen design, as the search modelled it")
    gap_pct: float | None = Field(description="by how much more that is than the bound; null: the bound is 0")
    reason: str = Field(description="why no design is better")
    terms: dict[str, float] = Field(description="every bound that was worked out; the largest counts")


class EqualisationInfo(Record):
    """FIFOs that may cost time, beside those that cost none: one run of the design, simulated with both."""

    percent: int = Field(ge=0, le=100, description="of the way from the normal to the conservative equalisation")
    bits: int = Field(description="of the design's FIFOs")
    latency_cycles: Cycles
    normal_bits: int = Field(description="of FIFOs that cost no time")
    normal_latency_cycles: Cycles
    evidence: Evidence = "simulated"

    @property
    def sentence(self) -> str:
        own, normal = self.latency_cycles or 0, self.normal_latency_cycles or 0
        return (
            f"equalisation {self.percent} %: {self.bits:,} bits of FIFO and {own:,} cycles; FIFOs that cost no time "
            f"hold {self.normal_bits:,} bits and take {normal:,} cycles [{self.evidence}]"
        )


class ProfileUse(Record):
    """Where this search's measurements came from."""

    measured: int = Field(description="by tools, now")
    kept: int = Field(description="known from before")
    waited: int = Field(description="made by somebody else at the same time")
    seconds_saved: float
