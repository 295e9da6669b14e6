"""Engine: a state that was there before, only later: what happened in between happens again, as often as it can.

Times depend on each other by differences alone. So if since a state that was kept every process went on by some whole
turns of one loop, every channel between two of them passed as many tokens as it was given slots, and all times that
are still to be looked at moved by the same number of cycles, then the same turns follow, moved by as much again, until
a loop comes to its end or an access comes in that took no part.
"""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.accesses import log_stall
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
    if (m[q + at.NEXT] == at.FAR) != (old[q + at.NEXT] == at.FAR):
        return -1
    moved, inner = 0, m[q + at.LEVELS_END] - at.LEVEL_SIZE
    if m[q + at.LEFT] != old[q + at.LEFT]:
        if m[q + at.LEFT] > old[q + at.LEFT]:
            return -1
        moved = (m[q + at.LEFT] - 1) // (old[q + at.LEFT] - m[q + at.LEFT]) + 1
    for level in range(m[q + at.LEVELS], inner + at.LEVEL_SIZE, at.LEVEL_SIZE):
        if m[level + at.RUN] != old[level + at.RUN]:
            return -1
        on = m[level + at.POSITION] - old[level + at.POSITION]
        if level < inner and on != 0:
            if on < 0 or moved > 0:
                return -1
            moved = (m[m[level + at.RUN] + at.RUN_LENGTH] - 1 - m[level + at.POSITION]) // on + 1
    return moved


@jit
def turn_of(p: int, m: Words, old: Words) -> int:
    """By how much a phase's own time went on at all ports that went on; -1 if not evenly."""
    h, turn = m[p + at.PHASE], 0
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        moved = repeats(q, m, old)
        if moved < 0 or m[q + at.QUEUED] != old[q + at.QUEUED]:
            return -1
        on = m[q + at.NEXT] - old[q + at.NEXT]
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
    m[p + at.RISE] = m[p + at.TURN] = 0
    if (
        m[p + at.MODE] != old[p + at.MODE]
        or m[p + at.PHASE] != old[p + at.PHASE]
        or m[p + at.FRAME] != old[p + at.FRAME]
    ):
        return False
    if m[p + at.MODE] != 1:
        return True
    turn = turn_of(p, m, old)
    if turn < 0:
        return False
    frozen, clock = m[p + at.FROZEN] - old[p + at.FROZEN], turn + m[p + at.BUBBLES] - old[p + at.BUBBLES]
    rise = m[p + at.OFFSET] - old[p + at.OFFSET] + clock + frozen
    if (turn == 0 and rise != 0) or m[p + at.KNOWN_FROZEN] - old[p + at.KNOWN_FROZEN] != frozen:
        return False
    if m[p + at.MOMENTS] != old[p + at.MOMENTS]:
        return False
    place = m[m[p + at.PHASE] + at.MOMENTS_AT]
    for i in range(place, place + 2 * m[p + at.MOMENTS], 2):
        if m[i] - old[i] != clock or m[i + 1] - old[i + 1] != frozen:
            return False
    h = m[p + at.PHASE]
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        for i in range(m[q + at.QUEUED]):
            now = m[m[q + at.QUEUE] + (m[q + at.QUEUE_HEAD] + i) % m[q + at.QUEUE_SIZE]]
            if now - old[m[q + at.QUEUE] + (old[q + at.QUEUE_HEAD] + i) % m[q + at.QUEUE_SIZE]] != clock:
                return False
        if m[q + at.FLAGS] & (at.LOAD | at.STORE):
            paid = m[q + at.PAID] - old[q + at.PAID]
            if paid != (rise * at.TICKS if m[q + at.NEXT] != old[q + at.NEXT] else 0):
                return False
    m[p + at.RISE], m[p + at.TURN] = rise, turn
    return True


@jit
def same_times(
    s: int, first: int, end: int, n: int, rise: int, m: Words, rings: Words, old: Words, old_rings: Words
) -> bool:
    """Whether slots `first` to `end` have the times that were those of the slots `n` before, and `rise` more."""
    run, old_run = m[s + at.HEAD] - 1, old[s + at.HEAD] - 1
    for k in range(end - 1, first - 1, -1):
        run, old_run = run_of(s, k, run, m, rings), run_of(s, k - n, old_run, old, old_rings)
        if time_in(s, k, run, m, rings) - time_in(s, k - n, old_run, old, old_rings) != rise:
            return False
    return True


@jit
def passed_evenly(c: int, m: Words, rings: Words, old: Words, old_rings: Words) -> bool:
    """Whether a channel is as it was, some tokens later."""
    n = m[c + at.FILLED] - old[c + at.FILLED]
    if m[c + at.CLAIMED] - old[c + at.CLAIMED] != n or m[c + at.HELD] - old[c + at.HELD] != n:
        return False
    if (
        m[c + at.FREED] - old[c + at.FREED] != n
        or m[c + at.SETTLED] - old[c + at.SETTLED] != n
        or m[c + at.SEEN] - old[c + at.SEEN] != n
    ):
        return False
    if n == 0:
        return True
    rise = m[m[c + at.WRITER] + at.RISE]
    if rise != m[m[c + at.READER] + at.RISE] or m[c + at.HIGH] != old[c + at.HIGH]:
        return False
    oldest = min(m[c + at.SEEN], max(n, m[c + at.CLAIMED] - m[c + at.DEPTH]))
    if oldest < n or m[c + at.FREED] - n < 0:
        return False
    if not same_times(m[c + at.TAKES], oldest, m[c + at.FREED], n, rise, m, rings, old, old_rings):
        return False
    if not same_times(m[c + at.FILLS], m[c + at.FREED], m[c + at.FILLED], n, rise, m, rings, old, old_rings):
        return False
    if m[c + at.CLAIMS] == m[c + at.FILLS]:
        return True
    return same_times(m[c + at.CLAIMS], m[c + at.FREED], m[c + at.CLAIMED], n, rise, m, rings, old, old_rings)


