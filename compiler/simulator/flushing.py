"""Engine: processes whose pipelines flush. A late token stops the front; a full channel behind it stops the clock.

Cycles in which the clock goes are counted as clock time; iterations behind the front keep theirs whatever the front
waits for. While the times of the front's tokens are not known yet, what lies behind it is done ahead, and the freezes
that it met are noted, to be looked up when the front follows.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator.accesses import claim, let_pass, log_stall, step, unclaim
from penstock.compiler.simulator.layout import (
    BACK,
    BUBBLES,
    FAR,
    FLAGS,
    FROZEN,
    KNOWN_FROZEN,
    LATER,
    MOMENTS,
    MOMENTS_AT,
    NEXT,
    OFFSET,
    PHASE,
    PORT_SIZE,
    PORTS,
    PORTS_END,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_SIZE,
    QUEUED,
    WAITED,
)  # fmt: skip
from penstock.compiler.simulator.phases import finish


@jit
def due(q: int, front: int, bubbles: int, m: Words) -> int:
    """Clock time of the next access of a port behind the front, FAR if its iteration may still be stopped there."""
    if m[q + QUEUED] > 0:
        return m[m[q + QUEUE] + m[q + QUEUE_HEAD]]
    if m[q + NEXT] < FAR and m[q + NEXT] - m[q + LATER] < front:
        return m[q + NEXT] + bubbles
    return FAR


@jit
def drain(p: int, clock: int, front: int, m: Words, rings: Words, log: Words) -> bool:
    """Do what is due behind the front at a clock time; a full channel stops the clock. False for unknown times."""
    h, bubbles = m[p + PHASE], m[p + BUBBLES]
    low, high = m[h + PORTS], m[h + PORTS_END]
    earliest, cause = 0, 0
    for q in range(low, high, PORT_SIZE):
        if m[q + FLAGS] & BACK and due(q, front, bubbles, m) == clock:
            time = claim(q, m, rings)
            if time < 0:
                for back in range(low, q, PORT_SIZE):
                    if m[back + FLAGS] & BACK and due(back, front, bubbles, m) == clock:
                        unclaim(back, m, rings)
                return False
            if time > earliest:
                earliest, cause = time, q
    time = m[p + OFFSET] + clock + m[p + FROZEN]
    if earliest > time:
        m[cause + WAITED] += earliest - time
        m[p + FROZEN] += earliest - time
        time = earliest
        at = m[h + MOMENTS_AT] + 2 * m[p + MOMENTS]
        m[at] = clock
        m[at + 1] = m[p + FROZEN]
        m[p + MOMENTS] += 1
        log_stall(p, time, cause, m, log)
    for q in range(low, high, PORT_SIZE):
        if m[q + FLAGS] & BACK and due(q, front, bubbles, m) == clock:
            let_pass(q, time, m, rings)
            if m[q + QUEUED] > 0:
                m[q + QUEUED] -= 1
                m[q + QUEUE_HEAD] = (m[q + QUEUE_HEAD] + 1) % m[q + QUEUE_SIZE]
            else:
                step(q, m)
    return True


@jit
def leave_front(p: int, front: int, m: Words) -> None:
    """The front is about to stop: what has left it keeps its clock time."""
    h = m[p + PHASE]
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        if m[q + FLAGS] & BACK:
            while m[q + NEXT] < FAR and m[q + NEXT] - m[q + LATER] < front:
                last = (m[q + QUEUE_HEAD] + m[q + QUEUED]) % m[q + QUEUE_SIZE]
                m[m[q + QUEUE] + last] = m[q + NEXT] + m[p + BUBBLES]
                m[q + QUEUED] += 1
                step(q, m)


@jit
def front_clock(p: int, now: int, earliest: int, m: Words) -> tuple[int, int]:
    """The clock time at which the front's access at `now` can happen, and how many noted freezes lie before it."""
    moment, seen, frozen = m[m[p + PHASE] + MOMENTS_AT], 0, m[p + KNOWN_FROZEN]
    clock = max(now + m[p + BUBBLES], earliest - m[p + OFFSET] - frozen)
    while seen < m[p + MOMENTS] and m[moment] <= clock:
        frozen = m[moment + 1]
        clock = max(now + m[p + BUBBLES], m[moment], earliest - m[p + OFFSET] - frozen)
        seen += 1
        moment += 2
    return clock, seen


