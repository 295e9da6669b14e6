"""What lies behind a simulation's end: who waits for whom in a deadlock, and which processes decide the latency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.plan import SimulationPlan
from penstock.compiler.simulator.results import Cause, Deadlock, Hop, Wait
from penstock.compiler.simulator.rules import Rules
from penstock.compiler.simulator.state import EngineState, last_time

_MOST_HOPS = 4000
_SHORTEST_SHARE = 256  # of the latency: shorter stretches are left out of the path
_LONGEST_LIST = 32


def find_deadlock(plan: SimulationPlan, state: EngineState) -> Deadlock:
    """The cycle of waiting processes in a network that cannot move."""
    waits = [_waits(p, plan, state) for p in range(len(plan.processes))]
    return Deadlock(cycle_of(waits), _last_event(plan, state))


def cycle_of(waits: Sequence[Sequence[tuple[Wait, int]]]) -> tuple[Wait, ...]:
    """Who waits for whom, until one is met again; or as far as somebody who waits for no channel."""
    walked: list[int] = []
    p = next((i for i, own in enumerate(waits) if own), None)
    while p is not None and p not in walked and waits[p]:
        walked.append(p)
        p = waits[p][0][1]
    cycle = walked[walked.index(p) :] if p in walked else walked
    return tuple(waits[one][0][0] for one in cycle)


def _waits(p: int, plan: SimulationPlan, state: EngineState) -> list[tuple[Wait, int]]:
    """Every channel that keeps a process from its next event, with the process at the other end."""
    m, row, found = state.memory, plan.addresses[p], list[tuple[Wait, int]]()
    if m[row + at.MODE] == 2:
        return []
    for address in _due(row, m):
        met = plan.meetings[address]
        link = plan.links[met.link]
        c = link.address
        count, flags = (1, m[address + at.START_FLAGS]) if met.at_start else m[[address + at.COUNT, address + at.FLAGS]]
        empty = flags & at.TOKEN and m[c + at.HELD] + count > m[c + at.FILLED]
        full = flags & at.SLOT and m[c + at.CLAIMED] + count - m[c + at.DEPTH] > m[c + at.FREED]
        if empty or full:
            cause: Cause = "empty" if empty else "full"
            other = link.writer if empty else link.reader
            found.append((Wait(plan.processes[p], met.channel, cause, plan.processes[other]), other))
    return found


def _due(row: int, m: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    """The ports or starts of a process's next events, on channels."""
    if m[row + at.MODE] == 0:
        return list(range(m[row + at.STARTS], m[row + at.STARTS_END], at.START_SIZE))
    h = m[row + at.PHASE]
    ports = [int(q) for q in range(m[h + at.PORTS], m[h + at.PORTS_END], at.PORT_SIZE)]
    behind = [q for q in ports if m[h + at.FLUSHES] and m[q + at.FLAGS] & at.BACK]
    now = min((int(m[q + at.NEXT]) for q in ports if q not in behind), default=at.FAR)
    due = [q for q in ports if q not in behind and m[q + at.NEXT] == now < at.FAR]
    due += [q for q in behind if m[q + at.QUEUED] or m[q + at.NEXT] < min(at.FAR, now + m[q + at.LATER])]
    return [q for q in due if not m[q + at.FLAGS] & (at.LOAD | at.STORE)]


def _last_event(plan: SimulationPlan, state: EngineState) -> int:
    times = [
        last_time(link.address, sequence, count, state)
        for link in plan.links
        for sequence, count in ((at.FILLS, at.FILLED), (at.TAKES, at.FREED))
    ]
    return max((time for time in times if time is not None), default=0)


def trace_critical_path(plan: SimulationPlan, state: EngineState, rules: Rules) -> tuple[Hop, ...]:
    """Back from the process that ends last: to its last stall, to whom it waited for, to that one's last stall, ...

    Of each process a limited number of stalls is known, so that within long alternations some hops are missing;
    very short stretches are left out.
    """
    times = state.memory[len(plan.memory) :].reshape(-1, state.frames, 2)[:, 0]
    p = int(np.argmax(times[:, 1]))
    time = latency = int(times[p, 1])
    hops: list[Hop] = []
    while len(hops) < _MOST_HOPS:
        stall = _last_stall(p, time, plan, state)
        if stall is None:
            hops.append(Hop(plan.processes[p], int(times[p, 0]), time, None))
            break
        since, cause = stall
        met = plan.meetings[cause]
        hops.append(Hop(plan.processes[p], since, time, met.channel))
        link = plan.links[met.link]
        p = link.writer if met.reads else link.reader
        time = since - (rules.start_gap if met.at_start else 1)
    return _without_trifles(hops[::-1], latency)


def _last_stall(p: int, time: int, plan: SimulationPlan, state: EngineState) -> tuple[int, int] | None:
    """When the last stall up to a time ended and what caused it; waiting for memory is a process's own pace."""
    row = plan.addresses[p]
    start, count = (int(n) for n in state.memory[[row + at.LOG_AT, row + at.LOGGED]])
    log = state.log[start : start + 2 * count].reshape(-1, 2)
    for i in range(int(np.searchsorted(log[:, 0], time, side="right")) - 1, -1, -1):
        if not plan.meetings[int(log[i, 1])].memory:
            return int(log[i, 0]), int(log[i, 1])
    return None


def _without_trifles(hops: list[Hop], latency: int) -> tuple[Hop, ...]:
    long = [hop for hop in hops if (hop.end - hop.start) * _SHORTEST_SHARE >= latency]
    if not long or len(long) > _LONGEST_LIST:
        longest = sorted(hops, key=lambda hop: hop.start - hop.end)[:_LONGEST_LIST]
        long = [hop for hop in hops if hop in longest]
    merged: list[Hop] = []
    for hop in long:
        if merged and merged[-1].process == hop.process:
            merged[-1] = Hop(hop.process, merged[-1].start, hop.end, merged[-1].channel)
        else:
            merged.append(hop)
    return tuple(merged)
