"""Package: the report, and one archive with everything that a user takes home."""

from __future__ import annotations

from compiler.backend.host import collect_package, write_archive
from compiler.backend.host.report import Exploration
from compiler.pipeline import lower
from compiler.platforms import load_platform
from services.steps.bodies.options import RunOptions
from services.steps.bodies.search import prepared_program
from services.steps.bodies.select import EXPLORATION
from services.steps.bodies.verify import CHECKED, EMITTED, read_design
from services.steps.context import StepContext
from services.steps.flow.board import build_for_board
from services.steps.flow.check import Checked
from services.steps.flow.package import make_report
from services.steps.registry import step_kind
from services.steps.result import Output, StepResult


@step_kind("package")
def package(context: StepContext) -> StepResult:
    program, design = prepared_program(context), read_design(context)
    platform = load_platform(design.platform)
    exploration = Exploration.model_validate_json(context.input_file("select", EXPLORATION).read_bytes())
    checked = Checked.load(context.input_tree("verify", CHECKED))
    lowered = lower(program, design)
    evidence = RunOptions.read(context.options).evidence
    board = build_for_board(lowered, platform, evidence, context.tools, lambda text: context.progress(None, text))
    context.check()
    report = make_report(lowered, platform, checked, exploration, evidence, board)
    emitted = context.input_tree("verify", EMITTED)
    contents = collect_package(program, design, emitted, report, checked.expected, board.files if board else None)
    archive = write_archive(contents, context.folder / "package")
    facts = {"package": archive.name, "digest": contents.digest}
    if report.accuracy is not None:
        facts |= {
            "float_accuracy": report.accuracy.float_accuracy,
            "accelerator_accuracy": report.accuracy.accelerator_accuracy,
        }
    return StepResult(
        data=facts,
        outputs={
            archive.name: Output(archive, "application/zip"),
            "report.json": Output(contents.files["report.json"], "application/json"),
            "report.html": Output(contents.files["report.html"], "text/html; charset=utf-8"),
        },
        run_summary=facts,
    )
