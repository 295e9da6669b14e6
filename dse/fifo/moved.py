"""Depths by a schedule of which tasks are moved until fewer bits wait.

In the latest schedule (`latest.py`) tokens wait before a task that makes one narrow token of many wide ones; in the
earliest one they wait behind a task that widens. Here each task is as early as what it takes lets it be, or as late as
what it gives does, whichever leaves fewer bits waiting. It begins with the latest schedule. A task moves alone, or with
those right before it or behind it: what waits is often as wide on both sides of one. What saves bits is kept, and it
ends where nothing does. Every schedule on the way is one, so its depths suffice as those of the latest do.

Loads come when their readers want what they bring. Where those share a port, one that is wanted late may be brought
early for another's sake: what it then holds beyond its limit counts like all else that waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.compiler.jit import Ints
from penstock.dse.fifo.latest import NEVER, LatestSchedule, OwnAccess, OwnClock, OwnTimes
from penstock.profiling.channel_times import most_held

_MOST_ROUNDS = 4
_Span = tuple[Ints, Ints]  # when an access takes hold of each token or slot, and when it hands it on
_Undo = list[tuple[dict[Any, Any], str | int, Any]]  # a table, a channel or task, and what was there


def moved_depths(
    latest: LatestSchedule,
    bits: Mapping[str, int],
    rooms: Mapping[str, int],
    limits: Mapping[str, int],
    most: int,
) -> Mapping[str, int]:
    """A depth for every FIFO, of what loads fill the least that will do. `bits` are those of FIFOs' tokens, `rooms` the
    blocks of channels that have such, `limits` how much loads are to hold ahead; `most` events are looked at."""
    found = _Moves(latest, bits, rooms, limits, most)
    for _ in range(_MOST_ROUNDS):
        if not found.round():
            break
    return found.held


class _Moved:
    """One process of a schedule. Its events have the order of its own clock; what is late there makes what comes after
    it as late."""

    def __init__(self, own: OwnTimes, clock: OwnClock) -> None:
        self.own = own
        parts, spans, at = [own.ends], list[tuple[slice, slice]](), len(own.ends)
        for access in own.accesses:
            both = [slice(at, at := at + len(after)) for after in access.after[: 1 if access.at_once else 2]]
            parts += access.after[: len(both)]
            spans.append((both[0], both[-1]))
        self.spans: Sequence[tuple[OwnAccess, slice, slice]] = [
            (access, *both) for access, both in zip(own.accesses, spans, strict=True)
        ]
        times = np.concatenate(parts)
        self.events = len(times)
        self._order = np.argsort(times, kind="stable")
        times = times[self._order]
        new = np.append(True, times[1:] != times[:-1])
        self._begin = np.flatnonzero(new)
        self._place = np.empty(self.events, np.int64)
        self._place[self._order] = np.cumsum(new) - 1
        self.latest = clock.late(times[self._begin])

    def no_sooner(self, needed: Ints) -> Ints:
        """By how much it is late at least, where each event is to be as late as `needed`."""
        return np.maximum.accumulate(np.maximum(np.maximum.reduceat(needed[self._order], self._begin), 0))

    def no_later(self, spare: Ints) -> Ints:
        return np.minimum.accumulate(np.minimum.reduceat(spare[self._order], self._begin)[::-1])[::-1]

    def times(self, late: Ints) -> list[_Span]:
        """Of each access."""
        found: list[_Span] = []
        for access, first, last in self.spans:
            taken = access.first + late[self._place[first]]
            found.append((taken, taken if access.at_once else access.last + late[self._place[last]]))
        return found


class _Moves:
    def __init__(
        self,
        latest: LatestSchedule,
        bits: Mapping[str, int],
        rooms: Mapping[str, int],
        limits: Mapping[str, int],
        most: int,
    ) -> None:
        self._bits, self._rooms, self._limits, self._left = bits, rooms, limits, most
        self._ends = latest.ends
        self._tasks = [_Moved(own, clock) for own, clock in latest.processes]  # readers first
        self._late = {number: task.latest for number, task in enumerate(self._tasks)}
        self._written: dict[str, _Span] = {}
        self._read: dict[str, _Span] = {}
        for task in self._tasks:
            for access, span in zip(task.own.accesses, task.times(task.latest), strict=True):
                (self._written if access.writes else self._read)[access.channel] = span
        self.held = {name: self._most_held(name) for name in bits if name in self._written}
        self._cost = sum(self._waits(name) for name in self.held)
        self._writer = {a.channel: n for n, task in enumerate(self._tasks) for a in task.own.accesses if a.writes}
        self._before: list[list[int]] = [[] for _ in self._tasks]
        self._behind: list[list[int]] = [[] for _ in self._tasks]
        for number, task in enumerate(self._tasks):
            for access in task.own.accesses:
                if not access.writes and access.channel not in limits:
                    self._before[number].append(writer := self._writer[access.channel])
                    self._behind[writer].append(number)
        writes = [[a.channel in limits for a in task.own.accesses if a.writes] for task in self._tasks]
        ahead = [bool(limited) and all(limited) for limited in writes]
        self._movable = [number for number in reversed(range(len(ahead))) if not ahead[number]]
        self._soonest: dict[str, _Span] = {}  # when loads bring what they bring if nobody holds them up
        for task, loads in zip(reversed(self._tasks), reversed(ahead), strict=True):
            if loads:
                self._bring_soon(task)
        self._moves = 0
        self._changed = dict.fromkeys((*self._written, *self._read), 0)
        self._tried: dict[tuple[tuple[int, ...], bool], tuple[int, int]] = {}
        self._around = [self._channels_around(number) for number in range(len(self._tasks))]
        self._brings = [self._events_brought(number) for number in range(len(self._tasks))]

    def round(self) -> bool:
        """Every task that is no load alone, and with its neighbours; whether that saved anything."""
        cost, movable = self._cost, set(self._movable)
        for number in self._movable:
            for early in (True, False):
                self._move([number], early=early)
        for near, early in ((self._before, True), (self._behind, False), (self._behind, True), (self._before, False)):
            for number in self._movable:
                group = {number, *near[number]} & movable
                if len(group) > 1:
                    self._move(sorted(group, reverse=early), early=early)
        return self._cost < cost

    def _bring_soon(self, load: _Moved) -> None:
        """As soon as what it passes on is brought."""
        late = load.no_sooner(self._needed(load, loads=True))
        for access, span in zip(load.own.accesses, load.times(late), strict=True):
            if access.writes:
                self._soonest[access.channel] = span

    def _channels_around(self, number: int) -> frozenset[str]:
        """All that a move of a task looks at or changes: its own channels, and those of the loads that follow it."""
        own = self._tasks[number].own.accesses
        loads = [self._channels_around(self._writer[a.channel]) for a in own if self._is_brought(a)]
        return frozenset([a.channel for a in own]).union(*loads)

    def _events_brought(self, number: int) -> int:
        """Of the loads that follow a task, which count whether they have to be looked at or not: what a schedule comes
        to within its budget does not depend on what need not be worked out."""
        loads = [self._writer[a.channel] for a in self._tasks[number].own.accesses if self._is_brought(a)]
        return sum(self._tasks[load].events + self._events_brought(load) for load in loads)

    def _is_brought(self, access: OwnAccess) -> bool:
        """Whether a load fills what is read."""
        return not access.writes and access.channel in self._limits

    def _waits(self, name: str) -> int:
        """Bits that wait in a FIFO, but for what loads hold within their limits."""
        return self._bits[name] * max(0, self.held[name] - self._limits.get(name, 0))

    def _most_held(self, name: str) -> int:
        written = self._written[name][0]
        return max(1, most_held(np.arange(len(written)), written, self._read[name][1]))

    def _move(self, group: Sequence[int], *, early: bool) -> None:
        """Kept where it saves bits. What did not is tried again once something around it has changed."""
        undo: _Undo = []
        if self._left <= 0:
            return
        self._moves += 1
        before, events = self._tried.get(move := (tuple(group), early), (-1, 0))
        if all(self._changed[name] <= before for number in group for name in self._around[number]):
            self._left -= events
            return
        cost, left = self._cost, self._left
        done = all(self._moved(number, undo, early=early) for number in group)
        self._tried[move] = self._moves, left - self._left
        if not done or self._cost >= cost:
            for table, key, was in reversed(undo):
                table[key] = was
            self._cost = cost
        else:
            self._changed |= {key: self._moves + 1 for _, key, _ in undo if isinstance(key, str)}

    def _moved(self, number: int, undo: _Undo, *, early: bool) -> bool:
        task = self._tasks[number]
        least, most = task.no_sooner(self._needed(task)), task.no_later(self._spare(task))
        if (least > most).any():
            return False
        return self._follow(number, self._put(number, least if early else most, undo), undo)

    def _follow(self, number: int, changed: Collection[str], undo: _Undo) -> bool:
        """Loads come when this one wants what they bring, where that has changed; False where they cannot."""
        for access in self._tasks[number].own.accesses:
            if self._is_brought(access):
                load = self._writer[access.channel]
                task = self._tasks[load]
                if access.channel not in changed:
                    self._left -= task.events + self._brings[load]
                    continue
                late = task.no_later(self._spare(task))
                if (task.no_sooner(self._needed(task)) > late).any():
                    return False
                if not self._follow(load, self._put(load, late, undo), undo):
                    return False
        return True

    def _put(self, number: int, late: Ints, undo: _Undo) -> set[str]:
        """The channels of which that changes the times."""
        task, changed = self._tasks[number], set[str]()
        self._left -= task.events
        if np.array_equal(late, self._late[number]):
            return changed
        undo.append((self._late, number, self._late[number]))
        self._late[number] = late
        for access, span in zip(task.own.accesses, task.times(late), strict=True):
            table, name = self._written if access.writes else self._read, access.channel
            was = table[name]
            if all(np.array_equal(now, then) for now, then in zip(span, was, strict=True)):
                continue
            changed.add(name)
            undo.append((table, name, was))
            table[name] = span
            if name in self._bits:
                undo.append((self.held, name, self.held[name]))
                self._cost -= self._waits(name)
                self.held[name] = self._most_held(name)
                self._cost += self._waits(name)
        return changed

    def _needed(self, task: _Moved, *, loads: bool = False) -> Ints:
        """By how much each event is to be late for what it takes, if loads are as soon as they can be; and for blocks
        that are given back, which those that are the `loads` do not wait for."""
        needed = np.full(task.events, -NEVER)
        for access, first, _ in task.spans:
            if not access.writes:
                written = self._soonest if access.channel in self._limits else self._written
                if access.channel in written:
                    needed[first] = written[access.channel][1] + 1 - access.first
            elif not loads and (count := self._rooms.get(access.channel)) is not None:
                given = self._read[access.channel][1][:-count]
                needed[first][count:] = given + 1 - access.first[count:]
        return needed

    def _spare(self, task: _Moved) -> Ints:
        """By how much each event may be late for who takes what it gives, for blocks that are wanted, and the ends."""
        spare = np.full(task.events, NEVER)
        spare[: len(task.own.ends)] = self._ends - task.own.ends
        for access, _, last in task.spans:
            if access.writes:
                room = self._read[access.channel][0] - 1 - access.last
                spare[last] = np.minimum(spare[last], room)
            elif (count := self._rooms.get(access.channel)) is not None:
                wanted = self._written[access.channel][0][count:] - 1 - access.last[:-count]
                spare[last][:-count] = np.minimum(spare[last][:-count], wanted)
        return spare
