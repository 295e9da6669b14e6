"""A run's memory: the plan's with depths and rings of times, which grow where a process has to run far ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compiler.simulator import layout as at
from compiler.simulator.jit import Ints
from compiler.simulator.plan import Plan

RUNS_KEPT = 256  # of a sequence of times at first; a power of two


@dataclass
class State:
    """What `advance` works on."""

    memory: Ints
    rings: Ints
    log: Ints
    kept: Ints
    kept_rings: Ints
    """As memory and rings were at some time, for comparison."""
    frames: int


def new_state(plan: Plan, depths: Sequence[int | None], frames: int) -> State:
    """Everything before its first event; `depths` of the plan's links, None where no slot is ever missing."""
    times = len(plan.memory)
    memory = np.concatenate((plan.memory, np.zeros(2 * frames * len(plan.processes), np.int64)))
    memory[at.FRAMES] = frames
    for number, row in enumerate(plan.addresses):
        memory[row + at.TIMES] = times + 2 * frames * number
    for link, depth in zip(plan.links, depths, strict=True):
        slots = at.UNBOUNDED if depth is None or depth >= link.tokens * frames else depth
        memory[link.address + at.DEPTH] = slots
    log = np.empty(2 * at.LOG * len(plan.processes), np.int64)
    rings = _place(plan, memory, [RUNS_KEPT] * 3 * len(plan.links))
    return State(memory, rings, log, np.empty_like(memory), np.empty_like(rings), frames)


def grow(plan: Plan, state: State) -> bool:
    """Twice the room wherever there was too little; False where there was enough."""
    m, old = state.memory, state.rings
    sequences = _sequences(plan, m)
    if not any(m[s + at.GROW] for s in sequences):
        return False
    before = [[int(n) for n in m[s : s + at.SEQUENCE_SIZE]] for s in sequences]
    state.rings = _place(plan, m, [(was[at.MASK] + 1) << was[at.GROW] for was in before])
    for s, was in zip(sequences, before, strict=True):
        for run in range(max(0, was[at.HEAD] - was[at.MASK] - 1), was[at.HEAD]):
            source = was[at.RING] + at.RUN_ENTRIES * (run & was[at.MASK])
            target = int(m[s + at.RING]) + at.RUN_ENTRIES * (run & int(m[s + at.MASK]))
            state.rings[target : target + at.RUN_ENTRIES] = old[source : source + at.RUN_ENTRIES]
        m[s + at.GROW] = 0
    for row in plan.addresses:
        m[row + at.READY] = 1
    state.kept_rings = np.empty_like(state.rings)
    return True


def last_time(link_address: int, sequence: int, count: int, state: State) -> int | None:
    """The last time of a channel's sequence; None before its first."""
    m = state.memory
    slots, s = int(m[link_address + count]), int(m[link_address + sequence])
    if not slots:
        return None
    place = int(m[s + at.RING]) + at.RUN_ENTRIES * ((int(m[s + at.HEAD]) - 1) & int(m[s + at.MASK]))
    first, time, step = (int(n) for n in state.rings[place : place + at.RUN_ENTRIES])
    return time + (slots - 1 - first) * step


def _sequences(plan: Plan, memory: Ints) -> list[int]:
    """Three of every channel, side by side."""
    return [int(memory[link.address + at.FILLS]) + i * at.SEQUENCE_SIZE for link in plan.links for i in range(3)]


def _place(plan: Plan, memory: Ints, sizes: Sequence[int]) -> Ints:
    """Room for the runs of every sequence."""
    end = 0
    for s, size in zip(_sequences(plan, memory), sizes, strict=True):
        memory[s + at.RING], memory[s + at.MASK] = end, size - 1
        end += at.RUN_ENTRIES * size
    return np.zeros(max(end, 1), np.int64)
