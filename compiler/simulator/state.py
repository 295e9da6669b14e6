"""A run's memory: the plan's with depths and rings of times, which grow where a process has to run far ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.compiler.jit import Ints
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.plan import SimulationPlan

RUNS_KEPT = 64  # of a sequence of times at first; a power of two


@dataclass
class EngineState:
    """What `advance` works on."""

    memory: Ints
    rings: Ints
    log: Ints
    near: Ints
    near_rings: Ints
    far: Ints
    far_rings: Ints
    """As memory and rings were at two times before, for comparison."""
    frames: int

    @property
    def arrays(self) -> tuple[Ints, ...]:
        return self.memory, self.rings, self.log, self.near, self.near_rings, self.far, self.far_rings


def new_state(
    plan: SimulationPlan,
    depths: Sequence[int | None],
    frames: int,
    sizes: Ints | None = None,
    *,
    every_time: bool = False,
) -> EngineState:
    """Everything before its first event; `depths` of the plan's links, None where no slot is ever missing.

    `sizes` is how many runs each sequence had to keep in an earlier run, as `sizes_of` says it. With `every_time` no
    state is kept for comparison, so nothing that recurs is skipped and the times of all tokens are noted.
    """
    times = len(plan.memory)
    memory = np.concatenate((plan.memory, np.zeros(2 * frames * len(plan.processes), np.int64)))
    memory[at.FRAMES] = frames
    rows = np.array(plan.addresses, np.int64)
    memory[rows + at.TIMES] = times + 2 * frames * np.arange(len(rows))
    links = zip(plan.links, depths, strict=True)
    slots = [at.UNBOUNDED if d is None or d >= link.tokens * frames else d for link, d in links]
    memory[plan.link_addresses + at.DEPTH] = np.array(slots, np.int64)
    log = np.empty(2 * at.LOG * len(plan.processes), np.int64)
    rings = _place(plan, memory, np.full(3 * len(plan.links), RUNS_KEPT, np.int64) if sizes is None else sizes)
    kept = [np.empty_like(part[:0] if every_time else part) for part in (memory, rings, memory, rings)]
    return EngineState(memory, rings, log, *kept, frames=frames)


def sizes_of(plan: SimulationPlan, state: EngineState) -> Ints:
    """How many runs every sequence of times keeps by now."""
    return state.memory[_sequences(plan, state.memory) + at.MASK] + 1


def grow(plan: SimulationPlan, state: EngineState) -> bool:
    """Twice the room wherever there was too little; False where there was enough."""
    m, old = state.memory, state.rings
    sequences = _sequences(plan, m)
    if not m[sequences + at.GROW].any():
        return False
    before = m[sequences[:, None] + np.arange(at.SEQUENCE_SIZE)]
    state.rings = _place(plan, m, (m[sequences + at.MASK] + 1) << m[sequences + at.GROW])
    then, now = old.reshape(-1, at.RUN_ENTRIES), state.rings.reshape(-1, at.RUN_ENTRIES)
    for s, was in zip(sequences.tolist(), before.tolist(), strict=True):
        ring, mask = int(m[s + at.RING]) // at.RUN_ENTRIES, int(m[s + at.MASK])
        first, head = max(0, was[at.HEAD] - was[at.MASK] - 1), was[at.HEAD]
        while first < head:  # the old ring and the new one each end somewhere on the way
            source, target = first & was[at.MASK], first & mask
            count = min(head - first, was[at.MASK] + 1 - source, mask + 1 - target)
            source += was[at.RING] // at.RUN_ENTRIES
            now[ring + target : ring + target + count] = then[source : source + count]
            first += count
    m[sequences + at.GROW] = 0
    for row in plan.addresses:
        m[row + at.READY] = 1
    if len(state.near):
        state.near_rings, state.far_rings = np.empty_like(state.rings), np.empty_like(state.rings)
    return True


def last_time(link_address: int, sequence: int, count: int, state: EngineState) -> int | None:
    """The last time of a channel's sequence; None before its first."""
    m = state.memory
    slots, s = int(m[link_address + count]), int(m[link_address + sequence])
    if not slots:
        return None
    place = int(m[s + at.RING]) + at.RUN_ENTRIES * ((int(m[s + at.HEAD]) - 1) & int(m[s + at.MASK]))
    first, time, step = (int(n) for n in state.rings[place : place + at.RUN_ENTRIES])
    return time + (slots - 1 - first) * step


def has_all_times(plan: SimulationPlan, state: EngineState) -> bool:
    """Whether no ring has lost a run of its times."""
    sequences = _sequences(plan, state.memory)
    return bool((state.memory[sequences + at.HEAD] <= state.memory[sequences + at.MASK] + 1).all())


def sizes_for_all(plan: SimulationPlan, state: EngineState) -> Ints:
    """Sizes of rings, powers of two, that would have kept every run there was."""
    runs = state.memory[_sequences(plan, state.memory) + at.HEAD] + at.MOST_NEW_RUNS
    return np.maximum(sizes_of(plan, state), 1 << np.ceil(np.log2(runs)).astype(np.int64))


def all_times(link_address: int, sequence: int, count: int, state: EngineState) -> Ints:
    """Every time of a channel's sequence, where its ring has lost none."""
    m = state.memory
    slots, s = int(m[link_address + count]), int(m[link_address + sequence])
    ring = int(m[s + at.RING])
    first, time, step = state.rings[ring : ring + at.RUN_ENTRIES * int(m[s + at.HEAD])].reshape(-1, at.RUN_ENTRIES).T
    lengths = np.diff(first, append=slots)
    return np.repeat(time - first * step, lengths) + np.arange(slots) * np.repeat(step, lengths)


def _sequences(plan: SimulationPlan, memory: Ints) -> Ints:
    """Three of every channel, side by side, and those of one channel after those of another."""
    first = int(memory[plan.links[0].address + at.FILLS]) if plan.links else 0
    return first + at.SEQUENCE_SIZE * np.arange(3 * len(plan.links), dtype=np.int64)


def _place(plan: SimulationPlan, memory: Ints, sizes: Ints) -> Ints:
    """Room for the runs of every sequence."""
    sequences, ends = _sequences(plan, memory), at.RUN_ENTRIES * np.cumsum(sizes)
    memory[sequences + at.RING] = ends - at.RUN_ENTRIES * sizes
    memory[sequences + at.MASK] = sizes - 1
    return np.zeros(int(ends[-1]) if len(ends) else 1, np.int64)
