"""Engine: the start and the end of a process's phases, and the blocks that pass there."""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator.accesses import claim_slot, claim_token, fill, give_back, log_stall, reset_port, take
from penstock.compiler.simulator.layout import (
    AHEAD,
    BACK,
    BUBBLES,
    CHANNEL,
    CLAIMED,
    CLAIMS,
    DELAY,
    DEPTH,
    FIRST_PHASE,
    FLAGS,
    FLUSHING,
    FRAME,
    FRAMES,
    FROZEN,
    KNOWN_FROZEN,
    LATENCY,
    LATER,
    LENGTH,
    LOAD,
    MODE,
    MOMENTS,
    OFFSET,
    ONE_CLOCK,
    ORDERED,
    PAID,
    PHASE,
    PHASE_SIZE,
    PHASES_END,
    PORT_SIZE,
    PORTS,
    PORTS_END,
    QUEUED,
    SHIFT,
    SLOT,
    SLOTS,
    START_CHANNEL,
    START_FLAGS,
    START_GAP,
    START_SIZE,
    START_WAITED,
    STARTS,
    STARTS_END,
    STORE,
    TAKE,
    TICKS,
    TIMES,
    TOKEN,
    WAITED,
)  # fmt: skip
from penstock.compiler.simulator.sequences import append


@jit
def claim_start(p: int, m: Words, rings: Words) -> tuple[int, int]:
    """(end of the last thing that a start waits for, its address), or (-1, ...) while that is not known."""
    latest, cause = 0, 0
    for i in range(m[p + STARTS], m[p + STARTS_END], START_SIZE):
        c = m[i + START_CHANNEL]
        time = claim_token(c, 1, m, rings) if m[i + START_FLAGS] & TOKEN else claim_slot(c, 1, m, rings)
        if time == -1:
            for j in range(m[p + STARTS], i, START_SIZE):
                give_back(m[j + START_CHANNEL], m[j + START_FLAGS], 1, m, rings)
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
    if m[h + ORDERED] == 0:
        return False
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        c = m[q + CHANNEL]
        if m[q + FLAGS] & BACK and m[q + FLAGS] & SLOT and m[c + DEPTH] - m[c + CLAIMED] < m[q + SLOTS]:
            return False
    return True


@jit
def begin(p: int, m: Words, rings: Words, log: Words) -> bool:
    """Start the next phase; False while the time at which a process may start is not known."""
    start, h = m[p + OFFSET], m[p + PHASE]
    if h == m[p + FIRST_PHASE]:
        latest, cause = claim_start(p, m, rings)
        if latest < 0:
            return False
        if cause > 0 and latest + m[START_GAP] > start:
            m[cause + START_WAITED] += latest + m[START_GAP] - start
            start = latest + m[START_GAP]
            log_stall(p, start, cause, m, log)
        m[m[p + TIMES] + 2 * m[p + FRAME]] = start
        for i in range(m[p + STARTS], m[p + STARTS_END], START_SIZE):
            if m[i + START_FLAGS] & SLOT:
                c = m[i + START_CHANNEL]
                append(m[c + CLAIMS], m[c + CLAIMED] - 1, 1, start, 0, m, rings)
    start += m[h + DELAY]
    m[p + OFFSET] = start
    m[p + BUBBLES] = m[p + FROZEN] = m[p + KNOWN_FROZEN] = m[p + MOMENTS] = 0
    m[p + MODE] = 1
    m[h + ONE_CLOCK] = m[FLUSHING] == 0 or never_held_up(h, m)
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        m[q + SHIFT] = m[q + LATER] if m[FLUSHING] > 0 and m[h + ONE_CLOCK] > 0 and m[q + FLAGS] & BACK else 0
        reset_port(q, m)
        m[q + QUEUED] = 0
        if m[q + FLAGS] & LOAD:
            m[q + PAID] = max(m[q + PAID], (start + m[q + LATENCY]) * TICKS + m[q + AHEAD])
    return True


@jit
def finish(p: int, m: Words, rings: Words) -> None:
    """End a phase, and with the last one the process's frame; OFFSET is then when it may go on."""
    h = m[p + PHASE]
    end = m[p + OFFSET] + m[h + LENGTH] + m[p + BUBBLES] + m[p + FROZEN]
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        if m[q + FLAGS] & STORE:
            drained = -(-m[q + PAID] // TICKS)
            if drained > end:
                m[q + WAITED] += drained - end
                end = drained
    m[p + MODE] = 0
    m[p + OFFSET] = end
    m[p + PHASE] = h + PHASE_SIZE
    if h + PHASE_SIZE < m[p + PHASES_END]:
        return
    for i in range(m[p + STARTS], m[p + STARTS_END], START_SIZE):
        if m[i + START_FLAGS] & TAKE:
            take(m[i + START_CHANNEL], 1, end, m, rings)
        else:
            fill(m[i + START_CHANNEL], 1, end, m, rings)
    m[m[p + TIMES] + 2 * m[p + FRAME] + 1] = end
    m[p + FRAME] += 1
    m[p + PHASE] = m[p + FIRST_PHASE]
    m[p + OFFSET] = end + m[START_GAP]
    if m[p + FRAME] == m[FRAMES]:
        m[p + MODE] = 2
