"""Schedules a nest: initiation interval and its reason, as-soon-as-possible stages, token patterns, area."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import prod

from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.banks import Access, Geometry
from penstock.compiler.analysis.nests import NestFacts, Place, read_nest
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.injected import injected_of
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Resources, total
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.schedule.apart import stages_apart
from penstock.compiler.schedule.carried import CarriedWord, path_between, reuse_distance, stands_still
from penstock.compiler.schedule.flatten import BodyMemory, FlatStep, flatten
from penstock.compiler.schedule.library import OperatorLibrary
from penstock.compiler.schedule.memory import MemoryShape, MemoryUse, build_memory
from penstock.compiler.schedule.outside import port_bound
from penstock.compiler.schedule.pattern import TokenPattern
from penstock.compiler.schedule.promised import as_promised
from penstock.compiler.schedule.records import Bound, Direction, NestSchedule, OpStage, PortKind, PortSchedule
from penstock.compiler.schedule.timing import NestMemories, StepTiming

_MAX_II = 4096  # far beyond any recurrence of the libraries' operators


def schedule_nest(op: nest.NestOp, library: OperatorLibrary) -> NestSchedule:
    """The nest's schedule. Its own bindings choose among a library's rows; a body written by hand says its own."""
    found, task = schedule_facts(read_nest(op), library), op.parent_op()
    body = injected_of(task.injected) if isinstance(task, stream.TaskOp) else None
    return found if body is None else as_promised(found, body, library)


def schedule_facts(facts: NestFacts, library: OperatorLibrary, memory: BodyMemory | None = None) -> NestSchedule:
    """The same of a nest that need not be operations. `memory` is of other nests and the same library."""
    try:
        steps = flatten(facts, library, memory)
    except PenstockError as error:
        raise found_in(error, facts.name) from error
    return _Scheduler(facts, library, steps).run()


def found_in(error: PenstockError, where: str) -> PenstockError:
    """The same error with the place in the model in front; what it named so far becomes part of the limit."""
    limit = f"{error.where}: {error.limit}" if error.where else error.limit
    return PenstockError(code=error.code, what=error.what, where=where, limit=limit, hint=error.hint)


class _Scheduler:
    def __init__(self, facts: NestFacts, library: OperatorLibrary, steps: list[FlatStep]) -> None:
        self.facts, self.library, self.steps, self.trips = facts, library, steps, facts.trips
        self.extents = facts.extents
        self.memory_steps: dict[Place, list[int]] = defaultdict(list)
        for index, step in enumerate(steps):
            if step.kind in ("load", "store") and step.target is not None:
                self.memory_steps[step.target].append(index)
        self.held = {m for m, users in self.memory_steps.items() if m.kind == "buffer" and self._all_stand_still(users)}
        self.sharing = [
            users for place, users in self.memory_steps.items()
            if place.kind == "external" and len(users) > 1 and library.memory.own_modules
        ]  # fmt: skip
        self.accesses = {
            i: Access.of(_address(steps[i]), steps[i].shape, self.extents.most, writes=steps[i].kind == "store")
            for memory, users in self.memory_steps.items() if memory.kind != "external" for i in users
        }  # fmt: skip
        self.memories = self._memories()
        self.timing = self._timing()
        self.not_before = [library.read_stage if step.kind == "read" else 0 for step in steps]
        self.start = [0] * len(steps)
        self.end: list[tuple[int, float]] = [(0, 0.0)] * len(steps)

    def run(self) -> NestSchedule:
        carried = self._carried()
        ports = self._port_bounds()
        ii = max([1, *(b.ii for b in ports)])
        self._place(self.not_before)
        recurrences = [b for c in carried if (b := self._recurrence(c)) is not None]
        ii = max([ii, *(b.ii for b in recurrences)])
        ii = self._settle(carried, ii)
        bounds = (Bound("pipeline", 1, "II = 1: one iteration a cycle"), *ports, *recurrences)
        if ii > max(b.ii for b in bounds):
            text = f"II = {ii}: loop-carried dependences that share operations"
            bounds = (*bounds, Bound("recurrence", ii, text))
        depth = 1 + max(stage for stage, _ in self.end)
        if self.facts.in_circle and (alone := self._alone(depth)).ii > 1:
            ii, bounds = max(ii, alone.ii), (*bounds, alone)
        if self.library.write_in_last_stage and (apart := min(self.facts.interval, depth)) > ii:
            ii, bounds = apart, (*bounds, self._asked(apart))
        if self.library.write_in_last_stage:
            for index, step in enumerate(self.steps):
                if step.kind == "write":
                    self.start[index] = depth - 1
                    self.end[index] = (depth - 1, 0.0)
        memories = tuple(use for memory, (use, _) in self.memories.items() if memory.is_own)
        flushes = self._flushes(ii)
        return NestSchedule(
            name=self.facts.name,
            iterations=prod(self.trips),
            block_iterations=prod(self.trips[self.facts.block_loops :]),
            ii=ii,
            bounds=bounds,
            depth=depth,
            stages=tuple(
                OpStage(self._label(step), self.start[i], self.end[i][0]) for i, step in enumerate(self.steps)
            ),
            ports=self._ports(),
            memories=memories,
            logic=self._logic(memories, depth if flushes else 0),
            block_entry=self.library.block_entry if self.facts.block_loops else None,
            flushes=flushes,
        )

    # -- time

    def _place(self, not_before: Sequence[int]) -> None:
        """As soon as possible, except for what depends on memories alone: that may wait until it is needed."""
        self._place_forward(not_before)
        rooted, soon = self._made_of_loads(), list(self.start)
        starts = self._latest_starts(not_before, rooted)
        self._place_forward(starts)
        for _ in self.steps:
            early = self._behind([i for i, at in enumerate(soon) if not rooted[i] and self.start[i] > at], rooted)
            early = [i for i in early if starts[i] > soon[i]]
            if not early:
                break
            for i in early:
                starts[i] -= 1
            self._place_forward(starts)

    def _behind(self, late: list[int], rooted: list[bool]) -> list[int]:
        """What of memories alone these depend on: its parts of a stage came to more than a stage."""
        found = {i for index in late for i in self.steps[index].inputs if rooted[i]}
        for index in range(len(self.steps) - 1, -1, -1):
            if index in found:
                found.update(i for i in self.steps[index].inputs if rooted[i])
        return sorted(found)

    def _place_forward(self, not_before: Sequence[int]) -> None:
        """Every step after its inputs, chained within a cycle where delays fit."""
        start, end = self.start, self.end
        for index, step in enumerate(self.steps):
            stage, used = 0, 0.0
            for i in step.inputs:
                if end[i] > (stage, used):
                    stage, used = end[i]
            if not_before[index] > stage:
                stage, used = not_before[index], 0.0
            at = self.timing.enter(index, (stage, used))
            start[index], end[index] = at[0], self.timing.leave(index, at)

    def _latest_starts(self, not_before: Sequence[int], rooted: list[bool]) -> list[int]:
        """How late loads, and what is made of loads alone, may start without delaying anything else.

        Partial sums come back in time for their next use then, and registers are saved.
        """
        starts = list(not_before)
        first_use: dict[int, int] = {}
        for index in range(len(self.steps) - 1, -1, -1):
            start = self.start[index]
            if rooted[index] and index in first_use:
                start = max(start, first_use[index])
                starts[index] = max(starts[index], start)
            for i in self.steps[index].inputs:
                latest = start - self.timing.takes(i, index)
                first_use[i] = min(first_use.get(i, latest), latest)
        return starts

    def _made_of_loads(self) -> list[bool]:
        rooted: list[bool] = []
        for step in self.steps:
            made = bool(step.inputs) and all(rooted[i] for i in step.inputs)
            rooted.append(step.kind == "load" or (step.kind == "compute" and made))
        return rooted

    def _settle(self, carried: list[CarriedWord], ii: int) -> int:
        """Delay loads of what was placed until every carried dependence holds; raise the II if that never ends."""
        while ii <= _MAX_II:
            not_before = list(self.not_before)
            for _ in range(len(self.steps) + 2):
                late = [(c.load, n) for c in carried if (n := self._ready(c) - ii * c.distance) > self.start[c.load]]
                late += self._crowding(ii)
                if not late:
                    return ii
                for load, stage in late:
                    not_before[load] = max(not_before[load], stage)
                self._place(not_before)
            ii += 1
            self._place(self.not_before)
        raise PenstockError(
            code="unschedulable", what="no initiation interval satisfies the carried dependences",
            where=self.facts.name, limit=f"II up to {_MAX_II} was tried",
            hint="report this design: its nests should never need so many",
        )  # fmt: skip

    def _crowding(self, ii: int) -> list[tuple[int, int]]:
        """Accesses to external memory that are to begin later, since another one has the port by then.

        On the open route, whose hardware is built after this schedule. Vitis gives turns itself.
        """
        late: list[tuple[int, int]] = []
        for users in self.sharing:
            front = max((self.start[i] for i, step in enumerate(self.steps) if step.takes), default=0)
            found = stages_apart([(self.start[i], self.steps[i].when) for i in users], ii, front, self.extents)
            assert found is not None, "the interval has a slot for each"
            late += [(i, stage) for i, stage in zip(users, found, strict=True) if stage > self.start[i]]
        return late

    def _ready(self, c: CarriedWord) -> int:
        """The stage from which a later iteration may load what this one stored."""
        return self.start[c.store] + (0 if c.held else self.library.memory.store_latency) - c.spare

    # -- bounds on the initiation interval

    def _alone(self, depth: int) -> Bound:
        """In a circle, an iteration that waits for a token must not hold back what an earlier one is to write.

        A pipeline that stops as a whole holds back all that is in it; one that flushes, what has not passed its front.
        """
        if self.library.write_in_last_stage:
            return Bound(
                "circle", depth, f"II = {depth}: in a circle of streams an iteration ends before the next begins"
            )
        front = 1 + max((self.start[i] for i, step in enumerate(self.steps) if step.takes), default=0)
        return Bound("circle", front, f"II = {front}: in a circle of streams one iteration at a time takes its tokens")

    def _asked(self, ii: int) -> Bound:
        """What the design says. A pipeline that flushes holds nothing back, and is not asked."""
        return Bound(
            "asked", ii, f"II = {ii}: the design's interval, so that few iterations wait in a stopped pipeline"
        )

    def _all_stand_still(self, users: list[int]) -> bool:
        return all(stands_still(_address(self.steps[i]), self.extents) for i in users)

    def _carried(self) -> list[CarriedWord]:
        found: list[CarriedWord] = []
        for memory, users in self.memory_steps.items():
            if memory.kind != "buffer":
                continue
            loads = [i for i in users if self.steps[i].kind == "load"]
            stores = [i for i in users if self.steps[i].kind == "store"]
            for store in stores:
                for load in loads:
                    distance = reuse_distance(
                        _address(self.steps[store]), _address(self.steps[load]), self.steps[load].shape, self.extents,
                    )  # fmt: skip
                    if distance is not None:
                        found.append(self._around(store, load, distance, memory in self.held))
        return found

    def _around(self, store: int, load: int, distance: int, held: bool) -> CarriedWord:
        path = path_between(self.steps, load, store)
        if not path:
            return CarriedWord(store, load, distance, held, (), 0, 0)
        around = self.timing.around(path, held)
        placed = self.timing.placed(path) + (0 if held else self.library.memory.store_latency)
        return CarriedWord(store, load, distance, held, path, around, max(0, placed - around))

    def _recurrence(self, c: CarriedWord) -> Bound | None:
        """The bound of a store that depends on its own load: stages around the loop over iterations."""
        if not c.path:
            return None
        stages = max(c.around, self._ready(c) - self.start[c.load])
        ii = max(1, -(-stages // c.distance))
        slowest = max(c.path, key=lambda i: (self.timing.stages(i), self.steps[i].kind == "compute"))
        memory = self.steps[c.load].target
        assert memory is not None
        over = "every iteration" if c.distance == 1 else f"over {c.distance} iterations"
        reason = (
            f"II = {ii}: loop-carried {self.steps[slowest].name} on {memory.name}, "
            f"{stages} {'stage' if stages == 1 else 'stages'} {over}"
        )
        return Bound("recurrence", ii, reason)

    def _port_bounds(self) -> list[Bound]:
        bounds: list[Bound] = []
        streams: Counter[tuple[Place, str]] = Counter(
            (s.target, s.kind) for s in self.steps if s.kind in ("read", "write") and s.target is not None
        )
        for (target, kind), count in streams.items():
            reason = f"II = {count}: {count} {kind}s of {target.name} an iteration, one fits a cycle"
            bounds.append(Bound("stream ports", count, reason))
        for memory, users in self.memory_steps.items():
            if memory in self.held:
                continue
            if memory.kind == "external":
                bounds.append(port_bound(memory.name, [self.steps[i] for i in users], self.library))
                continue
            ports = self.library.memory.ports
            ii = -(-len(users) // ports)
            reason = f"II = {ii}: {len(users)} accesses to {memory.name} an iteration on {ports} ports"
            bounds.append(Bound("memory ports", ii, reason))
        return bounds

    # -- results

    def _ports(self) -> tuple[PortSchedule, ...]:
        patterns: dict[int, TokenPattern] = {}
        found: list[PortSchedule] = []
        for index, step in enumerate(self.steps):
            kind = None if step.target is None else _PORTS.get(step.target.kind)
            if step.target is None or kind is None:
                continue
            guard = step.when  # often one for several ports
            if id(guard) not in patterns:
                patterns[id(guard)] = TokenPattern.of(guard, self.trips)
            found.append(
                PortSchedule(
                    channel=step.target.name,
                    kind=kind,
                    direction=_direction(step),
                    bits=step.bits * step.lanes,
                    stage=self.start[index],
                    pattern=patterns[id(guard)],
                )
            )
        return tuple(found)

    def _memories(self) -> dict[Place, tuple[MemoryUse, Geometry]]:
        found: dict[Place, tuple[MemoryUse, Geometry]] = {}
        for memory, users in self.memory_steps.items():
            if memory.kind != "external":
                accesses = [*memory.elsewhere, *(self.accesses[i] for i in users)]
                shape, cut = MemoryShape.of(memory.shape, type_bits(memory.dtype), accesses, rom=memory.kind == "rom")
                found[memory] = build_memory(self.library, memory.name, shape), cut
        return found

    def _timing(self) -> StepTiming:
        registers = frozenset(m for m, (use, _) in self.memories.items() if use.kind == "registers")
        cut = {memory: geometry for memory, (_, geometry) in self.memories.items()}
        memories = NestMemories(frozenset(self.held), registers, cut)
        return StepTiming(self.library, self.steps, memories, self.accesses, len(self.trips))

    def _flushes(self, ii: int) -> bool:
        """Whether its pipeline goes on with what has entered while the next iteration waits for a token."""
        if self.library.flushing or not self.library.flushing_alone or ii > 1 or prod(self.trips) == 1:
            return self.library.flushing
        outside = any(step.target is not None and step.target.kind == "external" for step in self.steps)
        return not outside and any(step.kind == "read" for step in self.steps)

    def _logic(self, memories: tuple[MemoryUse, ...], flushing: int) -> Resources:
        """`flushing` are the stages of a pipeline that flushes."""
        counters = sum((t - 1).bit_length() for t in self.extents.most)
        control = self.library.control
        parts = [
            Resources(
                lut=control.lut + control.lut_per_counter_bit * counters + control.lut_per_flushing_stage * flushing,
                ff=control.ff + control.ff_per_counter_bit * counters + control.ff_per_flushing_stage * flushing,
            )
        ]
        last_use = [0] * len(self.steps)
        for index, step in enumerate(self.steps):
            for i in step.inputs:
                last_use[i] = max(last_use[i], self.start[index])
            parts.append(step.area)
        registers = 0
        for index, step in enumerate(self.steps):
            held = max(0, last_use[index] - self.end[index][0])
            registers += held * step.lanes * step.bits
        in_luts = {m.name for m in memories if m.kind == "lutram"}
        registers += sum(
            s.lanes * s.bits for s in self.steps if s.kind == "load" and s.target and s.target.name in in_luts
        )
        return total([*parts, Resources(ff=registers)])

    def _label(self, step: FlatStep) -> str:
        return f"{step.name} {step.target.name}" if step.target is not None else step.name


_PORTS: dict[str, PortKind] = {"stream": "stream", "block": "block", "external": "external"}


def _direction(step: FlatStep) -> Direction:
    return "read" if step.kind in ("read", "load") else "write"


def _address(step: FlatStep) -> AffineMap:
    assert step.address is not None, "loads and stores have one"
    return step.address
