"""Engine, lowest part: claiming what an access needs, letting it happen, and going on to a port's next one."""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator.layout import (
    AHEAD,
    CHANNEL,
    CLAIMED,
    CLAIMS,
    COUNT,
    DEPTH,
    FAR,
    FILL,
    FILLED,
    FILLS,
    FIRST_FILL,
    FIRST_TAKE,
    FLAGS,
    FREED,
    HELD,
    HELD_RUN,
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
    SHIFT,
    SLOT,
    SLOT_RUN,
    STAGE,
    STEP,
    STORE,
    STRIDE,
    TAKE,
    TAKES,
    TICKS,
    TOKEN,
)  # fmt: skip
from penstock.compiler.simulator.sequences import append, room_to_read, room_to_write, run_of, settle, time_in


@jit
def reset_port(q: int, m: Words) -> None:
    level, last, time = m[q + LEVELS], m[q + LEVELS_END] - LEVEL_SIZE, m[q + STAGE] - m[q + SHIFT]
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
    time = m[q + STAGE] - m[q + SHIFT]
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
    k = m[c + HELD] + n - 1
    if k >= m[c + FILLED]:
        return -1
    m[c + HELD_RUN] = run_of(m[c + FILLS], m[c + HELD], m[c + HELD_RUN], m, rings)
    m[c + HELD] += n
    return time_in(m[c + FILLS], k, run_of(m[c + FILLS], k, m[c + HELD_RUN], m, rings), m, rings)


@jit
def claim_slot(c: int, n: int, m: Words, rings: Words) -> int:
    """When the last of the next `n` slots was given back, -FAR for never used, or -1 while that is not known."""
    if not room_to_write(c, m):
        return -1
    k = m[c + CLAIMED] + n - 1 - m[c + DEPTH]
    if k >= m[c + FREED]:
        return -1
    m[c + CLAIMED] += n
    if k < 0:
        return -FAR
    first = max(0, k - n + 1)
    m[c + SLOT_RUN] = run_of(m[c + TAKES], first, m[c + SLOT_RUN], m, rings)
    return time_in(m[c + TAKES], k, run_of(m[c + TAKES], k, m[c + SLOT_RUN], m, rings), m, rings)


@jit
def memory_ready(q: int, n: int, m: Words) -> int:
    """The earliest cycle in which a memory port's buffer has `n` words, or room for them."""
    return max(0, -((m[q + AHEAD] - m[q + PAID] - (n - 1) * m[q + PACE]) // TICKS))


@jit
def claim(q: int, m: Words, rings: Words) -> int:
    """The earliest cycle for a port's next access (0 if any), or -1 while that is not known. Counts it as taken."""
    flags, c, n = m[q + FLAGS], m[q + CHANNEL], m[q + COUNT]
    if flags & (LOAD | STORE):
        return memory_ready(q, n, m)
    if (flags & TAKE and not room_to_read(c, m)) or (flags & FILL and not room_to_write(c, m)):
        return -1
    if flags & TOKEN:
        time = claim_token(c, n, m, rings)
        return time + 1 if time >= 0 else -1
    if flags & SLOT:
        time = claim_slot(c, n, m, rings)
        return time if time == -1 else max(0, time + 1)
    return 0


@jit
def unclaim(q: int, m: Words, rings: Words) -> None:
    give_back(m[q + CHANNEL], m[q + FLAGS], m[q + COUNT], m, rings)


@jit
def give_back(c: int, flags: int, n: int, m: Words, rings: Words) -> None:
    """Undo a claim."""
    if flags & TOKEN:
        m[c + HELD] -= n
        m[c + HELD_RUN] = run_of(m[c + FILLS], m[c + HELD], m[c + HELD_RUN], m, rings)
    elif flags & SLOT:
        m[c + CLAIMED] -= n
        m[c + SLOT_RUN] = run_of(m[c + TAKES], max(0, m[c + CLAIMED] - m[c + DEPTH]), m[c + SLOT_RUN], m, rings)


@jit
def take(c: int, n: int, time: int, m: Words, rings: Words) -> None:
    """The reader gives `n` slots back."""
    if m[c + FREED] == 0:
        m[c + FIRST_TAKE] = time
    append(m[c + TAKES], m[c + FREED], n, time, 0, m, rings)
    m[c + FREED] += n
    settle(c, m, rings)


@jit
def fill(c: int, n: int, time: int, m: Words, rings: Words) -> None:
    if m[c + FILLED] == 0:
        m[c + FIRST_FILL] = time
    append(m[c + FILLS], m[c + FILLED], n, time, 0, m, rings)
    m[c + FILLED] += n


@jit
def let_pass(q: int, time: int, m: Words, rings: Words) -> None:
    """The claimed access happens, in cycle `time`."""
    flags, c, n = m[q + FLAGS], m[q + CHANNEL], m[q + COUNT]
    if flags & (LOAD | STORE):
        m[q + PAID] = max(m[q + PAID], time * TICKS) + n * m[q + PACE]
    elif flags & TAKE:
        take(c, n, time, m, rings)
    elif flags & SLOT and m[c + CLAIMS] != m[c + FILLS]:
        append(m[c + CLAIMS], m[c + CLAIMED] - n, n, time, 0, m, rings)
    if flags & FILL:
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
