"""Engine: a state that was there before, only later: what happened in between happens again, as often as it can.

Times depend on each other by differences alone. So if since a state that was kept every process went on by some whole
turns of one loop, every channel between two of them passed as many tokens as it was given slots, and all times that
are still to be looked at moved by the same number of cycles, then the same turns follow, moved by as much again, until
a loop comes to its end or an access comes in that took no part.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator.accesses import log_stall
from penstock.compiler.simulator.layout import (
    BACK,
    BUBBLES,
    CHANNEL_SIZE,
    CHANNELS,
    CHANNELS_END,
    CLAIMED,
    CLAIMS,
    DEPTH,
    FAR,
    FILLED,
    FILLS,
    FLAGS,
    FRAME,
    FREED,
    FROZEN,
    HEAD,
    HELD,
    HIGH,
    KNOWN_FROZEN,
    LATER,
    LEFT,
    LEVEL_SIZE,
    LEVELS,
    LEVELS_END,
    LOAD,
    LOG_AT,
    LOGGED,
    MASK,
    MODE,
    MOMENTS,
    MOMENTS_AT,
    NEXT,
    OFFSET,
    PAID,
    PHASE,
    PORT_SIZE,
    PORTS,
    PORTS_END,
    POSITION,
    PROCESS_SIZE,
    PROCESSES,
    PROCESSES_END,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_SIZE,
    QUEUED,
    READER,
    RING,
    RISE,
    RUN,
    RUN_ENTRIES,
    RUN_LENGTH,
    SEEN,
    SETTLED,
    STORE,
    TAKES,
    TICKS,
    TURN,
    WAITED,
    WRITER,
)  # fmt: skip
from penstock.compiler.simulator.sequences import run_of, time_in


@jit
def keep(m: Words, rings: Words, old: Words, old_rings: Words) -> None:
    """Note the present state."""
    for i in range(len(m)):
        old[i] = m[i]
    for i in range(len(rings)):
        old_rings[i] = rings[i]


@jit
def repeats(q: int, m: Words, old: Words) -> int:
    """How often a port's loops can go on as they did since; 0 if they stood still, -1 if it was not so simple."""
    if (m[q + NEXT] == FAR) != (old[q + NEXT] == FAR):
        return -1
    moved, inner = 0, m[q + LEVELS_END] - LEVEL_SIZE
    if m[q + LEFT] != old[q + LEFT]:
        if m[q + LEFT] > old[q + LEFT]:
            return -1
        moved = (m[q + LEFT] - 1) // (old[q + LEFT] - m[q + LEFT]) + 1
    for level in range(m[q + LEVELS], inner + LEVEL_SIZE, LEVEL_SIZE):
        if m[level + RUN] != old[level + RUN]:
            return -1
        on = m[level + POSITION] - old[level + POSITION]
        if level < inner and on != 0:
            if on < 0 or moved > 0:
                return -1
            moved = (m[m[level + RUN] + RUN_LENGTH] - 1 - m[level + POSITION]) // on + 1
    return moved


@jit
def turn_of(p: int, m: Words, old: Words) -> int:
    """By how much a phase's own time went on at all ports that went on; -1 if not evenly."""
    h, turn = m[p + PHASE], 0
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        moved = repeats(q, m, old)
        if moved < 0 or m[q + QUEUED] != old[q + QUEUED]:
            return -1
        on = m[q + NEXT] - old[q + NEXT]
        if moved > 0:
            if turn > 0 and on != turn:
                return -1
            turn = on
        elif on != 0:
            return -1
    return turn


