"""Bitstreams: v++ compiles the kernel (or the cache has it), links it, resuming what failed, and packages it.

Kernels are kept by content, and so are the folders of links that failed for want of time, memory, disk or a licence.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.compiler.runtime.penstock_runtime.xclbin import MAGIC
from penstock.profiling.protocol import FailureKind, ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolResult, ToolRunner
from penstock.profiling.vitis.commands import tool_environment
from penstock.profiling.vitis.connectivity import FILE, Connectivity, read_connectivity
from penstock.profiling.vitis.detect import VitisTools
from penstock.profiling.vitis.job import JobLimits
from penstock.profiling.vitis.judge import check_run, whole_log
from penstock.profiling.vitis.log import ToolStep
from penstock.profiling.vitis.reading import missing, unreadable
from penstock.profiling.vitis.watch import OnLine, Watch, files_of
from penstock.profiling.work_folder import check_work_folder, remove_older

Target = Literal["hw", "hw_emu"]
BUILD_LIMITS = JobLimits(seconds=24 * 3600.0, disk=200 << 30)
CHECK_SECONDS = 300.0
LINK_DAYS, KERNEL_DAYS = 14, 180
STATE = "resume.json"
_LINKED = "package"  # where a build goes on whose link has ended
# After these the same link may get further; after others it would fail again.
_RESUMABLE: frozenset[FailureKind] = frozenset(
    {"licence", "timeout", "cancelled", "out-of-memory", "disk-full", "tool-failed"}
)
_STEP = re.compile(r"Run vpl: Step (\w+): (Started|Completed)")
_CLOCK = re.compile(r"Kernel \(DATA\) clock: \S+ = (\d+)")
_REPORTS = (
    "**/kernel_util_routed.rpt",
    "**/full_util_routed.rpt",
    "**/*timing_summary_routed.rpt",
    "**/*guidance.html",
)


@dataclass(frozen=True)
class BuildJob:
    """What to build of `design`, a folder that the HLS backend wrote; `store` keeps kernels and failed links."""

    design: Path
    top: str
    store: Path
    target: Target = "hw"
    limits: JobLimits = BUILD_LIMITS


@dataclass(frozen=True)
class LinkedBitstream:
    """`clock_mhz` is what the link reached, None where it does not say; `resumed_from` is the step it went on at."""

    xclbin: Path
    kernel: Path
    target: Target
    clock_mhz: float | None
    kernel_from_cache: bool
    resumed_from: str | None
    seconds: float
    reports: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Build:
    job: BuildJob
    tools: VitisTools
    runner: ToolRunner
    results: Path
    connectivity: Connectivity
    env: Mapping[str, str]
    on_line: OnLine | None
    started: float

    def run(self, step: ToolStep, words: tuple[str, ...], folder: Path, program: str = "v++") -> ToolResult:
        """Start a program for a step in a folder and see that it did it."""
        logs = self.results / f"log-{step}"
        watch = Watch(logs / "stdout.log", folder, self.job.limits.disk, self.on_line)
        left = self.job.limits.seconds - (time.monotonic() - self.started)
        result = self.runner.run(
            ToolCommand(
                (str(self.tools.programs[program]), *words), folder, logs, env=self.env, timeout=max(left, 1.0),
                memory_limit=self.job.limits.memory, tree_memory_limit=self.job.limits.memory,
                log_limit=self.job.limits.log,
            ),
            watch,
        )  # fmt: skip
        watch.follow()
        source = self.job.design / "hls" / "penstock_top.cpp"
        check_run(result, (step,), watch, source.read_text() if source.is_file() else None)
        return result


def build_bitstream(
    job: BuildJob,
    tools: VitisTools,
    runner: ToolRunner,
    results: Path,
    *,
    on_line: OnLine | None = None,
    environment: Mapping[str, str] | None = None,
) -> LinkedBitstream:
    """Compile, link and package; the bitstream, logs and reports are put into `results`."""
    tools.require("v++", *(("emconfigutil",) if job.target == "hw_emu" else ()))
    connectivity = read_connectivity(job.design / "link", tools)
    check_work_folder(job.store)
    with files_of(str(job.design)):
        _sweep(job.store)
        results.mkdir(parents=True, exist_ok=True)
        home = job.store / "home"
        home.mkdir(exist_ok=True)
        env = tool_environment(tools, home, environment)
        build = _Build(job, tools, runner, results.resolve(), connectivity, env, on_line, time.monotonic())
        key = kernel_key(job, tools, connectivity)
        with _locked(job.store / f"{key}.lock"):
            kernel, cached = _kernel(build, key)
            folder = job.store / "links" / hashlib.sha256((key + connectivity.text).encode()).hexdigest()[:24]
            step, clock = _link(build, kernel, folder)
            xclbin, notes = _package(build, folder)
            reports = tuple(
                Path(shutil.copyfile(file, build.results / file.name))
                for p in _REPORTS
                for file in sorted(folder.glob(p))
            )
            shutil.rmtree(folder)
    return LinkedBitstream(
        xclbin, kernel, job.target, clock, cached, step,
        time.monotonic() - build.started, reports, (*([connectivity.note] if connectivity.note else []), *notes),
    )  # fmt: skip


def _sweep(store: Path) -> None:
    """Links that nobody went on with, and kernels that nobody asked for."""
    remove_older(store.glob("links/*"), LINK_DAYS)
    remove_older(store.glob("compiling/*"), LINK_DAYS)
    remove_older(store.glob("kernels/*.xo"), KERNEL_DAYS)


def kernel_key(job: BuildJob, tools: VitisTools, connectivity: Connectivity) -> str:
    """The same sources for the same platform, clock and target by the same release are the same kernel."""
    digest = hashlib.sha256()
    facts = (job.top, job.target, connectivity.platform.stem, connectivity.clock_hz, str(tools.release))
    digest.update(json.dumps(facts).encode())
    for file in sorted((job.design / "hls").glob("*")):
        if file.suffix in (".cpp", ".h"):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _kernel(build: _Build, key: str) -> tuple[Path, bool]:
    """The compiled kernel, and whether it was there already."""
    job, kept = build.job, build.job.store / "kernels" / f"{key}.xo"
    kernel = build.results / f"{job.top}.xo"
    if cached := kept.is_file():
        shutil.copyfile(kept, kernel)
        os.utime(kept)  # what is asked for stays
        return kernel, cached
    folder = job.store / "compiling" / key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        clock = f"{build.connectivity.clock_hz}:{job.top}"
        sources = sorted((job.design / "hls").resolve().glob("*.cpp"))
        words = (
            "-c", "-t", job.target, "--platform", str(build.connectivity.platform), "-k", job.top, "--hls.clock", clock,
            "-I", str((job.design / "hls").resolve()), *_folders(), "-o", f"{job.top}.xo", *map(str, sources),
        )  # fmt: skip
        build.run("compile", words, folder)
        made = folder / f"{job.top}.xo"
        if not made.is_file() or not made.stat().st_size:
            raise missing(made, "v++ says that it compiled the kernel, but it is not there")
        shutil.copyfile(made, kernel)
        kept.parent.mkdir(exist_ok=True)
        os.replace(made, kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return kernel, False


def _link(build: _Build, kernel: Path, folder: Path) -> tuple[str | None, float | None]:
    """The step that it went on at and the clock reached.

    A link has a folder of its own, which stays after a failure that another try may get past, and until packaged.
    """
    state, linked = _state(folder), folder / f"{build.job.top}.link.xclbin"
    step = state.get("step")
    if step == _LINKED:
        if linked.is_file():
            return step, state.get("clock")
        step = None
    if step is None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(build.job.design / "link", folder)
        (folder / FILE).write_text(build.connectivity.text)
    shutil.copyfile(kernel, folder / kernel.name)
    words = (
        "-l", "-t", build.job.target, "--config", FILE, "--save-temps", *_folders(),
        *(("--from_step", f"vpl.{step}") if step else ()), "-o", linked.name, kernel.name,
    )  # fmt: skip
    try:
        result = build.run("link", words, folder)
        _check_container(linked)
    except ProfilingError as error:
        reached = _unfinished(build.results / "log-link" / "stdout.log")
        # a link that stopped again where it had gone on will not get past it
        if error.kind in _RESUMABLE and reached and (reached != step or error.retry_later):
            (folder / STATE).write_text(json.dumps({"step": reached}))
        else:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    reached = _CLOCK.findall(whole_log(result).text)
    clock = float(reached[-1]) if reached else None
    (folder / STATE).write_text(json.dumps({"step": _LINKED, "clock": clock}))
    return step, clock


def _package(build: _Build, folder: Path) -> tuple[Path, tuple[str, ...]]:
    top, target = build.job.top, build.job.target
    words = (
        "-p", "-t", target, "--platform", str(build.connectivity.platform), "--package.out_dir", "package", *_folders(),
        "-o", f"{top}.xclbin", f"{top}.link.xclbin",
    )  # fmt: skip
    build.run("package", words, folder)
    _check_container(folder / f"{top}.xclbin")
    xclbin = Path(shutil.copyfile(folder / f"{top}.xclbin", build.results / f"{top}.xclbin"))
    notes = tuple(_inspect(build, xclbin, folder)) if "xclbinutil" in build.tools.programs else ()
    if target == "hw_emu":
        words = ("--platform", str(build.connectivity.platform), "--od", str(build.results))
        if not (result := _start(build, "emconfigutil", words, folder)).ok:
            raise _refused("emconfigutil", result)
    return xclbin, notes


def _inspect(build: _Build, xclbin: Path, folder: Path) -> Iterator[str]:
    """Ask XRT what is in the bitstream. Its launchers may end with 0 without having done anything."""
    result = _start(build, "xclbinutil", ("--info", "--input", str(xclbin)), folder)
    said = whole_log(result).text
    if re.search(rf"\b{re.escape(build.job.top)}\b", said.replace(xclbin.name, "")) is None:
        if re.search(r"^ERROR", said, re.M):
            raise _refused("xclbinutil", result)
        yield "xclbinutil did not say what the bitstream holds: it is not checked"


def _start(build: _Build, program: str, words: tuple[str, ...], folder: Path) -> ToolResult:
    argv = (str(build.tools.programs[program]), *words)
    logs = build.results / f"log-{program}"
    return build.runner.run(ToolCommand(argv, folder, logs, env=build.env, timeout=CHECK_SECONDS))


def _refused(program: str, result: ToolResult) -> ProfilingError:
    return ProfilingError(
        "tool-failed", what=f"{program} refuses what it was given", where="package",
        hint="look at the end of its log", log_tail=whole_log(result).last_lines(),
    )  # fmt: skip


def _folders() -> tuple[str, ...]:
    return ("--temp_dir", "_x", "--log_dir", "logs", "--report_dir", "reports")


def _state(folder: Path) -> dict[str, Any]:
    """What an earlier link of this folder left: the step at which it stopped, and the clock of one that ended."""
    try:
        found = json.loads((folder / STATE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("step"), str) else {}


def _unfinished(log: Path) -> str | None:
    """The implementation's step that began and did not end."""
    if not log.is_file():
        return None
    with log.open(errors="replace") as file:
        steps = [found.groups() for line in file if (found := _STEP.search(line))]
    return steps[-1][0] if steps and steps[-1][1] == "Started" else None


def _check_container(path: Path) -> None:
    if not path.is_file():
        raise missing(path, "v++ says that it made the bitstream, but it is not there")
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise unreadable(path, "the file is not an xclbin container")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The same kernel is never built twice at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
