"""Engine, lowest part: claiming what an access needs, letting it happen, and going on to a port's next one."""

from __future__ import annotations

from compiler.simulator.jit import Words, jit
from compiler.simulator.layout import (
    AHEAD,
    CHANNEL,
    CLAIMED,
    CLAIMS_AT,
    COUNT,
    DEPTH,
    FAR,
    FILL,
    FILLED,
    FILLS_AT,
    FILLS_MASK,
    FIRST_FILL,
    FIRST_TAKE,
    FLAGS,
    FREED,
    GROW,
    HELD,
    HIGH,
    LEFT,
    LEVEL_SIZE,
    LEVELS,
    LEVELS_END,
    LOAD,
    LOG,
    LOG_AT,
    LOGGED,
    NEXT,
    PACE,
    PAID,
    POSITION,
    RUN,
    RUN_BASE,
    RUN_LENGTH,
    RUN_SIZE,
    RUNS,
    RUNS_END,
    SEEN,
    SLOT,
    STAGE,
    STEP,
    STORE,
    STRIDE,
    TAKE,
    TAKES_AT,
    TAKES_MASK,
    TICKS,
    TOKEN,
)  # fmt: skip


@jit
def reset_port(q: int, m: Words) -> None:
    level, last, time = m[q + LEVELS], m[q + LEVELS_END] - LEVEL_SIZE, m[q + STAGE]
    while level <= last:
        m[level + RUN] = m[level + RUNS]
        m[level + POSITION] = 0
        time += m[m[level + RUNS] + RUN_BASE]
        level += LEVEL_SIZE
    m[q + NEXT] = time
    m[q + LEFT] = m[m[last + RUN] + RUN_LENGTH]


@jit
def carry(q: int, m: Words) -> None:
    """The innermost run of a port is used up: on to the next, and what is around it."""
    inner = m[q + LEVELS_END] - LEVEL_SIZE
    level = inner
    while True:
        if level != inner and m[level + POSITION] + 1 < m[m[level + RUN] + RUN_LENGTH]:
            m[level + POSITION] += 1
            break
        m[level + POSITION] = 0
        if m[level + RUN] + RUN_SIZE < m[level + RUNS_END]:
            m[level + RUN] += RUN_SIZE
            break
        m[level + RUN] = m[level + RUNS]
        level -= LEVEL_SIZE
        if level < m[q + LEVELS]:
            m[q + NEXT] = FAR
            return
    time = m[q + STAGE]
    level = m[q + LEVELS]
    while level <= inner:
        time += m[m[level + RUN] + RUN_BASE] + m[level + POSITION] * m[level + STRIDE]
        level += LEVEL_SIZE
    m[q + NEXT] = time
    m[q + LEFT] = m[m[inner + RUN] + RUN_LENGTH]


@jit
def step(q: int, m: Words) -> None:
    m[q + LEFT] -= 1
    if m[q + LEFT] > 0:
        m[q + NEXT] += m[q + STEP]
    else:
        carry(q, m)


@jit
def claim_token(c: int, n: int, m: Words, rings: Words) -> int:
    """When the last of the next `n` tokens was written, or -1 while that is not known."""
    if m[c + HELD] + n > m[c + FILLED]:
        return -1
    m[c + HELD] += n
    return rings[m[c + FILLS_AT] + ((m[c + HELD] - 1) & m[c + FILLS_MASK])]


@jit
def claim_slot(c: int, n: int, m: Words, rings: Words) -> int:
    """When the last of the next `n` slots was given back, -FAR for never used, or -1 while that is not known."""
    if m[c + CLAIMED] + n - m[c + FREED] > m[c + FILLS_MASK] + 1:
        m[c + GROW] |= 1
        return -1
    k = m[c + CLAIMED] + n - 1 - m[c + DEPTH]
    if k >= m[c + FREED]:
        return -1
    m[c + CLAIMED] += n
    return rings[m[c + TAKES_AT] + (k & m[c + TAKES_MASK])] if k >= 0 else -FAR


