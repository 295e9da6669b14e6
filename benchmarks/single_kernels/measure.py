"""Cycles of kernels, measured: built together, run with and without stalls, held against the interpreter."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.single_kernels.requests import CoreRun
from penstock.compiler.arrays import Array
from penstock.compiler.schedule import NestSchedule, PortSchedule
from penstock.profiling.open_rtl.run import Job, RtlRun, simulate_many
from penstock.profiling.open_rtl.verilate import TOGETHER, BuiltProgram, build_many
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolRunner

SCHEMA = "penstock.cycles/1"
FRAMES = 2
STALL_SEED = 1
FLOAT_TOLERANCE = 1e-4
"""Of the largest magnitude: transcendental cores are not rounded as the host rounds them."""
LONG_RUN = 20_000_000
"""Cycles times bits of the core's ports from which an optimised build pays."""


@dataclass(frozen=True)
class Measurement:
    """Cycles of one kernel. `ii` and `depth` are those of its one nest; None where it has several."""

    latency: int
    interval: int
    initial_delay: int
    ii: int | None
    depth: int | None
    pattern: dict[str, list[int]]
    """The cycle of each token of the first frame, by stream; of each word, by memory that is written."""
    high_water: dict[str, int]
    values: int
    """How many numbers were compared with the interpreter's."""
    build_s: float
    run_s: float
    built: bool
    """Whether the tools had to build it now."""


def document_of(made: Measurement | ProfilingError) -> dict[str, Any] | None:
    """What is kept of a measurement; failures are not kept."""
    return {"schema": SCHEMA, **asdict(made)} if isinstance(made, Measurement) else None


def measurement_from(document: Any) -> Measurement | None:
    """What `document_of` made, as one that needed no build; None for anything else."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return None
    fields = {name: value for name, value in document.items() if name != "schema"}
    return Measurement(**{**fields, "built": False, "build_s": 0.0, "run_s": 0.0})


def measure_many(
    kernels: Iterable[CoreRun], tools: ToolRunner, processes: int = 2, *, count: int | None = None
) -> list[Measurement | ProfilingError]:
    """Build and run kernels, group by group, as many groups at once as there are processes.

    Each kernel is run twice: freely for its times, and with stalls for its numbers. `count` says how many there are
    where they come one by one.
    """
    with ThreadPoolExecutor(processes) as pool:
        known = len(kernels) if isinstance(kernels, Sequence) else count
        size = TOGETHER if known is None else max(1, min(TOGETHER, -(-known // processes)))
        groups = [pool.submit(_measure_group, group, tools) for group in _groups(kernels, size)]
        return [one for group in groups for one in group.result()]


def _groups(kernels: Iterable[CoreRun], size: int) -> Iterator[list[CoreRun]]:
    source = iter(kernels)
    while group := list(islice(source, size)):
        yield group


def _measure_group(kernels: Sequence[CoreRun], tools: ToolRunner) -> list[Measurement | ProfilingError]:
    long_run = max(kernel.work * kernel.bits for kernel in kernels) > LONG_RUN
    programs = build_many([kernel.design for kernel in kernels], tools, long_run=long_run, processes=1)
    jobs: list[Job] = []
    built: list[BuiltProgram] = []
    for kernel, program in zip(kernels, programs, strict=True):
        if isinstance(program, BuiltProgram):
            patience = 2 * kernel.work + 10_000
            jobs.append(Job(kernel.design, kernel.inputs, FRAMES, idle_cycles=patience))
            jobs.append(Job(kernel.design, kernel.inputs, stall_seed=STALL_SEED, idle_cycles=patience))
            built += [program, program]
    began = time.monotonic()
    runs = iter(simulate_many(jobs, built, tools) if jobs else [])
    seconds = (time.monotonic() - began) / max(1, len(jobs))
    found: list[Measurement | ProfilingError] = []
    for kernel, program in zip(kernels, programs, strict=True):
        if not isinstance(program, BuiltProgram):
            found.append(program)
            continue
        free, stalled = next(runs), next(runs)
        try:
            found.append(_judge(kernel, program, free, stalled, 2 * seconds))
        except ProfilingError as error:
            found.append(error)
    return found


def _judge(
    kernel: CoreRun,
    program: BuiltProgram,
    free: RtlRun | ProfilingError,
    stalled: RtlRun | ProfilingError,
    seconds: float,
) -> Measurement:
    values = 0
    for run, frames in ((free, FRAMES), (stalled, 1)):
        if isinstance(run, ProfilingError):
            raise run
        if run.deadlocked:
            raise ProfilingError(
                "deadlock", what=f"nothing moves any more after {run.cycles} cycles", where=kernel.name,
                limit="; ".join(run.stuck), hint="deepen its FIFOs, or let `penstock` choose their depths",
            )  # fmt: skip
        values += check(kernel, run, frames)
    assert isinstance(free, RtlRun)
    assert free.latency is not None
    assert free.interval is not None
    assert free.initial_delay is not None
    ii, depth = pace(kernel, free)
    pattern = {
        name: port.times[: len(port.times) // FRAMES].tolist()
        for name, port in free.ports.items()
        if port.times is not None
    }
    return Measurement(
        free.latency, free.interval, free.initial_delay, ii, depth, pattern, free.high_water, values,
        0.0 if program.cached else program.verilate_s + program.compile_s, seconds, not program.cached,
    )  # fmt: skip


def check(kernel: CoreRun, run: RtlRun, frames: int) -> int:
    """Every number against the interpreter's; returns how many there were."""
    count = 0
    for name, wanted in kernel.outputs.items():
        got = run.outputs[name]
        expected = np.concatenate([wanted] * frames) if len(got) == frames * len(wanted) else wanted
        wrong = _differs(got, expected)
        if wrong.any():
            row, lane = np.argwhere(wrong)[0]
            raise ProfilingError(
                "wrong-result", what=f"{int(wrong.sum())} of {wrong.size} values of {name} differ from the "
                f"interpreter's, first lane {lane} of token {row}: {got[row, lane]} is not {expected[row, lane]}",
                where=kernel.name, hint="this is a defect in the RTL backend; please report it with the module",
            )  # fmt: skip
        count += wrong.size
    return count


