"""What a search is to keep small, and what it must keep within: objectives and limits by name.

Both speak of *figures*: the named numbers that every trial reports. Light to import, since the service checks what a
user asks for before any worker sees it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.platforms import RESOURCE_NAMES, Platform

Figures = Mapping[str, float]
Sense = Literal["<=", ">="]

MOST_OBJECTIVES, MOST_LIMITS = 3, 16
BANDWIDTH, BANDWIDTH_SHARE = "bandwidth", "bandwidth_share"
FIFO_BITS = "fifo_bits"
"""What all FIFOs together hold: deeper ones behind loads save time, and cost memory."""
STOPS = "deadlock"
"""The constraint that a design misses which stops for ever."""
DIES, DIE_SHARE = "dies", "die_share"
"""What says whether a design's tasks can be divided among the dies. Where no design can be, one that misses this alone
is left to the tools, which may divide tasks too.
"""
ROUTING, ROUTING_SHARE = "routing", "routing_share"
"""How near the largest pipeline and the widest token are to what still routes: compiler/platforms/routing.toml."""
UNBOUNDED = 1e6
"""What a device lacks altogether counts as this: records and studies hold finite numbers."""


@dataclass(frozen=True)
class Objective:
    """One thing to keep small: the figure that stands for it, and how a page draws it."""

    name: str
    figure: str
    unit: str
    meaning: str
    plotted: str
    axis: str
    reads_as: Literal["time", "share", "bytes", "number"] = "number"


OBJECTIVES: Mapping[str, Objective] = {
    o.name: o
    for o in (
        Objective("latency", "latency_cycles", "cycles", "time of one run", "latency_us", "latency", "time"),
        Objective(
            "throughput", "interval_cycles", "cycles", "time between two inputs of many in a row",
            "interval_us", "time between two inputs", "time",
        ),
        Objective(
            "resources", "resource_share", "", "the largest share of any resource's limit",
            "resource_share", "largest share of a resource's limit", "share",
        ),
        Objective(
            "energy", "energy_uj", "µJ", "energy of one run, by the model of dse/evaluation/energy.toml",
            "energy_uj", "energy of one run in µJ",
        ),
        Objective(
            "traffic", "traffic_bytes", "bytes", "what one run reads from and writes to external memory",
            "traffic_bytes", "external traffic of one run", "bytes",
        ),
        Objective(
            FIFO_BITS, FIFO_BITS, "bits", "what all FIFOs together hold, before they are sized by simulation",
            FIFO_BITS, "bits of FIFOs",
        ),
    )
}  # fmt: skip
DEFAULT_OBJECTIVES = ("latency", "resources")

LIMITED: Mapping[str, str] = {
    "latency_us": "latency_us", "latency_cycles": "latency_cycles", "interval_us": "interval_us",
    "interval_cycles": "interval_cycles", "energy_uj": "energy_uj", "power_w": "power_w",
    "traffic_bytes": "traffic_bytes", FIFO_BITS: FIFO_BITS, BANDWIDTH: BANDWIDTH_SHARE,
} | {name: f"{name}_share" for name in RESOURCE_NAMES}  # fmt: skip
"""What a user may limit, and the figure that it is about. Resources are given as a share or as a count."""

SHARED = (*RESOURCE_NAMES, BANDWIDTH)
"""What a platform has a budget of. Bandwidth is no part of `resource_share`: what a design takes of the chip stays
taken whatever its pace, while a design that goes as fast as memory lets it would always be at 100 % of that.
"""

_SHORT = {
    "latency": "latency_us", "interval": "interval_cycles", "throughput": "interval_cycles", "energy": "energy_uj",
    "power": "power_w", "traffic": "traffic_bytes", "bram": "bram18",
}  # fmt: skip
_LIMIT = re.compile(r"\s*([A-Za-z0-9_]+)\s*(<=|>=|=)\s*([^\s<>=]+)\s*")


@dataclass(frozen=True)
class Limit:
    """A hard bound on one figure, in the user's own words.

    Of a resource, up to 1 is a share, above it a count; of bandwidth, above it are 10^9 bytes a second.
    """

    name: str
    sense: Sense
    value: float
    share: float | None = None
    """Of a resource or of bandwidth, once the platform is known."""

    @property
    def text(self) -> str:
        return f"{self.name}{self.sense}{self.value:.12g}"

    @property
    def key(self) -> str:
        """What the constraint is called: upper bounds as what they bound."""
        return self.name if self.sense == "<=" else self.text

    @property
    def bound(self) -> float:
        return self.value if self.share is None else self.share

    def violation(self, figures: Figures) -> float:
        """By which part of the bound it is missed; not above 0 if it holds."""
        ratio = min(figures[LIMITED[self.name]] / self.bound, UNBOUNDED) if self.bound else UNBOUNDED
        return ratio - 1.0 if self.sense == "<=" else 1.0 - ratio

    def on(self, platform: Platform) -> Limit:
        """The same with an amount as a share of what the platform leaves to a design."""
        if self.name not in SHARED:
            return self
        limit = _sustained(platform, self.text) if self.name == BANDWIDTH else platform.limits.as_dict()[self.name]
        if self.value <= 1:
            return replace(self, share=self.value)
        return replace(self, share=self.value / limit if limit else math.inf)

    @staticmethod
    def parse(text: str, where: str = "limit") -> Limit:
        """`dsp=0.5`, `latency_us<=20`, `interval_cycles>=100`: a bare `=` means at most."""
        match = _LIMIT.fullmatch(text)
        value = _number(match[3]) if match else None
        if match is None or value is None or value <= 0:
            raise PenstockError(
                code="bad-limit", what=f"{text[:80]!r} is no limit", where=where,
                limit="NAME<=VALUE, NAME>=VALUE or NAME=VALUE, with a value above 0",
                hint="for example dsp<=0.5 or latency_us<=20",
            )  # fmt: skip
        name = _SHORT.get(match[1], match[1])
        if name not in LIMITED:
            raise _unknown("limit", match[1], (*LIMITED, *_SHORT), where, tuple(LIMITED))
        return Limit(name, ">=" if match[2] == ">=" else "<=", value)


@dataclass(frozen=True)
class Goal:
    """What is wanted: objectives in order of importance, and limits that a design must keep."""

    objectives: tuple[str, ...] = DEFAULT_OBJECTIVES
    limits: tuple[Limit, ...] = ()

    @staticmethod
    def of(objectives: Sequence[str] = (), limits: Iterable[str] = ()) -> Goal:
        """Checked names and texts; no objectives means the usual ones."""
        return Goal(check_objectives(tuple(objectives) or DEFAULT_OBJECTIVES), check_limits(tuple(limits)))

    def on(self, platform: Platform) -> Goal:
        """With counts of resources as shares; a bound beyond what the platform has is its own anyway."""
        resolved = replace(self, limits=tuple(limit.on(platform) for limit in self.limits))
        check_agree(resolved.limits)
        check_there_is(resolved.limits, platform)
        return resolved

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures to minimise, in order of importance."""
        return tuple(OBJECTIVES[name].figure for name in self.objectives)

    @property
    def needs(self) -> set[str]:
        """All figures that it speaks of."""
        resources = {f"{name}_share" for name in RESOURCE_NAMES}
        return {*self.figures, *resources, *(LIMITED[limit.name] for limit in self.limits)}

    @property
    def weighs_fifos(self) -> bool:
        """Whether FIFOs that hold less may be worth time."""
        return FIFO_BITS in self.figures or any(
            limit.name == FIFO_BITS and limit.sense == "<=" for limit in self.limits
        )

    @property
    def weighs_frames(self) -> bool:
        """Whether it matters how soon inputs follow each other."""
        return bool({"interval_us", "interval_cycles"} & (self.needs))

    @property
    def sizes_for_one(self) -> bool:
        """Whether FIFOs hold what one input needs, and nothing so that the next ones follow sooner: where their bits
        are asked for, and no pace of inputs."""
        return self.weighs_fifos and not self.weighs_frames

    @property
    def time_only_costs(self) -> bool:
        """The same design, but slower, is never better: nothing is asked to take its time."""
        return not any(
            LIMITED[limit.name] in ("power_w", BANDWIDTH_SHARE) or (limit.sense == ">=" and limit.name not in SHARED)
            for limit in self.limits
        )

    @property
    def asks_for_time(self) -> bool:
        """Whether time is what is to be small before all else."""
        return self.objectives[0] in ("latency", "throughput") and self.time_only_costs

    def values(self, figures: Figures) -> tuple[float, ...]:
        """What the search minimises, the most important first."""
        return tuple(float(figures[name]) for name in self.figures)

    def constraints(self, figures: Figures) -> dict[str, float]:
        """By how much each resource and each limit is missed; feasible means none above 0."""
        found = {name: min(figures[f"{name}_share"], UNBOUNDED) - 1.0 for name in RESOURCE_NAMES}
        if DIE_SHARE in figures:
            found[DIES] = min(figures[DIE_SHARE], UNBOUNDED) - 1.0
        if ROUTING_SHARE in figures:
            found[ROUTING] = min(figures[ROUTING_SHARE], UNBOUNDED) - 1.0
        for limit in self.limits:
            found[limit.key] = max(limit.violation(figures), found.get(limit.key, -math.inf))
        return found

    def feasible(self, figures: Figures) -> bool:
        return all(violation <= 0 for violation in self.constraints(figures).values())


