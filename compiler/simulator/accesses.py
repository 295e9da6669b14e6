"""Engine, lowest part: claiming what an access needs, letting it happen, and going on to a port's next one."""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.sequences import append, room_to_read, room_to_write, run_of, settle, time_in


@jit
def reset_port(q: int, m: Words) -> None:
    level, last, time = m[q + at.LEVELS], m[q + at.LEVELS_END] - at.LEVEL_SIZE, m[q + at.STAGE] - m[q + at.SHIFT]
    while level <= last:
        m[level + at.RUN] = m[level + at.RUNS]
        m[level + at.POSITION] = 0
        time += m[m[level + at.RUNS] + at.RUN_BASE]
        level += at.LEVEL_SIZE
    m[q + at.NEXT] = time
    m[q + at.LEFT] = m[m[last + at.RUN] + at.RUN_LENGTH]


@jit
def carry(q: int, m: Words) -> None:
    """The innermost run of a port is used up: on to the next, and what is around it."""
    inner = m[q + at.LEVELS_END] - at.LEVEL_SIZE
    level = inner
    while True:
        if level != inner and m[level + at.POSITION] + 1 < m[m[level + at.RUN] + at.RUN_LENGTH]:
            m[level + at.POSITION] += 1
            break
        m[level + at.POSITION] = 0
        if m[level + at.RUN] + at.RUN_SIZE < m[level + at.RUNS_END]:
            m[level + at.RUN] += at.RUN_SIZE
            break
        m[level + at.RUN] = m[level + at.RUNS]
        level -= at.LEVEL_SIZE
        if level < m[q + at.LEVELS]:
            m[q + at.NEXT] = at.FAR
            return
    time = m[q + at.STAGE] - m[q + at.SHIFT]
    level = m[q + at.LEVELS]
    while level <= inner:
        time += m[m[level + at.RUN] + at.RUN_BASE] + m[level + at.POSITION] * m[level + at.STRIDE]
        level += at.LEVEL_SIZE
    m[q + at.NEXT] = time
    m[q + at.LEFT] = m[m[inner + at.RUN] + at.RUN_LENGTH]


@jit
def step(q: int, m: Words) -> None:
    m[q + at.LEFT] -= 1
    if m[q + at.LEFT] > 0:
        m[q + at.NEXT] += m[q + at.STEP]
    else:
        carry(q, m)


@jit
def claim_token(c: int, n: int, m: Words, rings: Words) -> int:
    """When the last of the next `n` tokens was written, or -1 while that is not known."""
    k = m[c + at.HELD] + n - 1
    if k >= m[c + at.FILLED]:
        return -1
    m[c + at.HELD_RUN] = run_of(m[c + at.FILLS], m[c + at.HELD], m[c + at.HELD_RUN], m, rings)
    m[c + at.HELD] += n
    return time_in(m[c + at.FILLS], k, run_of(m[c + at.FILLS], k, m[c + at.HELD_RUN], m, rings), m, rings)


@jit
def claim_slot(c: int, n: int, m: Words, rings: Words) -> int:
    """When the last of the next `n` slots was given back, -FAR for never used, or -1 while that is not known."""
    if not room_to_write(c, m):
        return -1
    k = m[c + at.CLAIMED] + n - 1 - m[c + at.DEPTH]
    if k >= m[c + at.FREED]:
        return -1
    m[c + at.CLAIMED] += n
    if k < 0:
        return -at.FAR
    first = max(0, k - n + 1)
    m[c + at.SLOT_RUN] = run_of(m[c + at.TAKES], first, m[c + at.SLOT_RUN], m, rings)
    return time_in(m[c + at.TAKES], k, run_of(m[c + at.TAKES], k, m[c + at.SLOT_RUN], m, rings), m, rings)


