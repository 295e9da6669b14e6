"""The mesh simulator's inner loop, on arrays: rounds in their order, transfers in the order of the program.

A link or channel serves one transfer after the other. A transfer begins when its place in the buffers is free at all
who receive it, and ends with the slowest thing that it occupies. A core begins a round when what it needs is there.
"""

from __future__ import annotations

from penstock.compiler.jit import Ints, jit
from penstock.compiler.mesh.traffic import Floats


@jit
def occupy(
    free: Floats, busy: Floats, at: Ints, cycles: Floats, begin: int, end: int, ready: float, size: float
) -> float:
    """When a transfer is through that may start at `ready`."""
    done = ready
    for k in range(begin, end):
        link = at[k]
        served = cycles[k] * size
        start = free[link] if free[link] > ready else ready
        free[link] = start + served
        busy[link] += served
        if start + served > done:
            done = start + served
    return done


@jit
def run_rounds(
    cycles: Floats, stored: Floats, active: Ints,
    issue: Ints, issued_for: Ints, begins: Ints, ends: Ints, ahead: Ints, sizes: Floats,
    groups: Ints, member_begin: Ints, members: Ints, use_begin: Ints, use_at: Ints, use_cycles: Floats, starts: Floats,
    store_begin: Ints, store_at: Ints, store_cycles: Floats, store_start: float,
    free: Floats, busy: Floats, core_end: Floats, core_busy: Floats, slot: Floats, arriving: Floats, arrived: Floats,
    stores_end: Floats, round_end: Floats,
) -> float:  # fmt: skip
    """Runs all rounds, the first only fetches; the cycle at which the last core and the last store are done."""
    loads, cores = len(sizes), len(core_end)
    over = 0.0
    for s in range(len(cycles)):
        for load in range(loads):
            if begins[load, s] and ahead[load]:
                for core in range(cores):
                    arrived[load, core] = arriving[load, core]
                    arriving[load, core] = 0.0
            for _ in range(issue[load, s]):
                for group in range(groups[load], groups[load + 1]):
                    ready, wanted = 0.0, False
                    for k in range(member_begin[group], member_begin[group + 1]):
                        core = members[k]
                        if active[issued_for[load, s], core]:
                            wanted = True
                            if slot[load, core] > ready:
                                ready = slot[load, core]
                    if wanted:
                        begin, end = use_begin[group], use_begin[group + 1]
                        done = occupy(free, busy, use_at, use_cycles, begin, end, ready, sizes[load]) + starts[group]
                        for k in range(member_begin[group], member_begin[group + 1]):
                            if done > arriving[load, members[k]]:
                                arriving[load, members[k]] = done
            if begins[load, s] and not ahead[load]:
                for core in range(cores):
                    arrived[load, core] = arriving[load, core]
                    arriving[load, core] = 0.0
        for core in range(cores):
            if not active[s, core]:
                continue
            begins_at = core_end[core]
            for load in range(loads):
                if arrived[load, core] > begins_at:
                    begins_at = arrived[load, core]
            if stored[s] > 0 and stores_end[core, 0] > begins_at:  # the result before the last
                begins_at = stores_end[core, 0]
            core_end[core] = begins_at + cycles[s]
            core_busy[core] += cycles[s]
            done = core_end[core]
            if stored[s] > 0:
                begin, end = store_begin[core], store_begin[core + 1]
                done = occupy(free, busy, store_at, store_cycles, begin, end, done, stored[s]) + store_start
                stores_end[core, 0] = stores_end[core, 1]
                stores_end[core, 1] = done
            if done > over:
                over = done
            if core_end[core] > round_end[s]:
                round_end[s] = core_end[core]
        for load in range(loads):
            if ends[load, s]:
                for core in range(cores):
                    slot[load, core] = core_end[core]
    return over
