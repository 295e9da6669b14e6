"""The closed-form model: schedules, token times and areas of a design without running any tool (`modelled`).

It answers in milliseconds, which is what the search needs. What it leaves out: clock frequency that placement
costs, the tools' sharing and renaming of logic, memory refresh and bank conflicts, the host's link.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.math import Math
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from penstock.compiler.dialects import OWN_DIALECTS, stream
from penstock.compiler.evidence import Evidence
from penstock.compiler.platforms import Platform, Resources, total
from penstock.compiler.schedule import MemoryShape, NestSchedule, load_library
from penstock.profiling.bandwidth import memory_cycles
from penstock.profiling.network import Task, TaskChannel, TaskNetwork
from penstock.profiling.prefetch import Prefetch, prefetch_depths, waiting_frames
from penstock.profiling.protocol import ProfileRequest, ProfilingError
from penstock.profiling.steady import steady_times
from penstock.profiling.timeline import FreeTimeline, Timeline, TimelineMemory
from penstock.profiling.waiting import waiting_tokens

_MOST_INPUTS = 5
"""That are followed where full FIFOs hold them up. Where these hold less than an input, the second is as far behind the
first as any is behind the one before; of those that hold whole inputs, it takes so many more until they are full."""
_MOST_FACTS = 1 << 16
_AT_HAND = 6
"""Networks: what fits is looked for among a few that are much alike, and one of them timed."""


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
    waits_for_memory: bool = False
    """External memory sets its pace; else its own pipeline does. `ii_reason` says the same in words."""


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
    prefetch: Prefetch | None = None
    """Of a FIFO that a load alone fills."""
    waiting: int = 0
    """Where inputs follow each other: tokens that are held beyond those of one that comes alone."""

    def with_depth(self, depth: int, resources: Resources) -> ChannelFigures:
        return ChannelFigures(
            self.name, self.kind, self.writer, self.reader, depth, self.bits, self.tokens, self.high_water,
            self.least_depth, resources, self.prefetch, self.waiting,
        )  # fmt: skip


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


@dataclass
class _Latest:
    """One timeline for each kernel of a network, and its figures where no channel is ever full, once asked for."""

    network: TaskNetwork
    free: list[FreeTimeline]
    figures: DesignFigures | None = None


class DesignModel:
    """Time and area of designs on one platform at one clock; what was found for one helps with the next.

    `back_to_back` says that inputs follow each other and that the time between two of them matters: then words of
    later ones may wait for their readers.
    """

    def __init__(self, platform: Platform, clock_mhz: float, *, back_to_back: bool = False) -> None:
        self.platform, self.clock_mhz, self.back_to_back = platform, clock_mhz, back_to_back
        self.library = load_library(platform.operators, platform.check_clock(clock_mhz))
        self._timelines = TimelineMemory()
        self._areas: dict[tuple[str, int, int, MemoryShape | None], Resources] = {}
        self._facts: dict[int, tuple[_TaskFacts, object]] = {}
        self._latest = deque[_Latest](maxlen=_AT_HAND)

    def figures(self, network: TaskNetwork, *, bounded: bool = True, seen: bool = False) -> DesignFigures:
        """Time and area of a scheduled network. `bounded=False` ignores channel depths (to find them).

        Depths that were `seen` to run through are not doubted.
        """
        known = self._known(network)
        if bounded:
            pairs = zip(known.free, network.groups, strict=True)
            return self._figures(network, [free.bounded(part, seen=seen) for free, part in pairs])
        if known.figures is None:
            known.figures = self._figures(network, [free.result() for free in known.free])
        return known.figures

    def with_depths(
        self, figures: DesignFigures, network: TaskNetwork, depths: Mapping[str, int], *, seen: bool = False
    ) -> DesignFigures:
        """The figures of the same network with other FIFO depths; new times only where a depth could cost some.

        Depths that were `seen` to run through, or that do so by what they are, are not doubted.
        """
        depth_of = {name: depths.get(name, channel.depth) for name, channel in network.channels.items()}
        written = Counter(c.writer for c in figures.channels)
        tight = any(_enough(c, written) > depth_of[c.name] for c in figures.channels)
        alone = not self.back_to_back or len(network.groups) > 1 or network.has_circles
        if tight or (not alone and any(_crowded(c, depth_of[c.name]) for c in figures.channels)):
            changed, free = network.with_depths(depths), self._free(network)
            if not alone:
                return self._of_several(free[0], changed, depth_of, figures.channels, seen=seen)
            pairs = zip(free, changed.groups, strict=True)
            timelines = [one.bounded(part, seen=seen) for one, part in pairs]
            found = self._figures(changed, timelines)
        else:
            timelines = [free.result() for free in self._free(network)]
            found = self.with_area(figures, network, depths)
        if len(network.groups) > 1:  # inputs do not overlap
            return found
        busy = {task.name: task.latency for task in found.tasks}
        steady = steady_times(network, busy, depth_of, timelines[0].channels).interval(busy)
        if steady > found.interval and not alone:  # which it may be by far less
            free = self._free(network)[0]
            return self._of_several(free, network.with_depths(depths), depth_of, figures.channels, seen=seen)
        return replace(found, interval=max(found.interval, steady))

    def _of_several(
        self, free: FreeTimeline, network: TaskNetwork, depths: Mapping[str, int], channels: Sequence[ChannelFigures],
        *, seen: bool,
    ) -> DesignFigures:  # fmt: skip
        """With the time between inputs that hold each other up, as they are followed one by one."""
        holding = [depths[c.name] // c.tokens for c in channels if _crowded(c, depths[c.name])]
        taking_turns = any(len(task.nests) > 1 for task in network.tasks)  # every other input may be sooner
        inputs = min(2 + taking_turns + max(holding, default=0), _MOST_INPUTS)
        timeline = free.followed(network, inputs, seen=seen)
        found = self._figures(network, [timeline])
        interval = max(*timeline.busy.values(), timeline.apart or 0, ceil(found.memory_cycles or 0))
        return replace(found, interval=interval)

    def with_area(self, figures: DesignFigures, network: TaskNetwork, depths: Mapping[str, int]) -> DesignFigures:
        """The figures of the same network with the area of other FIFO depths, and the times that they had."""
        depth_of = {name: depths.get(name, channel.depth) for name, channel in network.channels.items()}
        channels = tuple([
            c if (depth := depth_of[c.name]) == c.depth
            else c.with_depth(depth, self._area(network.channels[c.name], depth))
            for c in figures.channels
        ])  # fmt: skip
        area = total([t.resources for t in figures.tasks]) + total([c.resources for c in channels])
        return replace(figures, channels=channels, resources=area)

    def _free(self, network: TaskNetwork) -> list[FreeTimeline]:
        return self._known(network).free

    def _known(self, network: TaskNetwork) -> _Latest:
        """The latest few networks' are at hand."""
        found = next((one for one in tuple(self._latest) if one.network is network), None)
        if found is None:
            free = [
                FreeTimeline(
                    part, read_stage=self.library.read_stage, platform=self.platform, clock_mhz=self.clock_mhz,
                    memory=self._timelines,
                )
                for part in network.groups
            ]  # fmt: skip
            self._latest.appendleft(found := _Latest(network, free))
        return found

    def _figures(self, network: TaskNetwork, timelines: Sequence[Timeline]) -> DesignFigures:
        """Kernels run one after the other: times add up, and so does the area, for all are there at once."""
        tasks: list[TaskFigures] = []
        intervals: list[int] = []
        before = 0
        for part, timeline in zip(network.groups, timelines, strict=True):
            tasks += [_task_figures(task, timeline, self._facts_of(task), before) for task in part.tasks]
            intervals += [*timeline.busy.values(), *_block_intervals(part, part.ends())]
            before += timeline.latency
        traffic = memory_cycles(network, self.platform, self.clock_mhz)
        interval = max(*(intervals if len(timelines) == 1 else [before]), ceil(traffic or 0))
        channels: list[ChannelFigures] = []
        for part, timeline in zip(network.groups, timelines, strict=True):
            ends, ahead = part.ends(), prefetch_depths(part, timeline.busy)
            waiting: Mapping[str, int] = {}
            if self.back_to_back:
                over = {name: times.end for name, times in timeline.tasks.items()}
                ahead = waiting_frames(part, ahead, over, interval)
                steady = steady_times(part, timeline.busy, {}, timeline.channels)
                pace = max(interval, steady.interval(timeline.busy))
                waiting = waiting_tokens(part, steady.late, over, timeline.channels, pace)
            channels += [
                self._channel(c, ends[name], timeline, ahead.get(name), waiting.get(name, 0))
                for name, c in part.channels.items()
            ]
        return DesignFigures(
            latency=before,
            interval=interval,
            initial_delay=before - timelines[-1].latency + timelines[-1].first_output,
            resources=total([t.resources for t in tasks]) + total([c.resources for c in channels]),
            bottleneck=max(tasks, key=lambda t: t.latency).name,
            tasks=tuple(tasks),
            channels=tuple(channels),
            exact_times=all(t.exact for t in timelines),
            memory_cycles=traffic,
        )

    def _channel(
        self, channel: TaskChannel, ends: tuple[str, str], timeline: Timeline, prefetch: Prefetch | None, waiting: int
    ) -> ChannelFigures:
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
            prefetch=prefetch,
            waiting=waiting,
        )

    def _area(self, channel: TaskChannel, depth: int) -> Resources:
        key = (channel.kind, depth, channel.bits, channel.memory)
        if key not in self._areas:
            self._areas[key] = replace(channel, depth=depth).area(self.library)
        return self._areas[key]

    def _facts_of(self, task: Task) -> _TaskFacts:
        """By the identity of its nests, which are kept beside it."""
        found = self._facts.get(id(task.nests))
        if found is None:
            if len(self._facts) > _MOST_FACTS:
                self._facts.clear()
            found = self._facts[id(task.nests)] = (_TaskFacts.of(task), task.nests)
        return found[0]


