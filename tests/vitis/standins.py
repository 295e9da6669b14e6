"""Installations of the stand-in and emitted designs, for the tests of jobs, profilers and builds."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import stream
from penstock.compiler.pipeline import Lowered, emit, lower
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.profiling.network import network_of
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis.commands import HlsStep
from penstock.profiling.vitis.detect import VitisTools, find_vitis
from penstock.profiling.vitis.job import HlsJob, HlsRun, JobLimits, run_hls
from tests.compiler.designs import Dense, build_network
from tests.standin.install import Installation

RELEASES = ("2021.1", "2022.2", "2023.2", "2024.2", "2025.1")
TOP = "penstock_top"


@cache
def lowered() -> Lowered:
    """One int8 layer and its relu: two tasks that compute, with a FIFO between."""
    program = build_network("int8", 2, 4, (Dense(6, False, False),), seed=3)
    kernels = {
        "fc0": KernelDesign(tile=(2, 6, 4), unroll=(1, 3, 2), order=(0, 1, 2)),
        "fc0.relu": KernelDesign(tile=(2, 6), unroll=(1, 3), order=(0, 1)),
    }
    return lower(program, Design(platform="u55c", clock_mhz=300.0, kernels=kernels))


def emitted(folder: Path) -> Path:
    """The design's folder, with frames for the test bench, as the C simulation leaves them."""
    emit(lowered(), folder, part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    run = folder / "csim" / "run"
    run.mkdir()
    interface = json.loads((folder / "interface.json").read_text())
    for side, name in (("inputs", "in"), ("outputs", "out")):
        for number, _ in enumerate(interface[side]):
            (run / f"{name}{number}.bin").write_bytes(bytes(16))
    return folder


def aged(path: Path, days: float) -> None:
    """Have a file or folder look as if nobody had touched it for so long."""
    then = time.time() - days * 86400
    os.utime(path, times=(then, then))


def tools_of(installation: Installation) -> VitisTools:
    return find_vitis(installation.root, installation.environment)


def run(
    installation: Installation,
    folder: Path,
    *steps: HlsStep,
    runner: ToolRunner | None = None,
    work_root: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    limits: JobLimits | None = None,
) -> HlsRun:
    """A job on a fresh design below `folder`."""
    job = HlsJob(emitted(folder / "design"), TOP, steps or ("csynth",), limits or JobLimits())
    return run_hls(
        job, tools_of(installation), runner or ToolRunner(), folder / "results",
        work_root=work_root or folder / "work", on_line=on_line, environment=installation.environment,
    )  # fmt: skip


def recording(path: Path, design: stream.TopOp, deeper: int) -> Path:
    """A packed csynth.xml as HLS writes it of a design, each pipeline `deeper` than planned and at twice its II."""
    network = network_of(design, load_library(load_platform("u55c").operators, 300.0))
    modules = "".join(
        f"<Module><Name>{task.name}</Name><PerformanceEstimates><SummaryOfLoopLatency>"
        + "".join(
            f"<loop{i}><Name>loop{i}</Name><TripCount>{nest.run_iterations}</TripCount><Latency>9</Latency>"
            f"<PipelineII>{2 * nest.ii}</PipelineII><PipelineDepth>{nest.depth + deeper}</PipelineDepth>"
            f"<PipelineType>yes</PipelineType></loop{i}>"
            for i, nest in enumerate(task.nests)
        )
        + "</SummaryOfLoopLatency></PerformanceEstimates></Module>"
        for task in network.tasks
    )
    text = (
        "<profile><ReportVersion><Version>2023.2</Version></ReportVersion><UserAssignments>"
        "<Part>xcu280-fsvh2892-2L-e</Part><TopModelName>forward</TopModelName>"
        "<TargetClockPeriod>3.33</TargetClockPeriod></UserAssignments><PerformanceEstimates>"
        "<SummaryOfTimingAnalysis><EstimatedClockPeriod>2.5</EstimatedClockPeriod></SummaryOfTimingAnalysis>"
        "<SummaryOfOverallLatency><Best-caseLatency>5000</Best-caseLatency><Worst-caseLatency>5000</Worst-caseLatency>"
        "<Interval-min>4000</Interval-min><Interval-max>4000</Interval-max></SummaryOfOverallLatency>"
        "</PerformanceEstimates><AreaEstimates><Resources><BRAM_18K>1</BRAM_18K><DSP>2</DSP><FF>3</FF><LUT>4</LUT>"
        f"<URAM>0</URAM></Resources></AreaEstimates><ModuleInformation>{modules}</ModuleInformation></profile>"
    )
    path.write_bytes(gzip.compress(text.encode()))
    return path
