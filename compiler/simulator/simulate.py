"""Run a network or a sequence under a set of rules and say what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import cast

import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.compiler.jit import Compiled, Ints, Words
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.check import check_network, check_sequence
from penstock.compiler.simulator.engine import advance
from penstock.compiler.simulator.explain import find_deadlock, trace_critical_path
from penstock.compiler.simulator.network import Channel, Network, Phase, Repeat
from penstock.compiler.simulator.network import Sequence as Steps
from penstock.compiler.simulator.plan import SimulationPlan, plan_network
from penstock.compiler.simulator.results import Cause, ChannelResult, ProcessTimes, Simulation, Stall
from penstock.compiler.simulator.rules import VITIS, Rules
from penstock.compiler.simulator.state import (
    EngineState,
    all_times,
    grow,
    has_all_times,
    new_state,
    sizes_for_all,
    sizes_of,
)

TRIED, SHARE = 20_000, 8  # a run without depths is given up after so many events, and one of so many accesses,
ROOM = 1 << 17  # or where it needs more words for times than this: the run with depths is sooner then

_ENGINE_PARTS = (
    "layout", "sequences", "accesses", "phases", "turns", "stalling", "flushing", "recurrence", "engine",
)  # fmt: skip
ENGINE = Compiled(
    "simulator", tuple([f"penstock.compiler.simulator.{part}" for part in _ENGINE_PARTS]), "advance",
    before_loading=30_000, before_compiling=1_000_000,  # events gone through
    inlined=("run_of", "time_in", "step_in", "end_of", "has_room", "append", "step", "passed"),
)  # fmt: skip


@dataclass(frozen=True)
class SimulationOutcome:
    """What a run comes to, without explanations: ends of the frames, none for a deadlock, and high-water marks.

    `work` is what the run took, in events that were gone through: the same for the same runs in the same order.
    """

    frame_ends: tuple[int, ...]
    high_water: Mapping[str, int]
    work: int


@dataclass(frozen=True)
class TokenTimes:
    """The cycles in which each slot of a channel was filled by `writer` and given back by `reader`."""

    channel: Channel
    writer: str
    reader: str
    filled: Ints
    freed: Ints


@dataclass(frozen=True)
class FreeRun:
    """A run of one frame in which no FIFO is ever full; of processes, the first cycle and the one after the last."""

    starts: Mapping[str, int]
    ends: Mapping[str, int]
    tokens: tuple[TokenTimes, ...]


class Simulator:
    """One network under one set of rules, checked and planned once, run as often as depths are to be tried."""

    def __init__(self, network: Network, rules: Rules = VITIS) -> None:
        check_network(network)
        self.network, self.rules = network, rules
        self.plan: SimulationPlan = plan_network(network, rules)
        self._names = [link.channel.name for link in self.plan.links]
        self._free: dict[int, Ints | None] = {}
        self._sizes: Ints | None = None

    def run(
        self, depths: Mapping[str, int | None] | None = None, *, frames: int = 1, bounded: bool = True
    ) -> Simulation:
        """`depths` replace some channels' own (None: unbounded); without `bounded` no channel is ever full."""
        asked = self._depths(depths or {}, bounded)
        state, done = self._state(asked, frames)
        return self._results(state, asked, done)

    def outcome(
        self, depths: Mapping[str, int | None] | None = None, *, frames: int = 1, bounded: bool = True
    ) -> SimulationOutcome:
        """The same run; a fraction of the time for short ones, where most of it goes into explanations."""
        state, done = self._state(self._depths(depths or {}, bounded), frames)
        times = self._times(state)
        high: dict[str, int] = {}
        for name, mark in zip(self._names, self._marks(state).tolist(), strict=True):
            high[name] = max(mark, high.get(name, 0))
        ends = tuple(times[:, :, 1].max(axis=0).tolist()) if done else ()
        return SimulationOutcome(ends, high, int(state.memory[at.WORK]))

    def free_run(self, *, blocks: bool = False) -> FreeRun:
        """What happens when without depths, token by token; with `blocks` those keep theirs, only FIFOs do without.

        Rings keep no more times than a run still needs, and those that grew on the way may have lost some before: it
        runs again with larger ones until neither happened.
        """
        kept = [blocks and link.channel.kind == "block" for link in self.plan.links]
        free = [link.channel.depth if own else None for link, own in zip(self.plan.links, kept, strict=True)]
        while True:
            before = self._sizes
            state, _ = self._run(free, 1, every_time=True)
            grew = before is None or (before != sizes_of(self.plan, state)).any()
            if not grew and has_all_times(self.plan, state):
                break
            self._sizes = sizes_for_all(self.plan, state)
        names = self.plan.processes
        starts, ends = self._times(state)[:, 0].T.tolist()
        return FreeRun(dict(zip(names, starts, strict=True)), dict(zip(names, ends, strict=True)), tuple([
            TokenTimes(
                link.channel, names[link.writer], names[link.reader],
                all_times(link.address, at.FILLS, at.FILLED, state), all_times(link.address, at.TAKES, at.FREED, state),
            )
            for link in self.plan.links
        ]))  # fmt: skip

    def _state(self, asked: Mapping[str, int | None], frames: int) -> tuple[EngineState, bool]:
        """The end of a run, and whether everything is done.

        If no channel ever held more slots than it has, no depth was felt, and the times are those without depths: first
        a run without is tried, which is given up where processes run so far ahead that it would take longer. With
        several frames they do: the first process is through with all of them at once.
        """
        if frames < 1:
            raise PenstockError(
                code="bad-request", what=f"{frames} frames", where=self.network.name, limit="at least 1",
                hint="ask for one frame, or several for the interval between them",
            )  # fmt: skip
        depths = [asked[name] for name in self._names]
        most = np.array([at.UNBOUNDED if d is None else min(d, at.UNBOUNDED) for d in depths], np.int64)
        free, tried = self._free.get(frames), any(d is not None for d in depths)
        if tried and frames > 1 and free is None:
            return self._run(depths, frames)
        if frames not in self._free or (free is not None and (free <= most).all()):
            state, done = self._run([None] * len(depths), frames, tried=tried)
            free = self._free[frames] = self._marks(state) if done else None
            if free is not None and (free <= most).all():
                return state, done
        return self._run(depths, frames)

    def _times(self, state: EngineState) -> Ints:
        """Start and end of every process in every frame."""
        return state.memory[len(self.plan.memory) :].reshape(-1, state.frames, 2)

    def _marks(self, state: EngineState) -> Ints:
        return state.memory[self.plan.link_addresses + at.HIGH]

    def _run(
        self, depths: Sequence[int | None], frames: int, *, every_time: bool = False, tried: bool = False
    ) -> tuple[EngineState, bool]:
        """One that is only `tried` is given up where it takes long.

        One for which compiled code pays after all begins anew with it: how far it had come must not show in `work`.
        """
        most = max(TRIED, self.plan.accesses * frames // SHARE) if tried else at.FAR
        fresh = partial(new_state, self.plan, depths, frames, self._sizes, every_time=every_time)
        state, plain = fresh(), ENGINE.left()
        done = plain > 0 and self._advanced(self._interpreted, state, min(most, plain), tried=tried)
        spent = int(state.memory[at.WORK])
        ENGINE.count(spent)
        if not plain or (not done and plain < spent <= most):
            state = fresh()
            done = self._advanced(self._compiled, state, most, tried=tried)
        if not tried or len(state.rings) <= ROOM:
            self._sizes = sizes_of(self.plan, state)
        return state, done

    def _advanced(self, run: Callable[[EngineState], bool], state: EngineState, most: int, *, tried: bool) -> bool:
        state.memory[at.MOST_WORK] = most
        done = run(state)
        while not done and (not tried or len(state.rings) <= ROOM) and grow(self.plan, state):
            done = run(state)
        return done

    @staticmethod
    def _compiled(state: EngineState) -> bool:
        return ENGINE.function()(*state.arrays)

    @staticmethod
    def _interpreted(state: EngineState) -> bool:
        memory, rings = state.memory.tolist(), state.rings.tolist()
        kept = [[0] * len(part) for part in state.arrays[3:]]
        done = advance(memory, rings, cast("Words", state.log), *kept)
        state.memory[:], state.rings[:] = memory, rings
        return done

    def _depths(self, depths: Mapping[str, int | None], bounded: bool) -> dict[str, int | None]:
        own = {c.name: c.depth if bounded else None for c in self.network.channels}
        for name, depth in depths.items():
            if name not in own or (depth is not None and depth < 1):
                raise PenstockError(
                    code="bad-depth", what=f"a depth of {depth} for channel {name!r}", where=self.network.name,
                    limit="a depth is at least 1, for a channel that there is", hint="correct the depths",
                )  # fmt: skip
            if bounded:
                own[name] = depth
        return own

    def _results(self, state: EngineState, depths: Mapping[str, int | None], done: bool) -> Simulation:
        times = self._times(state).tolist()
        stalls = self._stalls(state)
        return Simulation(
            network=self.network.name,
            rules=self.rules.name,
            frame_ends=tuple(max(own[frame][1] for own in times) for frame in range(state.frames)) if done else (),
            processes={
                name: ProcessTimes(name, *times[p][0], busy=self.plan.busy[p], stalls=stalls[p])
                for p, name in enumerate(self.plan.processes)
            },
            channels=self._channels(state, depths),
            initial_delay=self._initial_delay(state),
            critical_path=trace_critical_path(self.plan, state, self.rules) if done else (),
            deadlock=None if done else find_deadlock(self.plan, state),
        )

    def _stalls(self, state: EngineState) -> list[tuple[Stall, ...]]:
        """Of every process, longest first."""
        waits: list[dict[tuple[str, Cause], int]] = [{} for _ in self.plan.processes]
        for address, met in self.plan.meetings.items():
            waited = int(state.memory[address + (at.START_WAITED if met.at_start else at.WAITED)])
            if waited:
                cause: Cause = "memory" if met.memory else "empty" if met.reads else "full"
                own = waits[met.process]
                own[met.channel, cause] = own.get((met.channel, cause), 0) + waited
        stalls = [[Stall(channel, cause, cycles) for (channel, cause), cycles in own.items()] for own in waits]
        return [tuple(sorted(own, key=lambda s: (-s.cycles, s.channel))) for own in stalls]

    def _channels(self, state: EngineState, depths: Mapping[str, int | None]) -> dict[str, ChannelResult]:
        found: dict[str, ChannelResult] = {}
        for link in self.plan.links:
            high, fill, take = (int(state.memory[link.address + o]) for o in (at.HIGH, at.FIRST_FILL, at.FIRST_TAKE))
            name = link.channel.name
            before = found.get(name)  # a pipo with several ends
            if before is not None:
                high = max(high, before.high_water)
                fill, take = min(fill, before.first_write), min(take, before.first_read)
            found[name] = ChannelResult(name, link.tokens * state.frames, depths[name], high, fill, take)
        return found

    def _initial_delay(self, state: EngineState) -> int | None:
        writers = {link.writer for link in self.plan.links}
        firsts = [
            int(state.memory[link.address + at.FIRST_TAKE])
            for link in self.plan.links
            if link.reader not in writers and link.channel.kind != "pipo"
        ]
        return min((first for first in firsts if first >= 0), default=None)


def simulate(
    network: Network | Steps,
    rules: Rules = VITIS,
    *,
    depths: Mapping[str, int | None] | None = None,
    frames: int = 1,
    bounded: bool = True,
) -> Simulation:
    """Simulate once; a `Simulator` is cheaper for many depths of one network. What was asked lately is remembered."""
    if isinstance(network, Steps):
        return _simulate_sequence(network, rules, depths or {}, frames, bounded)
    return _simulate_network(network, rules, tuple(sorted((depths or {}).items())), frames, bounded)


@lru_cache(maxsize=128)
def _simulate_network(
    network: Network, rules: Rules, depths: tuple[tuple[str, int | None], ...], frames: int, bounded: bool
) -> Simulation:
    """Designs of one model share kernels, and a design is simulated by everybody who reports on it."""
    return Simulator(network, rules).run(dict(depths), frames=frames, bounded=bounded)


def _simulate_sequence(
    sequence: Steps, rules: Rules, depths: Mapping[str, int | None], frames: int, bounded: bool
) -> Simulation:
    """Steps add up; a sequence does not overlap its frames."""
    check_sequence(sequence)
    before = rules.sequence_entry if len(sequence.steps) > 1 else 0
    if sequence.control.protocol == "s_axilite":
        before += rules.register_base + rules.register_cycles * sequence.control.scalar_registers
    parts: list[tuple[int, Simulation]] = []
    for number, step in enumerate(sequence.steps):
        longest = 0
        before += rules.step_gap if number else 0
        for item in step:
            if isinstance(item, Network):
                own = {c.name: depths[c.name] for c in item.channels if c.name in depths}
                part = simulate(item, rules, depths=own, bounded=bounded)
                if part.deadlock is not None:
                    return replace(part, network=sequence.name)
                parts.append((before, part))
                longest = max(longest, part.latency)
            else:
                longest = max(longest, item_length(item, rules))
        before += longest
    latency = before + rules.sequence_exit
    delays = [start + part.initial_delay for start, part in parts[-1:] if part.initial_delay is not None]
    return Simulation(
        network=sequence.name,
        rules=rules.name,
        frame_ends=tuple(latency * (i + 1) for i in range(frames)),
        processes={
            name: replace(p, start=p.start + after, end=p.end + after)
            for after, part in parts
            for name, p in part.processes.items()
        },
        channels={
            name: replace(c, first_write=c.first_write + after, first_read=c.first_read + after)
            for after, part in parts
            for name, c in part.channels.items()
        },
        initial_delay=delays[0] if delays else None,
        critical_path=tuple(
            replace(hop, start=hop.start + after, end=hop.end + after)
            for after, part in parts
            for hop in part.critical_path
        ),
        deadlock=None,
    )


def item_length(item: Phase | Repeat, rules: Rules) -> int:
    """Cycles of a loop that touches no channel."""
    if isinstance(item, Phase):
        return item.length
    return item.times * (item.iteration_latency - rules.repeat_overhead * len(item.body))