DEFAULT_GOAL = Goal()


def check_objectives(names: Sequence[str]) -> tuple[str, ...]:
    """One to three known names, each once."""
    for name in names:
        if name not in OBJECTIVES:
            raise _unknown("objective", name, tuple(OBJECTIVES), "objectives", tuple(OBJECTIVES))
    if len(set(names)) != len(names) or not 1 <= len(names) <= MOST_OBJECTIVES:
        raise PenstockError(
            code="bad-objectives", what=f"the objectives are {', '.join(names) or 'none'}", where="objectives",
            limit=f"1 to {MOST_OBJECTIVES} different ones", hint="name each objective once, the most important first",
        )  # fmt: skip
    return tuple(names)


def check_limits(texts: Sequence[str], where: str = "limits") -> tuple[Limit, ...]:
    """Limits that can be read and that do not contradict each other whatever the model is."""
    if len(texts) > MOST_LIMITS:
        raise PenstockError(
            code="bad-limit", what=f"{len(texts)} limits are given", where=where, limit=f"at most {MOST_LIMITS}",
            hint="give the ones that bind",
        )  # fmt: skip
    limits = tuple(Limit.parse(text, where) for text in texts)
    check_agree(limits, where)
    return limits


def check_agree(limits: Sequence[Limit], where: str = "limits") -> None:
    """Upper and lower bounds on one figure must leave room between them. A count and a share are compared later."""
    for low in (limit for limit in limits if limit.sense == ">="):
        for high in (limit for limit in limits if limit.sense == "<=" and limit.name == low.name):
            comparable = low.share is not None or (low.value > 1) == (high.value > 1)
            if low.bound > high.bound and (comparable or low.name not in SHARED):
                raise contradiction(low.text, high.text, "no value is both", where)


