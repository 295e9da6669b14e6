"""The closed-form model: schedules, token times and areas of a design without running any tool (`modelled`).

It answers in milliseconds, which is what the search needs. What it leaves out: clock frequency that placement
costs, the tools' sharing and renaming of logic, memory refresh and bank conflicts, the host's link.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import ceil

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.math import Math
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.dialects import OWN_DIALECTS, stream
from compiler.errors import PenstockError
from compiler.platforms import Platform, Resources, load_platform, total
from compiler.schedule import NestSchedule, load_library
from profiling.bandwidth import memory_cycles
from profiling.evidence import Evidence
from profiling.network import Channel, Network, Task, network_of
from profiling.protocol import Profile, ProfileRequest, ProfilingError
from profiling.timeline import Timeline, TimelineMemory, compute_timeline

_MOST_AREAS = 1 << 16

MODEL_REVISION = "2"  # raise it whenever the model's answers change


@dataclass(frozen=True)
class TaskFigures:
    """One task of a modelled design, times in cycles of one run."""

    name: str
    layer: str
    iterations: int
    ii: int
    ii_reason: str
    depth: int
    latency: int
    initial_delay: int
    start: int
    end: int
    waited: int
    resources: Resources


@dataclass(frozen=True)
class ChannelFigures:
    """One channel: what it carries, how full it gets, what it costs."""

    name: str
    kind: str
    writer: str
    reader: str
    depth: int
    bits: int
    tokens: int
    high_water: int
    least_depth: int
    resources: Resources


@dataclass(frozen=True)
class DesignFigures:
    """What the model says of a whole design. `exact_times` is False where long channels were sampled."""

    latency: int
    interval: int
    initial_delay: int
    resources: Resources
    bottleneck: str
    tasks: tuple[TaskFigures, ...]
    channels: tuple[ChannelFigures, ...]
    exact_times: bool
    memory_cycles: float | None = None
    """Cycles that the traffic of one run takes at least; None where the platform has no external memory."""
    evidence: Evidence = "modelled"


class DesignModel:
    """Time and area of designs on one platform at one clock; what was found for one helps with the next."""

    def __init__(self, platform: Platform, clock_mhz: float) -> None:
        self.platform, self.clock_mhz = platform, clock_mhz
        self.library = load_library(platform.operators, platform.check_clock(clock_mhz))
        self._timelines = TimelineMemory()
        self._areas: dict[tuple[str, int, int, int], Resources] = {}
        self._task_areas: dict[int, tuple[Resources, object]] = {}

    def figures(self, network: Network, *, bounded: bool = True) -> DesignFigures:
        """Time and area of a scheduled network. `bounded=False` ignores channel depths (to find them)."""
        kernels = [self._kernel(part, bounded=bounded) for part in network.groups]
        found = kernels[0] if len(kernels) == 1 else _in_sequence(kernels)
        traffic = memory_cycles(network, self.platform, self.clock_mhz)
        return replace(found, memory_cycles=traffic, interval=max(found.interval, ceil(traffic or 0)))

    def with_depths(self, figures: DesignFigures, network: Network, depths: Mapping[str, int]) -> DesignFigures:
        """The figures of the same network with other FIFO depths; new times only where a depth could cost some."""
        depth_of = {name: depths.get(name, channel.depth) for name, channel in network.channels.items()}
        written = Counter(c.writer for c in figures.channels)
        if any(_enough(c, written) > depth_of[c.name] for c in figures.channels):
            return self.figures(network.with_depths(depths))
        channels = tuple(
            c if depth_of[c.name] == c.depth
            else replace(c, depth=depth_of[c.name], resources=self._area(network.channels[c.name], depth_of[c.name]))
            for c in figures.channels
        )  # fmt: skip
        area = total([t.resources for t in figures.tasks]) + total([c.resources for c in channels])
        return replace(figures, channels=channels, resources=area)

    def _kernel(self, network: Network, *, bounded: bool) -> DesignFigures:
        timeline = compute_timeline(
            network,
            flushing=self.library.flushing,
            read_stage=self.library.read_stage,
            platform=self.platform,
            clock_mhz=self.clock_mhz,
            bounded=bounded,
            memory=self._timelines,
        )
        tasks = tuple([_task_figures(task, timeline, self._task_area(task)) for task in network.tasks])
        ends = network.ends()
        channels = tuple([self._channel(c, ends[name], timeline) for name, c in network.channels.items()])
        slowest = max(tasks, key=lambda t: t.latency)
        return DesignFigures(
            latency=timeline.latency,
            interval=max([slowest.latency, *_block_intervals(network, ends)]),
            initial_delay=timeline.first_output,
            resources=total([t.resources for t in tasks]) + total([c.resources for c in channels]),
            bottleneck=slowest.name,
            tasks=tasks,
            channels=channels,
            exact_times=timeline.exact,
        )

    def _channel(self, channel: Channel, ends: tuple[str, str], timeline: Timeline) -> ChannelFigures:
        times = timeline.channels[channel.name]
        return ChannelFigures(
            name=channel.name,
            kind=channel.kind,
            writer=ends[0],
            reader=ends[1],
            depth=channel.depth,
            bits=channel.bits,
            tokens=times.count,
            high_water=times.high_water,
            least_depth=times.least_depth,
            resources=self._area(channel, channel.depth),
        )

    def _area(self, channel: Channel, depth: int) -> Resources:
        key = (channel.kind, depth, channel.bits, channel.words)
        if key not in self._areas:
            self._areas[key] = replace(channel, depth=depth).area(self.library)
        return self._areas[key]

    def _task_area(self, task: Task) -> Resources:
        """By the identity of its nests, which are kept beside it."""
        found = self._task_areas.get(id(task.nests))
        if found is None:
            if len(self._task_areas) > _MOST_AREAS:
                self._task_areas.clear()
            found = self._task_areas[id(task.nests)] = (task.area, task.nests)
        return found[0]


def model_design(network: Network, platform: Platform, clock_mhz: float, *, bounded: bool = True) -> DesignFigures:
    """Time and area of one scheduled network. `bounded=False` ignores channel depths (to find them)."""
    return DesignModel(platform, clock_mhz).figures(network, bounded=bounded)


def _in_sequence(kernels: Sequence[DesignFigures]) -> DesignFigures:
    """Kernels that run one after the other: times add up, and so does the area, for all are there at once."""
    tasks: list[TaskFigures] = []
    before = 0
    for kernel in kernels:
        tasks += [replace(t, start=t.start + before, end=t.end + before) for t in kernel.tasks]
        before += kernel.latency
    return DesignFigures(
        latency=before,
        interval=before,
        initial_delay=before - kernels[-1].latency + kernels[-1].initial_delay,
        resources=total([k.resources for k in kernels]),
        bottleneck=max(tasks, key=lambda t: t.latency).name,
        tasks=tuple(tasks),
        channels=tuple(c for k in kernels for c in k.channels),
        exact_times=all(k.exact_times for k in kernels),
    )


def _enough(channel: ChannelFigures, written: Mapping[str, int]) -> int:
    """The depth from which on a channel leaves the design's latency alone."""
    alone = written[channel.writer] == 1
    return channel.least_depth if alone and channel.kind == "stream" else channel.high_water


