"""What if: models and simulates a design of another run as it is and with changes, and says what differs."""

from __future__ import annotations

import json
import time

from penstock.compiler.design import Design
from penstock.services.jobs.changes import as_it_is, changed, read_changes
from penstock.services.jobs.what_if import look_at
from penstock.services.run_summary import RunSummary, WhatIf
from penstock.services.step_kinds import WHAT_IF
from penstock.services.steps.bodies.chosen import DESIGN
from penstock.services.steps.bodies.search import evaluator_of_content
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult


@step_kind(WHAT_IF)
def what_if(context: StepContext) -> StepResult:
    began = time.perf_counter()
    asked = context.payload
    evaluator = evaluator_of_content(context, str(asked["program"]))
    before = Design.from_json(json.loads(context.store.read_bytes(str(asked["design"]))))
    changes = read_changes(asked["changes"])
    design = changed(before, changes)
    context.check()
    found = WhatIf(
        run=str(asked["run"]),
        changes=changes.model_dump(mode="json", exclude_none=True),
        before=look_at(evaluator, as_it_is(before)),
        after=look_at(evaluator, design),
        seconds=0.0,
    )
    found = found.model_copy(update={"seconds": round(time.perf_counter() - began, 3)})
    content = json.dumps(design.to_json(), indent=1, sort_keys=True).encode()
    outputs = {} if found.after.refused else {DESIGN: Output(content, "application/json")}
    return StepResult({"seconds": found.seconds}, outputs, run_summary=RunSummary(what_if=found))
