"""Engine: the times at which a channel's slots were claimed, filled and given back, as runs of equal steps."""

from __future__ import annotations

from penstock.compiler.jit import Words, jit
from penstock.compiler.simulator.layout import (
    CLAIMS,
    DEPTH,
    FILLS,
    FREED,
    GROW,
    HEAD,
    HELD_RUN,
    HIGH,
    MASK,
    MOST_NEW_RUNS,
    RING,
    SEEN,
    SEEN_RUN,
    SETTLED,
    SETTLED_RUN,
    SLOT_RUN,
    TAKES,
    UNBOUNDED,
)  # fmt: skip


@jit
def run_of(s: int, k: int, run: int, m: Words, rings: Words) -> int:
    """The number of the run that slot `k` lies in, looked for from `run` on."""
    ring, mask, head = m[s + RING], m[s + MASK], m[s + HEAD]
    while run + 1 < head and rings[ring + 3 * ((run + 1) & mask)] <= k:
        run += 1
    while run > 0 and rings[ring + 3 * (run & mask)] > k:
        run -= 1
    return run


@jit
def time_in(s: int, k: int, run: int, m: Words, rings: Words) -> int:
    at = m[s + RING] + 3 * (run & m[s + MASK])
    return rings[at + 1] + (k - rings[at]) * rings[at + 2]


@jit
def step_in(s: int, run: int, m: Words, rings: Words) -> int:
    return rings[m[s + RING] + 3 * (run & m[s + MASK]) + 2]


@jit
def end_of(s: int, run: int, count: int, m: Words, rings: Words) -> int:
    """The first slot after a run, of a sequence that has `count` slots."""
    return rings[m[s + RING] + 3 * ((run + 1) & m[s + MASK])] if run + 1 < m[s + HEAD] else count


@jit
def append(s: int, k: int, n: int, time: int, step: int, m: Words, rings: Words) -> None:
    """Slots k to k + n - 1, the first at `time`: into the last run if they continue it."""
    ring, mask, head = m[s + RING], m[s + MASK], m[s + HEAD]
    if head > 0:
        last = ring + 3 * ((head - 1) & mask)
        if k == rings[last] + 1:  # a run of one has no step yet
            if n == 1 or time - rings[last + 1] == step:
                rings[last + 2] = time - rings[last + 1]
                return
        elif time == rings[last + 1] + (k - rings[last]) * rings[last + 2] and (n == 1 or step == rings[last + 2]):
            return
    at = ring + 3 * (head & mask)
    rings[at] = k
    rings[at + 1] = time
    rings[at + 2] = step
    m[s + HEAD] = head + 1


@jit
def has_room(s: int, oldest: int, m: Words) -> bool:
    """Whether one more access fits without losing a run that is still to be read."""
    if m[s + HEAD] - oldest + MOST_NEW_RUNS <= m[s + MASK] + 1:
        return True
    m[s + GROW] = 1
    return False


@jit
def room_to_write(c: int, m: Words) -> bool:
    if m[c + FILLS] == m[c + CLAIMS]:
        return has_room(m[c + FILLS], min(m[c + HELD_RUN], m[c + SETTLED_RUN]), m)
    return has_room(m[c + FILLS], m[c + HELD_RUN], m) and has_room(m[c + CLAIMS], m[c + SETTLED_RUN], m)


@jit
def room_to_read(c: int, m: Words) -> bool:
    bounded = m[c + DEPTH] < UNBOUNDED
    return has_room(m[c + TAKES], min(m[c + SEEN_RUN], m[c + SLOT_RUN]) if bounded else m[c + SEEN_RUN], m)


@jit
def settle(c: int, m: Words, rings: Words) -> None:
    """The high-water mark, up to the last slot given back: how many slots were held when each was claimed.

    Slot k is claimed at C(k); SEEN counts the slots given back before that. Along a run of claims and a run of takes
    k + 1 - SEEN rises, or rises first and then falls, so that few points of such a stretch are looked at.
    """
    claims, takes, freed = m[c + CLAIMS], m[c + TAKES], m[c + FREED]
    k, seen, high = m[c + SETTLED], m[c + SEEN], m[c + HIGH]
    claim_run, take_run = m[c + SETTLED_RUN], m[c + SEEN_RUN]
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
    m[c + SETTLED], m[c + SEEN], m[c + HIGH] = k, seen, high
    m[c + SETTLED_RUN], m[c + SEEN_RUN] = claim_run, take_run


@jit
def passed(span: int, step: int) -> int:
    """How many of the times 0, step, 2 step, ... lie before `span`."""
    if span <= 0:
        return 0
    return (span + step - 1) // step if step > 0 else 0
