"""Package: the report, and one archive with everything that a user takes home."""

from __future__ import annotations

from typing import Any

from penstock.compiler.evidence import Evidence
from penstock.compiler.package import collect_package, write_archive
from penstock.compiler.package.report import BitstreamInfo, ExplorationReport, SynthesisInfo
from penstock.compiler.package.report_timing import ListTiming
from penstock.db.schema.states import StepState
from penstock.services.bitstreams import NO_BITSTREAM, bitstream_target
from penstock.services.jobs.board import BoardBuild, build_for_board
from penstock.services.jobs.check import Checked
from penstock.services.jobs.link import failed_link
from penstock.services.jobs.package import make_report
from penstock.services.jobs.scheduled import Scheduled
from penstock.services.run_summary import LayersByOneStart, RunSummary
from penstock.services.step_kinds import KERNEL, LINK, PACKAGE, SELECT, VERIFY
from penstock.services.steps.bodies.candidates import failure_of
from penstock.services.steps.bodies.chosen import SYNTHESIS
from penstock.services.steps.bodies.kernel import package_kernel
from penstock.services.steps.bodies.link import BITSTREAM, INFO
from penstock.services.steps.bodies.select import EXPLORATION
from penstock.services.steps.bodies.verify import CHECKED, EMITTED, scheduled_design
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult


def _board(context: StepContext, scheduled: Scheduled, evidence: Evidence) -> BoardBuild | None:
    """What the link step made or why it failed; on boards of the open route the bitstream is built here."""
    target = bitstream_target(context.options)
    step = context.step_named(LINK)
    if step is None:
        if context.options.get("bitstream") == NO_BITSTREAM:
            return None
        return build_for_board(scheduled, evidence, context.tools, lambda text: context.progress(None, text))
    if step.state != StepState.SUCCEEDED:
        clock_mhz = scheduled.lowered.design.clock_mhz
        return failed_link(scheduled.platform, clock_mhz, target, failure_of(step))
    info = BitstreamInfo.model_validate_json(context.input_file(LINK, INFO).read_bytes())
    if info.path is None:
        return BoardBuild(info, {})
    folder = context.input_tree(LINK, BITSTREAM)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return BoardBuild(info, files)


def _text_of_choice(context: StepContext, name: str) -> bytes | None:
    """What the choice left, where it did: of a given design there is no search, and tools do not measure each."""
    step = context.step_named(SELECT)
    with context.database.begin() as tx:
        found = tx.artifacts.by_name(step.id, name) if step else None
    return None if found is None else context.store.read_bytes(found.sha256)


def layers_by_one_start(whole: ListTiming) -> LayersByOneStart:
    """What the report says of all layers, for the run's page."""
    return LayersByOneStart(
        layers=whole.layers, latency_cycles=whole.latency_cycles, latency_us=whole.latency_us, evidence=whole.evidence
    )


@step_kind(PACKAGE)
def package(context: StepContext) -> StepResult:
    if context.model.kind == KERNEL:
        return package_kernel(context)
    scheduled = scheduled_design(context)
    program, design = scheduled.lowered.program, scheduled.lowered.design
    searched = _text_of_choice(context, EXPLORATION)
    exploration = None if searched is None else ExplorationReport.model_validate_json(searched)
    checked = Checked.load(context.input_tree(VERIFY, CHECKED))
    chosen = context.result_of(SELECT)
    evidence: Evidence = chosen["evidence"]
    measured = _text_of_choice(context, SYNTHESIS)
    synthesis = None if measured is None else SynthesisInfo.model_validate_json(measured)
    board = _board(context, scheduled, evidence)
    context.check()
    report = make_report(scheduled, checked, exploration, evidence, board, synthesis, chosen.get("fallback", ""))
    emitted = context.input_tree(VERIFY, EMITTED)
    contents = collect_package(program, design, emitted, report, checked.expected, board.files if board else None)
    archive = write_archive(contents, context.folder / "package")
    facts: dict[str, Any] = {"package": archive.name, "digest": contents.digest}
    if board is not None:
        facts["bitstream"] = board.info.path or f"none: {board.info.failure}"
    if report.accuracy is not None:
        facts["float_accuracy"] = report.accuracy.float_accuracy
        facts["accelerator_accuracy"] = report.accuracy.accelerator_accuracy
    if (whole := report.timing.all_layers) is not None:
        facts["all_layers"] = layers_by_one_start(whole)
    summary = RunSummary(**facts)
    return StepResult(
        data=summary.written(),
        outputs={
            archive.name: Output(archive, "application/zip"),
            "report.json": Output(contents.files["report.json"], "application/json"),
            "report.html": Output(contents.files["report.html"], "text/html; charset=utf-8"),
        },
        run_summary=summary,
    )