@jit
def moved_evenly(p: int, m: Words, old: Words) -> bool:
    """Whether a process is where it was, in a later turn. Notes by how much its time and its loops went on."""
    m[p + RISE] = m[p + TURN] = 0
    if m[p + MODE] != old[p + MODE] or m[p + PHASE] != old[p + PHASE] or m[p + FRAME] != old[p + FRAME]:
        return False
    if m[p + MODE] != 1:
        return True
    turn = turn_of(p, m, old)
    if turn < 0:
        return False
    frozen, clock = m[p + FROZEN] - old[p + FROZEN], turn + m[p + BUBBLES] - old[p + BUBBLES]
    rise = m[p + OFFSET] - old[p + OFFSET] + clock + frozen
    if (turn == 0 and rise != 0) or m[p + KNOWN_FROZEN] - old[p + KNOWN_FROZEN] != frozen:
        return False
    if m[p + MOMENTS] != old[p + MOMENTS]:
        return False
    at = m[m[p + PHASE] + MOMENTS_AT]
    for i in range(at, at + 2 * m[p + MOMENTS], 2):
        if m[i] - old[i] != clock or m[i + 1] - old[i + 1] != frozen:
            return False
    h = m[p + PHASE]
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        for i in range(m[q + QUEUED]):
            now = m[m[q + QUEUE] + (m[q + QUEUE_HEAD] + i) % m[q + QUEUE_SIZE]]
            if now - old[m[q + QUEUE] + (old[q + QUEUE_HEAD] + i) % m[q + QUEUE_SIZE]] != clock:
                return False
        if m[q + FLAGS] & (LOAD | STORE):
            paid = m[q + PAID] - old[q + PAID]
            if paid != (rise * TICKS if m[q + NEXT] != old[q + NEXT] else 0):
                return False
    m[p + RISE], m[p + TURN] = rise, turn
    return True


@jit
def same_times(
    s: int, first: int, end: int, n: int, rise: int, m: Words, rings: Words, old: Words, old_rings: Words
) -> bool:
    """Whether slots `first` to `end` have the times that were those of the slots `n` before, and `rise` more."""
    run, old_run = m[s + HEAD] - 1, old[s + HEAD] - 1
    for k in range(end - 1, first - 1, -1):
        run, old_run = run_of(s, k, run, m, rings), run_of(s, k - n, old_run, old, old_rings)
        if time_in(s, k, run, m, rings) - time_in(s, k - n, old_run, old, old_rings) != rise:
            return False
    return True


@jit
def passed_evenly(c: int, m: Words, rings: Words, old: Words, old_rings: Words) -> bool:
    """Whether a channel is as it was, some tokens later."""
    n = m[c + FILLED] - old[c + FILLED]
    if m[c + CLAIMED] - old[c + CLAIMED] != n or m[c + HELD] - old[c + HELD] != n:
        return False
    if m[c + FREED] - old[c + FREED] != n or m[c + SETTLED] - old[c + SETTLED] != n or m[c + SEEN] - old[c + SEEN] != n:
        return False
    if n == 0:
        return True
    rise = m[m[c + WRITER] + RISE]
    if rise != m[m[c + READER] + RISE] or m[c + HIGH] != old[c + HIGH]:
        return False
    oldest = min(m[c + SEEN], max(n, m[c + CLAIMED] - m[c + DEPTH]))
    if oldest < n or m[c + FREED] - n < 0:
        return False
    if not same_times(m[c + TAKES], oldest, m[c + FREED], n, rise, m, rings, old, old_rings):
        return False
    if not same_times(m[c + FILLS], m[c + FREED], m[c + FILLED], n, rise, m, rings, old, old_rings):
        return False
    if m[c + CLAIMS] == m[c + FILLS]:
        return True
    return same_times(m[c + CLAIMS], m[c + FREED], m[c + CLAIMED], n, rise, m, rings, old, old_rings)


@jit
def recurs(suspect: int, m: Words, rings: Words, old: Words, old_rings: Words) -> bool:
    """Whether everything is as it was when it was kept, later. Looks first where it was not so the last time."""
    if not moved_evenly(m[suspect], m, old):
        return False
    for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_SIZE):
        if not moved_evenly(p, m, old):
            m[suspect] = p
            return False
    even = True
    for c in range(m[CHANNELS], m[CHANNELS_END], CHANNEL_SIZE):
        even = even and passed_evenly(c, m, rings, old, old_rings)
    return even


