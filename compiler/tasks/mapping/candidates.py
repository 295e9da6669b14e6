"""Schedules that bring a program onto few enough elements: those first whose busiest element has the least to do.

After Dato's algorithm 1: states are schedules, a step is one legal bundle or chain, and every step leaves fewer
elements. What a state costs is the rounds of its busiest element, below which no run of it can be, and no less than an
equal share of all rounds, which some element of the last has; of equal ones, that of the fewest elements is looked at
first. How fast those that fit are is simulated afterwards.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod

from penstock.compiler.errors import PenstockError
from penstock.compiler.tasks.check import check
from penstock.compiler.tasks.kinds import bits_of
from penstock.compiler.tasks.mapping.apply import mapped
from penstock.compiler.tasks.network import Instances, TaskInstance
from penstock.compiler.tasks.schedules import Bundle, Chain, MappingLimits, Schedule
from penstock.compiler.tasks.source import TaskError
from penstock.compiler.tasks.tree import For, Get, Put, Stmt, When, walk

MOST_LOOKED_AT = 160
MOST_FOUND = 8


@dataclass(frozen=True)
class ElementLoad:
    """What the elements of a mapping take: how many there are, and the most of one."""

    elements: int
    rounds: int
    ports: int
    memory_bits: int

    def within(self, limits: MappingLimits) -> bool:
        return (
            (not limits.elements or self.elements <= limits.elements)
            and (not limits.ports or self.ports <= limits.ports)
            and (not limits.memory_bits or self.memory_bits <= limits.memory_bits)
        )


def load_of(network: Instances) -> ElementLoad:
    """Of a network, mapped or not."""
    bodies = {one.body: one for one in network.instances}
    return ElementLoad(
        len(network.instances),
        max(rounds(body.statements) for body in bodies),
        max(ports_of(one) for one in bodies.values()),
        max(sum(prod(m.shape) * bits_of(m.dtype) for m in body.arrays.values()) for body in bodies),
    )


def rounds(statements: Sequence[Stmt]) -> int:
    """How many rounds the loops make, of which one starts in a cycle at best."""
    inner = [
        one.trip * rounds(one.body) if isinstance(one, For) else rounds(one.body) if isinstance(one, When) else 1
        for one in statements
    ]
    loops = [n for n, one in zip(inner, statements, strict=True) if isinstance(one, For)]
    return sum(loops) if loops else 1


def ports_of(one: TaskInstance) -> int:
    """How many streams and tensors it meets."""
    met = {s.port for s in walk(one.body.statements) if isinstance(s, Get | Put)}
    return len(met) + len(one.body.tensors)


def schedules(network: Instances, limits: MappingLimits, builds: Callable[[Instances], bool]) -> list[Schedule]:
    """Schedules within the limits, the most promising first. `builds` says whether pipelines can be made of one."""
    found: list[Schedule] = []
    number, seen, left = count(), set[frozenset[str]](), list[tuple[int, int, int, Schedule, Instances]]()

    work = sum(rounds(one.body.statements) for one in network.instances)
    shared = work // limits.elements if limits.elements else 0

    def look_at(schedule: Schedule) -> None:
        key = frozenset(map(str, schedule))
        if key in seen or len(seen) > MOST_LOOKED_AT:
            return
        seen.add(key)
        try:
            made = mapped(network, schedule, unfinished=True)
        except PenstockError:
            return
        load = load_of(made)
        heapq.heappush(left, (max(load.rounds, shared), load.elements, next(number), schedule, made))

    look_at(())
    while left and len(found) < MOST_FOUND:
        _, _, _, schedule, made = heapq.heappop(left)
        if load_of(made).within(limits) and _is_whole(made) and builds(made):
            found.append(schedule)
        for step in next_steps(made, schedule):
            look_at((*schedule, step))
    return found


def _is_whole(network: Instances) -> bool:
    """Whether no step must follow."""
    try:
        check(network)
    except TaskError:
        return False
    return True


def next_steps(network: Instances, schedule: Schedule) -> Iterator[Bundle | Chain]:
    """Steps that leave fewer elements. Bundles come before chains, so that no two orders of the same are looked at."""
    tasks: dict[str, list[TaskInstance]] = {}
    for one in network.instances:
        tasks.setdefault(one.task.name, []).append(one)
    for name, members in tasks.items():  # a tensor has one port: all that meet it share an element, whatever follows
        if len(members) > 1 and members[0].body.tensors:
            for inside in range(_depth(members[0].body.statements) + 1):
                yield Bundle(name, 0, inside)
            return
    done = {step.task for step in schedule if isinstance(step, Bundle)}
    if not any(isinstance(step, Chain) for step in schedule):
        for name, members in tasks.items():
            if name not in done:
                for size in (n for n in range(2, len(members) + 1) if len(members) % n == 0):
                    for inside in range(_depth(members[0].body.statements) + 1):
                        yield Bundle(name, size, inside)
    writers: dict[str, str] = {}
    for one in network.instances:
        puts = {s.port for s in walk(one.body.statements) if isinstance(s, Put)}
        writers |= {name: one.task.name for port, name in one.channels.items() if port in puts}
    pairs = {
        (writers[name], one.task.name): None
        for one in network.instances
        for name in one.channels.values()
        if name in writers and writers[name] != one.task.name
    }
    for first, second in pairs:
        if len(tasks[first]) == len(tasks[second]):
            yield Chain(first, second)


def _depth(statements: Sequence[Stmt]) -> int:
    """How many loops lie one in the other with nothing between them, the innermost left out."""
    if len(statements) != 1 or not isinstance(statements[0], For):
        return 0
    body = statements[0].body
    return 1 + _depth(body) if any(isinstance(one, For) for one in body) else 1