@jit
def forget(p: int, seen: int, m: Words) -> None:
    """The first `seen` of the noted freezes lie behind the front now."""
    at = m[m[p + PHASE] + MOMENTS_AT]
    if seen > 0:
        m[p + KNOWN_FROZEN] = m[at + 2 * seen - 1]
        for i in range(2 * seen, 2 * m[p + MOMENTS]):
            m[at + i - 2 * seen] = m[at + i]
        m[p + MOMENTS] -= seen


@jit
def claim_front(low: int, high: int, now: int, m: Words, rings: Words) -> tuple[int, int]:
    """Claim the front's accesses at the phase's time `now`: (earliest cycle, port that decides), or (-1, ...)."""
    earliest, cause = 0, 0
    for q in range(low, high, PORT_SIZE):
        if m[q + NEXT] == now and not m[q + FLAGS] & BACK:
            time = claim(q, m, rings)
            if time < 0:
                unclaim_front(low, q, now, m, rings)
                return -1, q
            if time > earliest:
                earliest, cause = time, q
    return earliest, cause


@jit
def unclaim_front(low: int, high: int, now: int, m: Words, rings: Words) -> None:
    for q in range(low, high, PORT_SIZE):
        if m[q + NEXT] == now and not m[q + FLAGS] & BACK:
            unclaim(q, m, rings)


@jit
def next_events(p: int, m: Words) -> tuple[int, int]:
    """(the phase's time of the front's next access, the clock time of the next one behind it)."""
    h = m[p + PHASE]
    now, back = FAR, FAR
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        if not m[q + FLAGS] & BACK:
            now = min(now, m[q + NEXT])
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        if m[q + FLAGS] & BACK:
            back = min(back, due(q, now, m[p + BUBBLES], m))
    return now, back


@jit
def move_front(p: int, now: int, clock: int, cause: int, m: Words, rings: Words, log: Words) -> None:
    """The front's claimed accesses happen at a clock time; being late, they leave bubbles."""
    h = m[p + PHASE]
    time = m[p + OFFSET] + clock + m[p + KNOWN_FROZEN]
    late = clock - now - m[p + BUBBLES]
    if late > 0:
        leave_front(p, now, m)
        m[p + BUBBLES] += late
        if cause > 0:
            m[cause + WAITED] += late
            log_stall(p, time, cause, m, log)
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        if m[q + NEXT] == now and not m[q + FLAGS] & BACK:
            let_pass(q, time, m, rings)
            step(q, m)


@jit
def go_on_flushing(p: int, m: Words, rings: Words, log: Words) -> bool:
    """The next accesses of the front or of what is behind it, or the phase's end. False while times are not known."""
    low, high = m[m[p + PHASE] + PORTS], m[m[p + PHASE] + PORTS_END]
    now, back = next_events(p, m)
    if now == FAR and back == FAR:
        finish(p, m, rings)
        return True
    if now == FAR or back < now + m[p + BUBBLES]:
        if not drain(p, back, now, m, rings, log):
            return False
        forget(p, m[p + MOMENTS], m)
        return True
    earliest, cause = claim_front(low, high, now, m, rings)
    if earliest < 0:  # not known when; what lies behind goes on meanwhile
        return back < FAR and drain(p, back, now, m, rings, log)
    clock, seen = front_clock(p, now, earliest, m)
    if clock > back:
        unclaim_front(low, high, now, m, rings)
        return drain(p, back, now, m, rings, log)
    if clock == back:  # in one cycle: a full channel holds both
        if not drain(p, back, now, m, rings, log):
            unclaim_front(low, high, now, m, rings)
            return False
        clock, seen = front_clock(p, now, earliest, m)
    forget(p, seen, m)
    move_front(p, now, clock, cause, m, rings, log)
    return True
