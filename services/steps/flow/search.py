"""An exploration as a section of the report: what was tried, the front, the chosen one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compiler.backend.host.report import Evidence, Exploration, TrialInfo
from compiler.design import Design
from compiler.platforms import Platform
from compiler.program import Program
from dse.evaluate import Evaluator
from dse.explore import Candidate, Tried, explore, pareto_front
from dse.study import Told
from dse.tiling import Value


@dataclass(frozen=True)
class SearchSettings:
    """How the search was made, so that it can be made again."""

    sampler: str = "tpe"
    seed: int = 0


def search_section(
    trials: Sequence[Told] | Sequence[Tried], chosen: int, settings: SearchSettings, evidence: Evidence
) -> Exploration:
    """`trials` are a study's own, or those of a search in this process; running ones are left out."""
    rows = [_row(t) for t in trials]
    front = set(map(id, pareto_front([r for r in rows if r.state == "complete"])))
    infos = tuple(
        TrialInfo(
            number=row.number,
            state=row.label,
            latency_cycles=round(row.values[0]) if row.values else None,
            resource_share=row.values[1] if row.values else None,
            params=dict(row.params),
            evidence=evidence if row.values else None,
            on_front=id(row) in front,
            chosen=row.number == chosen,
        )
        for row in rows
        if row.label != "running"
    )
    states = [info.state for info in infos]
    return Exploration(
        trials=infos,
        complete=states.count("complete"),
        infeasible=states.count("infeasible"),
        failed=states.count("failed"),
        sampler=settings.sampler,
        seed=settings.seed,
    )


@dataclass(frozen=True)
class _Row:
    """One trial, wherever it comes from."""

    number: int
    state: str
    params: Mapping[str, Value]
    values: tuple[float, ...] | None
    constraints: dict[str, float]

    @property
    def feasible(self) -> bool:
        return self.values is not None and all(v <= 0 for v in self.constraints.values())

    @property
    def label(self) -> str:
        if self.state == "complete":
            return "complete" if self.feasible else "infeasible"
        return "failed" if self.state == "fail" else "running"


def _row(trial: Told | Tried) -> _Row:
    if isinstance(trial, Told):
        return _Row(trial.number, trial.state, trial.params, trial.values, trial.constraints)
    evaluation: Candidate = trial.evaluation
    values = tuple(evaluation.values) if evaluation.values else None
    return _Row(trial.number, "complete", trial.evaluation.params, values, evaluation.constraints)


def find_design(
    program: Program,
    platform: Platform,
    clock_mhz: float,
    quantize: str | None,
    trials: int,
    settings: SearchSettings,
    progress: Callable[[int], None],
) -> tuple[Design, Exploration]:
    """Search in this process. `program` is prepared; the best feasible design comes back with all trials."""
    evaluator = Evaluator.create(program, platform.name, clock_mhz=clock_mhz, quantize=quantize)

    def tried(trial: Tried, _: int) -> None:
        progress(trial.number + 1)

    found = explore(evaluator, trials, seed=settings.seed, sampler=settings.sampler, progress=tried)
    section = search_section(found.tried, found.best.number, settings, found.best.evaluation.evidence)
    return found.best.evaluation.design, section
