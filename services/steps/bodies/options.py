"""What the user asked of a run, typed, with the defaults of the public API."""

from __future__ import annotations

from dataclasses import dataclass

from db.records import Json
from profiling.evidence import DEFAULT_RUNG, Evidence


@dataclass(frozen=True)
class RunOptions:
    platform: str
    trials: int
    quantize: str | None
    seed: int
    objectives: tuple[str, ...]
    sampler: str
    clock_mhz: float | None
    evidence: Evidence
    max_lanes: int | None = None

    @property
    def smallest(self) -> bool:
        """Whether the smallest design is wanted rather than the fastest."""
        return self.objectives[0] == "resources"

    @staticmethod
    def read(options: Json) -> RunOptions:
        clock = options.get("clock_mhz")
        return RunOptions(
            platform=str(options.get("platform") or "u55c"),
            trials=int(options.get("trials") or 24),
            quantize=options.get("quantize"),
            seed=int(options.get("seed") or 0),
            objectives=tuple(options.get("objectives") or ("latency", "resources")),
            sampler=str(options.get("sampler") or "tpe"),
            clock_mhz=float(clock) if clock else None,
            evidence=options.get("evidence") or DEFAULT_RUNG,
            max_lanes=int(options["max_lanes"]) if options.get("max_lanes") else None,
        )