@jit
def claim(q: int, m: Words, rings: Words) -> int:
    """The earliest cycle for a port's next access (0 if any), or -1 while that is not known. Counts it as taken."""
    flags, n = m[q + FLAGS], m[q + COUNT]
    if flags & (LOAD | STORE):
        return max(0, -((m[q + AHEAD] - m[q + PAID] - (n - 1) * m[q + PACE]) // TICKS))
    c = m[q + CHANNEL]
    if flags & TAKE and m[c + FREED] + n - m[c + SEEN] > m[c + TAKES_MASK] + 1:
        m[c + GROW] |= 2
        return -1
    if flags & TOKEN:
        time = claim_token(c, n, m, rings)
        return time + 1 if time >= 0 else -1
    if flags & SLOT:
        time = claim_slot(c, n, m, rings)
        return time if time == -1 else max(0, time + 1)
    return 0


@jit
def unclaim(q: int, m: Words) -> None:
    if m[q + FLAGS] & TOKEN:
        m[m[q + CHANNEL] + HELD] -= m[q + COUNT]
    elif m[q + FLAGS] & SLOT:
        m[m[q + CHANNEL] + CLAIMED] -= m[q + COUNT]


@jit
def note_claims(c: int, n: int, time: int, m: Words, rings: Words) -> None:
    for k in range(m[c + CLAIMED] - n, m[c + CLAIMED]):
        rings[m[c + CLAIMS_AT] + (k & m[c + FILLS_MASK])] = time


@jit
def take(c: int, n: int, time: int, m: Words, rings: Words) -> None:
    """The reader gives `n` slots back; how many were held when each of them was claimed is now known."""
    if m[c + FREED] == 0:
        m[c + FIRST_TAKE] = time
    at, mask, seen = m[c + TAKES_AT], m[c + TAKES_MASK], m[c + SEEN]
    for k in range(m[c + FREED], m[c + FREED] + n):
        claimed = rings[m[c + CLAIMS_AT] + (k & m[c + FILLS_MASK])]
        while seen < k and rings[at + (seen & mask)] < claimed:
            seen += 1
        if k + 1 - seen > m[c + HIGH]:
            m[c + HIGH] = k + 1 - seen
        rings[at + (k & mask)] = time
    m[c + SEEN] = seen
    m[c + FREED] += n


@jit
def fill(c: int, n: int, time: int, m: Words, rings: Words) -> None:
    if m[c + FILLED] == 0:
        m[c + FIRST_FILL] = time
    for k in range(m[c + FILLED], m[c + FILLED] + n):
        rings[m[c + FILLS_AT] + (k & m[c + FILLS_MASK])] = time
    m[c + FILLED] += n


@jit
def let_pass(q: int, time: int, m: Words, rings: Words) -> None:
    """The claimed access happens, in cycle `time`."""
    flags, c, n = m[q + FLAGS], m[q + CHANNEL], m[q + COUNT]
    if flags & (LOAD | STORE):
        m[q + PAID] = max(m[q + PAID], time * TICKS) + n * m[q + PACE]
    if flags & SLOT and m[c + CLAIMS_AT] != m[c + FILLS_AT]:
        note_claims(c, n, time, m, rings)
    if flags & TAKE:
        take(c, n, time, m, rings)
    elif flags & FILL:
        fill(c, n, time, m, rings)


@jit
def log_stall(p: int, time: int, cause: int, m: Words, log: Words) -> None:
    """A stall that ended at `time`, and the address of its port or start. A full log loses every second entry."""
    at = m[p + LOG_AT]
    if m[p + LOGGED] == LOG:
        for i in range(LOG // 2):
            log[at + 2 * i] = log[at + 4 * i + 2]
            log[at + 2 * i + 1] = log[at + 4 * i + 3]
        m[p + LOGGED] = LOG // 2
    log[at + 2 * m[p + LOGGED]] = time
    log[at + 2 * m[p + LOGGED] + 1] = cause
    m[p + LOGGED] += 1