@jit
def times_more(m: Words, old: Words) -> int:
    """How often what happened since can happen again."""
    times = FAR
    for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_SIZE):
        turn, h, latest = m[p + TURN], m[p + PHASE], 0
        if turn > 0:
            for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
                if m[q + NEXT] != old[q + NEXT]:
                    times = min(times, repeats(q, m, old) - 1)
                    latest = max(latest, m[q + NEXT])
            for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
                if m[q + NEXT] == old[q + NEXT] and m[q + NEXT] < FAR:
                    free = m[q + NEXT] - (m[q + LATER] if m[q + FLAGS] & BACK else 0)
                    times = min(times, max(0, free - 1 - latest) // turn)
    return 0 if times == FAR else times


@jit
def repeat_process(p: int, times: int, m: Words, old: Words, log: Words) -> None:
    h, rise = m[p + PHASE], m[p + RISE]
    clock = m[p + TURN] + m[p + BUBBLES] - old[p + BUBBLES]
    frozen = m[p + FROZEN] - old[p + FROZEN]
    for i in range(m[h + MOMENTS_AT], m[h + MOMENTS_AT] + 2 * m[p + MOMENTS], 2):
        m[i] += times * clock
        m[i + 1] += times * frozen
    for q in range(m[h + PORTS], m[h + PORTS_END], PORT_SIZE):
        for i in range(m[q + QUEUED]):
            m[m[q + QUEUE] + (m[q + QUEUE_HEAD] + i) % m[q + QUEUE_SIZE]] += times * clock
        if m[q + NEXT] != old[q + NEXT]:
            m[q + NEXT] += times * m[p + TURN]
            m[q + LEFT] += times * (m[q + LEFT] - old[q + LEFT])
            for level in range(m[q + LEVELS], m[q + LEVELS_END] - LEVEL_SIZE, LEVEL_SIZE):
                m[level + POSITION] += times * (m[level + POSITION] - old[level + POSITION])
            if m[q + FLAGS] & (LOAD | STORE):
                m[q + PAID] += times * rise * TICKS
        m[q + WAITED] += times * (m[q + WAITED] - old[q + WAITED])
    m[p + OFFSET] += times * (m[p + OFFSET] - old[p + OFFSET])
    m[p + BUBBLES] += times * (m[p + BUBBLES] - old[p + BUBBLES])
    m[p + FROZEN] += times * frozen
    m[p + KNOWN_FROZEN] += times * frozen
    if m[p + LOGGED] > old[p + LOGGED]:
        last = m[p + LOG_AT] + 2 * (m[p + LOGGED] - 1)
        log_stall(p, log[last] + times * rise, log[last + 1], m, log)


@jit
def repeat_channel(c: int, times: int, m: Words, rings: Words, old: Words) -> None:
    n, rise = m[c + FILLED] - old[c + FILLED], m[m[c + WRITER] + RISE]
    if n == 0:
        return
    m[c + CLAIMED] += times * n
    m[c + FILLED] += times * n
    m[c + HELD] += times * n
    m[c + FREED] += times * n
    m[c + SETTLED] += times * n
    m[c + SEEN] += times * n
    move(m[c + FILLS], times * n, times * rise, m, rings)
    move(m[c + TAKES], times * n, times * rise, m, rings)
    if m[c + CLAIMS] != m[c + FILLS]:
        move(m[c + CLAIMS], times * n, times * rise, m, rings)


@jit
def move(s: int, slots: int, cycles: int, m: Words, rings: Words) -> None:
    """All runs of a sequence, to later slots and times."""
    for run in range(max(0, m[s + HEAD] - m[s + MASK] - 1), m[s + HEAD]):
        at = m[s + RING] + RUN_ENTRIES * (run & m[s + MASK])
        rings[at] += slots
        rings[at + 1] += cycles


@jit
def repeat(times: int, m: Words, rings: Words, log: Words, old: Words) -> None:
    """Let all that happened since happen so many times more."""
    for c in range(m[CHANNELS], m[CHANNELS_END], CHANNEL_SIZE):
        repeat_channel(c, times, m, rings, old)
    for p in range(m[PROCESSES], m[PROCESSES_END], PROCESS_SIZE):
        if m[p + TURN] > 0:
            repeat_process(p, times, m, old, log)


@jit
def go_on(suspect: int, m: Words, rings: Words, log: Words, old: Words, old_rings: Words) -> bool:
    """Let what happened since the state that was kept happen again as often as it can. Whether it can."""
    if not recurs(suspect, m, rings, old, old_rings):
        return False
    times = times_more(m, old)
    if times > 0:
        repeat(times, m, rings, log, old)
    return times > 0
