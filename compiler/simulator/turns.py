"""Engine: ports that take turns, and how a steady rhythm of them is carried on without going through every turn.

In each turn every listed port is met once, `period` cycles of the process's own time after its turn before. How late
the process is (its offset) only rises. If in two turns one after the other it rose by the same amount `rise` at every
port, and what held the process up moves by `period + rise` a turn, then so it goes on, as long as all times that it
meets go on in even steps: a candidate that moves slower stays behind; one that moves faster has a margin to use up.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.accesses import carry, log_stall, memory_ready
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
    c, flags = m[q + at.CHANNEL], m[q + at.FLAGS]
    m[q + at.SLOPE], m[q + at.LINEAR] = 0, at.FAR
    if flags & (at.LOAD | at.STORE):
        return memory_ready(q, 1, m)
    if flags & at.TAKE:
        k, s = m[c + at.HELD], m[c + at.FILLS]
        run = m[c + at.HELD_RUN] = run_of(s, k, m[c + at.HELD_RUN], m, rings)
        count = m[c + at.FILLED]
    else:
        k, s = m[c + at.CLAIMED] - m[c + at.DEPTH], m[c + at.TAKES]
        if k < 0:
            m[q + at.LINEAR] = -k - 1
            return 0
        run = m[c + at.SLOT_RUN] = run_of(s, k, m[c + at.SLOT_RUN], m, rings)
        count = m[c + at.FREED]
    m[q + at.SLOPE] = step_in(s, run, m, rings)
    m[q + at.LINEAR] = end_of(s, run, count, m, rings) - 1 - k
    return time_in(s, k, run, m, rings) + 1


@jit
def let_turns_pass(q: int, n: int, time: int, step: int, m: Words, rings: Words) -> None:
    """`n` turns of a port happen, the first in cycle `time`."""
    c, flags = m[q + at.CHANNEL], m[q + at.FLAGS]
    time += m[q + at.SHIFT]
    if flags & (at.LOAD | at.STORE):
        m[q + at.PAID] = max(m[q + at.PAID], (time + (n - 1) * step) * at.TICKS) + m[q + at.PACE]
    elif flags & at.TAKE:
        if m[c + at.FREED] == 0:
            m[c + at.FIRST_TAKE] = time
        append(m[c + at.TAKES], m[c + at.FREED], n, time, step, m, rings)
        m[c + at.HELD] += n
        m[c + at.FREED] += n
        settle(c, m, rings)
    else:
        if m[c + at.FILLED] == 0:
            m[c + at.FIRST_FILL] = time
        append(m[c + at.FILLS], m[c + at.FILLED], n, time, step, m, rings)
        m[c + at.FILLED] += n
        m[c + at.CLAIMED] += n
    m[q + at.NEXT] += n * m[q + at.STEP]


@jit
def one_turn(p: int, members: int, m: Words, rings: Words, log: Words) -> int:
    """Every listed port once; by how much the offset rose at each since its turn before, or -1 if not evenly."""
    offset, rise, even, i = m[p + at.OFFSET], -1, True, members
    while m[i] > 0:
        now = m[m[i] + at.NEXT]
        time, cause, j = now + offset, 0, i
        while m[j] > 0 and m[m[j] + at.NEXT] == now:
            earliest = turn_ready(m[j], m, rings)
            m[m[j] + at.MARGIN] = earliest
            m[m[j] + at.TURN_WAIT] = 0
            if earliest > time:
                time, cause = earliest, m[j]
            j += 1
        if cause > 0:
            m[cause + at.TURN_WAIT] = time - now - offset
            m[cause + at.WAITED] += time - now - offset
            offset = time - now
            log_stall(p, time, cause, m, log)
        for place in range(i, j):
            q = m[place]
            m[q + at.MARGIN] = time - m[q + at.MARGIN]
            rose = offset - m[q + at.LAST_OFFSET]
            m[q + at.LAST_OFFSET] = offset
            even = even and (rose == rise or place == members)
            rise = rose
            let_turns_pass(q, 1, time, 0, m, rings)
        i = j
    m[p + at.OFFSET] = offset
    return rise if even else -1


@jit
def steady_turns(rise: int, members: int, m: Words) -> int:
    """How many turns go on as the last one did."""
    turns, i = at.FAR, members
    step = m[m[members] + at.STEP] + rise
    while m[i] > 0:
        q = m[i]
        if m[q + at.FLAGS] & (at.LOAD | at.STORE):
            # its buffer has caught up and refills faster than it is used
            last = (m[q + at.NEXT] - m[q + at.STEP] + m[q + at.LAST_OFFSET]) * at.TICKS
            if m[q + at.PAID] != last + m[q + at.PACE] or m[q + at.PACE] > step * at.TICKS or m[q + at.TURN_WAIT] > 0:
                return 0
        else:
            turns = min(turns, m[q + at.LINEAR])
            if m[q + at.TURN_WAIT] > 0 and m[q + at.SLOPE] != step:
                return 0
            if m[q + at.SLOPE] > step:
                turns = min(turns, m[q + at.MARGIN] // (m[q + at.SLOPE] - step))
        i += 1
    return turns


@jit
def has_room_for_turn(members: int, m: Words) -> bool:
    i = members
    while m[i] > 0:
        q = m[i]
        if not m[q + at.FLAGS] & (at.LOAD | at.STORE):
            c = m[q + at.CHANNEL]
            if not (room_to_read(c, m) if m[q + at.FLAGS] & at.TAKE else room_to_write(c, m)):
                return False
        i += 1
    return True


@jit
def take_turns(p: int, turns: int, m: Words, rings: Words, log: Words) -> bool:
    """Up to `turns` times every listed port; all times that they depend on are known. Whether any was taken."""
    members = m[m[p + at.PHASE] + at.MEMBERS]
    done = 0
    while done < turns and has_room_for_turn(members, m):
        rise = one_turn(p, members, m, rings, log)
        m[at.WORK] += 1
        done += 1
        more = min(steady_turns(rise, members, m), turns - done) if rise >= 0 and done > 1 else 0
        if more > 0:
            step, i, last, cause = m[m[members] + at.STEP] + rise, members, 0, 0
            while m[i] > 0:
                q = m[i]
                time = m[q + at.NEXT] + m[q + at.LAST_OFFSET] + rise
                m[q + at.WAITED] += more * m[q + at.TURN_WAIT]
                if m[q + at.TURN_WAIT] > 0:
                    last, cause = time + (more - 1) * step, q
                let_turns_pass(q, more, time, step, m, rings)
                m[q + at.LAST_OFFSET] += more * rise
                i += 1
            m[p + at.OFFSET] += more * rise
            if cause > 0:
                log_stall(p, last, cause, m, log)
            done += more
    i = members
    while m[i] > 0:
        q = m[i]
        m[q + at.LEFT] -= done
        if done > 0 and m[q + at.LEFT] == 0:
            carry(q, m)
        i += 1
    return done > 0