def _task_figures(task: Task, timeline: Timeline, area: Resources) -> TaskFigures:
    times = timeline.tasks[task.name]
    busiest = max(task.nests, key=lambda n: n.latency)
    return TaskFigures(
        name=task.name,
        layer=task.layer,
        iterations=sum(n.iterations for n in task.nests),
        ii=busiest.ii,
        ii_reason=_pace(task, busiest, timeline.busy[task.name]),
        depth=busiest.depth,
        latency=timeline.busy[task.name],
        initial_delay=task.nests[0].initial_delay,
        start=times.start,
        end=times.end,
        waited=times.waited,
        resources=area,
    )


def _pace(task: Task, busiest: NestSchedule, busy: int) -> str:
    """What a task's pace comes from: its slowest nest's bound, or the external memory that it waits for."""
    if busy <= task.busy:
        return busiest.ii_reason
    cycles = busy / sum(n.iterations for n in task.nests)
    return f"external memory serves it every {cycles:.1f} cycles, the pipeline could go on every {busiest.ii}"


def _block_intervals(network: Network, ends: Mapping[str, tuple[str, str]]) -> list[int]:
    """A single buffer makes its writer and its reader take turns."""
    single = [n for n, c in network.channels.items() if c.kind == "block" and c.depth == 1]
    if not single:
        return []
    busy = {t.name: t.busy for t in network.tasks}
    return [busy[ends[name][0]] + busy[ends[name][1]] for name in single]


