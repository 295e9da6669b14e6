"""A producer and its consumer on one element: in one round where they make the same, else one after the other.

In one round a token is a wire from the one's put to the other's get. One after the other, all tokens of a run wait in
a buffer of the element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from penstock.compiler.tasks.affine import Affine, Tests
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.mapping.rewriting import Renaming
from penstock.compiler.tasks.network import TaskInstance
from penstock.compiler.tasks.passes import MOST_STEPS, passes
from penstock.compiler.tasks.schedules import Chain, refused
from penstock.compiler.tasks.tree import (
    Assign,
    Fetch,
    For,
    Get,
    Memory,
    Put,
    Stmt,
    Store,
    StreamEnd,
    TaskBody,
    Var,
    When,
    walk,
)

MOST_BUFFERED = 1 << 16
"""Bits of one buffer between two tasks of an element."""


def chained(step: Chain, first: TaskInstance, second: TaskInstance) -> TaskInstance:
    """One instance for two, with the channels of both but for those between them."""
    moved = _moved(first.body, second.body)
    ends = {name: port for port, name in first.channels.items()}
    inner = {port: ends[name] for port, name in second.channels.items() if name in ends}
    pairs = {moved.ports[port]: (other, f".token{n}") for n, (port, other) in enumerate(inner.items())}
    kinds = {one.port: one.kind for one in walk(second.body.statements) if isinstance(one, Get)}
    if not inner.keys() <= kinds.keys():
        raise refused(step, f"{first.name} and {second.name} wait for each other in a circle")
    kept = {other: kinds[port] for port, other in inner.items()}
    one, two = first.body.statements, moved.renaming.statements(second.body.statements)
    arrays = dict(first.body.arrays) | {m.name: m for m in moved.renaming.memories.values()}
    statements = _in_one_round(one, two, pairs)
    if statements is None:
        statements, buffers = _in_turn(step, one, two, pairs, kept, moved.trips)
        arrays |= {memory.name: memory for memory in buffers}
    channels = {port: name for port, name in first.channels.items() if port not in kept}
    channels |= {moved.ports[port]: name for port, name in second.channels.items() if port not in inner}
    ports = {(port.stream, port.channel): port for port in channels}
    trips, names = moved.trips, moved.names
    body = TaskBody(statements, arrays, ports, trips, names, first.body.decisions)
    task = replace(first.task, name=f"{first.task.name}_{second.task.name}")
    name, shared_by = "_".join([task.name, *map(str, first.place)]), (*first.members, *second.members)
    return replace(first, name=name, task=task, body=body, channels=channels, shared_by=shared_by)


class _Moved:
    """The second body with counters, variables, memories and ports that nobody else has."""

    def __init__(self, first: TaskBody, second: TaskBody) -> None:
        base = max(first.trips, default=-1) + 1
        loops = {loop: base + loop for loop in second.trips}
        self.trips = first.trips | {loops[loop]: trip for loop, trip in second.trips.items()}
        self.names = first.names | {loops[loop]: name for loop, name in second.names.items()}
        met = dict.fromkeys(one.port for one in walk(second.statements) if isinstance(one, Get | Put))
        taken = {one.port.name for one in walk(first.statements) if isinstance(one, Get | Put)}
        self.ports: dict[StreamEnd, StreamEnd] = {}
        for port in met:
            name = port.name
            while name in taken:
                name += "b"
            taken.add(name)
            self.ports[port] = replace(port, name=name)
        own = second.arrays.values()
        memories = {one: replace(one, name=_free(one.name, {m.name for m in first.arrays.values()})) for one in own}
        self.renaming = Renaming(self.ports, loops, memories, prefix=_prefix(first.statements))


def _moved(first: TaskBody, second: TaskBody) -> _Moved:
    return _Moved(first, second)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_2"
    return name


def _prefix(statements: Sequence[Stmt]) -> str:
    """What no variable of the first begins with."""
    names = {one.var for one in walk(statements) if isinstance(one, Get | Assign)}
    number = 1
    while any(name.startswith(f".then{number}_") for name in names):
        number += 1
    return f".then{number}_"


Pairs = Mapping[StreamEnd, tuple[StreamEnd, str]]
"""For each port that the second gets from inside: the first's, and the variable that the token is in."""


def _in_one_round(one: Sequence[Stmt], two: Sequence[Stmt], pairs: Pairs) -> tuple[Stmt, ...] | None:
    joined = _joined(one, two)
    if joined is None or not _each_at_once(joined, pairs):
        return None
    puts = dict(pairs.values())
    gets = {port: name for port, (_, name) in pairs.items()}
    return _replaced(joined, puts, gets)


def _joined(one: Sequence[Stmt], two: Sequence[Stmt]) -> tuple[Stmt, ...] | None:
    """Statements of both, loop by loop; None where their loops are not the same."""
    here, there = ([i for i, s in enumerate(body) if isinstance(s, For)] for body in (one, two))
    if not here and not there:
        return (*one, *two)
    if len(here) != len(there) or any(isinstance(s, When) and _has_loop(s) for s in (*one, *two)):
        return None
    found: list[Stmt] = []
    before, later = 0, 0
    for i, j in zip(here, there, strict=True):
        a, b = one[i], two[j]
        assert isinstance(a, For)
        assert isinstance(b, For)
        if a.trip != b.trip:
            return None
        inner = _joined(a.body, Renaming(loops={b.loop: a.loop}).statements(b.body))
        if inner is None:
            return None
        found += [*one[before:i], *two[later:j], replace(a, body=inner)]
        before, later = i + 1, j + 1
    return (*found, *one[before:], *two[later:])


