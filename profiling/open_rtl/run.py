"""Runs a core in Verilator with real data and says what came out and when: evidence `open-rtl`.

Cycle 0 is the first after reset, in which `start` is given. A latency is the cycle after the one in which the first
frame's last token or word leaves and all tasks are done.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.arrays import Array
from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence
from penstock.profiling.cache import runs_folder
from penstock.profiling.open_rtl.failures import failed
from penstock.profiling.open_rtl.verilate import MEMORY_LIMIT, BuiltProgram, build
from penstock.profiling.open_rtl.words import decode, encode, lanes_of, stride_of
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolRunner
from penstock.profiling.work_folder import private_folder

IDLE_CYCLES = 100_000
PROBE = re.compile(r"^penstock\.(high_water|occupancy|measured) (\S+) (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class PortActivity:
    """What passed through a port: how often, and in which cycles; of streams and written memories each one."""

    count: int
    first: int
    last: int
    times: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class RtlRun:
    """One simulation. Outputs are by stream or by argument, one row of lanes a token or word.

    Memories have a leading axis of frames where frames ran one after the other. A deadlocked run has the outputs
    that had come until then, and `stuck` says who waits; the other figures are then None.
    """

    outputs: dict[str, Array]
    cycles: int
    latency: int | None
    initial_delay: int | None
    interval: int | None
    done: tuple[int, ...]
    ports: dict[str, PortActivity]
    high_water: dict[str, int]
    deadlocked: bool
    stuck: tuple[str, ...]
    seconds: float
    program: BuiltProgram
    measured: Mapping[str, int] = field(default_factory=dict[str, int])
    """What modules of the design print of themselves as `penstock.measured NAME NUMBER`."""
    evidence: Evidence = "open-rtl"


@dataclass(frozen=True)
class Job:
    """One simulation to run: what `simulate_rtl` takes."""

    design: RtlDesign
    inputs: Mapping[str, Array]
    frames: int = 1
    one_by_one: bool = False
    stall_seed: int | None = None
    idle_cycles: int = IDLE_CYCLES
    most_cycles: int = 2_000_000_000
    timeout: float = 1800.0


def simulate_rtl(
    design: RtlDesign,
    inputs: Mapping[str, Array],
    *,
    frames: int = 1,
    one_by_one: bool = False,
    stall_seed: int | None = None,
    idle_cycles: int = IDLE_CYCLES,
    most_cycles: int = 2_000_000_000,
    timeout: float = 1800.0,
    program: BuiltProgram | None = None,
    tools: ToolRunner | None = None,
) -> RtlRun:
    """Run `frames` frames. `inputs` has an array for each input stream (by port) and memory (by argument).

    A stream's array holds the tokens of one frame, which is repeated, or of all. Frames follow each other as
    closely as the core takes them and read the same memories; with `one_by_one` each starts when the one before it is
    done, and memories may have a leading axis of frames. `stall_seed` draws pauses of the streams.
    """
    runner = tools or ToolRunner()
    job = Job(design, inputs, frames, one_by_one, stall_seed, idle_cycles, most_cycles, timeout)
    result = simulate_many([job], [program or build(design, runner)], runner)[0]
    if isinstance(result, ProfilingError):
        raise result
    return result


def simulate_many(
    jobs: Sequence[Job], programs: Sequence[BuiltProgram], tools: ToolRunner
) -> list[RtlRun | ProfilingError]:
    """Several simulations under one supervisor, one after the other; a failing one does not harm the others."""
    plans = [_Plan(job) for job in jobs]
    with private_folder(runs_folder()) as folder:
        lines: list[str] = []
        for number, (plan, program) in enumerate(zip(plans, programs, strict=True)):
            plan.write(folder / f"j{number}")
            argv = ("timeout", str(plan.job.timeout), str(program.path), str(program.number), "plan.txt")
            lines.append(f"(cd j{number} && {shlex.join(argv)} >sim.log 2>&1; echo $? >exit)")
        (folder / "run.sh").write_text("\n".join([*lines, ":"]) + "\n")
        limit = sum(job.timeout for job in jobs) + 60
        command = ToolCommand(
            ("sh", "run.sh"), folder, folder / "logs", timeout=limit, memory_limit=MEMORY_LIMIT, log_limit=1 << 20
        )
        result = tools.run(command)
        if not result.ok:
            raise failed("simulation", result)
        return [
            plan.outcome(folder / f"j{i}", program)
            for i, (plan, program) in enumerate(zip(plans, programs, strict=True))
        ]


class _Plan:
    """Which files hold what, for the harness; and what it wrote, as a run."""

    def __init__(self, job: Job) -> None:
        self.job, self.design = job, job.design
        self.frames, self.one_by_one = job.frames, job.one_by_one
        self.inputs = {name: np.asarray(array) for name, array in job.inputs.items()}
        self.stores: dict[str, list[RtlPort]] = {}
        for port in self.design.ports:
            if port.is_memory:
                self.stores.setdefault(port.argument or port.name, []).append(port)
        wanted = [p.name for p in self.design.ports if p.kind == "stream_in"] + [
            n for n in self.stores if self._filled(n)
        ]
        fed = [name for name in self.stores if self._read(name) and self._written(name) and name in self.inputs]
        if sorted([*wanted, *fed]) != sorted(self.inputs):
            raise PenstockError(
                code="rtl-inputs", what=f"data was given for {sorted(self.inputs)}", where=self.design.top,
                limit=f"the core takes {sorted(wanted)}", hint="give one array for each input stream and memory",
            )  # fmt: skip

    def _filled(self, store: str) -> bool:
        """Whether the host fills it: it is read, and the core does not write it itself."""
        return all(port.kind == "memory_read" for port in self.stores[store])

    def _written(self, store: str) -> bool:
        return any(port.kind == "memory_write" for port in self.stores[store])

    def _read(self, store: str) -> bool:
        return any(port.kind == "memory_read" for port in self.stores[store])

    def write(self, folder: Path) -> None:
        folder.mkdir()
        for name, text in self.design.data.items():
            (folder / name).write_text(text)
        job = self.job
        seed = 0 if job.stall_seed is None else job.stall_seed + 1
        lines = [f"seed {seed}", f"idle {job.idle_cycles}", f"limit {job.most_cycles}"]
        lines += [f"frames {self.frames}", f"overlap {int(not self.one_by_one)}", "result result.json"]
        numbers: dict[str, int] = {}
        for name, ports in self.stores.items():
            numbers[name] = len(numbers) + 1
            source = "-"
            if name in self.inputs:
                source = f"m{numbers[name]}.in"
                (folder / source).write_bytes(self._memory(name, ports[0]))
            output = f"m{numbers[name]}.out" if self._written(name) else "-"
            lines.append(f"store {ports[0].words} {stride_of(ports[0].width)} {source} {output}")
        for index, port in enumerate(self.design.ports):
            if port.is_memory:
                times = f"s{index}.times" if port.kind == "memory_write" else "-"
                lines.append(f"memory {numbers[port.argument or port.name]} {times}")
                continue
            if port.kind == "stream_in":
                (folder / f"s{index}").write_bytes(self._tokens(port))
            lines.append(f"stream {port.words * self.frames} s{index} s{index}.times")
        (folder / "plan.txt").write_text("\n".join(lines) + "\n")

    def _tokens(self, port: RtlPort) -> bytes:
        array = self.inputs[port.name]
        size, rows = port.words * lanes_of(port), array.size
        if rows == size:
            return encode(array, port) * self.frames
        if rows == size * self.frames:
            return encode(array, port)
        raise _shape(port.name, array, f"{port.words} tokens of {lanes_of(port)} lanes a frame")

    def _memory(self, name: str, port: RtlPort) -> bytes:
        array = self.inputs[name]
        size = port.words * lanes_of(port)
        if array.size == size:
            return encode(array, port) * (self.frames if self.one_by_one else 1)
        if self.one_by_one and array.size == size * self.frames:
            return encode(array, port)
        raise _shape(name, array, f"{port.words} words of {lanes_of(port)} lanes")

    def outcome(self, folder: Path, program: BuiltProgram) -> RtlRun | ProfilingError:
        log = (folder / "sim.log").read_text(errors="replace")
        code = (folder / "exit").read_text().strip()
        if code == "124":
            return ProfilingError(
                "timeout", what=f"the simulation was stopped after {self.job.timeout:g} s", where=self.design.top,
                hint="raise the time limit or simulate a smaller design", log_tail=log[-4000:],
            )  # fmt: skip
        if code != "0":
            return ProfilingError(
                "tool-failed", what=f"the simulation ended with exit code {code}", where=self.design.top,
                limit=log.strip()[-400:], hint="see the end of its log", log_tail=log[-4000:],
            )  # fmt: skip
        try:
            return self.read(folder, log, program)
        except ProfilingError as error:
            return error

    def read(self, folder: Path, log: str, program: BuiltProgram) -> RtlRun:
        result = _result(folder)
        deadlocked = result["verdict"] == "idle"
        if result["verdict"] == "limit":
            raise ProfilingError(
                "timeout", what=f"the core is not done after {result['cycles']} cycles", where=self.design.top,
                hint="allow more cycles, or simulate a smaller design",
            )  # fmt: skip
        ports: dict[str, PortActivity] = {}
        outputs: dict[str, Array] = {}
        for index, (port, seen) in enumerate(zip(self.design.ports, result["ports"], strict=True)):
            times = None if port.kind == "memory_read" else np.fromfile(folder / f"s{index}.times", np.int64)
            ports[port.name] = PortActivity(seen["count"], seen["first"], seen["last"], times)
            if port.kind == "stream_out":
                tokens = decode((folder / f"s{index}").read_bytes(), port)
                outputs[port.name] = tokens[: seen["count"]]
            if not deadlocked:
                self._check(port, seen)
        for number, (name, users) in enumerate(self.stores.items(), 1):
            if self._written(name):
                words = decode((folder / f"m{number}.out").read_bytes(), users[0])
                outputs[name] = words.reshape(-1, users[0].words, words.shape[1]) if self.one_by_one else words
        times = (None, None, None) if deadlocked else self._times(ports, result["done"])
        occupancy = _probes(log, "occupancy")
        return RtlRun(
            outputs, result["cycles"], *times, tuple(result["done"]), ports, _probes(log, "high_water"), deadlocked,
            self._stuck(result["ports"], occupancy) if deadlocked else (), result["seconds"], program,
            _probes(log, "measured"),
        )  # fmt: skip

    def _check(self, port: RtlPort, seen: Mapping[str, int]) -> None:
        """What a core does beyond its declared ports is an error, though its outputs may be right."""
        wrong = ""
        if seen["outside"]:
            wrong = f"{seen['outside']} accesses beyond the {port.words} words of {port.name}"
        elif port.kind == "stream_out" and seen["count"] > port.words * self.frames:
            wrong = f"{seen['count']} tokens came out of {port.name}, {port.words * self.frames} were expected"
        if wrong:
            raise ProfilingError(
                "wrong-result", what=wrong, where=self.design.top,
                hint="this is a defect in the RTL backend; please report it",
            )  # fmt: skip

    def _times(self, ports: Mapping[str, PortActivity], done: Sequence[int]) -> tuple[int, int, int]:
        """Latency and initial delay of the first frame, and the distance of the last two frames' ends.

        A frame ends when its last word has left and all tasks are done: one may still have something to finish.
        """
        ends: list[NDArray[np.int64]] = []
        firsts: list[int] = []
        for port in self.design.ports:
            times = ports[port.name].times
            if port.kind not in ("stream_out", "memory_write") or times is None or not times.size:
                continue
            if times.size % self.frames:
                raise ProfilingError(
                    "wrong-result", what=f"{times.size} words left {port.name} in {self.frames} frames",
                    where=self.design.top, hint="this is a defect in the RTL backend; please report it",
                )  # fmt: skip
            ends.append(times.reshape(self.frames, -1)[:, -1] + 1)
            if port.kind == "stream_out" or not self._read(port.argument or port.name):
                firsts.append(int(times[0]))
        if not ends:
            raise ProfilingError(
                "bad-request", what="nothing ever leaves the core", where=self.design.top,
                hint="simulate a core that writes a stream or a memory",
            )  # fmt: skip
        last = np.max([*ends, np.asarray(done[: self.frames]) + 1], axis=0)
        latency = int(last[0])
        return latency, min(firsts, default=latency), int(last[-1] - last[-2]) if self.frames > 1 else latency

    def _stuck(self, seen: Sequence[Mapping[str, int]], occupancy: Mapping[str, int]) -> tuple[str, ...]:
        lines: list[str] = []
        for port, one in zip(self.design.ports, seen, strict=True):
            if port.is_memory:
                lines.append(f"{port.name}: {one['count']} accesses")
            else:
                offers = "offers" if one["strobe"] else "does not offer"
                takes = "takes" if one["ready"] else "does not take"
                passed = f"{one['count']} of {port.words * self.frames} tokens"
                lines.append(f"{port.name}: {passed}; the writer {offers} one, the reader {takes} one")
        return (*lines, *(f"{channel}: holds {count}" for channel, count in occupancy.items()))


def _probes(log: str, kind: str) -> dict[str, int]:
    """What channels said of themselves at the end."""
    return {channel: int(number) for found, channel, number in PROBE.findall(log) if found == kind}


def _result(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "result.json").read_text())
    except (OSError, ValueError) as error:
        raise ProfilingError(
            "report-missing", what="the simulation wrote no result", where="simulation",
            hint="see the end of its log",
        ) from error  # fmt: skip


def _shape(name: str, array: Array, limit: str) -> PenstockError:
    return PenstockError(
        code="rtl-inputs", what=f"the data of {name} has shape {array.shape}", where=name,
        limit=f"the core takes {limit}", hint="give the tokens or words of one frame, or of all",
    )  # fmt: skip
