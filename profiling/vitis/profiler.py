"""The `Profiler` of the Vitis route: a stream-level module in, HLS C++ out, a job, its reports, a profile.

`csynth` and `cosim` are two rungs of the same machinery; a rung is a profiler and nothing else.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.backend.hls import emit_hls
from penstock.compiler.backend.hls.ports import ports_of
from penstock.compiler.dialects import stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Platform, Resources, load_platform
from penstock.compiler.scalars.number_types import numpy_dtype
from penstock.compiler.schedule import load_library
from penstock.profiling.csim import build_csim
from penstock.profiling.model import parse_request
from penstock.profiling.network import TaskNetwork, network_of
from penstock.profiling.protocol import Profile, ProfileRequest, ProfilingError
from penstock.profiling.simulated import simulate_design
from penstock.profiling.sources import sources_digest
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis.commands import HlsStep
from penstock.profiling.vitis.detect import VitisTools
from penstock.profiling.vitis.fifo_memory import with_fifo_memory
from penstock.profiling.vitis.job import HlsJob, HlsRun, JobLimits, run_hls
from penstock.profiling.vitis.kept_report import report_to_json
from penstock.profiling.vitis.reading import unreadable
from penstock.profiling.vitis.records import ReportedUsage, SynthesisReport
from penstock.profiling.vitis.retime import PhaseTiming
from penstock.profiling.vitis.retime_design import retime_design
from penstock.profiling.vitis.watch import OnLine, files_of
from penstock.profiling.work_folder import private_folder

FRAMES = 2  # with one the interval cannot be measured
REVISION = "1"
"""Raise it whenever something else is taken from the same reports."""


@dataclass(frozen=True)
class VitisProfiler:
    """Measures by csynth, or by co-simulation as well. `results` keeps reports and logs, a folder for each key."""

    tools: VitisTools
    evidence: Literal["csynth", "cosim"] = "csynth"
    runner: ToolRunner = field(default_factory=ToolRunner)
    limits: JobLimits = field(default_factory=JobLimits)
    work_root: Path | None = None
    results: Path | None = None
    on_line: OnLine | None = None
    environment: Mapping[str, str] | None = None

    @property
    def tool(self) -> str:
        return f"vitis-{self.evidence}"

    def version(self) -> str:
        """The release, whose updates are not told apart, and what makes the C++ that it is given."""
        if self.tools.form is None or self.tools.release is None:
            raise ProfilingError(
                "tool-missing", what="Vitis was not found, or its release is not known", where=self.tool,
                hint="`penstock doctor` says what is there",
            )  # fmt: skip
        made_by = sources_digest("compiler.scalars", "compiler.backend.hls", "compiler.schedule", "compiler.platforms")
        return f"{self.tools.release}.{REVISION}.{made_by[:12]}"

    def profile(self, request: ProfileRequest) -> Profile:
        key = request.key(self.tool, self.version())
        with files_of(request.name), private_folder(self.work_root, self.limits.keep) as folder:
            platform, top, network = design_of(request, folder / "design")
            results = self.results / key if self.results else folder / "results"
            run = self._measure(top.sym_name.data, folder, results)
        return self._profile(key, request, platform, network, run)

    def _measure(self, top: str, folder: Path, results: Path) -> HlsRun:
        """The job; errors that the tools around HLS raise are failures of the measurement."""
        # the C++ is run by the tool's own compiler before hours go into its RTL
        steps: tuple[HlsStep, ...] = ("csim", "cosim") if self.evidence == "cosim" else ("csynth",)
        job = HlsJob(folder / "design", top, steps, self.limits)
        try:
            if self.evidence == "cosim":
                simulate_c(folder / "design", self.runner)
            return run_hls(
                job, self.tools, self.runner, results,
                work_root=folder / "work", on_line=self.on_line, environment=self.environment,
            )  # fmt: skip
        except ProfilingError:
            raise
        except PenstockError as error:
            kind = "tool-missing" if error.code in ("vitis-missing", "compiler-missing") else "tool-failed"
            raise ProfilingError(
                kind, what=error.what, where=error.where, hint=error.hint, log_tail=error.limit
            ) from error

    def _profile(
        self, key: str, request: ProfileRequest, platform: Platform, network: TaskNetwork, run: HlsRun
    ) -> Profile:
        report = run.synthesis
        assert report is not None, "every job that ends well has csynth's report"
        latency, interval = self._cycles(run, report)
        delay, phases = first_output(network, report, platform, request.clock_mhz)
        only = only_kernel(network, phases)
        return Profile(
            key=key, name=request.name, tool=self.tool, tool_version=self.version(), evidence=self.evidence,
            clock_mhz=request.clock_mhz, latency_cycles=latency, interval_cycles=interval,
            initial_delay_cycles=min(delay, latency), ii=only.ii if only else None, depth=only.depth if only else None,
            resources=resources_of(with_fifo_memory(report).used, report.source, has_uram=platform.available.uram > 0),
            fmax_mhz=report.fmax_mhz, report=report_to_json(report),
        )  # fmt: skip

    def _cycles(self, run: HlsRun, report: SynthesisReport) -> tuple[int, int]:
        """Latency and interval. A co-simulation of one transaction measures no interval: it is at most the latency."""
        if self.evidence == "csynth":
            latency, interval = (None if span is None else span.high for span in (report.latency, report.interval))
            if latency is None or interval is None:
                raise unreadable(report.source, "the report gives no latency: the design's is not fixed")
            return latency, interval
        assert run.cosim is not None, "every co-simulation that ends well has a report"
        if run.cosim.latency_max is None:
            raise unreadable(run.cosim.source, "the co-simulation's report gives no latency")
        return run.cosim.latency_max, run.cosim.interval_max or run.cosim.latency_max


def design_of(request: ProfileRequest, folder: Path) -> tuple[Platform, stream.TopOp, TaskNetwork]:
    """The request's design, written as C++ into `folder`; what cannot be one is a bad request."""
    try:
        platform = load_platform(request.platform)
        platform.check_clock(request.clock_mhz)
        if platform.family.route != "vitis":
            raise ProfilingError(
                "bad-request", what=f"Vitis has no device {platform.part!r}", where=platform.name,
                hint="measure it by the open route",
            )  # fmt: skip
        top = parse_request(request)
        network = network_of(top, load_library(platform.operators, request.clock_mhz))
        emit(top, request, platform, folder)
    except ProfilingError:
        raise
    except PenstockError as error:
        raise ProfilingError(
            "bad-request", what=error.what, where=error.where or request.name, limit=error.limit, hint=error.hint
        ) from error
    return platform, top, network


