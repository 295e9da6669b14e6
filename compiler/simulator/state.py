"""A run's memory: the plan's with depths and rings of times, which grow where a process has to run far ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compiler.simulator import layout as at
from compiler.simulator.jit import Ints
from compiler.simulator.plan import Plan

WINDOW = 1 << 12  # times kept of a channel at first


@dataclass
class State:
    """What `advance` works on."""

    memory: Ints
    rings: Ints
    log: Ints
    frames: int


def new_state(plan: Plan, depths: Sequence[int | None], frames: int) -> State:
    """Everything before its first event; `depths` of the plan's links, None where no slot is ever missing."""
    times = len(plan.memory)
    memory = np.concatenate((plan.memory, np.zeros(2 * frames * len(plan.processes), np.int64)))
    memory[at.FRAMES] = frames
    for number, row in enumerate(plan.addresses):
        memory[row + at.TIMES] = times + 2 * frames * number
    windows: list[tuple[int, int]] = []
    for link, depth in zip(plan.links, depths, strict=True):
        total = link.tokens * frames
        slots = at.UNBOUNDED if depth is None or depth >= total else depth
        memory[link.address + at.DEPTH] = slots
        fills = _power(total if link.channel.kind == "pipo" else min(total, WINDOW))
        windows.append((fills, fills if slots == at.UNBOUNDED else max(fills, _power(slots))))
    log = np.empty(2 * at.LOG * len(plan.processes), np.int64)
    return State(memory, _place(plan, memory, windows), log, frames)


def grow(plan: Plan, state: State) -> bool:
    """Twice the window wherever one was too small; False where none was."""
    m, old = state.memory, state.rings
    rows = [link.address for link in plan.links]
    if not any(m[row + at.GROW] for row in rows):
        return False
    before = [[int(n) for n in m[row : row + at.CHANNEL_SIZE]] for row in rows]
    state.rings = _place(
        plan,
        m,
        [((r[at.FILLS_MASK] + 1) << (r[at.GROW] & 1), (r[at.TAKES_MASK] + 1) << (r[at.GROW] >> 1)) for r in before],
    )
    for row, was in zip(rows, before, strict=True):
        for ring, mask, count in (
            (at.FILLS_AT, at.FILLS_MASK, at.FILLED),
            (at.CLAIMS_AT, at.FILLS_MASK, at.CLAIMED),
            (at.TAKES_AT, at.TAKES_MASK, at.FREED),
        ):
            kept = np.arange(max(0, was[count] - was[mask] - 1), was[count])
            state.rings[m[row + ring] + (kept & m[row + mask])] = old[was[ring] + (kept & was[mask])]
        m[row + at.GROW] = 0
    for row in plan.addresses:
        m[row + at.READY] = 1
    return True


def _place(plan: Plan, memory: Ints, windows: Sequence[tuple[int, int]]) -> Ints:
    """Room for the rings; blocks have a ring more, for they are claimed before they are filled."""
    end = 0
    for link, (fills, takes) in zip(plan.links, windows, strict=True):
        apart = fills if link.channel.kind != "fifo" else 0
        row = link.address
        memory[row + at.FILLS_AT], memory[row + at.CLAIMS_AT] = end, end + apart
        memory[row + at.TAKES_AT] = end + fills + apart
        memory[row + at.FILLS_MASK], memory[row + at.TAKES_MASK] = fills - 1, takes - 1
        end += fills + apart + takes
    return np.zeros(max(end, 1), np.int64)


def _power(count: int) -> int:
    return 1 << max(1, (max(count, 1) - 1).bit_length())