def check_there_is(limits: Sequence[Limit], platform: Platform) -> None:
    """At least so much of something can only be asked for where there is as much."""
    for limit in limits:
        if limit.sense == ">=" and limit.share is not None and limit.share > 1:
            raise contradiction(limit.text, has(platform, limit.name), "no design may use more", hint=LARGER)


def has(platform: Platform, name: str) -> str:
    """What a platform leaves to a design, in words."""
    memory = platform.fastest_memory
    if name == BANDWIDTH and memory is not None:
        return f"the {memory.sustained_gb_s:,.4g} GB/s that {memory.name} of {platform.name} sustains"
    return f"the {platform.limits.as_dict()[name]:,} {name} of {platform.name}"


RELAX, LARGER = "relax one of the two", "relax the limit, or take a larger platform"


def contradiction(first: str, second: str, why: str, where: str = "limits", hint: str = RELAX) -> PenstockError:
    """Two demands that no design can meet together."""
    return PenstockError(
        code="contradictory-limits", what=f"{first} and {second} cannot both be met", where=where, limit=why, hint=hint,
    )  # fmt: skip


def shortage(constraints: Mapping[str, float]) -> tuple[str, float]:
    """What is missed by the largest part of its bound, and by how much. Dies do not count: tools may divide tasks."""
    others = [item for item in constraints.items() if item[0] != DIES]
    return max(others, key=lambda item: item[1], default=("", 0.0))


def describe_miss(name: str, excess: float) -> str:
    """How far a design is from a constraint, in words."""
    if ">=" in name:
        return f"the nearest miss reaches {max(0.0, 1 - excess):.2f} times what {name} asks for"
    if name == STOPS:
        return "the nearest miss stops for ever: its tasks wait for each other"
    times = f"{1 + excess:,.2f}" if excess < 1000 else f"{1 + excess:,.0f}"
    if name == ROUTING:
        return f"the nearest miss has a pipeline or a token {times} times as large as can be routed"
    if name in SHARED:
        return f"the nearest miss needs {times} times the {name} that may be used"
    return f"the nearest miss has {times} times the {name} that is allowed"


def after_miss(name: str) -> str:
    """What somebody can do about it."""
    if ">=" in name:
        return "ask for less, or allow more trials"
    if name == STOPS:
        return "allow more trials or deeper FIFOs, or leave stripes, prefetch and depths to the tool"
    if name == BANDWIDTH:
        return "relax the limit, allow fewer lanes so that the design goes slower, or allow more trials"
    if name == ROUTING:
        return "allow fewer lanes, so that no pipeline and no token is as large, or quantise"
    if name in RESOURCE_NAMES:
        return "take a larger platform, relax the limit, quantise, stream the weights, or allow more trials"
    return "relax this limit or one on resources, take a larger platform, quantise, or allow more trials"


def _sustained(platform: Platform, text: str) -> float:
    """Of the memory that serves all ports, in 10^9 bytes a second."""
    memory = platform.fastest_memory
    if memory is None:
        raise PenstockError(
            code="bad-limit", what=f"{text} limits the bandwidth of external memory", where="limits",
            limit=f"{platform.name} has none: the host's link delivers, and is not modelled",
            hint="drop this limit, or take a platform with memory of its own",
        )  # fmt: skip
    return memory.sustained_gb_s


def _unknown(kind: str, name: str, candidates: Sequence[str], where: str, known: Sequence[str]) -> PenstockError:
    return PenstockError(
        code=f"unknown-{kind}", what=f"there is no {kind} {name[:60]!r}", where=where,
        limit="known are " + ", ".join(known), hint=nearest(name, candidates, "take one of these", 0.5),
    )  # fmt: skip


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
