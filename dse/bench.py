"""What a rung of evidence is: a function of an evaluator, one of its evaluations and a bench with the tools it may use.

Here, apart from the rungs themselves, so that every rung can be written without knowing the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from compiler.platforms import Resources
from dse.evaluate import Evaluation, Evaluator
from profiling.evidence import Evidence
from profiling.store import FolderProfiles, ProfileStore
from profiling.tool_runner import ToolRunner
from profiling.vitis.job import Limits


@dataclass(frozen=True)
class Bench:
    """What a rung may use: tools that can be cancelled, kept profiles, a place for work, somebody who listens."""

    tools: ToolRunner = field(default_factory=ToolRunner)
    profiles: ProfileStore = field(default_factory=FolderProfiles)
    progress: Callable[[str], None] = lambda _: None
    work_root: Path | None = None
    line: Callable[[str], None] | None = None
    """Called with each line that a tool writes."""
    limits: Limits = field(default_factory=Limits)
    """What one job of an HLS tool may use."""


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

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "profiles": list(self.profiles)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Measured:
        """Read what `to_json` wrote."""
        fields = dict(document)
        area = fields["resources"]
        fields["resources"] = None if area is None else Resources(**area)
        fields["profiles"] = tuple(fields["profiles"])
        return Measured(**fields)


Rung = Callable[[Evaluator, Evaluation, Bench], Measured]
