"""The bitstream of a chosen design for a card with a shell, by v++. One that fails costs the run nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.compiler.package.bitstream import FOLDER, xclbin_path
from penstock.compiler.package.report import BitstreamInfo, ChipUse
from penstock.compiler.platforms import Platform
from penstock.profiling.cache import cache_folder
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis.build import BUILD_LIMITS, BuildJob, LinkedBitstream, Target, build_bitstream
from penstock.profiling.vitis.connectivity import installed
from penstock.profiling.vitis.detect import VitisTools, find_vitis
from penstock.profiling.vitis.implemented_rpt import read_utilization
from penstock.profiling.vitis.job import JobLimits
from penstock.profiling.vitis.timing_rpt import read_timing
from penstock.services.jobs.board import BoardBuild
from penstock.services.jobs.synthesis import chip_use

_AREA = ("kernel_util_routed.rpt", "full_util_routed.rpt")


@dataclass(frozen=True)
class LinkBench:
    """What a link may use: tools that can be cancelled, a folder for what outlives it, limits, listeners."""

    tools: ToolRunner = field(default_factory=ToolRunner)
    store: Path = field(default_factory=lambda: cache_folder().parent / "builds")
    limits: JobLimits = BUILD_LIMITS
    progress: Callable[[str], None] = lambda _: None
    line: Callable[[str], None] | None = None


def link_for_card(
    emitted: Path, platform: Platform, clock_mhz: float, target: Target, bench: LinkBench, results: Path
) -> BoardBuild:
    """Build the bitstream, or say what this machine lacks for it; what fails on the way is raised with its kind."""
    found = find_vitis()
    if lacking := _lacking(found, platform):
        return BoardBuild(no_bitstream(platform, clock_mhz, target, lacking), {})
    bench.progress(f"building the bitstream for {platform.title}, {target}")
    top = str(json.loads((emitted / "interface.json").read_text())["top"])
    job = BuildJob(emitted, top, bench.store, target, limits=bench.limits)
    made = build_bitstream(job, found, bench.tools, results, on_line=bench.line)
    files = {xclbin_path(top): made.xclbin.read_bytes()}
    if (emulation := results / "emconfig.json").is_file():
        files[f"{FOLDER}/emconfig.json"] = emulation.read_bytes()
    return BoardBuild(_info(platform, clock_mhz, made, xclbin_path(top)), files)


def _lacking(found: VitisTools, platform: Platform) -> str:
    """What this machine would need to link for the platform; empty if it has all."""
    if "v++" not in found.programs:
        return "v++ was not found (`penstock doctor` says what is there)"
    if installed(platform.shell, found) is None:
        return f"{platform.shell} is not installed: PLATFORM_REPO_PATHS names the folder of platforms"
    return ""


def no_bitstream(platform: Platform, clock_mhz: float, target: str, failure: str) -> BitstreamInfo:
    """What the report says where there is none."""
    return BitstreamInfo(
        board=platform.shell, part=platform.part, clock_mhz=clock_mhz, path=None, target=target, failure=failure
    )


def _info(platform: Platform, clock_mhz: float, made: LinkedBitstream, path: str) -> BitstreamInfo:
    """An emulation says nothing of the chip: no clock, no area, and no evidence `implemented`."""
    hardware = made.target == "hw"
    usage, notes = _usage(made) if hardware else ((), ["an emulation of the card: nothing was placed or routed"])
    slack = _worst_slack(made, notes) if hardware else None
    if hardware and made.clock_mhz is None and not usage:
        notes.append("v++ left neither the clock that it reached nor a routed utilisation")
    return BitstreamInfo(
        board=platform.shell, part=platform.part, clock_mhz=clock_mhz, path=path, target=made.target,
        reached_mhz=made.clock_mhz if hardware else None, worst_slack_ns=slack, usage=usage,
        evidence="implemented" if hardware and (usage or slack is not None or made.clock_mhz is not None) else None,
        notes=(*notes, *made.notes, *([f"the link went on at {made.resumed_from}"] if made.resumed_from else [])),
    )  # fmt: skip


def _usage(made: LinkedBitstream) -> tuple[tuple[ChipUse, ...], list[str]]:
    """The kernel's area after routing, where a report has it; one that cannot be read is a note."""
    notes: list[str] = []
    for name in _AREA:
        for report in (path for path in made.reports if path.name == name):
            try:
                found = read_utilization(report)
            except ProfilingError as error:
                notes.append(error.one_line())
                continue
            if found.evidence == "implemented" and (rows := chip_use(found.used, found.available)):
                return rows, notes
            notes.append(f"{name}: passed over; {'; '.join(found.notes) or 'it says neither used nor available'}")
    return (), notes


def _worst_slack(made: LinkedBitstream, notes: list[str]) -> float | None:
    """From the routed timing summary that v++ left, if it did; one that cannot be read is a note."""
    for report in made.reports:
        if report.name.endswith("timing_summary_routed.rpt"):
            try:
                return read_timing(report).worst_slack_ns
            except ProfilingError as error:
                notes.append(error.one_line())
    return None


def failed_link(platform: Platform, clock_mhz: float, target: str, error: PenstockError) -> BoardBuild:
    """A link that did not come about: the package comes without it, and says why."""
    return BoardBuild(no_bitstream(platform, clock_mhz, target, error.one_line()), {})
