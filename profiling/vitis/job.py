"""One HLS job: steps on an emitted design, in a private folder, within limits, judged by log and reports."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolRunner
from penstock.profiling.vitis.commands import (
    HlsCommand,
    HlsStep,
    hls_commands,
    in_order,
    kernel_file,
    solution,
    tool_environment,
)
from penstock.profiling.vitis.cosim_rpt import find_cosim_report
from penstock.profiling.vitis.detect import VitisTools
from penstock.profiling.vitis.implemented_rpt import read_utilization
from penstock.profiling.vitis.judge import check_run
from penstock.profiling.vitis.reading import missing, unreadable
from penstock.profiling.vitis.records import CosimReport, ImplementedReport, SynthesisReport, TimingReport
from penstock.profiling.vitis.report_folder import read_report_folder
from penstock.profiling.vitis.timing_rpt import read_timing
from penstock.profiling.vitis.watch import OnLine, Watch, files_of
from penstock.profiling.work_folder import Keep, private_folder

_LEFT_OUT = shutil.ignore_patterns("penstock_hls", "work", "*.log", "parameters")


@dataclass(frozen=True)
class JobLimits:
    """What a job may use. Seconds are of the whole job; memory is what its processes hold together, and the address
    space of each. `keep` says when its work folder stays for a look.
    """

    seconds: float = 4 * 3600.0
    memory: int | None = None
    disk: int = 20 << 30
    log: int = 64 << 20
    keep: Keep = "never"


@dataclass(frozen=True)
class HlsJob:
    """Steps on `design`, a folder that the HLS backend wrote."""

    design: Path
    top: str
    steps: tuple[HlsStep, ...] = ("csynth",)
    limits: JobLimits = field(default_factory=JobLimits)


@dataclass(frozen=True)
class HlsRun:
    """What came of a job: a record for each report that its steps leave, the kernel, how long it took."""

    steps: tuple[HlsStep, ...]
    synthesis: SynthesisReport | None = None
    cosim: CosimReport | None = None
    area: ImplementedReport | None = None
    timing: TimingReport | None = None
    kernel: Path | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


def run_hls(
    job: HlsJob,
    tools: VitisTools,
    runner: ToolRunner,
    results: Path,
    *,
    work_root: Path | None = None,
    on_line: OnLine | None = None,
    environment: Mapping[str, str] | None = None,
) -> HlsRun:
    """Run a job; reports, logs and the kernel are put into `results`. What fails is raised with its kind.

    `on_line` gets the tool's log as it comes; `environment` is searched for licences (by default the process' own).
    """
    steps = in_order(job.steps)
    commands = hls_commands(tools, steps)
    started = time.monotonic()
    with files_of(str(job.design)), private_folder(work_root, job.limits.keep) as work:
        _lay_out(job, work)
        env = tool_environment(tools, work, environment)
        notes: list[str] = []
        for number, command in enumerate(commands):
            left = job.limits.seconds - (time.monotonic() - started)
            notes += _run(job, command, runner, work, results / f"log-{number}", env, left, on_line)
        run = _collect(job, tools, steps, work / "hls", results)
    return replace(run, seconds=time.monotonic() - started, notes=tuple(notes))


def _lay_out(job: HlsJob, work: Path) -> None:
    """A copy of the design without what earlier runs left; parameters are large and only read, so they are linked."""
    try:
        shutil.copytree(job.design, work, ignore=_LEFT_OUT, dirs_exist_ok=True)
        if (parameters := job.design / "parameters").is_dir():
            (work / "parameters").symlink_to(parameters.resolve(), target_is_directory=True)
    except (OSError, shutil.Error) as error:
        raise ProfilingError(
            "disk-full", what=f"the design cannot be copied: {error}", where=str(work),
            hint="free space in the work folder, or set it to another disk",
        ) from error  # fmt: skip
    if not (work / "hls").is_dir():
        raise ProfilingError("bad-request", what="no folder hls in the design", where=str(job.design))


def _run(
    job: HlsJob, command: HlsCommand, runner: ToolRunner, work: Path, logs: Path, env: dict[str, str], seconds: float,
    on_line: OnLine | None,
) -> list[str]:  # fmt: skip
    """Start a tool once and see that it did its steps; returns what is worth a note."""
    watch = Watch(logs / "stdout.log", work, job.limits.disk, on_line)
    result = runner.run(
        ToolCommand(
            command.argv, work / "hls", logs, env=env | dict(command.environment), timeout=max(seconds, 1.0),
            memory_limit=job.limits.memory, tree_memory_limit=job.limits.memory, log_limit=job.limits.log,
        ),
        watch,
    )  # fmt: skip
    watch.follow()
    source = work / "hls" / "penstock_top.cpp"
    check_run(result, command.steps, watch, source.read_text() if source.is_file() else None)
    left = f"{result.left_behind} of its processes still ran at its end and were killed" if result.left_behind else ""
    code = "" if result.ok else f"the log says that it succeeded, though the tool {result.describe()}"
    return [f"{', '.join(command.steps)}: {note}" for note in (left, code) if note]


def _collect(job: HlsJob, tools: VitisTools, steps: Sequence[HlsStep], hls: Path, results: Path) -> HlsRun:
    """Keep the reports and read them: a step whose report is not there has not been done, whatever its log says."""
    folder, kept = hls / solution(tools.form), results / "reports"
    kept.mkdir(parents=True, exist_ok=True)
    for pattern in ("syn/report/*.xml", "syn/report/*.rpt", "sim/report/*cosim.rpt", "impl/report/**/*.rpt"):
        for report in folder.glob(pattern):
            shutil.copyfile(report, kept / report.name)
    run = HlsRun(tuple(steps))
    if "csynth" in steps:
        run = replace(run, synthesis=_synthesis(kept, job.top))
    if "cosim" in steps:
        run = replace(run, cosim=_simulation(kept))
    if "implement" in steps:
        run = _implementation(run, kept, job.top)
    if "export" in steps:
        run = replace(run, kernel=_kernel(hls / kernel_file(tools.form, job.top), results))
    return run


def _synthesis(folder: Path, top: str) -> SynthesisReport:
    """csynth.xml with what other reports add to it; the text of the top where there is no XML."""
    report = read_report_folder(folder, top)
    if report.top != top:
        raise ProfilingError(
            "report-unreadable", what=f"the report is of {report.top!r}, not of {top!r}", where=report.source,
            hint="look at the tool's log, and run the step again",
        )  # fmt: skip
    return report


def _simulation(folder: Path) -> CosimReport:
    report = find_cosim_report(folder)
    if report.verdict != "pass":
        raise ProfilingError(
            "cosim-failed", what=f"the co-simulation's report says {report.verdict}, though its log says PASS",
            where=report.source, hint="look at the simulation's log",
        )  # fmt: skip
    return report


def _implementation(run: HlsRun, folder: Path, top: str) -> HlsRun:
    names = (f"{top}_export.rpt", "export_impl.rpt")
    path = next((path for name in names if (path := folder / name).is_file()), folder / names[0])
    area, timing = read_utilization(path), read_timing(path)
    if area.evidence is None or timing.evidence is None:
        raise unreadable(path, "no figures of a placed and routed design", hint="look at Vivado's log")
    if timing.met is False:
        worst = "" if timing.worst_slack_ns is None else f" by {-timing.worst_slack_ns:.3f} ns"
        raise ProfilingError(
            "timing-not-met", what=f"the implemented design misses its clock{worst}", where="implement",
            hint="ask for a slower clock, or unroll less",
        )  # fmt: skip
    return replace(run, area=area, timing=timing)


def _kernel(path: Path, results: Path) -> Path:
    if not path.is_file() or not path.stat().st_size:
        raise missing(path, "the exported kernel is not there")
    return Path(shutil.copyfile(path, results / path.name))
