"""Streams between two elements whose tokens pass both ends in one order are one stream: fewer ports, fewer FIFOs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.compiler.tasks.mapping.rewriting import Renaming, same_value
from penstock.compiler.tasks.network import TaskInstance
from penstock.compiler.tasks.passes import passes
from penstock.compiler.tasks.tree import For, Get, Put, Stmt, StreamEnd, TaskBody, When, walk


def with_shared_channels(instances: Sequence[TaskInstance]) -> tuple[list[TaskInstance], dict[str, int]]:
    """The instances, and how many streams each stream now stands for."""
    now = {one.name: one for one in instances}
    orders: dict[str, _Order | None] = {}
    stands_for: dict[str, int] = {}
    for writer, reader, channels in _between(instances):
        for name in (writer, reader):
            if name not in orders:
                orders[name] = _order(now[name])
        first, second = orders[writer], orders[reader]
        wanted = set(channels)
        if first is None or second is None:
            continue
        if [name for name in first.put if name in wanted] != [name for name in second.got if name in wanted]:
            continue
        one, other = _as_one(now[writer], channels), _as_one(now[reader], channels)
        if one is not None and other is not None:
            now[writer], now[reader] = one, other
            stands_for[channels[0]] = len(channels)
    return list(now.values()), stands_for


def _between(instances: Sequence[TaskInstance]) -> Iterator[tuple[str, str, list[str]]]:
    """Channels of one array of streams from one element to another, where there are several."""
    readers: dict[str, str] = {}
    for one in instances:
        gets = {s.port for s in walk(one.body.statements) if isinstance(s, Get)}
        readers |= {name: one.name for port, name in one.channels.items() if port in gets}
    groups: dict[tuple[str, str, str], list[str]] = {}
    for one in instances:
        puts = {s.port for s in walk(one.body.statements) if isinstance(s, Put)}
        for port, name in one.channels.items():
            if port in puts and name in readers and readers[name] != one.name:
                groups.setdefault((one.name, readers[name], port.stream), []).append(name)
    for (writer, reader, _), channels in groups.items():
        if len(channels) > 1:
            yield writer, reader, channels


@dataclass(frozen=True)
class _Order:
    """The channels that tokens are put into, and got from, one after the other."""

    put: list[str]
    got: list[str]


def _order(one: TaskInstance) -> _Order | None:
    found = passes(one.body.statements)
    if found is None:
        return None
    put, got = ([one.channels[port] for port, puts in found if puts == way] for way in (True, False))
    return _Order(put, got)


def _as_one(one: TaskInstance, channels: list[str]) -> TaskInstance | None:
    """With one port for those of some channels; None where that would be met more than once a round."""
    own = [port for port, name in one.channels.items() if name in channels]
    goal = next(port for port in own if one.channels[port] == channels[0])
    renamed = Renaming(ports=dict.fromkeys(own, goal)).statements(one.body.statements)
    statements = _collapsed(renamed, one.body.trips)
    if sum(isinstance(s, Get | Put) and s.port is goal for s in walk(statements)) != 1:
        return None
    kept: dict[StreamEnd, str] = {p: name for p, name in one.channels.items() if p not in own or p is goal}
    body = one.body
    ports = {(port.stream, port.channel): port for port in kept}
    made = TaskBody(statements, body.arrays, ports, body.trips, body.names, body.decisions)
    return replace(one, body=made, channels=kept)


def _collapsed(statements: Sequence[Stmt], trips: Mapping[int, int]) -> tuple[Stmt, ...]:
    """What happens alike in each round of a loop, written once."""
    found: list[Stmt] = []
    at = 0
    while at < len(statements):
        one = statements[at]
        if isinstance(one, For):
            found.append(replace(one, body=_collapsed(one.body, trips)))
        elif isinstance(one, When):
            count = _alike(statements[at:], trips)
            if count:
                found += one.body
                at += count
                continue
            found.append(replace(one, body=_collapsed(one.body, trips)))
        else:
            found.append(one)
        at += 1
    return tuple(found)


def _alike(statements: Sequence[Stmt], trips: Mapping[int, int]) -> int:
    """How many conditions stand first that make up all rounds of one loop with the same in each; 0 if they do not."""
    first = statements[0]
    assert isinstance(first, When)
    if len(first.tests) != 1 or len(first.body) != 1 or first.tests[0].every:
        return 0
    loop = first.tests[0].loop
    trip = trips[loop]
    for number, one in enumerate(statements[:trip]):
        if not isinstance(one, When) or len(one.tests) != 1 or len(one.body) != 1:
            return 0
        test = one.tests[0]
        if (test.loop, test.comparison, test.value, test.every) != (loop, "eq", number, 0):
            return 0
        if not _same(first.body[0], one.body[0]):
            return 0
    return trip if len(statements) >= trip else 0


def _same(one: Stmt, other: Stmt) -> bool:
    match one, other:
        case (Get(), Get()):
            return (one.var, one.port) == (other.var, other.port)
        case (Put(), Put()):
            return one.port is other.port and same_value(one.value, other.value)
        case _:
            return False