@jit
def recurs(suspect: int, m: Words, rings: Words, old: Words, old_rings: Words) -> bool:
    """Whether everything is as it was when it was kept, later. Looks first where it was not so the last time."""
    if not moved_evenly(m[suspect], m, old):
        return False
    for p in range(m[at.PROCESSES], m[at.PROCESSES_END], at.PROCESS_SIZE):
        if not moved_evenly(p, m, old):
            m[suspect] = p
            return False
    even = True
    for c in range(m[at.CHANNELS], m[at.CHANNELS_END], at.CHANNEL_SIZE):
        even = even and passed_evenly(c, m, rings, old, old_rings)
    return even


@jit
def times_more(m: Words, old: Words) -> int:
    """How often what happened since can happen again."""
    times = at.FAR
    for p in range(m[at.PROCESSES], m[at.PROCESSES_END], at.PROCESS_SIZE):
        turn, h, latest = m[p + at.TURN], m[p + at.PHASE], 0
        if turn > 0:
            for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
                if m[q + at.NEXT] != old[q + at.NEXT]:
                    times = min(times, repeats(q, m, old) - 1)
                    latest = max(latest, m[q + at.NEXT])
            for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
                if m[q + at.NEXT] == old[q + at.NEXT] and m[q + at.NEXT] < at.FAR:
                    free = m[q + at.NEXT] - (m[q + at.LATER] if m[q + at.FLAGS] & at.BACK else 0)
                    times = min(times, max(0, free - 1 - latest) // turn)
    return 0 if times == at.FAR else times


@jit
def repeat_process(p: int, times: int, m: Words, old: Words, log: Words) -> None:
    h, rise = m[p + at.PHASE], m[p + at.RISE]
    clock = m[p + at.TURN] + m[p + at.BUBBLES] - old[p + at.BUBBLES]
    frozen = m[p + at.FROZEN] - old[p + at.FROZEN]
    for i in range(m[h + at.MOMENTS_AT], m[h + at.MOMENTS_AT] + 2 * m[p + at.MOMENTS], 2):
        m[i] += times * clock
        m[i + 1] += times * frozen
    for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE):
        for i in range(m[q + at.QUEUED]):
            m[m[q + at.QUEUE] + (m[q + at.QUEUE_HEAD] + i) % m[q + at.QUEUE_SIZE]] += times * clock
        if m[q + at.NEXT] != old[q + at.NEXT]:
            m[q + at.NEXT] += times * m[p + at.TURN]
            m[q + at.LEFT] += times * (m[q + at.LEFT] - old[q + at.LEFT])
            for level in range(m[q + at.LEVELS], m[q + at.LEVELS_END] - at.LEVEL_SIZE, at.LEVEL_SIZE):
                m[level + at.POSITION] += times * (m[level + at.POSITION] - old[level + at.POSITION])
            if m[q + at.FLAGS] & (at.LOAD | at.STORE):
                m[q + at.PAID] += times * rise * at.TICKS
        m[q + at.WAITED] += times * (m[q + at.WAITED] - old[q + at.WAITED])
    m[p + at.OFFSET] += times * (m[p + at.OFFSET] - old[p + at.OFFSET])
    m[p + at.BUBBLES] += times * (m[p + at.BUBBLES] - old[p + at.BUBBLES])
    m[p + at.FROZEN] += times * frozen
    m[p + at.KNOWN_FROZEN] += times * frozen
    if m[p + at.LOGGED] > old[p + at.LOGGED]:
        last = m[p + at.LOG_AT] + 2 * (m[p + at.LOGGED] - 1)
        log_stall(p, log[last] + times * rise, log[last + 1], m, log)


@jit
def repeat_channel(c: int, times: int, m: Words, rings: Words, old: Words) -> None:
    n, rise = m[c + at.FILLED] - old[c + at.FILLED], m[m[c + at.WRITER] + at.RISE]
    if n == 0:
        return
    m[c + at.CLAIMED] += times * n
    m[c + at.FILLED] += times * n
    m[c + at.HELD] += times * n
    m[c + at.FREED] += times * n
    m[c + at.SETTLED] += times * n
    m[c + at.SEEN] += times * n
    move(m[c + at.FILLS], times * n, times * rise, m, rings)
    move(m[c + at.TAKES], times * n, times * rise, m, rings)
    if m[c + at.CLAIMS] != m[c + at.FILLS]:
        move(m[c + at.CLAIMS], times * n, times * rise, m, rings)


@jit
def move(s: int, slots: int, cycles: int, m: Words, rings: Words) -> None:
    """All runs of a sequence, to later slots and times."""
    for run in range(max(0, m[s + at.HEAD] - m[s + at.MASK] - 1), m[s + at.HEAD]):
        place = m[s + at.RING] + at.RUN_ENTRIES * (run & m[s + at.MASK])
        rings[place] += slots
        rings[place + 1] += cycles


@jit
def repeat(times: int, m: Words, rings: Words, log: Words, old: Words) -> None:
    """Let all that happened since happen so many times more."""
    for c in range(m[at.CHANNELS], m[at.CHANNELS_END], at.CHANNEL_SIZE):
        repeat_channel(c, times, m, rings, old)
    for p in range(m[at.PROCESSES], m[at.PROCESSES_END], at.PROCESS_SIZE):
        if m[p + at.TURN] > 0:
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