class ModelProfiler:
    """The model behind the `Profiler` protocol."""

    tool = "penstock-model"
    evidence: Evidence = "modelled"

    def version(self) -> str:
        return f"{MODEL_REVISION}.{_tables_digest()[:12]}"

    def profile(self, request: ProfileRequest) -> Profile:
        try:
            platform = load_platform(request.platform)
            library = load_library(platform.operators, platform.check_clock(request.clock_mhz))
            network = network_of(parse_request(request), library)
            figures = model_design(network, platform, request.clock_mhz)
        except ProfilingError:
            raise
        except PenstockError as error:
            raise ProfilingError(
                "bad-request",
                what=error.what,
                where=error.where or request.name,
                limit=error.limit,
                hint=error.hint,
            ) from error
        only = _kernel_of(network, figures)
        return Profile(
            key=request.key(self.tool, self.version()),
            name=request.name,
            tool=self.tool,
            tool_version=self.version(),
            evidence=self.evidence,
            clock_mhz=request.clock_mhz,
            latency_cycles=figures.latency,
            interval_cycles=figures.interval,
            initial_delay_cycles=figures.initial_delay,
            ii=only.ii if only else None,
            depth=only.depth if only else None,
            resources=figures.resources,
        )


def _kernel_of(network: Network, figures: DesignFigures) -> TaskFigures | None:
    """The one task that computes, where a single kernel is profiled; None for a larger design.

    Loads, stores and converters only move data: every step of theirs names a memory or a channel.
    """
    inside = [t.name for t in network.tasks if any(" " not in s.name for n in t.nests for s in n.stages)]
    return next(t for t in figures.tasks if t.name == inside[0]) if len(inside) == 1 else None


def parse_request(request: ProfileRequest) -> stream.TopOp:
    """The design of a request; text that is none is a bad request."""
    return top_of(parse_module(request), request.name)


def parse_module(request: ProfileRequest) -> ModuleOp:
    """The stream-level module of a request, verified, with one design in it."""
    context = Context()
    for dialect in (Builtin, Arith, Math, *OWN_DIALECTS):
        context.load_dialect(dialect)
    try:
        module = Parser(context, request.text).parse_module()
        module.verify()
    except (ParseError, VerifyException) as error:
        raise ProfilingError(
            "bad-request", what="the text is not a valid stream-level module", where=request.name,
            hint="profile what the compiler lowered", log_tail=str(error)[-2000:],
        ) from error  # fmt: skip
    top_of(module, request.name)
    return module


def top_of(module: ModuleOp, where: str) -> stream.TopOp:
    """The one design of a stream-level module."""
    tops = [op for op in module.ops if isinstance(op, stream.TopOp)]
    if len(tops) != 1:
        raise ProfilingError(
            "bad-request", what=f"the module holds {len(tops)} stream-level designs", where=where,
            limit="exactly one is profiled at a time", hint="profile what the compiler lowered",
        )  # fmt: skip
    return tops[0]


@cache
def _tables_digest() -> str:
    """A change of an operator table or a platform is another version of the model."""
    digest = hashlib.sha256()
    for package, folder in (("compiler.schedule", "operators"), ("compiler.platforms", "data")):
        for file in sorted(files(package).joinpath(folder).iterdir(), key=lambda f: f.name):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
