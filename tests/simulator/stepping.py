"""A second simulator, plain on purpose: it steps through every cycle and looks at everything in each of them.

It shares the network's record with the engine and nothing else. In a cycle, everybody decides on what was there
before the cycle; then what was decided happens.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from penstock.compiler.simulator import ChannelAccess, Network, Phase, Rules, SimulatedProcess

Verb = Literal["need", "room", "take", "fill"]


class Stuck(Exception):
    """Nothing can happen any more, and not all is done."""


@dataclass
class Board:
    """Slots of every channel: claimed and filled by the writer, held and freed by the reader."""

    claimed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    filled: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    held: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    freed: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def copy(self) -> Board:
        return Board(*(defaultdict(int, d) for d in (self.claimed, self.filled, self.held, self.freed)))


@dataclass
class Act:
    """One thing that an iteration does with a channel at a stage."""

    iteration: int
    stage: int
    channel: str
    verbs: tuple[Verb, ...]
    count: int
    reads: bool


def acts_of(phase: Phase, rules: Rules) -> list[Act]:
    acts: list[Act] = []
    for access in phase.accesses:
        reads = access.direction == "read"
        stage = access.stage
        if stage is None:
            stage = min(rules.read_stage, phase.depth - 1) if reads else phase.depth - 1
        first: Verb = "need" if reads else "room"
        last: Verb = "take" if reads else "fill"
        for i in iterations_of(access, phase):
            if access.hold:
                acts.append(Act(i, stage, access.channel, (first,), access.count, reads))
                acts.append(Act(i + access.hold, stage, access.channel, (last,), access.count, reads))
            else:
                acts.append(Act(i, stage, access.channel, (first, last), access.count, reads))
    return acts


def iterations_of(access: ChannelAccess, phase: Phase) -> list[int]:
    """Iterations of an access: every choice of a counter from each of its levels."""
    counters = [[x for first, n in level.runs for x in range(first, first + n)] for level in access.pattern.levels]
    strides = [level.stride for level in access.pattern.levels]
    chosen = sorted(sum(x * s for x, s in zip(choice, strides, strict=True)) for choice in product(*counters))
    assert all(i < phase.iterations for i in chosen)
    return chosen


class Machine:
    """One process; `advance` is its cycle."""

    def __init__(self, process: SimulatedProcess, network: Network, rules: Rules, frames: int) -> None:
        self.name, self.network, self.rules = process.name, network, rules
        self.plans = [(phase, acts_of(phase, rules)) for phase in process.phases] * frames
        self.per_frame = len(process.phases)
        self.inputs = [c.name for c in network.channels if c.kind == "pipo" and self.name in c.consumers]
        self.outputs = [c.name for c in network.channels if c.kind == "pipo" and self.name in c.producers]
        self.position = 0
        self.begins: int | None = 0
        self.ends: list[int] = []
        self.running = False

    @property
    def done(self) -> bool:
        return self.position == len(self.plans)

    def possible(self, acts: list[Act], board: Board, depths: dict[str, int | None]) -> bool:
        needed: dict[tuple[str, Verb], int] = defaultdict(int)
        for act in acts:
            for verb in act.verbs:
                needed[act.channel, verb] += act.count
        for (channel, verb), count in needed.items():
            depth = depths[channel]
            if verb == "need" and board.held[channel] + count > board.filled[channel]:
                return False
            if verb == "room" and depth is not None and board.claimed[channel] + count - board.freed[channel] > depth:
                return False
        return True

    def act(self, acts: list[Act], board: Board) -> None:
        table = {"need": board.held, "room": board.claimed, "take": board.freed, "fill": board.filled}
        for act in acts:
            for verb in act.verbs:
                table[verb][act.channel] += act.count

    def advance(
        self, cycle: int, before: Board, board: Board, depths: dict[str, int | None], ended: dict[str, list[int]]
    ):
        """One cycle. True if anything changed."""
        if not self.running:
            if self.begins is None or cycle < self.begins or not self._may_start(cycle, ended, depths):
                return False
            self.running = True
            if self.position % self.per_frame == 0 and self.per_frame > 1 and self.rules.first_phase_delay:
                self.begins = cycle + self.rules.first_phase_delay
                self.wait_until = self.begins
            else:
                self.wait_until = cycle
            self.clock = 0
            self.front = 0
            self.inside: dict[int, int] = {}
        if cycle < self.wait_until:
            return True
        phase, acts = self.plans[self.position]
        move = self._flush if self._flushes(phase) else self._stall
        moved = move(phase, acts, before, board, depths)
        if self._over(phase):
            self.position += 1
            self.running = False
            end = cycle + 1
            if self.position % self.per_frame == 0:
                self.ends.append(end)
                ended[self.name].append(end)
                self.begins = end + self.rules.start_gap
            else:
                self.begins = end + self.rules.phase_gap
        return moved

    def _may_start(self, cycle: int, ended: dict[str, list[int]], depths: dict[str, int | None]) -> bool:
        if self.position % self.per_frame:
            return True
        frame = self.position // self.per_frame
        for name in self.inputs:
            for producer in self.network.channel(name).producers:
                if len(ended[producer]) <= frame or cycle < ended[producer][frame] + self.rules.start_gap:
                    return False
        for name in self.outputs:
            depth = depths[name]
            if depth is None or frame < depth:
                continue
            for consumer in self.network.channel(name).consumers:
                freed = frame - depth
                if len(ended[consumer]) <= freed or cycle < ended[consumer][freed] + self.rules.start_gap:
                    return False
        return True

    def _flushes(self, phase: Phase) -> bool:
        return self.rules.flushing if phase.flushes is None else phase.flushes

    def _over(self, phase: Phase) -> bool:
        if self._flushes(phase):
            return self.front >= (phase.iterations - 1) * phase.ii + self.last_front + 1 and not self.inside
        return self.clock == phase.length

    def _stall(self, phase: Phase, acts: list[Act], before: Board, board: Board, depths: dict[str, int | None]) -> bool:
        due = [a for a in acts if a.iteration * phase.ii + a.stage == self.clock]
        if not self.possible(due, before, depths):
            return False
        self.act(due, board)
        self.clock += 1
        return True

    def _flush(self, phase: Phase, acts: list[Act], before: Board, board: Board, depths: dict[str, int | None]) -> bool:
        """Stages up to the last one that reads are the front; `inside` are the iterations behind it, by stage."""
        self.last_front = max((a.stage for a in acts if a.reads), default=0)
        behind = [a for a in acts if self.inside.get(a.iteration) == a.stage]
        if not self.possible(behind, before, depths):
            return False
        front = [a for a in acts if a.stage <= self.last_front and a.iteration * phase.ii + a.stage == self.front]
        goes = self.front <= (phase.iterations - 1) * phase.ii + self.last_front
        goes = goes and self.possible(front, before, depths)
        self.act(behind, board)
        # every iteration behind the front goes on by a stage; those that leave the last one are gone
        self.inside = {i: stage + 1 for i, stage in self.inside.items() if stage + 1 < phase.depth}
        if goes:
            self.act(front, board)
            leaving, rest = divmod(self.front - self.last_front, phase.ii)
            if rest == 0 and 0 <= leaving < phase.iterations and self.last_front + 1 < phase.depth:
                self.inside[leaving] = self.last_front + 1
            self.front += 1
        return goes or bool(behind) or bool(self.inside)


@dataclass
class Stepped:
    """The cycles in which each process ends its frames, and the most slots that each channel held; of every slot of a
    FIFO or block channel, the cycles in which it was filled and freed."""

    ends: dict[str, list[int]]
    high: dict[str, int]
    filled: dict[str, list[int]]
    freed: dict[str, list[int]]


def step_through(
    network: Network, rules: Rules, depths: dict[str, int | None] | None = None, frames: int = 1
) -> Stepped:
    """The whole run; `Stuck` for a deadlock."""
    asked = {c.name: c.depth for c in network.channels} | (depths or {})
    machines = [Machine(p, network, rules, frames) for p in network.processes]
    board, ended, cycle = Board(), defaultdict[str, list[int]](list), 0
    idle, high = 0, defaultdict[str, int](int)
    filled, freed = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    while not all(m.done for m in machines):
        before = board.copy()
        moved = [m.advance(cycle, before, board, asked, ended) for m in machines if not m.done]
        for channel in board.claimed:
            high[channel] = max(high[channel], board.claimed[channel] - before.freed[channel])
            filled[channel] += [cycle] * (board.filled[channel] - before.filled[channel])
            freed[channel] += [cycle] * (board.freed[channel] - before.freed[channel])
        waiting = any(not m.done and not m.running and m.begins is not None and cycle < m.begins for m in machines)
        idle = 0 if any(moved) or waiting else idle + 1
        if idle > 2 + rules.start_gap:
            raise Stuck
        cycle += 1
    return Stepped({m.name: m.ends for m in machines}, dict(high), dict(filled), dict(freed))