def _differs(got: Array, wanted: Array) -> NDArray[np.bool_]:
    if got.shape != wanted.shape:
        raise ProfilingError(
            "wrong-result", what=f"an output has shape {got.shape}, the interpreter's {wanted.shape}",
            hint="this is a defect in the RTL backend; please report it with the module",
        )  # fmt: skip
    if wanted.dtype.kind != "f":
        return got != wanted
    finite = wanted[np.isfinite(wanted)]
    largest = float(np.abs(finite).max()) if finite.size else 1.0
    close = np.isclose(got, wanted, rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE * largest, equal_nan=True)
    return ~close


def pace(kernel: CoreRun, run: RtlRun) -> tuple[int | None, int | None]:
    """II and depth of a kernel of one nest, from the cycles of its tokens.

    The tokens of one port are so many iterations apart; where nothing waits, that many times II cycles. II is rounded
    up where it waited.
    """
    nests = [schedule for schedules in kernel.schedules.values() for schedule in schedules]
    if len(nests) != 1:
        return None, None
    only = nests[0]
    seen = {port.channel: run.ports[port.name].times for port in kernel.design.ports if not port.is_memory}
    streams = [(port, seen[port.channel]) for port in only.ports if port.channel in seen]
    spans = [(port, times) for port, times in streams if times is not None and port.tokens > 1]
    if not spans or run.latency is None:
        return None, None
    port, times = max(spans, key=lambda pair: _span(pair[0]))
    assert times is not None
    ii = -(-int(times[port.tokens - 1] - times[0]) // _span(port))
    return ii, run.latency - _start(only, streams, ii) - ii * (only.iterations - 1)


def _span(port: PortSchedule) -> int:
    return port.pattern.iteration(port.tokens - 1) - port.pattern.iteration(0)


def _start(only: NestSchedule, streams: Sequence[tuple[PortSchedule, Any]], ii: int) -> int:
    """The cycle of the first iteration: what a read in its first stage shows, or 0."""
    shown = [int(times[0]) - only.cycle(port, 0) for port, times in streams if port.direction == "read"]
    return max(0, *shown) if shown else 0
