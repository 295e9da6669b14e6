"""Hand-made nests, and a plain simulator that steps through every cycle: the timeline's referee.

The rules are those of stalling pipelines: each nest has a clock of its own; in a cycle either everything that is
due at its present time happens, or, if any of it is impossible, nothing does. What a cycle writes or frees can
be read or filled from the next cycle on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from penstock.compiler.dialects.nest import GuardAttr, Term
from penstock.compiler.platforms import Resources
from penstock.compiler.schedule import Bound, NestSchedule, PortSchedule, TokenPattern
from penstock.profiling.network import Task, TaskChannel, TaskNetwork


def port(
    channel: str, direction: str, stage: int, trips: Sequence[int], terms: Sequence[Term] = (), kind: str = "stream"
) -> PortSchedule:
    pattern = TokenPattern.of(GuardAttr(tuple(terms)), trips)
    return PortSchedule(channel, kind, direction, 8, stage, pattern)  # type: ignore[arg-type]


def nest(
    name: str, trips: Sequence[int], ports: Sequence[PortSchedule], *, ii: int = 1, depth: int = 1, block_loops: int = 0
) -> NestSchedule:
    iterations = inside = 1
    for loop, trip in enumerate(trips):
        iterations *= trip
        inside *= trip if loop >= block_loops else 1
    bounds = (Bound("pipeline", ii, f"II = {ii}: given"),)
    return NestSchedule(name, iterations, inside, ii, bounds, depth, (), tuple(ports), (), Resources())


def flushed(net: TaskNetwork) -> TaskNetwork:
    """The same, where pipelines go on with what has entered while their next iteration waits."""
    tasks = [replace(task, nests=tuple([replace(n, flushes=True) for n in task.nests])) for task in net.tasks]
    return replace(net, tasks=tuple(tasks))


def network(nests: Sequence[NestSchedule], depths: dict[str, int], blocks: Sequence[str] = ()) -> TaskNetwork:
    channels = {n: TaskChannel(n, "block" if n in blocks else "stream", d, 8) for n, d in depths.items()}
    return TaskNetwork(tuple(Task(n.name, n.name, (n,)) for n in nests), channels)


class Stuck(Exception):
    """Nothing can happen any more, and not all is done."""


def step_through(net: TaskNetwork) -> dict[str, int]:
    """The cycle in which each task ends; `Stuck` for a deadlock."""
    agendas = {t.name: _agenda(t.nests[0]) for t in net.tasks}
    ends = {t.name: t.nests[0].latency for t in net.tasks}
    local = dict.fromkeys(ends, 0)
    done: dict[str, int] = {}
    filled: dict[str, int] = defaultdict(int)
    taken: dict[str, int] = defaultdict(int)
    cycle = 0
    while len(done) < len(ends):
        before = (dict(filled), dict(taken))
        moved = False
        for name, agenda in agendas.items():
            if name in done:
                continue
            due = agenda.get(local[name], [])
            if all(_possible(net, before, what, channel, token) for what, channel, token in due):
                for what, channel, _ in due:
                    if what == "fill":
                        filled[channel] += 1
                    elif what == "take":
                        taken[channel] += 1
                local[name] += 1
                moved = True
                if local[name] == ends[name]:
                    done[name] = cycle + 1
        cycle += 1
        if not moved:
            raise Stuck
    return done


def _agenda(schedule: NestSchedule) -> dict[int, list[tuple[str, str, int]]]:
    """Local time → what must be possible then ("need", "room") and what happens ("take", "fill")."""
    agenda: dict[int, list[tuple[str, str, int]]] = defaultdict(list)
    for p in schedule.ports:
        if p.kind == "stream":
            for token in range(p.tokens):
                at = schedule.cycle(p, token)
                verbs = ("need", "take") if p.direction == "read" else ("room", "fill")
                agenda[at] += [(verb, p.channel, token) for verb in verbs]
            continue
        for block in range(schedule.blocks):
            first = block * (schedule.block_iterations + schedule.idle) * schedule.ii + p.stage
            last = first + (schedule.block_iterations - 1) * schedule.ii
            verbs = ("need", "take") if p.direction == "read" else ("room", "fill")
            agenda[first].append((verbs[0], p.channel, block))
            agenda[last].append((verbs[1], p.channel, block))
    return agenda


def _possible(
    net: TaskNetwork, before: tuple[dict[str, int], dict[str, int]], what: str, channel: str, token: int
) -> bool:
    filled, taken = before
    if what == "need":
        return filled.get(channel, 0) > token
    if what == "room":
        return token - taken.get(channel, 0) < net.channels[channel].depth
    return True