@jit
def memory_ready(q: int, n: int, m: Words) -> int:
    """The earliest cycle in which a memory port's buffer has `n` words, or room for them."""
    return max(0, -((m[q + at.AHEAD] - m[q + at.PAID] - (n - 1) * m[q + at.PACE]) // at.TICKS))


@jit
def claim(q: int, m: Words, rings: Words) -> int:
    """The earliest cycle for a port's next access (0 if any), or -1 while that is not known. Counts it as taken."""
    flags, c, n = m[q + at.FLAGS], m[q + at.CHANNEL], m[q + at.COUNT]
    if flags & (at.LOAD | at.STORE):
        return memory_ready(q, n, m)
    if (flags & at.TAKE and not room_to_read(c, m)) or (flags & at.FILL and not room_to_write(c, m)):
        return -1
    if flags & at.TOKEN:
        time = claim_token(c, n, m, rings)
        return time + 1 if time >= 0 else -1
    if flags & at.SLOT:
        time = claim_slot(c, n, m, rings)
        return time if time == -1 else max(0, time + 1)
    return 0


@jit
def unclaim(q: int, m: Words, rings: Words) -> None:
    give_back(m[q + at.CHANNEL], m[q + at.FLAGS], m[q + at.COUNT], m, rings)


@jit
def give_back(c: int, flags: int, n: int, m: Words, rings: Words) -> None:
    """Undo a claim."""
    if flags & at.TOKEN:
        m[c + at.HELD] -= n
        m[c + at.HELD_RUN] = run_of(m[c + at.FILLS], m[c + at.HELD], m[c + at.HELD_RUN], m, rings)
    elif flags & at.SLOT:
        m[c + at.CLAIMED] -= n
        m[c + at.SLOT_RUN] = run_of(
            m[c + at.TAKES], max(0, m[c + at.CLAIMED] - m[c + at.DEPTH]), m[c + at.SLOT_RUN], m, rings
        )


@jit
def take(c: int, n: int, time: int, m: Words, rings: Words) -> None:
    """The reader gives `n` slots back."""
    if m[c + at.FREED] == 0:
        m[c + at.FIRST_TAKE] = time
    append(m[c + at.TAKES], m[c + at.FREED], n, time, 0, m, rings)
    m[c + at.FREED] += n
    settle(c, m, rings)


@jit
def fill(c: int, n: int, time: int, m: Words, rings: Words) -> None:
    if m[c + at.FILLED] == 0:
        m[c + at.FIRST_FILL] = time
    append(m[c + at.FILLS], m[c + at.FILLED], n, time, 0, m, rings)
    m[c + at.FILLED] += n


@jit
def let_pass(q: int, time: int, m: Words, rings: Words) -> None:
    """The claimed access happens, in cycle `time`."""
    flags, c, n = m[q + at.FLAGS], m[q + at.CHANNEL], m[q + at.COUNT]
    if flags & (at.LOAD | at.STORE):
        m[q + at.PAID] = max(m[q + at.PAID], time * at.TICKS) + n * m[q + at.PACE]
    elif flags & at.TAKE:
        take(c, n, time, m, rings)
    elif flags & at.SLOT and m[c + at.CLAIMS] != m[c + at.FILLS]:
        append(m[c + at.CLAIMS], m[c + at.CLAIMED] - n, n, time, 0, m, rings)
    if flags & at.FILL:
        fill(c, n, time, m, rings)


@jit
def log_stall(p: int, time: int, cause: int, m: Words, log: Words) -> None:
    """A stall that ended at `time`, and the address of its port or start. A full log loses every second entry."""
    place = m[p + at.LOG_AT]
    if m[p + at.LOGGED] == at.LOG:
        for i in range(at.LOG // 2):
            log[place + 2 * i] = log[place + 4 * i + 2]
            log[place + 2 * i + 1] = log[place + 4 * i + 3]
        m[p + at.LOGGED] = at.LOG // 2
    log[place + 2 * m[p + at.LOGGED]] = time
    log[place + 2 * m[p + at.LOGGED] + 1] = cause
    m[p + at.LOGGED] += 1
