"""Token times where full channels hold each other up in circles: every access once, in an order in which all it needs
is known; of one input, or of several that follow each other.

Blocking channels make all times unique, so this finds what propagating times until they agree would find, after as
many rounds as there are tokens; and where nobody can go on, the network is stuck for certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    inlined=("meet", "pass_on"),
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
    fixed = [_joined(parts) for parts in (tables.waits, tables.local, tables.sees, tables.places)]
    late, written, read = (np.zeros(n, np.int64) for n in (tables.lateness, tables.tokens, tables.tokens))
    if not FOLLOW.pays(tables.tokens):
        waits, local, sees, places = (part.tolist() for part in fixed)
        plain_written, plain_read = written.tolist(), read.tolist()
        at.follow(*rows, waits, local, sees, places, late.tolist(), plain_written, plain_read)
        return np.array(plain_written, np.int64), np.array(plain_read, np.int64)
    arrays = [np.array(table, np.int64) for table in rows]
    FOLLOW.function()(*arrays, *fixed, late, written, read)
    tables.tasks, tables.nests, tables.ports, tables.channels = (array.tolist() for array in arrays)
    return written, read


class _Tables:
    """Tasks, nests, ports and channels as `follow` takes them."""

    def __init__(self, slots: Mapping[str, Slots], counts: Mapping[str, int], inputs: int) -> None:
        self.tasks: FollowRows = []
        self.nests: FollowRows = []
        self.ports: FollowRows = []
        self.channels: FollowRows = []
        self.waits: list[Times] = []
        self.local: list[Times] = []
        self.sees: list[Times] = []
        self.places: list[Times] = []
        self.tokens = self.lateness = self._accesses = self._seen = 0
        self._numbers, self._inputs = {name: number for number, name in enumerate(slots)}, inputs
        self._lengths = [counts[name] for name in slots]
        self._last_nests: list[range] = []
        places = 0
        for name, (first, place) in slots.items():
            self.channels.append([self.tokens, first, places, 0, 0, 0, 0])
            self.places.append(place)
            self.tokens, places = self.tokens + inputs * counts[name], places + len(place)

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
        self.nests.append([len(self.ports), len(self.ports) + len(ports), nest.latency + GAP, 0])
        for access, writes in ports:
            size, number = len(access.waits), self._numbers[names[access.channel]]
            self.channels[number][at.WRITER if writes else at.READER] = len(self.tasks) - 1
            self.ports.append(
                [number, int(writes), size, access.part.start, self._accesses, self.lateness, self._seen, 0, 0]
            )
            self.waits.append(access.waits)
            self.local.append(access.local)
            self.sees += [nest.seen(access, writes, *other) for other in ports]
            self._accesses += size
            self.lateness += size + 1
            self._seen += size * len(ports)

    def _add_again(self, nest: list[int], number: int) -> None:
        """The same nest with the input of this number."""
        ports = self.ports[nest[at.FIRST_PORT] : nest[at.LAST_PORT]]
        self.nests.append([len(self.ports), len(self.ports) + len(ports), nest[at.LATENCY], 0])
        for port in ports:
            again = list(port)
            again[at.TOKEN] += number * self._lengths[port[at.CHANNEL]]
            again[at.LATE] = self.lateness
            self.ports.append(again)
            self.lateness += port[at.SIZE] + 1


def _joined(parts: Sequence[Times]) -> Times:
    return np.concatenate(parts).astype(np.int64, copy=False) if parts else np.zeros(0, np.int64)
