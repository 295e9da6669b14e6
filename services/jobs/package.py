"""From a chosen design to its package: lower, emit, check, report, archive."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import DEFAULT_RUNG, Evidence
from penstock.compiler.package import PackageContents, Report, collect_package
from penstock.compiler.package.decorating import Decorating
from penstock.compiler.package.report import ExplorationReport, SynthesisInfo
from penstock.compiler.package.sections import host_section, model_section, platform_section
from penstock.compiler.pipeline.emit import emit
from penstock.compiler.platforms import Platform, load_platform
from penstock.compiler.program import Program
from penstock.dse.rungs import usable
from penstock.profiling.model import DesignFigures
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.bitstreams import NO_BITSTREAM, wants_link
from penstock.services.jobs.allocated import examine, placement_section
from penstock.services.jobs.board import BoardBuild, build_for_board
from penstock.services.jobs.check import Checked, SayProgress, check_design
from penstock.services.jobs.check_rtl import core_of_design
from penstock.services.jobs.describe import (
    describe_bandwidth,
    describe_design,
    describe_resources,
    describe_timing,
    product,
    tool_versions,
)
from penstock.services.jobs.explanation import EXPLAINING
from penstock.services.jobs.link import LinkBench, Target, failed_link, link_for_card
from penstock.services.jobs.model_dims import lengths_note
from penstock.services.jobs.scheduled import Scheduled
from penstock.services.jobs.tensors import describe_banks, describe_tensors


@dataclass(frozen=True)
class Built:
    """A checked and packaged design."""

    contents: PackageContents
    report: Report
    checked: Checked


def build_package(
    program: Program,
    design: Design,
    tools: ToolRunner,
    exploration: ExplorationReport | Callable[[], ExplorationReport] | None = None,
    progress: SayProgress = lambda _: None,
    evidence: Evidence = DEFAULT_RUNG,
    synthesis: SynthesisInfo | None = None,
    bitstream: str | None = None,
) -> Built:
    """The whole way from a prepared program and a finished design to a package in memory.

    An `exploration` that is still to be worked out is so while the C++ compiles.
    `bitstream` is hw, hw_emu or none; left out, it is built where the tools are at hand for it.
    """
    platform = load_platform(design.platform)
    evidence, fallback = usable(evidence, platform, design.clock_mhz)
    progress("lowering")
    scheduled = Scheduled.of(program, design)
    lowered = scheduled.lowered
    refuse_too_large(scheduled.built, platform, program.name)
    with tempfile.TemporaryDirectory(prefix="penstock-emit-") as folder:
        emitted = Path(folder)
        progress("emitting C++")
        emit(lowered, emitted, part=platform.part, clock_mhz=design.clock_mhz)
        core = core_of_design(scheduled, evidence, emitted)
        found: list[ExplorationReport | None] = [None if callable(exploration) else exploration]

        def explain() -> None:
            if callable(exploration):
                progress(EXPLAINING)
                found[0] = exploration()

        checked = check_design(lowered, emitted, tools, progress, core, meanwhile=explain)
        board = _bitstream(scheduled, evidence, emitted, LinkBench(tools=tools, progress=progress), bitstream)
        progress("packaging")
        report = make_report(scheduled, checked, found[0], evidence, board, synthesis, fallback)
        contents = collect_package(program, design, emitted, report, checked.expected, board.files if board else None)
    return Built(contents, report, checked)


def _bitstream(
    scheduled: Scheduled, evidence: Evidence, emitted: Path, bench: LinkBench, asked: str | None
) -> BoardBuild | None:
    """By v++ for a card, on the open route for its boards; what fails is said in the report."""
    platform = scheduled.platform
    options = {"platform": platform.name, "evidence": evidence, "bitstream": asked}
    if asked == NO_BITSTREAM:
        return None
    if not wants_link(options):
        return build_for_board(scheduled, evidence, bench.tools, bench.progress)
    target: Target = "hw_emu" if asked == "hw_emu" else "hw"
    clock_mhz = scheduled.lowered.design.clock_mhz
    try:
        return link_for_card(emitted, platform, clock_mhz, target, bench, emitted / "bitstream")
    except PenstockError as error:
        return failed_link(platform, clock_mhz, target, error)


def refuse_too_large(figures: DesignFigures, platform: Platform, name: str) -> None:
    """A design that needs more than the device has is no accelerator."""
    shares = figures.resources.share_of(platform.available)
    resource, share = max(shares.items(), key=lambda item: item[1])
    if share > 1:
        used, have = figures.resources.as_dict()[resource], platform.available.as_dict()[resource]
        most = max((*figures.tasks, *figures.channels), key=lambda part: part.resources.as_dict()[resource])
        raise PenstockError(
            code="does-not-fit",
            what=f"the design needs {used:,} {resource} ({figures.evidence})",
            where=name,
            limit=f"{platform.name} offers {have:,}; {most.name} alone needs {most.resources.as_dict()[resource]:,}",
            hint="unroll less, quantize with w8a8, stream the weights, or choose a larger platform",
        )


def make_report(
    scheduled: Scheduled,
    checked: Checked,
    exploration: ExplorationReport | None,
    evidence: Evidence = DEFAULT_RUNG,
    board: BoardBuild | None = None,
    synthesis: SynthesisInfo | None = None,
    fallback: str = "",
) -> Report:
    """All that is known of a design, its times on every rung up to `evidence`, which could be had; `fallback` says why
    it is weaker than what was asked for.
    """
    lowered, platform = scheduled.lowered, scheduled.platform
    program, design = lowered.program, lowered.design
    found, making = examine(scheduled, evidence), Decorating()
    timing = describe_timing(lowered, found, checked.verify.rtl, synthesis)
    resources = describe_resources(lowered, found, platform, synthesis)
    bandwidth = making.make("external memory's share", lambda: describe_bandwidth(found, timing, platform), None)
    tensors = making.make("where tensors lie", lambda: describe_tensors(lowered, platform), ())
    banks = describe_banks(tensors, platform)
    placement = making.make(
        "where tasks and memories stand", lambda: placement_section(found, making, tensors, banks), None
    )
    tools = making.make("the tools' versions", tool_versions, dict[str, str]())
    return Report(
        product=product(),
        name=program.name,
        model=model_section(program, len(lowered.graph.operations), design.quantize),
        platform=platform_section(platform),
        design=describe_design(lowered, found, making),
        verify=checked.verify,
        timing=timing,
        resources=resources.model_copy(update={"bandwidth": bandwidth}),
        accuracy=checked.accuracy,
        language=checked.language,
        exploration=exploration,
        host=host_section(program.host),
        tools=tools,
        placement=placement,
        synthesis=synthesis,
        bitstream=board.info if board else None,
        left_out=tuple(making.left_out),
        notes=(
            *program.notes,
            *lengths_note(program),
            "Latency is of one input at a time; the interval is what streaming many inputs gives.",
            *([_no_bitstream(board)] if board is None or board.info.path is None else []),
            *([fallback] if fallback else []),
            *(
                [f"{exploration.sizing}: --fifo-simulations gives it more."]
                if exploration and exploration.sizing
                else []
            ),
            *([f"{exploration.for_one}."] if exploration and exploration.for_one else []),
            *([f"FIFOs: {exploration.equalisation.sentence}."] if exploration and exploration.equalisation else []),
        ),
    )


def _no_bitstream(board: BoardBuild | None) -> str:
    if board is None:
        return "No bitstream was built: see bitstream/README.md in the package."
    return f"No bitstream for {board.info.board}: {board.info.failure}"
