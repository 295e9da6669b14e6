"""Step bodies that compute nothing, so that what a step costs is what the service takes for it.

A worker loads them through PENSTOCK_STEP_MODULES. Runs whose name begins with `waiting` import slowly, as real ones
do: they are for what happens while workers have enough to do. Those of `slow` take a moment for each trial, so that
what ends a worker meets one.
"""

from __future__ import annotations

import random
import time

from benchmarks.service_load import SLOW, WAITING
from penstock.db.schema.records import TrialSummary
from penstock.dse.evaluation.objectives import OBJECTIVES
from penstock.services.step_kinds import EXPLORE, IMPORT, PACKAGE, SELECT, TRIAL, VERIFY
from penstock.services.steps.context import StepContext
from penstock.services.steps.graph import trial_steps
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import StepResult

IMPORT_SECONDS, TRIAL_SECONDS = 2.0, 0.1
_FIGURES = sorted({name for one in OBJECTIVES.values() for name in (one.figure, one.plotted)})
_PARAMS = ("unroll", "fuse", "banks", "tile_a", "tile_b", "tile_c", "depth", "dies")


@step_kind(IMPORT)
def import_model(context: StepContext) -> StepResult:
    _take(context, WAITING, IMPORT_SECONDS)
    return StepResult()


def _take(context: StepContext, prefix: str, seconds: float) -> None:
    end = time.monotonic() + (seconds if context.run.name.startswith(prefix) else 0.0)
    while time.monotonic() < end:
        context.check()
        time.sleep(0.02)


@step_kind(EXPLORE)
def explore(context: StepContext) -> StepResult:
    return StepResult(new_steps=trial_steps(int(context.options["trials"]), context.options))


@step_kind(TRIAL)
def trial(context: StepContext) -> StepResult:
    """As many figures and parameters as a real one has: pages read them."""
    _take(context, SLOW, TRIAL_SECONDS)
    number = int(context.payload["number"])
    chance = random.Random(number)
    figures = {name: chance.uniform(1.0, 1e6) for name in _FIGURES}
    params = {name: chance.randrange(64) for name in _PARAMS}
    return StepResult(trial=TrialSummary(number, "complete", params, figures, "modelled", None, 0.0))


@step_kind(SELECT)
def select(context: StepContext) -> StepResult:
    return StepResult()


@step_kind(VERIFY)
def verify(context: StepContext) -> StepResult:
    return StepResult()


@step_kind(PACKAGE)
def package(context: StepContext) -> StepResult:
    return StepResult()
