"""Engine: the times at which a channel's slots were claimed, filled and given back, as runs of equal steps."""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator import layout as at


@jit
def run_of(s: int, k: int, run: int, m: Words, rings: Words) -> int:
    """The number of the run that slot `k` lies in, looked for from `run` on."""
    ring, mask, head = m[s + at.RING], m[s + at.MASK], m[s + at.HEAD]
    while run + 1 < head and rings[ring + 3 * ((run + 1) & mask)] <= k:
        run += 1
    while run > 0 and rings[ring + 3 * (run & mask)] > k:
        run -= 1
    return run


@jit
def time_in(s: int, k: int, run: int, m: Words, rings: Words) -> int:
    place = m[s + at.RING] + 3 * (run & m[s + at.MASK])
    return rings[place + 1] + (k - rings[place]) * rings[place + 2]


@jit
def step_in(s: int, run: int, m: Words, rings: Words) -> int:
    return rings[m[s + at.RING] + 3 * (run & m[s + at.MASK]) + 2]


@jit
def end_of(s: int, run: int, count: int, m: Words, rings: Words) -> int:
    """The first slot after a run, of a sequence that has `count` slots."""
    return rings[m[s + at.RING] + 3 * ((run + 1) & m[s + at.MASK])] if run + 1 < m[s + at.HEAD] else count


@jit
def append(s: int, k: int, n: int, time: int, step: int, m: Words, rings: Words) -> None:
    """Slots k to k + n - 1, the first at `time`: into the last run if they continue it."""
    ring, mask, head = m[s + at.RING], m[s + at.MASK], m[s + at.HEAD]
    if head > 0:
        last = ring + 3 * ((head - 1) & mask)
        if k == rings[last] + 1:  # a run of one has no step yet
            if n == 1 or time - rings[last + 1] == step:
                rings[last + 2] = time - rings[last + 1]
                return
        elif time == rings[last + 1] + (k - rings[last]) * rings[last + 2] and (n == 1 or step == rings[last + 2]):
            return
    place = ring + 3 * (head & mask)
    rings[place] = k
    rings[place + 1] = time
    rings[place + 2] = step
    m[s + at.HEAD] = head + 1


@jit
def has_room(s: int, oldest: int, m: Words) -> bool:
    """Whether one more access fits without losing a run that is still to be read."""
    if m[s + at.HEAD] - oldest + at.MOST_NEW_RUNS <= m[s + at.MASK] + 1:
        return True
    m[s + at.GROW] = 1
    return False


@jit
def room_to_write(c: int, m: Words) -> bool:
    if m[c + at.FILLS] == m[c + at.CLAIMS]:
        return has_room(m[c + at.FILLS], min(m[c + at.HELD_RUN], m[c + at.SETTLED_RUN]), m)
    return has_room(m[c + at.FILLS], m[c + at.HELD_RUN], m) and has_room(m[c + at.CLAIMS], m[c + at.SETTLED_RUN], m)


@jit
def room_to_read(c: int, m: Words) -> bool:
    bounded = m[c + at.DEPTH] < at.UNBOUNDED
    return has_room(m[c + at.TAKES], min(m[c + at.SEEN_RUN], m[c + at.SLOT_RUN]) if bounded else m[c + at.SEEN_RUN], m)


@jit
def settle(c: int, m: Words, rings: Words) -> None:
    """The high-water mark, up to the last slot given back: how many slots were held when each was claimed.

    Slot k is claimed at C(k); SEEN counts the slots given back before that. Along a run of claims and a run of takes
    k + 1 - SEEN rises, or rises first and then falls, so that few points of such a stretch are looked at.
    """
    claims, takes, freed = m[c + at.CLAIMS], m[c + at.TAKES], m[c + at.FREED]
    k, seen, high = m[c + at.SETTLED], m[c + at.SEEN], m[c + at.HIGH]
    claim_run, take_run = m[c + at.SETTLED_RUN], m[c + at.SEEN_RUN]
    while k < freed:
        claim_run = run_of(claims, k, claim_run, m, rings)
        claimed = time_in(claims, k, claim_run, m, rings)
        while True:
            take_run = run_of(takes, seen, take_run, m, rings)
            taken, step = time_in(takes, seen, take_run, m, rings), step_in(takes, take_run, m, rings)
            left = end_of(takes, take_run, freed, m, rings) - seen
            if seen >= k or taken >= claimed:
                break
            seen += left if step == 0 else min(left, (claimed - taken + step - 1) // step)
            seen = min(seen, k)
        high = max(high, k + 1 - seen)
        # from here on, while claims step evenly and stay within the run of takes
        pace = step_in(claims, claim_run, m, rings)
        more = min(end_of(claims, claim_run, freed, m, rings), freed) - 1 - k
        if more > 0 and pace > 0:
            more = min(more, (taken + (left - 1) * step - claimed) // pace)
        if more > 0 and taken >= claimed:
            if pace > step:  # it rises until the next slot is given back, and falls from then on
                high = max(high, k + 1 + min(more, (taken - claimed) // pace) - seen)
            k += more
            seen += passed(claimed + more * pace - taken, step)
            high = max(high, k + 1 - seen)
        k += 1
    m[c + at.SETTLED], m[c + at.SEEN], m[c + at.HIGH] = k, seen, high
    m[c + at.SETTLED_RUN], m[c + at.SEEN_RUN] = claim_run, take_run


@jit
def passed(span: int, step: int) -> int:
    """How many of the times 0, step, 2 step, ... lie before `span`."""
    if span <= 0:
        return 0
    return (span + step - 1) // step if step > 0 else 0
