"""Leaves out the values that declarations give to memories, where each is stored over before anybody loads it.

Filling a memory takes a round a word, and a store of its own in the first round of a small one. The order of all loads
and stores is known before a run, so that it can be looked up whether a load ever sees what a declaration gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.tasks.affine import Affine, Tests
from penstock.compiler.tasks.lowering.perfect import FlatNest, Flattened
from penstock.compiler.tasks.tree import Fetch, For, Memory, Simple, Stmt, Store, TaskBody, When, expressions, walk

_MOST = 1 << 20
"""Loads and stores that are looked at; of a task that has more, all values stay."""
_Numbers = NDArray[np.int64]


def without_unseen(body: TaskBody, flattened: Flattened) -> TaskBody | None:
    """The body without them, or None where it has none. `flattened` is the same body."""
    filled = {one.memory for one in walk(body.statements) if isinstance(one, Store) and one.declared}
    unseen = {memory for memory in filled if not memory.is_tensor and not _seen(memory, flattened)}
    return replace(body, statements=_left(body.statements, unseen)) if unseen else None


def _left(statements: Sequence[Stmt], unseen: set[Memory]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for one in statements:
        if isinstance(one, For | When):
            inside = _left(one.body, unseen)
            if inside or not one.body:
                found.append(replace(one, body=inside))
        elif not (isinstance(one, Store) and one.declared and one.memory in unseen):
            found.append(one)
    return tuple(found)


def _seen(memory: Memory, flattened: Flattened) -> bool:
    """Whether a load may come upon a value of the declaration: so the last store into a word before it was that one."""
    places: list[_Numbers] = []
    times: list[_Numbers] = []
    kinds: list[_Numbers] = []
    start = 0
    left = _MOST
    for nest in flattened.nests:
        trips = [flattened.trips[loop] for loop in nest.loops]
        met = list(_accesses(memory, nest))
        left -= prod(trips) * len(nest.loops) + sum(prod(trips) * prod(block) for _, _, _, block, _ in met)
        if met and left < 0:
            return True
        counters = dict(zip(nest.loops, _rounds(trips), strict=True)) if met else {}
        for at, tests, index, block, kind in met:
            rounds = _passing(tests, counters, prod(trips))
            place = _places(memory, index, block, counters, rounds)
            places.append(place.ravel())
            # A statement loads before it stores.
            times.append(np.repeat(start + 2 * (rounds * len(nest.items) + at) + (kind != _LOAD), place.shape[1]))
            kinds.append(np.full(place.size, kind))
        start += 2 * prod(trips) * max(1, len(nest.items))
    if not places:
        return False
    place, time, kind = (np.concatenate(one) for one in (places, times, kinds))
    order = np.lexsort((time, place))
    place, kind = place[order], kind[order]
    stores = np.maximum.accumulate(np.where(kind != _LOAD, np.arange(len(kind)), -1))
    loads = np.flatnonzero(kind == _LOAD)
    before = stores[loads]
    own = (before >= 0) & (place[before] == place[loads]) & (kind[before] == _STORE)
    return not bool(own.all())


_LOAD, _STORE, _DECLARED = 0, 1, 2


def _accesses(memory: Memory, nest: FlatNest) -> Iterator[tuple[int, Tests, tuple[Affine, ...], tuple[int, ...], int]]:
    """Each with its place in a round, when it is, where, of which block, and what."""
    for at, (tests, one) in enumerate(nest.items):
        for load in _loads(one):
            if load.memory is memory:
                yield at, tests, load.index, load.block, _LOAD
        if isinstance(one, Store) and one.memory is memory:
            yield at, tests, one.index, one.block, _DECLARED if one.declared else _STORE


def _loads(one: Simple) -> Iterator[Fetch]:
    return (value for value in expressions(one) if isinstance(value, Fetch))


def _rounds(trips: Sequence[int]) -> list[_Numbers]:
    """What each loop counts, round by round."""
    return [one.ravel() for one in np.indices(trips, dtype=np.int64)]


def _passing(tests: Tests, counters: dict[int, _Numbers], count: int) -> _Numbers:
    """The numbers of the rounds that pass all tests."""
    held = np.ones(count, dtype=bool)
    for test in tests:
        numbers = counters[test.loop] % test.every if test.every else counters[test.loop]
        match test.comparison:
            case "eq":
                held &= numbers == test.value
            case "ne":
                held &= numbers != test.value
            case "ge":
                held &= numbers >= test.value
            case _:
                held &= numbers <= test.value
    return np.flatnonzero(held)


def _places(
    memory: Memory, index: Sequence[Affine], block: Sequence[int], counters: dict[int, _Numbers], rounds: _Numbers
) -> _Numbers:
    """The words that are met, a row a round."""
    starts, within = np.zeros(len(rounds), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for one, size, extent in zip(index, block, memory.shape, strict=True):
        along = np.full(len(rounds), one.const, dtype=np.int64)
        for loop, factor in one.terms:
            along += factor * counters[loop][rounds]
        starts = starts * extent + along
        within = (within[:, None] * extent + np.arange(size)[None, :]).ravel()
    return starts[:, None] + within[None, :]
