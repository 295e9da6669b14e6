"""What a setting comes to: its design, figures and costs, and how these meet the goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.compiler.design import Design
from penstock.compiler.evidence import Evidence
from penstock.dse.evaluation.energy import RunCost
from penstock.dse.evaluation.objectives import (
    BANDWIDTH,
    BANDWIDTH_SHARE,
    DEFAULT_GOAL,
    DIE_SHARE,
    FIFO_BITS,
    ROUTING,
    ROUTING_SHARE,
    STOPS,
    UNBOUNDED,
    Goal,
    shortage,
)
from penstock.dse.evaluation.routing import RoutingUse
from penstock.dse.space.tiling import Value
from penstock.profiling.model import DesignFigures


@dataclass(frozen=True)
class Equalised:
    """What FIFOs that may cost time hold, and when a run ends with them, beside FIFOs that cost none.

    All of it is simulated. Kernels that run one after the other are added up.
    """

    bits: int
    latency: int
    normal_bits: int
    normal_latency: int


@dataclass(frozen=True)
class Evaluation:
    """One point of the search: what a design costs, as far as the model says, and how that meets the goal."""

    params: Mapping[str, Value]
    design: Design
    figures: DesignFigures
    shares: Mapping[str, float]
    cost: RunCost
    goal: Goal = DEFAULT_GOAL
    fullest_die: float | None = None
    """The share that its fullest die takes, above 1 where tasks cannot be divided among the dies; None of one die."""
    routing: RoutingUse | None = None
    """What is nearest to the limits of routing; None where the platform has none."""
    evidence: Evidence = "modelled"
    sizing_note: str = ""
    """What sizing its FIFOs left undone, where its budget ended first."""
    for_one_note: str = ""
    """What its FIFOs would hold for the sake of inputs that follow, where they hold what one needs instead."""
    equalised: Equalised | None = None
    """What its equalisation came to, where its FIFOs were sized for another than the normal one."""
    assumed: bool = False
    """Nothing has shown yet that it runs through: FIFOs where paths meet are as deep as the model says."""
    timed: bool = True
    """False where its times are still those of FIFOs that are never full: it is no faster than this."""

    stops: str = ""
    """Where it stops for ever whatever is left to the tool, and why: it is no design to choose."""

    @cached_property
    def measures(self) -> dict[str, float]:
        """Every figure by its name, as objectives, limits and a trial's record speak of them."""
        return self.measures_at(self.figures.latency, self.figures.interval)

    def measures_at(self, latency: int, interval: int) -> dict[str, float]:
        """The same with times that a stronger rung found: energy and bandwidth go with them."""
        latency_us = latency / self.design.clock_mhz
        energy = self.cost.energy_uj(latency_us)
        busy = self.figures.memory_cycles
        return {
            "latency_cycles": float(latency),
            "latency_us": latency_us,
            "interval_cycles": float(interval),
            "interval_us": interval / self.design.clock_mhz,
            "resource_share": min(max(self.shares.values()), UNBOUNDED),
            "energy_uj": energy,
            "power_w": energy / latency_us,
            "traffic_bytes": float(self.cost.traffic_bytes),
            FIFO_BITS: float(sum(c.depth * c.bits for c in self.figures.channels if c.kind == "stream")),
            **({} if busy is None else {BANDWIDTH_SHARE: busy / interval}),
            **({} if self.fullest_die is None else {DIE_SHARE: min(self.fullest_die, UNBOUNDED)}),
            **({} if self.routing is None else {ROUTING_SHARE: self.routing.share}),
        } | {f"{name}_share": min(share, UNBOUNDED) for name, share in self.shares.items()}

    @property
    def values(self) -> tuple[float, ...]:
        """What the goal keeps small, the most important first."""
        return self.goal.values(self.measures)

    @property
    def constraints(self) -> dict[str, float]:
        """By how much each resource and each of the goal's limits is missed: feasible means none above 0."""
        return self.goal.constraints(self.measures) | ({STOPS: UNBOUNDED} if self.stops else {})

    @property
    def feasible(self) -> bool:
        return all(violation <= 0 for violation in self.constraints.values())

    @property
    def may_be_chosen(self) -> bool:
        """It keeps the limits, or misses the dies alone, which are then left to the tools."""
        return shortage(self.constraints)[1] <= 0

    @property
    def binding_resource(self) -> str:
        """What is nearest to its limit, or farthest beyond it: a resource, or what external memory sustains."""
        return max(self._taken, key=lambda name: self._taken[name])

    @property
    def _taken(self) -> dict[str, float]:
        """The share of what a design may use, by the platform and by the goal."""
        found = {name: 1.0 + self.constraints[name] for name in self.shares}
        busy = self.measures.get(BANDWIDTH_SHARE)
        return found if busy is None else {**found, BANDWIDTH: busy}

    @property
    def explanation(self) -> str:
        """Why this design is as fast and as large as it is, in one sentence or two."""
        slowest = next(t for t in self.figures.tasks if t.name == self.figures.bottleneck)
        text = (
            f"{slowest.name} sets the pace: {slowest.iterations} iterations, {slowest.ii_reason}. "
            f"{self.binding_resource} is at {self._taken[self.binding_resource]:.0%} of its limit."
        )
        if self.stops:
            text = f"{text} It stops for ever: {self.stops}."
        if self.routing is not None and ROUTING in self._exceeded():
            text = f"{text} It would not route: {self.routing.what}."
        return text if self.feasible else f"{text} Over the limit: {', '.join(self._exceeded())}."

    def _exceeded(self) -> list[str]:
        return [name for name, violation in self.constraints.items() if violation > 0]


def briefly(names: str) -> str:
    """The first of many channels at which a design stops."""
    first, *others = names.split(", ")
    return f"{first} and {len(others)} more channels wait for each other" if others else f"{first} waits"
