"""All instances of a program: equal ones share one body, and each has channels of its own at its ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.injected import Injected
from penstock.compiler.tasks.affine import Tests, rounds_within
from penstock.compiler.tasks.elaborate import elaborate
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.read import read_program
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.task_expressions import check_index
from penstock.compiler.tasks.tree import (
    Decision,
    For,
    Get,
    Put,
    Stmt,
    Store,
    StreamEnd,
    StreamSite,
    TaskBody,
    When,
    walk,
)
from penstock.compiler.tasks.values import StreamArray, TaskDef, TaskProgram
from penstock.compiler.tasks.whole_grid import everywhere


@dataclass(eq=False, frozen=True)
class TaskInstance:
    """One instance of a task. `channels` says which channel stands at each port of its body."""

    name: str
    task: TaskDef
    place: tuple[int, ...]
    body: TaskBody
    channels: Mapping[StreamEnd, str]
    shared_by: tuple[str, ...] = ()
    """The program's instances that it stands for, in the order of their turns, where it is an element of several."""
    injected: Injected | None = None
    """The body written by hand that its hardware has."""

    @property
    def members(self) -> tuple[str, ...]:
        return self.shared_by or (self.name,)


@dataclass(eq=False, frozen=True)
class StreamInstance:
    """One stream. A depth of 0 is the tool's to choose."""

    name: str
    kind: TileKind
    depth: int
    stream: StreamArray


@dataclass(eq=False, frozen=True)
class Instances:
    """A program with all its instances, before it is checked as a whole."""

    source: ProgramText
    program: TaskProgram
    instances: tuple[TaskInstance, ...]
    stands_for: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many streams of the program one stands for, where elements share one."""

    @cached_property
    def bodies(self) -> tuple[TaskBody, ...]:
        """Each once."""
        return tuple(dict.fromkeys(one.body for one in self.instances))

    @cached_property
    def channels(self) -> Mapping[str, StreamInstance]:
        """Those that some instance uses."""
        found: dict[str, StreamInstance] = {}
        for one in self.instances:
            for port, name in one.channels.items():
                if name not in found:
                    stream = self.program.streams[port.stream]
                    depth = stream.depth * self.stands_for.get(name, 1)
                    found[name] = StreamInstance(name, stream.kind, depth, stream)
        return found

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The tensors that tasks store into, in the order of the arguments."""
        stored = {
            s.memory.name
            for body in self.bodies
            for s in walk(body.statements)
            if isinstance(s, Store) and s.memory.is_tensor
        }
        return tuple(name for name in self.program.tensors if name in stored)

    @cached_property
    def tables(self) -> Mapping[str, Array]:
        """What arrays hold that nothing stores into, as weights of the program."""
        met = (memory for body in self.bodies for memory in body.arrays.values())
        return {memory.parameter: memory.table for memory in met if memory.table is not None}

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The others."""
        return tuple(name for name in self.program.tensors if name not in self.outputs)


def read_network(source: ProgramText, name: str = "", options: Mapping[str, str] | None = None) -> Instances:
    """The program with its instances; each mistake in a body is told at its place."""
    program = read_program(source, name, options)
    return Instances(source, program, tuple(_instances(source, program)))


def _instances(source: ProgramText, program: TaskProgram) -> Iterator[TaskInstance]:
    for task in program.tasks:
        places = list(product(*(range(size) for size in task.grid)))
        bodies: dict[tuple[int, ...], tuple[TaskBody, dict[StreamEnd, str]]] = {}
        left = places
        while left:
            body = elaborate(source, program, task, left[0])
            alike = _Alike(source, program, task, body).among(left)
            alike[left[0]] = {p: program.streams[p.stream].channel(p.channel) for p in body.ports.values()}
            bodies |= {place: (body, channels) for place, channels in alike.items()}
            left = [place for place in left if place not in alike]
        for place in places:
            body, channels = bodies[place]
            yield TaskInstance("_".join([task.name, *map(str, place)]), task, place, body, channels)


class _Alike:
    """Instances with one body: the same decisions, and as many different channels."""

    def __init__(self, source: ProgramText, program: TaskProgram, task: TaskDef, body: TaskBody) -> None:
        self.source, self.program, self.task, self.body = source, program, task, body

    def among(self, places: list[tuple[int, ...]]) -> dict[tuple[int, ...], dict[StreamEnd, str]]:
        """Those of some places, the first of which the body was made for, with the channel at each port."""
        for decision in self.body.decisions:
            places = [p for p, same in zip(places, self._same(decision, places), strict=True) if same]
        at: dict[StreamEnd, list[tuple[int, ...]]] = {}
        agree = [True] * len(places)
        for port in self.body.ports.values():
            for number, site in enumerate(_distinct(port)):
                found = self._indices(port, site, places)
                if number == 0:
                    at[port] = found
                else:
                    agree = [ok and a == b for ok, a, b in zip(agree, at[port], found, strict=True)]
        named = {port: self._names(port, indices) for port, indices in at.items()}
        alike: dict[tuple[int, ...], dict[StreamEnd, str]] = {}
        for number, place in enumerate(places):
            channels = {port: names[number] for port, names in named.items()}
            if agree[number] and len(set(channels.values())) == len(channels):
                alike[place] = channels
        return alike

    def _names(self, port: StreamEnd, indices: list[tuple[int, ...]]) -> list[str]:
        stream = self.program.streams[port.stream]
        return [stream.channel(index) for index in indices]

    def _axes(self, places: list[tuple[int, ...]]) -> dict[str, Array]:
        rows = np.array(places, np.int64).reshape(len(places), len(self.task.places))
        return {name: rows[:, axis] for axis, name in enumerate(self.task.places)}

    def _same(self, decision: Decision, places: list[tuple[int, ...]]) -> list[bool]:
        if decision.axis is not None:
            return [place[decision.axis] == decision.came_out for place in places]
        if decision.node is not None and isinstance(decision.came_out, int):
            found = everywhere(decision.node, decision.bindings, self._axes(places))
            if isinstance(found, np.ndarray):
                return (found == decision.came_out).tolist()
        return [decision.at(place) == decision.came_out for place in places]

    def _indices(self, port: StreamEnd, site: StreamSite, places: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The channel that a site names at each place; one that is not there is an error of that place."""
        stream = self.program.streams[port.stream]
        if site.index is None:
            return [()] * len(places)
        found = everywhere(site.index, site.bindings, self._axes(places))
        if found is None:
            indices = [site.at(place) for place in places]
        else:
            columns = found if isinstance(found, tuple) else (found,)
            computed: list[tuple[int, ...]] = list(zip(*(column.tolist() for column in columns), strict=True))
            inside = [np.all((c >= 0) & (c < n)) for c, n in zip(columns, stream.dims, strict=False)]
            if len(columns) == len(stream.dims) and all(inside):
                return computed
            indices = [*computed]
        return [
            check_index(self.source, site.node, stream, index, place)
            for place, index in zip(places, indices, strict=True)
        ]


