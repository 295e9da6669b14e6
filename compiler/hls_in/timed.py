"""A kernel with the schedule of each of its pipelines, as what the simulator runs."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.channel_ends import accesses_of, arrays_of, lane_groups, lanes_met, stream_ends
from penstock.compiler.hls_in.cutting import cut_memories
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.records import (
    Again,
    Called,
    DataflowRegion,
    Either,
    KernelTask,
    Pipeline,
    ReadKernel,
    Region,
    Straight,
    graphs,
)
from penstock.compiler.hls_in.schedule import ScheduledPipeline, schedule
from penstock.compiler.hls_in.storage import Counter, KernelArray, KernelStream
from penstock.compiler.names import Names
from penstock.compiler.simulator import (
    Channel,
    ChannelAccess,
    Network,
    Phase,
    Repeat,
    Sequence,
    SimulatedProcess,
    StartControl,
)  # fmt: skip

MOST_PHASES = 4000
MOST_TURNS = 1 << 19
"""Of a loop whose turns are looked at one by one, wherever the loops that decide it stand."""
TurnsAt = Mapping[Counter, int]
_LEAST_STRAIGHT = 4
"""Operations outside of loops that take fewer cycles than this pass while the control goes from loop to loop."""


@dataclass
class Timed:
    """`schedules` are those of all pipelines; `owners` says which task each belongs to."""

    kernel: ReadKernel
    design: Network | Sequence
    schedules: dict[Pipeline | Straight, ScheduledPipeline]
    owners: dict[Pipeline | Straight, str] = field(default_factory=dict["Pipeline | Straight", str])
    channels: dict[str, KernelStream | KernelArray] = field(default_factory=dict[str, "KernelStream | KernelArray"])
    lanes: dict[str, int] = field(default_factory=dict[str, int])
    """Streams of an array that one channel stands for, where there are several."""


Override = Callable[[str, Pipeline, ScheduledPipeline], ScheduledPipeline]


class RegionTiming:
    def __init__(self, kernel: ReadKernel, delays: Delays, override: Override | None = None) -> None:
        self.kernel = kernel
        self.delays = delays
        self.override = override
        self.timed = Timed(kernel, Network(kernel.name, ()), {})
        self.least = _LEAST_STRAIGHT
        self._deciding: dict[Region, frozenset[Counter]] = {}
        self._known: dict[tuple[Region, str, int, tuple[tuple[Counter, int], ...]], int] = {}

    def run(self) -> Timed:
        for array in self.kernel.arrays:
            array.own_cut.clear()
        body = [item for item in self.kernel.body if not self._passes(item)]
        if len(body) == 1 and isinstance(flow := body[0], DataflowRegion):
            self.timed.design = self._network(flow)
        else:
            cut_memories(body, self.delays)
            control = StartControl("s_axilite", len(self.kernel.scalars)) if self.kernel.s_axilite else StartControl()
            self.timed.design = Sequence(self.kernel.name, tuple(self._steps(body)) or self._short(), control)
        return self.timed

    def _short(self) -> tuple[tuple[Phase | Repeat | Network, ...], ...]:
        self.least = 0  # what passes beside loops is all that there is
        if steps := tuple(self._steps([item for item in self.kernel.body if not self._passes(item)])):
            return steps
        raise PenstockError(
            code="unsupported-source", what=f"{self.kernel.name!r} changes nothing that is seen outside of it",
            where=self.kernel.body_at, limit="figures are of what is written or returned", hint="write to an argument",
        )  # fmt: skip

    def _passes(self, item: Region) -> bool:
        """Short, or a loop that fills memories of the kernel with a constant which nobody changes: no hardware."""
        if isinstance(item, Straight):
            return not self._long(item)
        if not isinstance(item, Pipeline):
            return False
        effects = [n for n in item.graph.nodes if n.op in ("load", "store", "take", "put", "phi")]
        filled = {n.array for n in effects}
        return bool(effects) and all(
            n.op == "store" and n.args[0].constant and n.guard is None and n.array is not None and not n.array.argument
            for n in effects
        ) and not any(
            n.op in ("store", "phi") and n.array in filled and piece is not item
            for piece in graphs(self.kernel.body) for n in piece.graph.nodes
        )  # fmt: skip

    def scheduled(self, item: Pipeline | Straight, owner: str) -> ScheduledPipeline:
        if item not in self.timed.schedules:
            found = self._schedule(item)
            if self.override is not None and isinstance(item, Pipeline):
                found = self.override(owner, item, found)
            self.timed.schedules[item] = found
            self.timed.owners[item] = owner
        return self.timed.schedules[item]

    def _schedule(self, item: Pipeline | Straight) -> ScheduledPipeline:
        try:
            return schedule(item, self.delays)
        except PenstockError as error:
            if error.code != "unknown-operator":
                raise
            raise PenstockError(
                code="unsupported-source", what=f"there are {error.what} of {self.delays.library.version}",
                where=item.where or self.kernel.body_at, limit=error.limit, hint=self._instead(error.what),
            ) from error  # fmt: skip

    def _instead(self, what: str) -> str:
        """What to write for an operator without figures."""
        known = sorted({op for row in self.delays.library.operators for op in row.ops if op.startswith("math.")})
        if not any(f"for {op} on" in what for op in known) and "for math." in what:
            names = ", ".join(op.removeprefix("math.") for op in known)
            return f"look it up in a table that a function fills from constants alone, or write it with {names}"
        return "compute it in floats or integers"

    def _long(self, item: Straight) -> bool:
        return (
            any(n.op in ("take", "put") for n in item.graph.nodes)
            or self.scheduled(item, self.kernel.name).depth >= self.least
        )

    # regions one after the other

    def _steps(self, items: list[Region]) -> Iterator[tuple[Phase | Repeat | Network, ...]]:
        """Items that share no memory and no stream run at the same time, as the tool starts them."""
        group: list[tuple[Region, str]] = []
        used: set[KernelArray | KernelStream] = set()
        for item, owner in _inlined(items, self.kernel.name):
            if isinstance(item, Straight) and not self._long(item):
                continue
            own = touched(item)
            if group and own & used:
                yield tuple(self._item(i, o) for i, o in group)
                group, used = [], set()
            group.append((item, owner))
            used |= own
        if group:
            yield tuple(self._item(i, o) for i, o in group)

    def _item(self, item: Region, owner: str) -> Phase | Repeat | Network:
        if isinstance(item, (Pipeline, Straight)):
            return self.phase(item, owner)
        if isinstance(item, Again) and not varies(item):
            phases = tuple(self._phases(item.body, owner))
            return Repeat(item.counter.trip, self._around(phases), phases)
        if isinstance(item, DataflowRegion):
            return self._network(item)
        return Phase((1,), 1, self._cycles(item, owner) - isinstance(item, Again), name=item.name)

    def _phases(self, items: list[Region], owner: str, at: TurnsAt | None = None) -> Iterator[Phase]:
        for item, own in _inlined(items, owner):
            if isinstance(item, Straight) and not self._long(item):
                continue
            if isinstance(item, (Pipeline, Straight)):
                yield self.phase(item, own, at=at)
            else:
                yield Phase((1,), 1, self._cycles(item, own, at), name=item.name)

    def _cycles(self, item: Region, owner: str, at: TurnsAt | None = None) -> int:
        """Cycles of a loop inside a loop that is not pipelined; `at` is where loops around stand, as far as it matters:
        a loop that others decide is looked at once for each place of these."""
        if item not in self._deciding:
            self._deciding[item] = decided_by(item)
        matters = {c: k for c, k in (at or {}).items() if c in self._deciding[item]}
        key = (item, owner, self.least, tuple(matters.items()))
        if key not in self._known:
            self._known[key] = self._cycles_at(item, owner, matters)
        return self._known[key]

    def _cycles_at(self, item: Region, owner: str, at: TurnsAt) -> int:
        if isinstance(item, Again):
            turns = item.counter.trip if item.span is None else item.span.turns(at, item.counter.trip)
            if not varies(item, inside=True) or turns * prod(c.trip for c in at) > MOST_TURNS:
                phases = tuple(self._phases(item.body, owner, at))
                return turns * (self._around(phases) - 2 * len(phases)) + 1
            each = (tuple(self._phases(item.body, owner, {**at, item.counter: k})) for k in range(turns))
            return sum(self._around(phases) - 2 * len(phases) for phases in each) + 1
        if isinstance(item, DataflowRegion):
            lengths = [sum(p.length + 2 for p in self._phases(task.body, task.name, at)) for task in item.tasks]
            return max(lengths, default=0) + 2
        if isinstance(item, Either):  # the longer one
            lengths = [sum(p.length + 2 for p in self._phases(branch, owner, at)) for branch in item.branches]
            return max(lengths)
        if isinstance(item, Called):
            return sum(self._cycles(i, item.name, at) + 2 for i in item.body)
        return self.phase(item, owner, at=at).length

    @staticmethod
    def _around(phases: tuple[Phase, ...]) -> int:
        """Cycles of one iteration around others, as csynth prints it: each loop's, two to enter and leave it, one to
        go on to the next, and three of the loop itself."""
        return sum(phase.length + 1 for phase in phases) + len(phases) + 3

    def phase(
        self, item: Pipeline | Straight, owner: str, accesses: tuple[ChannelAccess, ...] = (), at: TurnsAt | None = None
    ) -> Phase:  # fmt: skip
        found = self.scheduled(item, owner)
        if isinstance(item, Straight):
            return Phase((1,), 1, found.depth, accesses, name="straight")
        turns = {c: span.turns(at or {}, c.trip) for c, span in item.spans.items()}
        if 0 in turns.values():
            return Phase((1,), 1, 1, name=item.name)
        trips = tuple(turns.get(c, c.trip) for c in item.counters) or (1,)
        return Phase(trips, found.ii, found.depth, accesses, item.name, found.flushes)

    # tasks at the same time

    def _network(self, flow: DataflowRegion) -> Network:
        tasks = merged(flattened(flow))
        met = Count(
            array for task in tasks for array in {*arrays_of(task.body, "load"), *arrays_of(task.body, "store")}
        )
        for array, times in met.items():
            array.shared = array.argument and times > 1
        cut_memories([part for task in tasks for part in task.body], self.delays)
        runs = {task.name: list(self._runs(task.body, task.name)) for task in tasks}
        sets = {name: lanes_met(items) for name, items in runs.items()}
        groups = lane_groups(list(sets.items()), self.timed.lanes)
        groups = {name: lane for name, lane in groups.items() if not lane[0].argument}  # outside they are never awaited
        self._check_ends(tasks, groups)
        arrays, blocks = self._pipos(tasks), [array for array in met if array.blocks]
        names = Names(groups)
        for array in (*(one for one, _, _ in arrays), *blocks):
            array.channel = names.take(array.name)
        channels = [
            Channel(name, "fifo", streams.depth, streams.bits) for name, (streams, _) in groups.items()
        ] + [
            Channel(array.channel, "pipo", 2, array.bits, array.words, producers, consumers)
            for array, producers, consumers in arrays
        ] + [
            Channel(array.channel, "block", array.blocks, array.bits, array.words) for array in blocks
        ]  # fmt: skip
        for name, (streams, _) in groups.items():
            self.timed.channels[name] = streams
        for array, _, _ in arrays:
            self.timed.channels[array.channel] = array
        processes: list[SimulatedProcess] = []
        for task in tasks:
            phases: list[Phase] = []
            for item in runs[task.name]:
                if isinstance(item, (Pipeline, Straight)):
                    found = self.scheduled(item, task.name)
                    accesses = tuple(accesses_of(item, groups, found.starts, found.depth))
                    phases.append(self.phase(item, task.name, accesses))
                else:
                    phases.append(Phase((1,), 1, self._cycles(item, task.name), name=getattr(item, "name", "")))
            processes.append(SimulatedProcess(task.name, tuple(phases) or (Phase((1,), 1, 1),)))
        return Network(self.kernel.name, tuple(processes), tuple(channels))

    def _runs(self, items: list[Region], owner: str) -> Iterator[Region]:
        """A task's phases in order. A loop around others that touches streams or blocks is written out."""
        for item, own in _inlined(items, owner):
            if isinstance(item, Straight) and not self._long(item):
                continue
            if isinstance(item, Again) and any(isinstance(t, KernelStream) or t.blocks for t in touched(item)):
                body = list(self._runs(item.body, own))
                if len(body) * item.counter.trip > MOST_PHASES:
                    raise PenstockError(
                        code="unsupported-source", where=item.where,
                        what=f"{item.counter.trip:,} runs of loops that touch streams or blocks",
                        limit=f"{MOST_PHASES:,} phases a task",
                        hint="make the loops perfect, so that they are one pipeline",
                    )  # fmt: skip
                for _ in range(item.counter.trip):
                    yield from body
            elif isinstance(item, DataflowRegion):
                for task in item.tasks:
                    yield from self._runs(task.body, task.name)
            elif isinstance(item, Either) and any(isinstance(t, KernelStream) or t.blocks for t in touched(item)):
                raise PenstockError(
                    code="unsupported-source", where=item.where,
                    what="a stream that loops in branches of a condition read or write is not supported",
                    hint="put the condition inside one loop",
                )  # fmt: skip
            else:
                yield item

    def _pipos(self, tasks: list[KernelTask]) -> list[tuple[KernelArray, tuple[str, ...], tuple[str, ...]]]:
        found: list[tuple[KernelArray, tuple[str, ...], tuple[str, ...]]] = []
        for array in self.kernel.arrays:
            if array.argument or array.constant or array.blocks:
                continue
            writers = tuple(t.name for t in tasks if array in arrays_of(t.body, "store"))
            readers = tuple(t.name for t in tasks if array in arrays_of(t.body, "load") and t.name not in writers)
            if writers and readers:
                found.append((array, writers, readers))
        return found

    def _check_ends(self, tasks: list[KernelTask], groups: dict[str, tuple[KernelStream, tuple[int, ...]]]) -> None:
        for name, (streams, lane) in groups.items():
            ends = {op: [t.name for t in tasks if (streams, lane) in stream_ends(t.body, op)] for op in ("take", "put")}
            for op, what in (("put", "written"), ("take", "read")):
                if len(ends[op]) != 1:
                    raise PenstockError(
                        code="unsupported-source",
                        what=f"the stream {name!r} is {what} by {len(ends[op]) or 'no'} tasks",
                        where=streams.where, hint="give every stream one task that writes and one that reads it",
                    )  # fmt: skip


