"""Engine: phases with one clock, which waits or goes on as a whole, so that many accesses go in one sweep."""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.accesses import claim, let_pass, log_stall, step, unclaim
from penstock.compiler.simulator.phases import finish
from penstock.compiler.simulator.turns import take_turns


@jit
def claim_due(low: int, high: int, now: int, m: Words, rings: Words) -> tuple[int, int]:
    """Claim all accesses at the phase's time `now`: (earliest cycle, port that decides), or (-1, ...) for unknown."""
    earliest, cause = 0, 0
    for q in range(low, high, at.PORT_SIZE):
        if m[q + at.NEXT] == now:
            time = claim(q, m, rings)
            if time < 0:
                for back in range(low, q, at.PORT_SIZE):
                    if m[back + at.NEXT] == now:
                        unclaim(back, m, rings)
                return -1, q
            if time > earliest:
                earliest, cause = time, q
    return earliest, cause


@jit
def known_turns(q: int, m: Words) -> int:
    """How many accesses of a simple port have times that are known."""
    c = m[q + at.CHANNEL]
    if m[q + at.FLAGS] & (at.LOAD | at.STORE):
        return at.FAR
    if m[q + at.FLAGS] & at.TAKE:
        return m[c + at.FILLED] - m[c + at.HELD]
    return m[c + at.DEPTH] - (m[c + at.CLAIMED] - m[c + at.FREED])


@jit
def find_turns(p: int, first: int, m: Words) -> int:
    """How often the ports that take turns every so many cycles can do so undisturbed; 0 where that is not simple.

    Turns last until another port comes in, a run ends, or a time is not known. The ports are listed in the order of
    their turns at the phase's MEMBERS.
    """
    h = m[p + at.PHASE]
    low, high, members = m[h + at.PORTS], m[h + at.PORTS_END], m[h + at.MEMBERS]
    period = at.FAR
    for q in range(low, high, at.PORT_SIZE):
        if m[q + at.NEXT] == first and m[q + at.LEFT] > 1:
            period = min(period, m[q + at.STEP])
    if period == at.FAR:
        return 0
    turns, limit, end = at.FAR, at.FAR, members
    for q in range(low, high, at.PORT_SIZE):
        if m[q + at.NEXT] < first + period and m[q + at.STEP] == period:
            if not m[q + at.FLAGS] & at.SIMPLE:
                return 0
            turns = min(turns, m[q + at.LEFT], known_turns(q, m))
            if turns < 2:
                return 0
            place = end
            while place > members and m[m[place - 1] + at.NEXT] > m[q + at.NEXT]:
                m[place] = m[place - 1]
                place -= 1
            m[place] = q
            end += 1
        else:
            limit = min(limit, m[q + at.NEXT])
    if limit < at.FAR:
        for i in range(members, end):
            turns = min(turns, (limit - m[m[i] + at.NEXT] + period - 1) // period)
    m[end] = 0
    return turns if turns > 1 else 0


@jit
def go_on_stalling(p: int, m: Words, rings: Words, log: Words) -> bool:
    """The next accesses of a phase with one clock, or its end. False while their times are not known."""
    low, high = m[m[p + at.PHASE] + at.PORTS], m[m[p + at.PHASE] + at.PORTS_END]
    now = at.FAR
    for q in range(low, high, at.PORT_SIZE):
        now = min(now, m[q + at.NEXT])
    if now == at.FAR:
        finish(p, m, rings)
        return True
    turns = find_turns(p, now, m)
    if turns > 0 and take_turns(p, turns, m, rings, log):
        return True
    earliest, cause = claim_due(low, high, now, m, rings)
    if earliest < 0:
        return False
    time = now + m[p + at.OFFSET]
    if earliest > time:
        m[cause + at.WAITED] += earliest - time
        m[p + at.OFFSET] = earliest - now
        time = earliest
        log_stall(p, time, cause, m, log)
    for q in range(low, high, at.PORT_SIZE):
        if m[q + at.NEXT] == now:
            let_pass(q, time + m[q + at.SHIFT], m, rings)
            step(q, m)
    return True