def _has_loop(one: When) -> bool:
    return any(isinstance(s, For) or (isinstance(s, When) and _has_loop(s)) for s in one.body)


def _each_at_once(statements: Sequence[Stmt], pairs: Pairs) -> bool:
    """Whether each token is got before the next one is put, and none is missed."""
    order = passes(statements)
    if order is None:
        return False
    names = dict(pairs.values()) | {port: name for port, (_, name) in pairs.items()}
    full: set[str] = set()
    for port, puts in order:
        name = names.get(port)
        if name is None:
            continue
        if puts == (name in full):
            return False
        (full.add if puts else full.discard)(name)
    return not full


def _replaced(
    statements: Sequence[Stmt], puts: Mapping[StreamEnd, str], gets: Mapping[StreamEnd, str]
) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for one in statements:
        match one:
            case For() | When():
                found.append(replace(one, body=_replaced(one.body, puts, gets)))
            case Put() if one.port in puts:
                found.append(Assign(puts[one.port], one.value))
            case Get() if one.port in gets:
                found.append(Assign(one.var, Var(gets[one.port], one.kind)))
            case _:
                found.append(one)
    return tuple(found)


def _in_turn(
    step: Chain, one: Sequence[Stmt], two: Sequence[Stmt], pairs: Pairs, kept: Mapping[StreamEnd, TileKind],
    trips: Mapping[int, int],
) -> tuple[tuple[Stmt, ...], list[Memory]]:  # fmt: skip
    """The first's whole run, then the second's."""
    buffers: list[Memory] = []
    statements = (*one, *two)
    for port, (other, name) in pairs.items():
        put, got = _place(one, other, trips), _place(two, port, trips)
        if put is None or got is None or put[1] != got[1]:
            raise refused(
                step, f"{other.stream} is put or got at several places of the text, or not in every round",
                f"the tasks do not make the same rounds, or more than {MOST_STEPS}: all tokens must wait in a buffer",
                "chain tasks that make the same rounds, or leave this step out",
            )  # fmt: skip
        kind = kept[other]
        if (bits := kind.bits * put[1]) > MOST_BUFFERED:
            raise refused(
                step, f"{put[1]} tokens of {other.stream} would wait in {bits} bits", f"at most {MOST_BUFFERED}"
            )
        memory = Memory(f"{other.stream}{name[1:]}", kind.dtype, (put[1], *kind.shape), False)
        buffers.append(memory)
        statements = _buffered(statements, memory, kind, (other, put[0]), (port, got[0]))
    return statements, buffers


def _place(statements: Sequence[Stmt], port: StreamEnd, trips: Mapping[int, int]) -> tuple[Affine, int] | None:
    """The number of a token as a sum of counters, and how many there are; None if it is no such sum."""
    sites = list(_sites(statements, port, (), ()))
    if len(sites) != 1:
        return None
    loops, tests = sites[0]
    ranges: list[tuple[int, int]] = []
    for loop in loops:
        own = [test for test in tests if test.loop == loop]
        if any(test.comparison != "eq" or test.every for test in own):
            return None  # a memory's address is within it in every round, whatever rounds store
        ranges.append((loop, 1 if own else trips[loop]))
    number = Affine(0)
    for position, (loop, size) in enumerate(ranges):
        stride = prod(inner for _, inner in ranges[position + 1 :])
        if size > 1:
            number = number.plus(Affine.counter(loop, stride))
    return number, prod(size for _, size in ranges)


def _sites(
    statements: Sequence[Stmt], port: StreamEnd, loops: tuple[int, ...], tests: Tests
) -> list[tuple[tuple[int, ...], Tests]]:
    found: list[tuple[tuple[int, ...], Tests]] = []
    for one in statements:
        match one:
            case For():
                found += _sites(one.body, port, (*loops, one.loop), tests)
            case When():
                found += _sites(one.body, port, loops, (*tests, *one.tests))
            case Get() | Put() if one.port is port:
                found.append((loops, tests))
            case _:
                pass
    return found


def _buffered(
    statements: Sequence[Stmt],
    memory: Memory,
    kind: TileKind,
    put: tuple[StreamEnd, Affine],
    got: tuple[StreamEnd, Affine],
) -> tuple[Stmt, ...]:
    rest, block = (Affine(0),) * len(kind.shape), (1, *kind.shape)
    found: list[Stmt] = []
    for one in statements:
        match one:
            case For() | When():
                found.append(replace(one, body=_buffered(one.body, memory, kind, put, got)))
            case Put() if one.port is put[0]:
                found.append(Store(memory, (put[1], *rest), block, one.value))
            case Get() if one.port is got[0]:
                found.append(Assign(one.var, Fetch(memory, (got[1], *rest), block, kind)))
            case _:
                found.append(one)
    return tuple(found)
