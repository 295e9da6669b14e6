"""Engine: ports that take turns, and how a steady rhythm of them is carried on without going through every turn.

In each turn every listed port is met once, `period` cycles of the process's own time after its turn before. How late
the process is (its offset) only rises. If in two turns one after the other it rose by the same amount `rise` at every
port, and what held the process up moves by `period + rise` a turn, then so it goes on, as long as all times that it
meets go on in even steps: a candidate that moves slower stays behind; one that moves faster has a margin to use up.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator.accesses import carry, log_stall, memory_ready
from penstock.compiler.simulator.layout import (
    CHANNEL,
    CLAIMED,
    DEPTH,
    FAR,
    FILLED,
    FILLS,
    FIRST_FILL,
    FIRST_TAKE,
    FLAGS,
    FREED,
    HELD,
    HELD_RUN,
    LAST_OFFSET,
    LEFT,
    LINEAR,
    LOAD,
    MARGIN,
    MEMBERS,
    NEXT,
    OFFSET,
    PACE,
    PAID,
    PHASE,
    SHIFT,
    SLOPE,
    SLOT_RUN,
    STEP,
    STORE,
    TAKE,
    TAKES,
    TICKS,
    TURN_WAIT,
    WAITED,
    WORK,
)  # fmt: skip
from penstock.compiler.simulator.sequences import (
    append,
    end_of,
    room_to_read,
    room_to_write,
    run_of,
    settle,
    step_in,
    time_in,
)


@jit
def turn_ready(q: int, m: Words, rings: Words) -> int:
    """The earliest cycle of a port's turn; how the times after it go on is noted in its row."""
    c, flags = m[q + CHANNEL], m[q + FLAGS]
    m[q + SLOPE], m[q + LINEAR] = 0, FAR
    if flags & (LOAD | STORE):
        return memory_ready(q, 1, m)
    if flags & TAKE:
        k, s = m[c + HELD], m[c + FILLS]
        run = m[c + HELD_RUN] = run_of(s, k, m[c + HELD_RUN], m, rings)
        count = m[c + FILLED]
    else:
        k, s = m[c + CLAIMED] - m[c + DEPTH], m[c + TAKES]
        if k < 0:
            m[q + LINEAR] = -k - 1
            return 0
        run = m[c + SLOT_RUN] = run_of(s, k, m[c + SLOT_RUN], m, rings)
        count = m[c + FREED]
    m[q + SLOPE] = step_in(s, run, m, rings)
    m[q + LINEAR] = end_of(s, run, count, m, rings) - 1 - k
    return time_in(s, k, run, m, rings) + 1


@jit
def let_turns_pass(q: int, n: int, time: int, step: int, m: Words, rings: Words) -> None:
    """`n` turns of a port happen, the first in cycle `time`."""
    c, flags = m[q + CHANNEL], m[q + FLAGS]
    time += m[q + SHIFT]
    if flags & (LOAD | STORE):
        m[q + PAID] = max(m[q + PAID], (time + (n - 1) * step) * TICKS) + m[q + PACE]
    elif flags & TAKE:
        if m[c + FREED] == 0:
            m[c + FIRST_TAKE] = time
        append(m[c + TAKES], m[c + FREED], n, time, step, m, rings)
        m[c + HELD] += n
        m[c + FREED] += n
        settle(c, m, rings)
    else:
        if m[c + FILLED] == 0:
            m[c + FIRST_FILL] = time
        append(m[c + FILLS], m[c + FILLED], n, time, step, m, rings)
        m[c + FILLED] += n
        m[c + CLAIMED] += n
    m[q + NEXT] += n * m[q + STEP]


@jit
def one_turn(p: int, members: int, m: Words, rings: Words, log: Words) -> int:
    """Every listed port once; by how much the offset rose at each since its turn before, or -1 if not evenly."""
    offset, rise, even, i = m[p + OFFSET], -1, True, members
    while m[i] > 0:
        now = m[m[i] + NEXT]
        time, cause, j = now + offset, 0, i
        while m[j] > 0 and m[m[j] + NEXT] == now:
            earliest = turn_ready(m[j], m, rings)
            m[m[j] + MARGIN] = earliest
            m[m[j] + TURN_WAIT] = 0
            if earliest > time:
                time, cause = earliest, m[j]
            j += 1
        if cause > 0:
            m[cause + TURN_WAIT] = time - now - offset
            m[cause + WAITED] += time - now - offset
            offset = time - now
            log_stall(p, time, cause, m, log)
        for at in range(i, j):
            q = m[at]
            m[q + MARGIN] = time - m[q + MARGIN]
            rose = offset - m[q + LAST_OFFSET]
            m[q + LAST_OFFSET] = offset
            even = even and (rose == rise or at == members)
            rise = rose
            let_turns_pass(q, 1, time, 0, m, rings)
        i = j
    m[p + OFFSET] = offset
    return rise if even else -1


@jit
def steady_turns(rise: int, members: int, m: Words) -> int:
    """How many turns go on as the last one did."""
    turns, i = FAR, members
    step = m[m[members] + STEP] + rise
    while m[i] > 0:
        q = m[i]
        if m[q + FLAGS] & (LOAD | STORE):
            # its buffer has caught up and refills faster than it is used
            last = (m[q + NEXT] - m[q + STEP] + m[q + LAST_OFFSET]) * TICKS
            if m[q + PAID] != last + m[q + PACE] or m[q + PACE] > step * TICKS or m[q + TURN_WAIT] > 0:
                return 0
        else:
            turns = min(turns, m[q + LINEAR])
            if m[q + TURN_WAIT] > 0 and m[q + SLOPE] != step:
                return 0
            if m[q + SLOPE] > step:
                turns = min(turns, m[q + MARGIN] // (m[q + SLOPE] - step))
        i += 1
    return turns


@jit
def has_room_for_turn(members: int, m: Words) -> bool:
    i = members
    while m[i] > 0:
        q = m[i]
        if not m[q + FLAGS] & (LOAD | STORE):
            c = m[q + CHANNEL]
            if not (room_to_read(c, m) if m[q + FLAGS] & TAKE else room_to_write(c, m)):
                return False
        i += 1
    return True


@jit
def take_turns(p: int, turns: int, m: Words, rings: Words, log: Words) -> bool:
    """Up to `turns` times every listed port; all times that they depend on are known. Whether any was taken."""
    members = m[m[p + PHASE] + MEMBERS]
    done = 0
    while done < turns and has_room_for_turn(members, m):
        rise = one_turn(p, members, m, rings, log)
        m[WORK] += 1
        done += 1
        more = min(steady_turns(rise, members, m), turns - done) if rise >= 0 and done > 1 else 0
        if more > 0:
            step, i, last, cause = m[m[members] + STEP] + rise, members, 0, 0
            while m[i] > 0:
                q = m[i]
                time = m[q + NEXT] + m[q + LAST_OFFSET] + rise
                m[q + WAITED] += more * m[q + TURN_WAIT]
                if m[q + TURN_WAIT] > 0:
                    last, cause = time + (more - 1) * step, q
                let_turns_pass(q, more, time, step, m, rings)
                m[q + LAST_OFFSET] += more * rise
                i += 1
            m[p + OFFSET] += more * rise
            if cause > 0:
                log_stall(p, last, cause, m, log)
            done += more
    i = members
    while m[i] > 0:
        q = m[i]
        m[q + LEFT] -= done
        if done > 0 and m[q + LEFT] == 0:
            carry(q, m)
        i += 1
    return done > 0