def _enough(channel: ChannelFigures, written: Mapping[str, int]) -> int:
    """The depth from which on a channel leaves the design's latency alone."""
    alone = written[channel.writer] == 1
    return channel.least_depth if alone and channel.kind == "stream" else channel.high_water


def _crowded(channel: ChannelFigures, depth: int) -> bool:
    """Whether several inputs at once may find no room in what one alone has enough of."""
    return channel.prefetch is None and 0 < channel.waiting > depth - channel.high_water


@dataclass(frozen=True)
class _TaskFacts:
    """What figures of a task follow from its nests alone."""

    iterations: int
    busiest: NestSchedule
    busy: int
    initial_delay: int
    area: Resources

    @staticmethod
    def of(task: Task) -> _TaskFacts:
        busiest = max(task.nests, key=lambda n: n.latency)
        iterations = sum(n.iterations for n in task.nests)
        return _TaskFacts(iterations, busiest, task.busy, task.nests[0].initial_delay, task.area)

    def waits_for_memory(self, busy: int) -> bool:
        return busy > self.busy

    def pace(self, busy: int) -> str:
        """What a task's pace comes from: its slowest nest's bound, or the external memory that it waits for."""
        if not self.waits_for_memory(busy):
            nest = self.busiest
            again = f", and it starts anew for each of {nest.blocks} blocks" if nest.idle else ""
            return nest.ii_reason + again
        cycles = busy / self.iterations
        return f"external memory serves it every {cycles:.1f} cycles, the pipeline could go on every {self.busiest.ii}"


def _task_figures(task: Task, timeline: Timeline, facts: _TaskFacts, before: int) -> TaskFigures:
    """Of a task whose kernel begins in cycle `before`."""
    times, busy = timeline.tasks[task.name], timeline.busy[task.name]
    return TaskFigures(
        name=task.name,
        layer=task.layer,
        iterations=facts.iterations,
        ii=facts.busiest.ii,
        ii_reason=facts.pace(busy),
        depth=facts.busiest.depth,
        latency=busy,
        initial_delay=facts.initial_delay,
        start=times.start + before,
        end=times.end + before,
        waited=times.waited,
        resources=facts.area,
        waits_for_memory=facts.waits_for_memory(busy),
    )


def _block_intervals(network: TaskNetwork, ends: Mapping[str, tuple[str, str]]) -> list[int]:
    """A single buffer makes its writer and its reader take turns."""
    single = [n for n, c in network.channels.items() if c.kind == "block" and c.depth == 1]
    if not single:
        return []
    busy = {t.name: t.busy for t in network.tasks}
    return [busy[ends[name][0]] + busy[ends[name][1]] for name in single]


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
