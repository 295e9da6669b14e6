"""Engine: phases with one clock, which waits or goes on as a whole, so that many accesses go in one sweep."""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator.accesses import claim, let_pass, log_stall, step, unclaim
from penstock.compiler.simulator.layout import (
    CHANNEL,
    CLAIMED,
    DEPTH,
    FAR,
    FILLED,
    FLAGS,
    FREED,
    HELD,
    LEFT,
    LOAD,
    MEMBERS,
    NEXT,
    OFFSET,
    PHASE,
    PORT_SIZE,
    PORTS,
    PORTS_END,
    SHIFT,
    SIMPLE,
    STEP,
    STORE,
    TAKE,
    WAITED,
)  # fmt: skip
from penstock.compiler.simulator.phases import finish
from penstock.compiler.simulator.turns import take_turns


@jit
def claim_due(low: int, high: int, now: int, m: Words, rings: Words) -> tuple[int, int]:
    """Claim all accesses at the phase's time `now`: (earliest cycle, port that decides), or (-1, ...) for unknown."""
    earliest, cause = 0, 0
    for q in range(low, high, PORT_SIZE):
        if m[q + NEXT] == now:
            time = claim(q, m, rings)
            if time < 0:
                for back in range(low, q, PORT_SIZE):
                    if m[back + NEXT] == now:
                        unclaim(back, m, rings)
                return -1, q
            if time > earliest:
                earliest, cause = time, q
    return earliest, cause


@jit
def known_turns(q: int, m: Words) -> int:
    """How many accesses of a simple port have times that are known."""
    c = m[q + CHANNEL]
    if m[q + FLAGS] & (LOAD | STORE):
        return FAR
    if m[q + FLAGS] & TAKE:
        return m[c + FILLED] - m[c + HELD]
    return m[c + DEPTH] - (m[c + CLAIMED] - m[c + FREED])


@jit
def find_turns(p: int, first: int, m: Words) -> int:
    """How often the ports that take turns every so many cycles can do so undisturbed; 0 where that is not simple.

    Turns last until another port comes in, a run ends, or a time is not known. The ports are listed in the order of
    their turns at the phase's MEMBERS.
    """
    h = m[p + PHASE]
    low, high, members = m[h + PORTS], m[h + PORTS_END], m[h + MEMBERS]
    period = FAR
    for q in range(low, high, PORT_SIZE):
        if m[q + NEXT] == first and m[q + LEFT] > 1:
            period = min(period, m[q + STEP])
    if period == FAR:
        return 0
    turns, limit, end = FAR, FAR, members
    for q in range(low, high, PORT_SIZE):
        if m[q + NEXT] < first + period and m[q + STEP] == period:
            if not m[q + FLAGS] & SIMPLE:
                return 0
            turns = min(turns, m[q + LEFT], known_turns(q, m))
            if turns < 2:
                return 0
            at = end
            while at > members and m[m[at - 1] + NEXT] > m[q + NEXT]:
                m[at] = m[at - 1]
                at -= 1
            m[at] = q
            end += 1
        else:
            limit = min(limit, m[q + NEXT])
    if limit < FAR:
        for i in range(members, end):
            turns = min(turns, (limit - m[m[i] + NEXT] + period - 1) // period)
    m[end] = 0
    return turns if turns > 1 else 0


@jit
def go_on_stalling(p: int, m: Words, rings: Words, log: Words) -> bool:
    """The next accesses of a phase with one clock, or its end. False while their times are not known."""
    low, high = m[m[p + PHASE] + PORTS], m[m[p + PHASE] + PORTS_END]
    now = FAR
    for q in range(low, high, PORT_SIZE):
        now = min(now, m[q + NEXT])
    if now == FAR:
        finish(p, m, rings)
        return True
    turns = find_turns(p, now, m)
    if turns > 0 and take_turns(p, turns, m, rings, log):
        return True
    earliest, cause = claim_due(low, high, now, m, rings)
    if earliest < 0:
        return False
    time = now + m[p + OFFSET]
    if earliest > time:
        m[cause + WAITED] += earliest - time
        m[p + OFFSET] = earliest - now
        time = earliest
        log_stall(p, time, cause, m, log)
    for q in range(low, high, PORT_SIZE):
        if m[q + NEXT] == now:
            let_pass(q, time + m[q + SHIFT], m, rings)
            step(q, m)
    return True
