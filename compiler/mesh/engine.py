"""The mesh simulator's inner loop, on arrays: waves of rounds in their order, transfers in the order of the program.

A link or channel serves one transfer after the other. A transfer begins when its place in the buffers is free at all
who receive it, and ends with the slowest thing that it occupies. A core begins a round when what it needs is there.

Everything that happens follows from times by sums and maxima. So where a loop's turn ends with all times as they were a
turn before, later by the same, and its next turns ask for the same, they end so too: they are counted, not run.
"""

from __future__ import annotations

from penstock.compiler.jit import Ints, jit
from penstock.compiler.mesh.traffic import Floats

SAVED = 8
"""How many turns of every loop are remembered."""


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
def fetch(
    load: int, wanted: Ints, size: float, groups: Ints, member_begin: Ints, members: Ints, use_begin: Ints,
    use_at: Ints, use_cycles: Floats, starts: Floats, free: Floats, busy: Floats, slot: Floats, arriving: Floats,
) -> None:  # fmt: skip
    """One tile of a load, for all groups of which a core wants it."""
    for group in range(groups[load], groups[load + 1]):
        ready, asked = 0.0, False
        for k in range(member_begin[group], member_begin[group + 1]):
            core = members[k]
            if wanted[core]:
                asked = True
                if slot[load, core] > ready:
                    ready = slot[load, core]
        if asked:
            done = starts[group] + occupy(
                free, busy, use_at, use_cycles, use_begin[group], use_begin[group + 1], ready, size
            )
            for k in range(member_begin[group], member_begin[group + 1]):
                if done > arriving[load, members[k]]:
                    arriving[load, members[k]] = done


@jit
def counted(loops: Ints, places: Ints, const: int, by: Ints, wave: int, found: Ints) -> int:
    """How many rounds of a phase each core has in a wave; the most of them.

    `loops`: trips, width and extent of every loop; `places`: a core's offset in each, then whether it works at all.
    """
    dims, most = loops.shape[1], 0
    for core in range(len(found)):
        left, rounds = wave, const
        there = places[core, dims] > 0
        for dim in range(dims - 1, -1, -1):
            place = left % loops[0, dim] * loops[1, dim] + places[core, dim]
            left //= loops[0, dim]
            rounds += by[dim] * place
            there = there and place < loops[2, dim]
        found[core] = rounds if there and rounds > 0 else 0
        if found[core] > most:
            most = found[core]
    return most


@jit
def shift(now: Floats, before: Floats, turns: float) -> bool:
    """Let all times go on as they did since `before`, so many turns; false, and nothing is done, if they did not."""
    by = 0.0
    for k in range(len(now)):
        if now[k] - before[k] > by:
            by = now[k] - before[k]
    for k in range(len(now)):
        moved = now[k] - before[k]
        if moved != 0.0 and abs(moved - by) > 1e-6:
            return False
    for k in range(len(now)):
        if now[k] != before[k]:
            now[k] += turns * by
    return True


@jit
def spread(bins: Floats, core: int, begin: float, end: float, width: float) -> None:
    """A core's work from `begin` to `end`, by equal parts of the time; what is beyond the last part is left out."""
    at = int(begin / width)
    while at < bins.shape[1] and at * width < end:
        low = begin if begin > at * width else at * width
        high = end if end < (at + 1) * width else (at + 1) * width
        bins[core, at] += high - low
        at += 1


