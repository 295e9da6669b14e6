"""Verify: lowers the chosen design, emits its C++, and runs every level of it against the others."""

from __future__ import annotations

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline.emit import emit
from penstock.db.schema.records import Json
from penstock.services.jobs.check import check_design
from penstock.services.jobs.check_rtl import core_of_design
from penstock.services.jobs.package import refuse_too_large
from penstock.services.jobs.scheduled import Scheduled
from penstock.services.run_options import RunOptions
from penstock.services.step_kinds import EXPLORE, SELECT, VERIFY
from penstock.services.steps.bodies.chosen import DESIGN
from penstock.services.steps.bodies.search import PREPARED, prepared_program
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult
from penstock.services.store import TREE_MEDIA_TYPE

CHECKED, EMITTED = "checked", "emitted"
_kept: dict[tuple[str, str], Scheduled] = {}


def _reuse_key(context: StepContext) -> Json:
    return {
        "evidence": RunOptions.stored(context.options).evidence,
        "design": context.artifact(SELECT, DESIGN).sha256,
        "program": context.artifact(EXPLORE, PREPARED).sha256,
    }


def read_design(context: StepContext) -> Design:
    return Design.load(context.input_file(SELECT, DESIGN))


def scheduled_design(context: StepContext, *, keep: bool = False) -> Scheduled:
    """The chosen design, lowered: by the step before, where the same process did that and was to `keep` it.

    Printed modules in the store would take longer to read than the design takes to lower.
    """
    key = (context.artifact(EXPLORE, PREPARED).sha256, context.artifact(SELECT, DESIGN).sha256)
    found = _kept.get(key) or Scheduled.of(prepared_program(context), read_design(context))
    _kept.clear()
    if keep:
        _kept[key] = found
    return found


@step_kind(VERIFY, reuse_key=_reuse_key)
def verify(context: StepContext) -> StepResult:
    context.progress(None, "lowering")
    scheduled = scheduled_design(context, keep=True)
    lowered, platform = scheduled.lowered, scheduled.platform
    program, design = lowered.program, lowered.design
    refuse_too_large(scheduled.built, platform, program.name)
    context.progress(None, "emitting C++")
    emitted = context.folder / "emitted"
    emit(lowered, emitted, part=platform.part, clock_mhz=design.clock_mhz)
    core = core_of_design(scheduled, RunOptions.stored(context.options).evidence, emitted)
    checked = check_design(lowered, emitted, context.tools, lambda text: context.progress(None, text), core)
    context.check()
    if not checked.passed:
        raise PenstockError(
            code="verification-failed", what="the levels of the design do not compute the same numbers",
            where=program.name, limit=checked.differences(),
            hint="this is a bug in Penstock; please report it with the model and the design",
        )  # fmt: skip
    folder = context.folder / "checked"
    checked.save(folder)
    return StepResult(
        data=checked.verify.model_dump(mode="json"),
        outputs={EMITTED: Output(emitted, TREE_MEDIA_TYPE), CHECKED: Output(folder, TREE_MEDIA_TYPE)},
    )