def _distinct(port: StreamEnd) -> list[StreamSite]:
    """Sites whose indices are different texts, or mean different things."""
    found: dict[tuple[int, tuple[tuple[str, str], ...]], StreamSite] = {}
    for site in port.sites:
        key = (id(site.index), tuple(sorted((k, repr(v)) for k, v in site.bindings.items() if isinstance(v, int))))
        found.setdefault(key, site)
    return list(found.values())


def tokens(body: TaskBody) -> dict[tuple[StreamEnd, bool], int]:
    """How many tokens pass each port, and whether they are put: by the loops and tests around its sites."""
    found: dict[tuple[StreamEnd, bool], int] = {}

    def count(statements: Sequence[Stmt], loops: tuple[int, ...], tests: Tests) -> None:
        for one in statements:
            match one:
                case Get() | Put():
                    key = (one.port, isinstance(one, Put))
                    found[key] = found.get(key, 0) + rounds(body, loops, tests)
                case For():
                    count(one.body, (*loops, one.loop), tests)
                case When():
                    count(one.body, loops, (*tests, *one.tests))
                case _:
                    pass

    count(body.statements, (), ())
    return found


def tokens_passing(network: Instances) -> int:
    """Puts and gets of all instances: what it takes to interpret the program."""
    counts = {body: sum(tokens(body).values()) for body in network.bodies}
    return sum(counts[one.body] for one in network.instances)


def rounds(body: TaskBody, loops: tuple[int, ...], tests: Tests) -> int:
    """How many rounds of some loops pass all tests: loop by loop, since each test asks one counter."""
    sizes: list[int] = []
    for loop in loops:
        own = tuple(test for test in tests if test.loop == loop)
        trip = body.trips[loop]
        sizes.append(rounds_within(own, trip) if own else trip)
    return prod(sizes)
