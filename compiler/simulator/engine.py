"""The engine: every process runs ahead as far as the times of its tokens are known, event by event.

Blocking channels make all times unique whatever the order in which processes run, so nothing is stepped through: a
process that waits jumps. It stops only where a time is not known yet, and is woken when a neighbour has moved.
"""

from __future__ import annotations

from compiler.simulator.flushing import run_flushing
from compiler.simulator.jit import Words, jit
from compiler.simulator.layout import FLUSHING, MODE, PROCESS_SIZE, PROCESSES, PROCESSES_END, READY, WAKES, WAKES_END
from compiler.simulator.stalling import run_stalling


@jit
def advance(m: Words, rings: Words, log: Words) -> bool:
    """Run every process as far as it goes. True when all are done, False when none can move."""
    again = True
    while again:
        again = False
        for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_SIZE):
            if m[p + READY] > 0:
                m[p + READY] = 0
                if run_flushing(p, m, rings, log) if m[FLUSHING] > 0 else run_stalling(p, m, rings, log):
                    for i in range(m[p + WAKES], m[p + WAKES_END]):
                        m[m[i] + READY] = 1
                    again = True
    done = True
    for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_SIZE):
        done = done and m[p + MODE] == 2
    return done
