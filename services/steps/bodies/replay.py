"""Replay: evaluates a trial of an earlier run again, from its record alone, and says whether anything differs.

Equal code and tables give equal figures, to the last bit. Where they differ, what has changed since is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.program import Program
from penstock.db.schema.records import Trial
from penstock.services.run_options import RunOptions
from penstock.services.run_summary import Difference, Replayed, RunSummary
from penstock.services.step_kinds import EXPLORE, REPLAY
from penstock.services.steps.bodies.search import PREPARED, make_evaluator
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import StepResult
from penstock.services.steps.version import changed_since

_MOST_SHOWN = 24


@step_kind(REPLAY)
def replay(context: StepContext) -> StepResult:
    run_id, number = str(context.payload["run"]), int(context.payload["number"])
    trial, prepared = _record(context, run_id, number)
    folder = context.store.extract_tree(prepared, context.folder / "prepared")
    evaluator = make_evaluator(Program.load(folder, make_context()), RunOptions.stored(context.options))
    context.check()
    evaluation = evaluator.assume(trial.params)
    differing = compare(trial.figures, evaluation.measures)
    design = evaluation.design.digest()
    recorded = Design.from_json(dict(trial.design)).digest() if trial.design else ""
    if design != recorded:
        differing.append({"figure": "design", "then": recorded[:12], "now": design[:12]})
    found = Replayed(
        run=run_id, trial=number, equal=not differing,
        differs=[Difference.model_validate(one) for one in differing[:_MOST_SHOWN]],
        changed=list(changed_since(trial.version)), evidence=evaluation.evidence,
    )  # fmt: skip
    return StepResult(found.model_dump(mode="json"), run_summary=RunSummary(replay=found))


def compare(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every figure that is not exactly what it was; one that was not recorded then is no difference."""
    return [{"figure": name, "then": then[name], "now": now.get(name)} for name in then if then[name] != now.get(name)]


def _record(context: StepContext, run_id: str, number: int) -> tuple[Trial, str]:
    """The trial, and the content of its run's prepared program."""
    with context.database.begin() as tx:
        trial = tx.trials.by_number(run_id, number)
        explored = tx.steps.by_key(run_id, EXPLORE)
        prepared = tx.artifacts.by_name(explored.id, PREPARED) if explored else None
    if trial is None or prepared is None:
        raise PenstockError(
            code="unknown-trial", what=f"there is no record of trial {number} of {run_id}", where="replay",
            hint="the run was removed meanwhile",
        )  # fmt: skip
    return trial, prepared.sha256