def emit(top: stream.TopOp, request: ProfileRequest, platform: Platform, folder: Path) -> None:
    """The design's C++. A request holds no numbers: parameters are drawn, which changes neither cycles nor ports."""
    clock_ns = round(1000 / request.clock_mhz, 3)
    emit_hls(
        top, drawn_parameters(top), folder, title=f"{request.name} on {platform.name}", part=platform.part,
        clock_ns=clock_ns,
    )  # fmt: skip


def drawn_parameters(top: stream.TopOp) -> dict[str, Array]:
    """The same numbers for the same names every time."""
    shapes = {port.name: (port.shape, np.dtype(port.dtype)) for port in ports_of(top) if port.kind == "parameter"}
    for op in top.walk():
        if isinstance(op, stream.RomOp):
            kind = op.result.type
            shapes[op.parameter.data] = (tuple(kind.get_shape()), numpy_dtype(kind.element_type))
    return {name: drawn(shape, dtype, zlib.crc32(name.encode())) for name, (shape, dtype) in shapes.items()}


def drawn(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Array:
    generator = np.random.default_rng(seed)
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, endpoint=True, dtype=dtype)
    return generator.standard_normal(shape).astype(dtype)


def simulate_c(folder: Path, runner: ToolRunner) -> None:
    """Frames for the test bench and what must come out, by the C simulation."""
    inputs = json.loads((folder / "interface.json").read_text())["inputs"]
    frames = [
        {e["index"]: drawn(tuple(e["shape"]), np.dtype(e["dtype"]), frame * 100 + e["index"]) for e in inputs}
        for frame in range(FRAMES)
    ]
    build_csim(folder, runner).run_frames(frames)


def first_output(
    network: TaskNetwork, report: SynthesisReport, platform: Platform, clock_mhz: float
) -> tuple[int, tuple[PhaseTiming, ...]]:
    """Cycles before the first token leaves: our nests' token patterns at the II and depth of the report."""
    retimed = retime_design(network, report)
    result = simulate_design(retimed.network, platform, clock_mhz)
    if result.deadlock is not None:
        raise ProfilingError(
            "deadlock", what=f"with the report's figures the design stops for ever: {result.deadlock}",
            where=report.source, hint="deepen a channel of the cycle",
        )  # fmt: skip
    return (result.latency if result.initial_delay is None else result.initial_delay), retimed.nests


def only_kernel(network: TaskNetwork, phases: tuple[PhaseTiming, ...]) -> PhaseTiming | None:
    """The slowest pipeline of the one task that computes, as the report has it; None for a larger design."""
    inside = [t for t in network.tasks if any(" " not in s.name for n in t.nests for s in n.stages)]
    if len(inside) != 1:
        return None
    own = [p for p in phases if p.process == inside[0].name]
    if not own or any(p.evidence != "csynth" for p in own):
        return None
    latency = {index: nest.latency for index, nest in enumerate(inside[0].nests)}
    return max(own, key=lambda phase: latency[phase.index])


def resources_of(used: ReportedUsage, source: str, *, has_uram: bool) -> Resources:
    """What the report counts; a device without URAM has none to report."""
    lacking = [name for name in used.missing if name != "uram" or has_uram]
    if lacking:
        raise unreadable(source, f"the report gives no {', '.join(lacking)}")
    counts = {name: count for name, count in vars(used).items() if count is not None}
    return Resources(**counts)
