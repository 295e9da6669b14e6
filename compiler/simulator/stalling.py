"""Engine: processes whose pipelines stop whole. Their clock is one number, so that many accesses go in one sweep."""

from __future__ import annotations

from compiler.simulator.accesses import carry, claim, let_pass, log_stall, step, take, unclaim
from compiler.simulator.jit import Words, jit
from compiler.simulator.layout import (
    CHANNEL,
    CLAIMED,
    DEPTH,
    FAR,
    FILLED,
    FILLS_AT,
    FILLS_MASK,
    FIRST_FILL,
    FLAGS,
    FREED,
    HELD,
    LEFT,
    MEMBERS,
    MODE,
    NEXT,
    OFFSET,
    PHASE,
    PORT_SIZE,
    PORTS,
    PORTS_END,
    SEEN,
    SIMPLE,
    STEP,
    TAKE,
    TAKES_AT,
    TAKES_MASK,
    WAITED,
)  # fmt: skip
from compiler.simulator.phases import begin, finish


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
                        unclaim(back, m)
                return -1, q
            if time > earliest:
                earliest, cause = time, q
    return earliest, cause


@jit
def known_turns(q: int, m: Words) -> int:
    """How many accesses of a simple port have times that are known."""
    c = m[q + CHANNEL]
    if m[q + FLAGS] & TAKE:
        return min(m[c + FILLED] - m[c + HELD], m[c + TAKES_MASK] + 1 - (m[c + FREED] - m[c + SEEN]))
    return min(m[c + DEPTH], m[c + FILLS_MASK] + 1) - (m[c + CLAIMED] - m[c + FREED])


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
def take_turns(p: int, turns: int, m: Words, rings: Words, log: Words) -> None:
    """`turns` times every listed port; all times that they depend on are known."""
    offset, members = m[p + OFFSET], m[m[p + PHASE] + MEMBERS]
    for _ in range(turns):
        i = members
        while m[i] > 0:
            now = m[m[i] + NEXT]
            time, cause = now + offset, 0
            j = i
            while m[j] > 0 and m[m[j] + NEXT] == now:
                q = m[j]
                c = m[q + CHANNEL]
                if m[q + FLAGS] & TAKE:
                    earliest = rings[m[c + FILLS_AT] + (m[c + HELD] & m[c + FILLS_MASK])] + 1
                else:
                    k = m[c + CLAIMED] - m[c + DEPTH]
                    earliest = rings[m[c + TAKES_AT] + (k & m[c + TAKES_MASK])] + 1 if k >= 0 else 0
                if earliest > time:
                    time, cause = earliest, q
                j += 1
            if cause > 0:
                m[cause + WAITED] += time - now - offset
                offset = time - now
                log_stall(p, time, cause, m, log)
            for at in range(i, j):
                q = m[at]
                c = m[q + CHANNEL]
                if m[q + FLAGS] & TAKE:
                    m[c + HELD] += 1
                    take(c, 1, time, m, rings)
                else:
                    if m[c + FILLED] == 0:
                        m[c + FIRST_FILL] = time
                    rings[m[c + FILLS_AT] + (m[c + FILLED] & m[c + FILLS_MASK])] = time
                    m[c + FILLED] += 1
                    m[c + CLAIMED] += 1
                m[q + NEXT] += m[q + STEP]
            i = j
    m[p + OFFSET] = offset
    i = members
    while m[i] > 0:
        q = m[i]
        m[q + LEFT] -= turns
        if m[q + LEFT] == 0:
            carry(q, m)
        i += 1


@jit
def run_stalling(p: int, m: Words, rings: Words, log: Words) -> bool:
    """Run one process as far as times are known. Whether it moved."""
    moved = False
    while m[p + MODE] != 2:
        if m[p + MODE] == 0:
            if not begin(p, m, rings, log):
                return moved
            moved = True
        low, high = m[m[p + PHASE] + PORTS], m[m[p + PHASE] + PORTS_END]
        now = FAR
        for q in range(low, high, PORT_SIZE):
            now = min(now, m[q + NEXT])
        if now == FAR:
            finish(p, m, rings)
            moved = True
            continue
        turns = find_turns(p, now, m)
        if turns > 0:
            take_turns(p, turns, m, rings, log)
            moved = True
            continue
        earliest, cause = claim_due(low, high, now, m, rings)
        if earliest < 0:
            return moved
        time = now + m[p + OFFSET]
        if earliest > time:
            m[cause + WAITED] += earliest - time
            m[p + OFFSET] = earliest - now
            time = earliest
            log_stall(p, time, cause, m, log)
        for q in range(low, high, PORT_SIZE):
            if m[q + NEXT] == now:
                let_pass(q, time, m, rings)
                step(q, m)
        moved = True
    return moved