def decided_by(item: Region) -> frozenset[Counter]:
    """The counters that say how often loops in it go round."""
    if isinstance(item, Straight):
        return frozenset()
    if isinstance(item, Pipeline):
        spans, parts = list(item.spans.values()), list[Region]()
    else:
        spans = [item.span] if isinstance(item, Again) and item.span is not None else []
        parts = [p for t in item.tasks for p in t.body] if isinstance(item, DataflowRegion) else item.body
    return frozenset(c for span in spans for c, _ in span.form.terms).union(*map(decided_by, parts))


def varies(item: Region, inside: bool = False) -> bool:
    """Whether loops of a loop do not go round equally often each time; `inside`: not asking for itself."""
    if isinstance(item, Pipeline):
        return bool(item.spans)
    if isinstance(item, Again) and item.span is not None and not inside:
        return True
    if isinstance(item, DataflowRegion):
        return any(varies(part) for task in item.tasks for part in task.body)
    return not isinstance(item, Straight) and any(varies(part) for part in item.body)


def flattened(flow: DataflowRegion) -> list[KernelTask]:
    """A dataflow region inside a task is more tasks of the same region."""
    found: list[KernelTask] = []
    for task in flow.tasks:
        inner = [item for item in task.body if isinstance(item, DataflowRegion)]
        if inner and len(task.body) == 1:
            taken = {other.name for other in found}
            for t in flattened(inner[0]):
                name = f"{task.name}.{t.name}" if t.name in taken else t.name
                found.append(KernelTask(name, t.body, t.where))
        else:
            found.append(task)
    return found


def _inlined(items: list[Region], owner: str) -> Iterator[tuple[Region, str]]:
    for item in items:
        if isinstance(item, Called):
            yield from _inlined(item.body, item.name)
        else:
            yield item, owner


def touched(item: Region) -> set[KernelArray | KernelStream]:
    found: set[KernelArray | KernelStream] = set()
    for piece in graphs([item]):
        for node in piece.graph.nodes:
            if node.op in ("load", "store", "phi") and node.array is not None:
                found.add(node.array)
            elif node.streams is not None:
                found.add(node.streams)
    return found


def merged(tasks: list[KernelTask]) -> list[KernelTask]:
    """Tasks that write one array are one task to the tool."""
    found: list[KernelTask] = []
    for task in tasks:
        written = {a for a in arrays_of(task.body, "store") if not a.argument}
        if found and written & {a for a in arrays_of(found[-1].body, "store") if not a.argument}:
            found[-1] = KernelTask(found[-1].name, [*found[-1].body, *task.body], found[-1].where)
        else:
            found.append(task)
    return found


def time_kernel(kernel: ReadKernel, delays: Delays, override: Override | None = None) -> Timed:
    return RegionTiming(kernel, delays, override).run()
