"""Token times where channels are full: every access once, in an order in which all it needs is known; of one input, or
of several that follow each other.

Blocking channels make all times unique, so this finds what propagating times until they agree would find, after as
many rounds as there are tokens; and where nobody can go on, the network is stuck for certain.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.compiler.jit import Compiled
from penstock.profiling import follow as at
from penstock.profiling.sampling import Times
from penstock.profiling.task_times import GAP, NestTimes, Work

Slots = tuple[int, Times]
"""The first token that waits for a slot, and for it and all later ones the token that frees theirs."""
FollowRows = list[list[int]]

FOLLOW = Compiled(
    "token-times", ("penstock.profiling.follow",), "follow",
    before_loading=30_000, before_compiling=100_000,  # tokens
    inlined=("meet", "lateness", "pass_on"),
)  # fmt: skip
START_GAP = 1  # cycles between two inputs of a task


@dataclass(frozen=True)
class Found:
    """When tokens of the first input are written and read, by channel, and when each input has left all tasks; `stuck`
    are those channels at which somebody waits for ever."""

    written: dict[str, Times]
    read: dict[str, Times]
    ends: tuple[int, ...]
    stuck: tuple[str, ...]


def times_in_order(work: Mapping[str, Work], names: Mapping[str, Sequence[str]], slots: Mapping[str, Slots],
                   counts: Mapping[str, int], inputs: int = 1) -> Found:  # fmt: skip
    """For tasks with their channels' `names` by position; `counts` are tokens of an input that are looked at, by
    channel, and `slots` are those of all inputs."""
    tables = _Tables(slots, counts, inputs)
    for task, its_work in work.items():
        tables.add_task(its_work, names[task])
    written, read = _run(tables)
    parts = {name: slice(row[at.TIMES], row[at.TIMES] + counts[name])
             for name, row in zip(slots, tables.channels, strict=True)}  # fmt: skip
    stuck = tables.stuck()
    return Found(
        {name: written[part] for name, part in parts.items()},
        {name: read[part] for name, part in parts.items()},
        tables.ends(),
        tuple([name for number, name in enumerate(slots) if number in stuck]),
    )


def _run(tables: _Tables) -> tuple[Times, Times]:
    """When each token is written and read. The tables say afterwards how far it went."""
    rows = (tables.tasks, tables.nests, tables.ports, tables.channels)
    cycles, places = tables.cycles.joined, tables.places.joined
    sees, late, written, read = (
        np.zeros(n, np.int64) for n in (tables.pairs, tables.lateness, tables.tokens, tables.tokens)
    )
    if not FOLLOW.pays(tables.tokens):
        plain_written, plain_read = written.tolist(), read.tolist()
        at.follow(*rows, cycles.tolist(), sees.tolist(), places.tolist(), late.tolist(), plain_written, plain_read)
        return np.array(plain_written, np.int64), np.array(plain_read, np.int64)
    arrays = [np.array(table, np.int64) for table in rows]
    FOLLOW.function()(*arrays, cycles, sees, places, late, written, read)
    tables.tasks, tables.nests, tables.ports, tables.channels = (array.tolist() for array in arrays)
    return written, read


class _Kept:
    """Arrays one behind the other, each of them once."""

    def __init__(self) -> None:
        self._size = 0
        self._at: dict[int, int] = {}
        self._parts: list[Times] = []

    def place_of(self, part: Times) -> int:
        """Where an array is, or comes."""
        at = self._at.setdefault(id(part), self._size)
        if at == self._size and len(part):
            self._parts.append(part)
            self._size += len(part)
        return at

    @property
    def joined(self) -> Times:
        return np.concatenate(self._parts).astype(np.int64, copy=False) if self._parts else np.zeros(0, np.int64)


class _Tables:
    """Tasks, nests, ports and channels as `follow` takes them."""

    def __init__(self, slots: Mapping[str, Slots], counts: Mapping[str, int], inputs: int) -> None:
        self.tasks: FollowRows = []
        self.nests: FollowRows = []
        self.ports: FollowRows = []
        self.channels: FollowRows = []
        self.cycles, self.places = _Kept(), _Kept()
        self.tokens = self.lateness = self.pairs = 0
        self._numbers, self._inputs = {name: number for number, name in enumerate(slots)}, inputs
        self._lengths = [counts[name] for name in slots]
        self._last_nests: list[range] = []
        for name, (first, place) in slots.items():
            self.channels.append([self.tokens, first, self.places.place_of(place), 0, 0, 0, 0])
            self.tokens += inputs * counts[name]

    def stuck(self) -> set[int]:
        """The channels at which a task waits for ever, by number."""
        nests = [self.nests[task[at.AT]] for task in self.tasks if task[at.AT] < task[at.END]]
        ports = [port for nest in nests for port in self.ports[nest[at.FIRST_PORT] : nest[at.LAST_PORT]]]
        return {port[at.CHANNEL] for port in ports if port[at.WRITES] and port[at.MET] < port[at.SIZE]}

    def ends(self) -> tuple[int, ...]:
        """When each input has left all tasks."""
        last = [[self.nests[place][at.NEXT] - START_GAP for place in places] for places in self._last_nests]
        return tuple([max(of_input) for of_input in zip(*last, strict=True)])

    def add_task(self, work: Work, names: Sequence[str]) -> None:
        """One input after the other: all of them have the accesses of the first."""
        first, count = len(self.nests), len(work.nests)
        self.tasks.append([first, first + count * self._inputs, 0, 1])
        for nest in work.nests:
            self._add_nest(nest, names)
        self.nests[-1][at.LATENCY] += START_GAP - GAP
        for number in range(1, self._inputs):
            for nest in self.nests[first : first + count]:
                self._add_again(nest, number)
        self._last_nests.append(range(first + count - 1, len(self.nests), count))

    def _add_nest(self, nest: NestTimes, names: Sequence[str]) -> None:
        ports = [*((access, False) for access in nest.reads), *((access, True) for access in nest.writes)]
        first = len(self.ports)
        self.nests.append([first, first + len(ports), nest.latency + GAP, 0, nest.issued])
        alike: dict[Hashable, int] = {}
        for place, (access, writes) in enumerate(ports, first):
            size, number = len(access.waits), self._numbers[names[access.channel]]
            self.channels[number][at.WRITER if writes else at.READER] = len(self.tasks) - 1
            like = place if access.is_block else alike.setdefault((id(access.local), writes), place)
            waits, local = self.cycles.place_of(access.waits), self.cycles.place_of(access.local)
            self._add_port(
                [number, int(writes), size, access.part.start, waits, local, 0, 0, like, int(access.is_block), 0, 0],
                len(ports),
            )

    def _add_port(self, port: list[int], beside: int) -> None:
        """With room for its lateness, and for what it sees of all ports of its nest."""
        port[at.LATE], port[at.SEES] = self.lateness, self.pairs
        self.ports.append(port)
        self.lateness += port[at.SIZE] + 1
        self.pairs += beside

    def _add_again(self, nest: list[int], number: int) -> None:
        """The same nest with the input of this number."""
        before, first = nest[at.FIRST_PORT], len(self.ports)
        ports = self.ports[before : nest[at.LAST_PORT]]
        self.nests.append([first, first + len(ports), nest[at.LATENCY], 0, nest[at.ISSUED]])
        for port in ports:
            again = list(port)
            again[at.TOKEN] += number * self._lengths[port[at.CHANNEL]]
            again[at.LIKE] += first - before
            self._add_port(again, len(ports))
