"""What the user asked of a run, typed, with the defaults of the public API."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compiler.platforms import load_platform
from penstock.db.schema.records import Json
from penstock.dse.evaluation.objectives import DEFAULT_OBJECTIVES, Goal
from penstock.profiling.evidence import DEFAULT_RUNG, Evidence


@dataclass(frozen=True)
class StepOptions:
    platform: str
    trials: int
    quantize: str | None
    seed: int
    objectives: tuple[str, ...]
    sampler: str
    clock_mhz: float | None
    evidence: Evidence
    max_lanes: int | None = None
    limits: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    warm_start: bool = True

    @property
    def goal(self) -> Goal:
        """What the search keeps small, and what it must keep within."""
        return Goal.of(self.objectives, self.limits).on(load_platform(self.platform))

    @staticmethod
    def read(options: Json) -> StepOptions:
        clock = options.get("clock_mhz")
        return StepOptions(
            platform=str(options.get("platform") or "u55c"),
            trials=int(options.get("trials") or 24),
            quantize=options.get("quantize"),
            seed=int(options.get("seed") or 0),
            objectives=tuple(options.get("objectives") or DEFAULT_OBJECTIVES),
            sampler=str(options.get("sampler") or "local"),
            clock_mhz=float(clock) if clock else None,
            evidence=options.get("evidence") or DEFAULT_RUNG,
            max_lanes=int(options["max_lanes"]) if options.get("max_lanes") else None,
            limits=tuple(options.get("limits") or ()),
            fixed=tuple(options.get("fix") or ()),
            warm_start=options.get("warm_start") is not False,
        )