@jit
def run_waves(
    waves: int, loops: Ints, places: Ints, periods: Ints, most_rounds: int,
    const: Ints, by: Ints, cycles: Floats, stored: Floats,
    phase_of: Ints, every: Ints, tiles: Ints, ahead: Ints, sizes: Floats,
    groups: Ints, member_begin: Ints, members: Ints, use_begin: Ints, use_at: Ints, use_cycles: Floats, starts: Floats,
    store_begin: Ints, store_at: Ints, store_cycles: Floats, store_start: float,
    times: Floats, free: Floats, core_end: Floats, slot: Floats, arriving: Floats, arrived: Floats, stores_end: Floats,
    busy: Floats, core_busy: Floats, tally: Floats,
    saved: Floats, saved_tally: Floats, saved_turn: Ints, counts: Ints, wanted: Ints, steps: Ints, marks: Floats,
    bin_width: float, bins: Floats,
) -> float:  # fmt: skip
    """Runs all waves; the cycle at which the last core and the last store are done.

    `times` is the memory of `free` to `stores_end`, `tally` that of both `busy`: what a jump moves. More than
    `most_rounds` are not run: `marks` then has the wave and the time of the halt, and of one about half way there.
    With a `bin_width` the cores' work is also noted by time; turns must then be run, not counted.
    """
    loads, cores, phases, dims = len(sizes), len(core_end), len(cycles), loops.shape[1]
    run, wave = 0, 0
    for load in range(loads):
        p = phase_of[load]
        first = 0
        while first < waves and counted(loops, places, int(const[p]), by[p], first, wanted) == 0:
            first += 1
        for _ in range(tiles[load]):
            fetch(load, wanted, sizes[load], groups, member_begin, members, use_begin, use_at, use_cycles, starts,
                  free, busy, slot, arriving)  # fmt: skip
        if not ahead[load]:
            for core in range(cores):
                arrived[load, core] = arriving[load, core]
                arriving[load, core] = 0.0
    while wave < waves:
        inner = waves
        for dim in range(dims):
            inner //= loops[0, dim]
            period = periods[dim]
            if period == 0 or wave % inner:
                continue
            turn = wave // inner % loops[0, dim]
            if turn < 1:
                for k in range(SAVED):
                    saved_turn[dim, k] = 0
                continue
            jumped = False
            for k in range(SAVED):
                since = turn - saved_turn[dim, k]
                if saved_turn[dim, k] == 0 or since <= 0 or since % period:  # of an earlier pass
                    continue
                # the last turn is another, and the one before fetches for it
                ahead_of = (loops[0, dim] - 2 - turn) // since
                if ahead_of > 0 and shift(times, saved[dim, k], float(ahead_of)):
                    for i in range(len(tally)):
                        tally[i] += ahead_of * (tally[i] - saved_tally[dim, k, i])
                    wave += ahead_of * since * inner
                    jumped = True
                    break
            if jumped:
                break
            k = turn % SAVED
            saved_turn[dim, k] = turn
            for i in range(len(times)):
                saved[dim, k, i] = times[i]
            for i in range(len(tally)):
                saved_tally[dim, k, i] = tally[i]
        total = 0
        for p in range(phases):
            steps[p] = counted(loops, places, int(const[p]), by[p], wave, counts[p])
            total += steps[p]
        if run + total > most_rounds:
            break
        if 2 * run < most_rounds:
            marks[2] = wave
            marks[3] = 0.0
            for core in range(cores):
                marks[3] = max(marks[3], core_end[core])
        run += total
        for load in range(loads):
            if every[load] and wave % every[load] == 0 and ahead[load]:
                for core in range(cores):
                    arrived[load, core] = arriving[load, core]
                    arriving[load, core] = 0.0
        at = 0
        for p in range(phases):
            for load in range(loads):
                if phase_of[load] == p and every[load] and not ahead[load] and wave and wave % every[load] == 0:
                    counted(loops, places, int(const[p]), by[p], wave, wanted)
                    for _ in range(tiles[load]):
                        fetch(load, wanted, sizes[load], groups, member_begin, members, use_begin, use_at, use_cycles,
                              starts, free, busy, slot, arriving)  # fmt: skip
                    for core in range(cores):
                        arrived[load, core] = arriving[load, core]
                        arriving[load, core] = 0.0
            for r in range(steps[p]):
                for load in range(loads):
                    asked = 0
                    if every[load] == 0:
                        if phase_of[load] == p:
                            for core in range(cores):
                                arrived[load, core] = arriving[load, core]
                                arriving[load, core] = 0.0
                            asked = 1
                            if r + 1 < steps[p]:
                                for core in range(cores):
                                    wanted[core] = 1 if counts[p, core] > r + 1 else 0
                            else:
                                after = wave + 1
                                while (
                                    after < waves and counted(loops, places, int(const[p]), by[p], after, wanted) == 0
                                ):
                                    after += 1
                                if after >= waves:
                                    asked = 0
                    elif ahead[load] and (wave // every[load] + 1) * every[load] < waves:
                        # a tile after the other, while the tiles before them are in use
                        within, whole = wave % every[load] * total + at, every[load] * total
                        asked = -(-(within + 1) * tiles[load] // whole) + (-within * tiles[load]) // whole
                        if asked:
                            q = phase_of[load]
                            after = (wave // every[load] + 1) * every[load]
                            counted(loops, places, int(const[q]), by[q], after, wanted)
                    for _ in range(asked):
                        fetch(load, wanted, sizes[load], groups, member_begin, members, use_begin, use_at, use_cycles,
                              starts, free, busy, slot, arriving)  # fmt: skip
                for core in range(cores):
                    if r >= counts[p, core]:
                        continue
                    begins_at = core_end[core]
                    for load in range(loads):
                        if phase_of[load] == p and arrived[load, core] > begins_at:
                            begins_at = arrived[load, core]
                    if stored[p] > 0 and stores_end[core, 0] > begins_at:  # the result before the last
                        begins_at = stores_end[core, 0]
                    core_end[core] = begins_at + cycles[p]
                    core_busy[core] += cycles[p]
                    if bin_width > 0:
                        spread(bins, core, begins_at, core_end[core], bin_width)
                    if stored[p] > 0:
                        stores_end[core, 0] = stores_end[core, 1]
                        stores_end[core, 1] = store_start + occupy(
                            free, busy, store_at, store_cycles, store_begin[core], store_begin[core + 1],
                            core_end[core], stored[p],
                        )  # fmt: skip
                for load in range(loads):
                    if every[load] == 0 and phase_of[load] == p:
                        for core in range(cores):
                            slot[load, core] = core_end[core]
                at += 1
            for load in range(loads):
                if phase_of[load] == p and every[load] and (wave + 1) % every[load] == 0:
                    for core in range(cores):
                        slot[load, core] = core_end[core]
        wave += 1
    over = 0.0
    for core in range(cores):
        over = max(over, core_end[core], stores_end[core, 1])
    marks[0] = wave
    marks[1] = over
    return over
