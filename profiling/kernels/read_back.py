"""Our own emitted C++ read by the front end for other people's: are its pipelines those it was written from?

Two schedulers stand beside each other: that of our nests, on whose II and depth every figure of a compiled model rests,
and that of sources, which public designs with their tools' reports are the judge of. Here the one is asked about the
other's text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from penstock.compiler.dialects import stream
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.timed import Timed, time_kernel
from penstock.compiler.schedule import NestSchedule, OperatorLibrary
from penstock.compiler.simulator import Network, SimulatedProcess
from penstock.profiling.network import Task, network_of

PassedTokens = tuple[tuple[str, int], ...]
"""Directions and numbers of what passes between tasks, sorted."""


@dataclass(frozen=True)
class PipelineFigures:
    """Iterations of one run of a pipeline, its II, its stages, and whether it flushes."""

    iterations: int
    ii: int
    depth: int
    flushes: bool


@dataclass(frozen=True)
class ReadBackNest:
    """One nest of a task: as it was scheduled before it was written, and as it was read. None: there is none."""

    task: str
    written: PipelineFigures | None
    read: PipelineFigures | None

    @property
    def same_nest(self) -> bool:
        return self.written is not None and self.read is not None and self.written.iterations == self.read.iterations

    @property
    def same_ii(self) -> bool:
        """Its II, and how it waits for input."""
        written, read = self.written, self.read
        if not self.same_nest or written is None or read is None:
            return False
        return (written.ii, written.flushes) == (read.ii, read.flushes)

    @property
    def deeper(self) -> int | None:
        """Stages that the pipeline has more as it was read."""
        return self.read.depth - self.written.depth if self.written is not None and self.read is not None else None


@dataclass(frozen=True)
class ReadBack:
    nests: tuple[ReadBackNest, ...]
    other_tokens: tuple[str, ...]
    """Tasks that pass other numbers of tokens or blocks than they were written to."""

    @property
    def same(self) -> bool:
        """Whether every nest is there with its iterations, its II and its tokens. Depths are another matter."""
        return not self.other_tokens and all(one.same_ii for one in self.nests)


def read_back(top: stream.TopOp, library: OperatorLibrary, folder: Path) -> ReadBack:
    """Read the C++ of a design as `emit_hls` wrote it to `folder`, and hold its pipelines against the nests."""
    network = network_of(top, library)
    source = folder / "hls" / "penstock_top.cpp"
    timed = time_kernel(read_kernel(source, top.sym_name.data), Delays(library, reassociate=False))
    read: dict[str, list[PipelineFigures]] = {}
    for item, found in timed.schedules.items():
        if isinstance(item, Pipeline):
            figures = PipelineFigures(item.iterations, found.ii, found.depth, found.flushes)
            read.setdefault(timed.owners[item], []).append(figures)
    nests = [
        ReadBackNest(task.name, written, one)
        for task in network.tasks
        for written, one in zip_longest(map(_figures, task.nests), read.get(task.name, []))
    ]
    processes = {process.name: process for process in _processes(timed)}
    other = [t.name for t in network.tasks if t.name not in processes or _sent(t) != _passed(processes[t.name])]
    return ReadBack(tuple(nests), tuple(other))


def _figures(schedule: NestSchedule) -> PipelineFigures:
    return PipelineFigures(schedule.run_iterations, schedule.ii, schedule.depth, schedule.flushes)


def _sent(task: Task) -> PassedTokens:
    counts = Counter[tuple[str, str]]()
    for schedule in task.nests:
        for port in schedule.ports:
            if port.kind != "external":
                passed = schedule.blocks if port.kind == "block" else port.pattern.count
                counts[port.direction, port.channel] += passed
    return _sorted((direction, n) for (direction, _), n in counts.items())


def _passed(process: SimulatedProcess) -> PassedTokens:
    counts = Counter[tuple[str, str]]()
    for phase in process.phases:
        for access in phase.accesses:
            counts[access.direction, access.channel] += access.tokens
    return _sorted((direction, n) for (direction, _), n in counts.items())


def _sorted(tokens: Iterable[tuple[str, int]]) -> PassedTokens:
    return tuple(sorted(tokens))


def _processes(timed: Timed) -> Iterator[SimulatedProcess]:
    design = timed.design
    networks = [design] if isinstance(design, Network) else list(design.networks)
    for network in networks:
        yield from network.processes
