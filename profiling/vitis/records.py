"""What the tools' reports say, as frozen records. A figure that a report does not give is None, and a note says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from penstock.compiler.evidence import Evidence


@dataclass(frozen=True)
class CountSpan:
    """A count that depends on data: the least and the most. Both are equal where it does not.

    An end that a report does not know is None; at least one of them is known.
    """

    low: int | None
    high: int | None

    @property
    def exact(self) -> int | None:
        return self.low if self.low == self.high else None

    @property
    def words(self) -> str:
        """For people: "37", "17 to 1,929", "at most 37", "at least 1"."""
        if self.low is not None and self.high is not None:
            return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"
        return f"at most {self.high:,}" if self.high is not None else f"at least {self.low:,}"


PipelineStyle = Literal["stp", "flp", "frp"]
"""stp stops whole, flp flushes what is behind the wait, frp flushes freely."""
_STYLES: Mapping[str, PipelineStyle] = {"stp": "stp", "flp": "flp", "flushable": "flp", "frp": "frp"}
_STYLE = re.compile(r"\b(stp|flp|frp|flushable)\b", re.I)
_Planned = TypeVar("_Planned", bound="bool | None")


@dataclass(frozen=True)
class ReportedUsage:
    """Resources as a report counts them; block RAMs always in units of 18 kbit."""

    lut: int | None = None
    ff: int | None = None
    dsp: int | None = None
    bram18: int | None = None
    uram: int | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name, count in vars(self).items() if count is None)


@dataclass(frozen=True)
class ReportedLoop:
    """One loop. `parents` are the loops around it in its module, outermost first; flattened loops are one."""

    name: str
    module: str
    parents: tuple[str, ...]
    trip: CountSpan | None
    latency: CountSpan | None
    ii: CountSpan | None
    target_ii: int | None
    depth: CountSpan | None
    """Stages of the pipeline; for a loop that is not pipelined what the report calls its depth."""
    iteration_latency: CountSpan | None
    pipelined: bool | None
    kind: str | None
    """What the report says of its pipeline: "yes", "no", "dataflow", "loop rewind ..."."""

    @property
    def style(self) -> PipelineStyle | None:
        """How its pipeline waits, where the report says it."""
        found = _STYLE.search(self.kind or "")
        return None if found is None else _STYLES[found.group(1).lower()]

    def flushes(self, planned: _Planned) -> bool | _Planned:
        """Whether what has entered its pipeline goes on while the next iteration waits: as the report says, or else as
        was planned."""
        return planned if self.style is None else self.style != "stp"


@dataclass(frozen=True)
class Module:
    name: str
    clock_estimated_ns: float | None
    latency: CountSpan | None
    interval: CountSpan | None
    kind: str | None
    used: ReportedUsage
    available: ReportedUsage
    depth: CountSpan | None = None
    """Stages, where the whole function is one pipeline."""


@dataclass(frozen=True)
class Instance:
    """A module's use in another."""

    name: str
    module: str
    parent: str
    latency: CountSpan | None
    interval: CountSpan | None
    used: ReportedUsage


@dataclass(frozen=True)
class ReportedFifo:
    name: str
    module: str | None
    depth: int | None
    bits: int | None
    implementation: str | None
    used: ReportedUsage


@dataclass(frozen=True)
class ReportedMemory:
    """A buffer. `kind` is the module that holds it, or the kind of storage it was bound to.

    `copies` are the blocks of a ping-pong buffer; `used` counts all of them.
    """

    name: str
    module: str | None
    kind: str | None
    words: int | None
    bits: int | None
    banks: int | None
    copies: int | None
    used: ReportedUsage


@dataclass(frozen=True)
class BoundOperation:
    """An operation and the core it was bound to. Sharing operations name the same core."""

    name: str
    module: str | None
    operation: str
    implementation: str | None
    latency: int | None
    loop: str | None
    source: str | None
    used: ReportedUsage


@dataclass(frozen=True)
class SynthesisReport:
    """What high-level synthesis says of a design, from csynth.xml, a module's report or the summary report.

    `used` and `available` are of the top. Latency counts cycles from start to done; the interval from start to the
    next start.
    """

    source: str
    top: str | None
    version: str | None
    part: str | None
    family: str | None
    flow: str | None
    clock_target_ns: float | None
    clock_uncertainty_ns: float | None
    clock_estimated_ns: float | None
    kind: str | None
    latency: CountSpan | None
    latency_average: int | None
    interval: CountSpan | None
    used: ReportedUsage
    available: ReportedUsage
    loops: tuple[ReportedLoop, ...]
    modules: tuple[Module, ...]
    instances: tuple[Instance, ...]
    fifos: tuple[ReportedFifo, ...]
    memories: tuple[ReportedMemory, ...]
    operators: tuple[BoundOperation, ...]
    notes: tuple[str, ...]
    evidence: Evidence = "csynth"
    depth: CountSpan | None = None
    """Stages, where the whole top is one pipeline."""

    @property
    def fmax_mhz(self) -> float | None:
        return None if not self.clock_estimated_ns else 1e3 / self.clock_estimated_ns

    def module(self, name: str) -> Module | None:
        return next((module for module in self.modules if module.name == name), None)


Verdict = Literal["pass", "fail", "not-run"]


@dataclass(frozen=True)
class CosimReport:
    """What co-simulation says: the verdict and the measured cycles of all transactions.

    "not-run" is the report that the tool writes before it simulates: it says Fail, names no figures and no simulator.
    """

    source: str
    language: str | None
    verdict: Verdict
    simulator: str | None
    latency_min: int | None
    latency_average: int | None
    latency_max: int | None
    interval_min: int | None
    interval_average: int | None
    interval_max: int | None
    total_cycles: int | None
    notes: tuple[str, ...]
    evidence: Evidence = "cosim"


@dataclass(frozen=True)
class PlacedResources:
    """Resources of one part of an implemented design."""

    name: str
    parent: str | None
    used: ReportedUsage


@dataclass(frozen=True)
class ImplementedReport:
    """What Vivado says of area. Only what is routed is evidence; an earlier state has none of its own and is noted.

    `available` is the device's, or the user's share of it where a platform's shell takes the rest.
    """

    source: str
    state: str | None
    part: str | None
    version: str | None
    used: ReportedUsage
    available: ReportedUsage
    parts: tuple[PlacedResources, ...]
    notes: tuple[str, ...]
    evidence: Evidence | None


@dataclass(frozen=True)
class ClockTiming:
    """One clock: its period and the worst slack of the paths inside its domain."""

    name: str
    period_ns: float | None
    worst_slack_ns: float | None

    @property
    def fmax_mhz(self) -> float | None:
        if self.period_ns is None or self.worst_slack_ns is None or self.period_ns - self.worst_slack_ns <= 0:
            return None
        return 1e3 / (self.period_ns - self.worst_slack_ns)


@dataclass(frozen=True)
class TimingReport:
    """What timing analysis says of a placed or routed design; of one that is only synthesised it is no evidence."""

    source: str
    part: str | None
    version: str | None
    worst_slack_ns: float | None
    failing_endpoints: int | None
    worst_hold_slack_ns: float | None
    met: bool | None
    clocks: tuple[ClockTiming, ...]
    notes: tuple[str, ...]
    evidence: Evidence | None = "implemented"
