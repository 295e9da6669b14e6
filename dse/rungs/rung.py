"""What a rung of evidence is: a function of an evaluator, one of its evaluations and a bench with the tools it may use.

Here, apart from the rungs themselves, so that every rung can be written without knowing the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.compiler.evidence import Evidence
from penstock.compiler.platforms import Resources
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs.history import FolderHistory, History
from penstock.dse.support.budgets import SIMULATIONS
from penstock.profiling.store import FolderProfiles, ProfileStore
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis.job import JobLimits


class Elsewhere(Protocol):
    """Another process, which works out what it is asked with an evaluator of its own."""

    def work_for(self, evaluator: Evaluator, /) -> None: ...
    def call(
        self, function: Callable[..., object], calls: Sequence[tuple[Any, ...]], /, *, first: bool = False
    ) -> range: ...
    def awaited(self, number: int, seconds: float, /) -> object: ...


@dataclass(frozen=True)
class Bench:
    """What a rung may use: tools that can be cancelled, kept profiles, a place for work, somebody who listens."""

    tools: ToolRunner = field(default_factory=ToolRunner)
    profiles: ProfileStore = field(default_factory=FolderProfiles)
    progress: Callable[[str], None] = lambda _: None
    work_root: Path | None = None
    line: Callable[[str], None] | None = None
    """Called with each line that a tool writes, and with how far the stage at work is."""
    history: History = field(default_factory=FolderHistory)
    """What rungs said of earlier designs."""
    results: Path | None = None
    """Keeps the reports and logs of HLS tools, a folder for each profile that they made."""
    limits: JobLimits = field(default_factory=JobLimits)
    """What one job of an HLS tool may use."""
    elsewhere: Elsewhere | None = None
    """Simulates or sizes a design while this process does so with another one."""
    fifo_simulations: int = SIMULATIONS
    """What sizing the FIFOs of a chosen design may take."""
    fifo_slack: float = 0.0
    """How much later a run may end, in percent, for fewer bits of FIFOs."""


@dataclass(frozen=True)
class RungTimes:
    """Cycles of one input, until its first output, and between two inputs."""

    latency: int
    initial_delay: int | None
    interval: int | None


@dataclass(frozen=True)
class Measured:
    """What one rung says of a design; what it does not measure is None."""

    evidence: Evidence
    latency: int
    initial_delay: int | None
    interval: int | None
    resources: Resources | None = None
    fmax_mhz: float | None = None
    profiles: tuple[str, ...] = ()
    """Keys of the kept profiles that these figures come from."""
    retimed: RungTimes | None = None
    """What the simulator says of the design with the II and depth that a tool's report gives each pipeline."""

    @property
    def times(self) -> RungTimes:
        """What designs are ranked by: csynth's own latency is known to be wrong on stream designs."""
        if self.evidence == "csynth" and self.retimed is not None:
            return self.retimed
        return RungTimes(self.latency, self.initial_delay, self.interval)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "profiles": list(self.profiles)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Measured:
        """Read what `to_json` wrote."""
        fields = dict(document)
        area = fields["resources"]
        fields["resources"] = None if area is None else Resources(**area)
        fields["profiles"] = tuple(fields["profiles"])
        retimed = fields["retimed"]
        fields["retimed"] = None if retimed is None else RungTimes(**retimed)
        return Measured(**fields)


Rung = Callable[[Evaluator, Evaluation, Bench], Measured]
