"""Engine: the start and the end of a process's phases, and the blocks that pass there."""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.accesses import claim_slot, claim_token, fill, give_back, log_stall, reset_port, take
from penstock.compiler.simulator.sequences import append


@jit
def claim_start(p: int, m: Words, rings: Words) -> tuple[int, int]:
    """(end of the last thing that a start waits for, its address), or (-1, ...) while that is not known."""
    latest, cause = 0, 0
    for i in range(m[p + at.STARTS], m[p + at.STARTS_END], at.START_SIZE):
        c = m[i + at.START_CHANNEL]
        time = claim_token(c, 1, m, rings) if m[i + at.START_FLAGS] & at.TOKEN else claim_slot(c, 1, m, rings)
        if time == -1:
            for j in range(m[p + at.STARTS], i, at.START_SIZE):
                give_back(m[j + at.START_CHANNEL], m[j + at.START_FLAGS], 1, m, rings)
            return -1, i
        if time > latest:
            latest, cause = time, i
    return latest, cause


@jit
def never_held_up(h: int, m: Words) -> bool:
    """Whether the channels have slots left that nobody ever used for all that a phase writes behind its front.

    Then what it writes there follows from when the front was left, and its clock never stops: it can be run like a
    pipeline that stalls whole, with these writes LATER.
    """
    if m[h + at.ORDERED] == 0:
        return False
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        c = m[q + at.CHANNEL]
        if (
            m[q + at.FLAGS] & at.BACK
            and m[q + at.FLAGS] & at.SLOT
            and m[c + at.DEPTH] - m[c + at.CLAIMED] < m[q + at.SLOTS]
        ):
            return False
    return True


@jit
def begin(p: int, m: Words, rings: Words, log: Words) -> bool:
    """Start the next phase; False while the time at which a process may start is not known."""
    start, h = m[p + at.OFFSET], m[p + at.PHASE]
    if h == m[p + at.FIRST_PHASE]:
        latest, cause = claim_start(p, m, rings)
        if latest < 0:
            return False
        if cause > 0 and latest + m[at.START_GAP] > start:
            m[cause + at.START_WAITED] += latest + m[at.START_GAP] - start
            start = latest + m[at.START_GAP]
            log_stall(p, start, cause, m, log)
        m[m[p + at.TIMES] + 2 * m[p + at.FRAME]] = start
        for i in range(m[p + at.STARTS], m[p + at.STARTS_END], at.START_SIZE):
            if m[i + at.START_FLAGS] & at.SLOT:
                c = m[i + at.START_CHANNEL]
                append(m[c + at.CLAIMS], m[c + at.CLAIMED] - 1, 1, start, 0, m, rings)
    start += m[h + at.DELAY]
    m[p + at.OFFSET] = start
    m[p + at.BUBBLES] = m[p + at.FROZEN] = m[p + at.KNOWN_FROZEN] = m[p + at.MOMENTS] = 0
    m[p + at.MODE] = 1
    m[h + at.ONE_CLOCK] = m[h + at.FLUSHES] == 0 or never_held_up(h, m)
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        m[q + at.SHIFT] = (
            m[q + at.LATER] if m[h + at.FLUSHES] > 0 and m[h + at.ONE_CLOCK] > 0 and m[q + at.FLAGS] & at.BACK else 0
        )
        reset_port(q, m)
        m[q + at.QUEUED] = 0
        if m[q + at.FLAGS] & at.LOAD:
            m[q + at.PAID] = max(m[q + at.PAID], (start + m[q + at.LATENCY]) * at.TICKS + m[q + at.AHEAD])
    return True


@jit
def finish(p: int, m: Words, rings: Words) -> None:
    """End a phase, and with the last one the process's frame; OFFSET is then when it may go on."""
    h = m[p + at.PHASE]
    end = m[p + at.OFFSET] + m[h + at.LENGTH] + m[p + at.BUBBLES] + m[p + at.FROZEN]
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        if m[q + at.FLAGS] & at.STORE:
            drained = -(-m[q + at.PAID] // at.TICKS)
            if drained > end:
                m[q + at.WAITED] += drained - end
                end = drained
    m[p + at.MODE] = 0
    m[p + at.OFFSET] = end
    m[p + at.PHASE] = h + at.PHASE_SIZE
    if h + at.PHASE_SIZE < m[p + at.PHASES_END]:
        return
    for i in range(m[p + at.STARTS], m[p + at.STARTS_END], at.START_SIZE):
        if m[i + at.START_FLAGS] & at.TAKE:
            take(m[i + at.START_CHANNEL], 1, end, m, rings)
        else:
            fill(m[i + at.START_CHANNEL], 1, end, m, rings)
    m[m[p + at.TIMES] + 2 * m[p + at.FRAME] + 1] = end
    m[p + at.FRAME] += 1
    m[p + at.PHASE] = m[p + at.FIRST_PHASE]
    m[p + at.OFFSET] = end + m[at.START_GAP]
    if m[p + at.FRAME] == m[at.FRAMES]:
        m[p + at.MODE] = 2
