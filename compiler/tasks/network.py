"""All instances of a program: equal ones share one body, and each has channels of its own at its ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from penstock.compiler.tasks.elaborate import elaborate
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.read import read_program
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.task_expressions import check_index, site_index
from penstock.compiler.tasks.tree import Get, Put, Store, StreamEnd, TaskBody, walk
from penstock.compiler.tasks.values import StreamArray, TaskDef, TaskProgram


@dataclass(eq=False, frozen=True)
class TaskInstance:
    """One instance of a task. `channels` says which channel stands at each port of its body."""

    name: str
    task: TaskDef
    place: tuple[int, ...]
    body: TaskBody
    channels: Mapping[StreamEnd, str]


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
                    found[name] = StreamInstance(name, stream.kind, stream.depth, stream)
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
    def inputs(self) -> tuple[str, ...]:
        """The others."""
        return tuple(name for name in self.program.tensors if name not in self.outputs)


def read_network(source: ProgramText, name: str = "", options: Mapping[str, str] | None = None) -> Instances:
    """The program with its instances; each mistake in a body is told at its place."""
    program = read_program(source, name, options)
    return Instances(source, program, tuple(_instances(source, program)))


def _instances(source: ProgramText, program: TaskProgram) -> Iterator[TaskInstance]:
    for task in program.tasks:
        known: list[_Kind] = []
        for place in product(*(range(size) for size in task.grid)):
            name = "_".join([task.name, *map(str, place)])
            for index, kind in enumerate(known):
                channels = kind.channels(place)
                if channels is not None:
                    if index:
                        known.insert(0, known.pop(index))  # neighbours mostly are alike
                    yield TaskInstance(name, task, place, kind.body, channels)
                    break
            else:
                body = elaborate(source, program, task, place)
                known.insert(0, _Kind(source, program, task, body))
                channels = {p: program.streams[p.stream].channel(p.channel) for p in body.ports.values()}
                yield TaskInstance(name, task, place, body, channels)


class _Kind:
    """Equal instances: the same decisions, and as many different channels."""

    def __init__(self, source: ProgramText, program: TaskProgram, task: TaskDef, body: TaskBody) -> None:
        self.source, self.program, self.task, self.body = source, program, task, body
        self.sites = [(port, program.streams[port.stream], _distinct(port)) for port in body.ports.values()]

    def channels(self, place: tuple[int, ...]) -> dict[StreamEnd, str] | None:
        """The channels of an instance, if it is one of these."""
        if any(decide(place) != value for decide, value in self.body.decisions):
            return None
        found: dict[StreamEnd, str] = {}
        for port, stream, sites in self.sites:
            indices: set[tuple[Any, ...]] = set()
            for site in sites:
                at = site_index(self.source, self.program, self.task, site, place)
                check_index(self.source, site.node, stream, at, place)
                indices.add(at)
            if len(indices) != 1:
                return None
            found[port] = stream.channel(indices.pop())
        return found if len(set(found.values())) == len(found) else None


def _distinct(port: StreamEnd) -> list[Any]:
    """Sites whose indices are different texts, or mean different things."""
    found: dict[Any, Any] = {}
    for site in port.sites:
        key = (id(site.index), tuple(sorted((k, repr(v)) for k, v in site.bindings.items() if isinstance(v, int))))
        found.setdefault(key, site)
    return list(found.values())


def tokens(body: TaskBody) -> dict[tuple[StreamEnd, bool], int]:
    """How many tokens pass each port, and whether they are put: by the loops and tests around its sites."""
    found: dict[tuple[StreamEnd, bool], int] = {}

    def count(statements: Any, loops: tuple[int, ...], tests: tuple[Any, ...]) -> None:
        for one in statements:
            match one:
                case Get() | Put():
                    key = (one.port, isinstance(one, Put))
                    found[key] = found.get(key, 0) + rounds(body, loops, tests)
                case _ if hasattr(one, "loop"):
                    count(one.body, (*loops, one.loop), tests)
                case _ if hasattr(one, "tests"):
                    count(one.body, loops, (*tests, *one.tests))
                case _:
                    pass

    count(body.statements, (), ())
    return found


def rounds(body: TaskBody, loops: tuple[int, ...], tests: tuple[Any, ...]) -> int:
    """How many rounds of some loops pass all tests: loop by loop, since each test asks one counter."""
    sizes: list[int] = []
    for loop in loops:
        own = [test for test in tests if test.loop == loop]
        trip = body.trips[loop]
        sizes.append(trip if not own else sum(all(t.holds(c) for t in own) for c in range(trip)))
    return prod(sizes)
