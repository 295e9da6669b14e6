"""The engine: every process runs ahead as far as the times of its tokens are known, event by event.

Blocking channels make all times unique whatever the order in which processes run, so nothing is stepped through: a
process that waits jumps. It stops only where a time is not known yet, and is woken when a neighbour has moved.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.flushing import go_on_flushing
from penstock.compiler.simulator.phases import begin
from penstock.compiler.simulator.recurrence import go_on, keep
from penstock.compiler.simulator.stalling import go_on_stalling


@jit
def run_process(p: int, m: Words, rings: Words, log: Words) -> bool:
    """Run one process as far as times are known, or until the run takes too long. Whether it moved."""
    moved = False
    while m[p + at.MODE] != 2 and m[at.WORK] <= m[at.MOST_WORK]:
        if m[p + at.MODE] == 0:
            goes = begin(p, m, rings, log)
        elif m[m[p + at.PHASE] + at.ONE_CLOCK] > 0:
            goes = go_on_stalling(p, m, rings, log)
        else:
            goes = go_on_flushing(p, m, rings, log)
        m[at.WORK] += 1
        if not goes:
            return moved
        moved = True
    return moved


@jit
def sweep(m: Words, rings: Words, log: Words) -> bool:
    """Run every process that has something new to look at. Whether any moved."""
    moved = False
    for p in range(m[at.PROCESSES], m[at.PROCESSES_END], at.PROCESS_SIZE):
        if m[p + at.READY] > 0:
            m[p + at.READY] = 0
            if run_process(p, m, rings, log):
                for i in range(m[p + at.WAKES], m[p + at.WAKES_END]):
                    m[m[i] + at.READY] = 1
                moved = True
    return moved


@jit
def advance(m: Words, rings: Words, log: Words, near: Words, near_rings: Words, far: Words, far_rings: Words) -> bool:
    """Run every process as far as it goes. True when all are done, False when none can move, or it takes too long.

    Now and then, less and less often, the state is kept and each later one compared with it: a near one, anew after
    every time that it recurred, and one from so far back that what recurs from then on are whole rows. Without room to
    keep a state in, every event is gone through one by one, and its time is noted.
    """
    since_near, until_near, since_far, until_far = 0, at.SWEEPS_BEFORE_KEPT, 0, 4 * at.SWEEPS_BEFORE_KEPT
    has_near = has_far = False
    if len(near) == 0:
        until_near = until_far = at.FAR
    while m[at.WORK] <= m[at.MOST_WORK] and sweep(m, rings, log):
        since_near += 1
        since_far += 1
        if has_far and since_far > 2 * at.SWEEPS_BEFORE_KEPT and go_on(at.FAR_BACK, m, rings, log, far, far_rings):
            since_near, until_near, since_far, until_far = 0, at.SWEEPS_BEFORE_KEPT, 0, 4 * at.SWEEPS_BEFORE_KEPT
            has_near = has_far = False
        elif has_near and go_on(at.NEAR, m, rings, log, near, near_rings):
            since_near, until_near, has_near = 0, at.SWEEPS_BEFORE_KEPT, False
        if since_near == until_near:
            keep(m, rings, near, near_rings)
            since_near, until_near, has_near = 0, 2 * until_near, True
        if since_far == until_far:
            keep(m, rings, far, far_rings)
            since_far, until_far, has_far = 0, 2 * until_far, True
    done = True
    for p in range(m[at.PROCESSES], m[at.PROCESSES_END], at.PROCESS_SIZE):
        done = done and m[p + at.MODE] == 2
    return done
