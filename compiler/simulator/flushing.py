"""Engine: processes whose pipelines flush. A late token stops the front; a full channel behind it stops the clock.

Cycles in which the clock goes are counted as clock time; iterations behind the front keep theirs whatever the front
waits for. While the times of the front's tokens are not known yet, what lies behind it is done ahead, and the freezes
that it met are noted, to be looked up when the front follows.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.accesses import claim, let_pass, log_stall, step, unclaim
from penstock.compiler.simulator.phases import finish


@jit
def due(q: int, front: int, bubbles: int, m: Words) -> int:
    """Clock time of the next access of a port behind the front, FAR if its iteration may still be stopped there."""
    if m[q + at.QUEUED] > 0:
        return m[m[q + at.QUEUE] + m[q + at.QUEUE_HEAD]]
    if m[q + at.NEXT] < at.FAR and m[q + at.NEXT] - m[q + at.LATER] < front:
        return m[q + at.NEXT] + bubbles
    return at.FAR


@jit
def drain(p: int, clock: int, front: int, m: Words, rings: Words, log: Words) -> bool:
    """Do what is due behind the front at a clock time; a full channel stops the clock. False for unknown times."""
    h, bubbles = m[p + at.PHASE], m[p + at.BUBBLES]
    low, high = m[h + at.PORTS], m[h + at.PORTS_END]
    earliest, cause = 0, 0
    for q in range(low, high, at.PORT_SIZE):
        if m[q + at.FLAGS] & at.BACK and due(q, front, bubbles, m) == clock:
            time = claim(q, m, rings)
            if time < 0:
                for back in range(low, q, at.PORT_SIZE):
                    if m[back + at.FLAGS] & at.BACK and due(back, front, bubbles, m) == clock:
                        unclaim(back, m, rings)
                return False
            if time > earliest:
                earliest, cause = time, q
    time = m[p + at.OFFSET] + clock + m[p + at.FROZEN]
    if earliest > time:
        m[cause + at.WAITED] += earliest - time
        m[p + at.FROZEN] += earliest - time
        time = earliest
        place = m[h + at.MOMENTS_AT] + 2 * m[p + at.MOMENTS]
        m[place] = clock
        m[place + 1] = m[p + at.FROZEN]
        m[p + at.MOMENTS] += 1
        log_stall(p, time, cause, m, log)
    for q in range(low, high, at.PORT_SIZE):
        if m[q + at.FLAGS] & at.BACK and due(q, front, bubbles, m) == clock:
            let_pass(q, time, m, rings)
            if m[q + at.QUEUED] > 0:
                m[q + at.QUEUED] -= 1
                m[q + at.QUEUE_HEAD] = (m[q + at.QUEUE_HEAD] + 1) % m[q + at.QUEUE_SIZE]
            else:
                step(q, m)
    return True


@jit
def leave_front(p: int, front: int, m: Words) -> None:
    """The front is about to stop: what has left it keeps its clock time."""
    h = m[p + at.PHASE]
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        if m[q + at.FLAGS] & at.BACK:
            while m[q + at.NEXT] < at.FAR and m[q + at.NEXT] - m[q + at.LATER] < front:
                last = (m[q + at.QUEUE_HEAD] + m[q + at.QUEUED]) % m[q + at.QUEUE_SIZE]
                m[m[q + at.QUEUE] + last] = m[q + at.NEXT] + m[p + at.BUBBLES]
                m[q + at.QUEUED] += 1
                step(q, m)


@jit
def front_clock(p: int, now: int, earliest: int, m: Words) -> tuple[int, int]:
    """The clock time at which the front's access at `now` can happen, and how many noted freezes lie before it."""
    moment, seen, frozen = m[m[p + at.PHASE] + at.MOMENTS_AT], 0, m[p + at.KNOWN_FROZEN]
    clock = max(now + m[p + at.BUBBLES], earliest - m[p + at.OFFSET] - frozen)
    while seen < m[p + at.MOMENTS] and m[moment] <= clock:
        frozen = m[moment + 1]
        clock = max(now + m[p + at.BUBBLES], m[moment], earliest - m[p + at.OFFSET] - frozen)
        seen += 1
        moment += 2
    return clock, seen


@jit
def forget(p: int, seen: int, m: Words) -> None:
    """The first `seen` of the noted freezes lie behind the front now."""
    place = m[m[p + at.PHASE] + at.MOMENTS_AT]
    if seen > 0:
        m[p + at.KNOWN_FROZEN] = m[place + 2 * seen - 1]
        for i in range(2 * seen, 2 * m[p + at.MOMENTS]):
            m[place + i - 2 * seen] = m[place + i]
        m[p + at.MOMENTS] -= seen


@jit
def claim_front(low: int, high: int, now: int, m: Words, rings: Words) -> tuple[int, int]:
    """Claim the front's accesses at the phase's time `now`: (earliest cycle, port that decides), or (-1, ...)."""
    earliest, cause = 0, 0
    for q in range(low, high, at.PORT_SIZE):
        if m[q + at.NEXT] == now and not m[q + at.FLAGS] & at.BACK:
            time = claim(q, m, rings)
            if time < 0:
                unclaim_front(low, q, now, m, rings)
                return -1, q
            if time > earliest:
                earliest, cause = time, q
    return earliest, cause


@jit
def unclaim_front(low: int, high: int, now: int, m: Words, rings: Words) -> None:
    for q in range(low, high, at.PORT_SIZE):
        if m[q + at.NEXT] == now and not m[q + at.FLAGS] & at.BACK:
            unclaim(q, m, rings)


@jit
def next_events(p: int, m: Words) -> tuple[int, int]:
    """(the phase's time of the front's next access, the clock time of the next one behind it)."""
    h = m[p + at.PHASE]
    now, back = at.FAR, at.FAR
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        if not m[q + at.FLAGS] & at.BACK:
            now = min(now, m[q + at.NEXT])
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        if m[q + at.FLAGS] & at.BACK:
            back = min(back, due(q, now, m[p + at.BUBBLES], m))
    return now, back


@jit
def move_front(p: int, now: int, clock: int, cause: int, m: Words, rings: Words, log: Words) -> None:
    """The front's claimed accesses happen at a clock time; being late, they leave bubbles."""
    h = m[p + at.PHASE]
    time = m[p + at.OFFSET] + clock + m[p + at.KNOWN_FROZEN]
    late = clock - now - m[p + at.BUBBLES]
    if late > 0:
        leave_front(p, now, m)
        m[p + at.BUBBLES] += late
        if cause > 0:
            m[cause + at.WAITED] += late
            log_stall(p, time, cause, m, log)
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        if m[q + at.NEXT] == now and not m[q + at.FLAGS] & at.BACK:
            let_pass(q, time, m, rings)
            step(q, m)


@jit
def go_on_flushing(p: int, m: Words, rings: Words, log: Words) -> bool:
    """The next accesses of the front or of what is behind it, or the phase's end. False while times are not known."""
    low, high = m[m[p + at.PHASE] + at.PORTS], m[m[p + at.PHASE] + at.PORTS_END]
    now, back = next_events(p, m)
    if now == at.FAR and back == at.FAR:
        finish(p, m, rings)
        return True
    if now == at.FAR or back < now + m[p + at.BUBBLES]:
        if not drain(p, back, now, m, rings, log):
            return False
        forget(p, m[p + at.MOMENTS], m)
        return True
    earliest, cause = claim_front(low, high, now, m, rings)
    if earliest < 0:  # not known when; what lies behind goes on meanwhile
        return back < at.FAR and drain(p, back, now, m, rings, log)
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
