"""The engine: every process runs ahead as far as the times of its tokens are known, event by event.

Blocking channels make all times unique whatever the order in which processes run, so nothing is stepped through: a
process that waits jumps. It stops only where a time is not known yet, and is woken when a neighbour has moved.
"""

from __future__ import annotations

from compiler.simulator.flushing import go_on_flushing
from compiler.simulator.jit import Words, jit
from compiler.simulator.layout import (
    MODE,
    ONE_CLOCK,
    PHASE,
    PROCESS_SIZE,
    PROCESSES,
    PROCESSES_END,
    READY,
    SWEEPS_BEFORE_KEPT,
    WAKES,
    WAKES_END,
)  # fmt: skip
from compiler.simulator.phases import begin
from compiler.simulator.recurrence import keep, recurs, repeat, times_more
from compiler.simulator.stalling import go_on_stalling


@jit
def run_process(p: int, m: Words, rings: Words, log: Words) -> bool:
    """Run one process as far as times are known. Whether it moved."""
    moved = False
    while m[p + MODE] != 2:
        if m[p + MODE] == 0:
            goes = begin(p, m, rings, log)
        elif m[m[p + PHASE] + ONE_CLOCK] > 0:
            goes = go_on_stalling(p, m, rings, log)
        else:
            goes = go_on_flushing(p, m, rings, log)
        if not goes:
            return moved
        moved = True
    return moved


@jit
def sweep(m: Words, rings: Words, log: Words) -> bool:
    """Run every process that has something new to look at. Whether any moved."""
    moved = False
    for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_SIZE):
        if m[p + READY] > 0:
            m[p + READY] = 0
            if run_process(p, m, rings, log):
                for i in range(m[p + WAKES], m[p + WAKES_END]):
                    m[m[i] + READY] = 1
                moved = True
    return moved


@jit
def advance(m: Words, rings: Words, log: Words, old: Words, old_rings: Words) -> bool:
    """Run every process as far as it goes. True when all are done, False when none can move.

    Now and then, less and less often, the state is kept and each later one compared with it.
    """
    sweeps, until, kept = 0, SWEEPS_BEFORE_KEPT, False
    while sweep(m, rings, log):
        sweeps += 1
        if kept and recurs(m, rings, old, old_rings):
            times = times_more(m, old)
            if times > 0:
                repeat(times, m, rings, log, old)
                sweeps, until, kept = 0, SWEEPS_BEFORE_KEPT, False
        if sweeps == until:
            keep(m, rings, old, old_rings)
            sweeps, until, kept = 0, 2 * until, True
    done = True
    for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_SIZE):
        done = done and m[p + MODE] == 2
    return done
