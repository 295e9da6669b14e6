"""What loads of memories come upon that nothing was stored into before but a declaration, or nothing at all.

Filling a memory takes a round a word, and a store of its own in the first round of a small one. The order of all loads
and stores is known before a run, so that it can be looked up whether a load ever sees what a declaration gave: where
none does, it is left out. A load of a word that nothing was stored into has no answer, and is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.tasks.affine import Affine, Tests
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.lowering.perfect import FlatNest, Flattened
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.tree import Fetch, For, Memory, Simple, Stmt, Store, TaskBody, When, expressions, walk

_MOST = 1 << 20
"""Loads and stores that are looked at; of a task that has more, all values stay."""
_Numbers = NDArray[np.int64]


def check_first_loads(source: ProgramText, body: TaskBody, flattened: Flattened) -> None:
    """Every load of an array comes after a store into its word. `flattened` is the same body."""
    for memory in body.arrays.values():
        met = None if memory.table is not None else _met_by_loads(memory, flattened)
        if met is not None and (met.kinds == _NOTHING).any():
            early = int(np.argmax(met.kinds == _NOTHING))
            first = met.loads[int(met.whose[early])]
            word = ", ".join(map(str, np.unravel_index(int(met.words[early]), memory.shape)))
            raise source.error(
                first.node or ast.Pass(), f"{memory.name}[{word}] is loaded before anything is stored there",
                f"declare it with a value, {memory.name}: {TileKind(memory.dtype, memory.shape)} = 0, or store into it "
                "before",
            )  # fmt: skip


def without_unseen(body: TaskBody, flattened: Flattened) -> TaskBody | None:
    """The body without values of declarations that no load sees, or None where it has none of these."""
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
    met = _met_by_loads(memory, flattened)
    return met is None or not bool((met.kinds == _STORE).all())


@dataclass(frozen=True)
class _Met:
    """What the loads of a memory come upon, in the order of a run: a load, a word, and what was last stored there."""

    loads: list[Fetch]
    whose: _Numbers
    words: _Numbers
    kinds: _Numbers


def _met_by_loads(memory: Memory, flattened: Flattened) -> _Met | None:
    """None where there are too many rounds to look at."""
    places: list[_Numbers] = []
    times: list[_Numbers] = []
    kinds: list[_Numbers] = []
    whose: list[_Numbers] = []
    loads: list[Fetch] = []
    start = 0
    left = _MOST
    for nest in flattened.nests:
        trips = [flattened.trips[loop] for loop in nest.loops]
        met = list(_accesses(memory, nest))
        left -= prod(trips) * len(nest.loops) + sum(prod(trips) * prod(one.block) for _, _, one in met)
        if met and left < 0:
            return None
        counters = dict(zip(nest.loops, _rounds(trips), strict=True)) if met else {}
        for at, tests, one in met:
            rounds = _passing(tests, counters, prod(trips))
            place = _places(memory, one.index, one.block, counters, rounds)
            kind = _LOAD if isinstance(one, Fetch) else _DECLARED if one.declared else _STORE
            places.append(place.ravel())
            # A statement loads before it stores.
            times.append(np.repeat(start + 2 * (rounds * len(nest.items) + at) + (kind != _LOAD), place.shape[1]))
            kinds.append(np.full(place.size, kind))
            whose.append(np.full(place.size, len(loads)))
            loads += [one] if isinstance(one, Fetch) else []
        start += 2 * prod(trips) * max(1, len(nest.items))
    if not places:
        nothing = np.zeros(0, np.int64)
        return _Met([], nothing, nothing, nothing)
    place, time, kind, load = (np.concatenate(one) for one in (places, times, kinds, whose))
    order = np.lexsort((time, place))
    place, time, kind, load = place[order], time[order], kind[order], load[order]
    stores = np.maximum.accumulate(np.where(kind != _LOAD, np.arange(len(kind)), -1))
    found = np.flatnonzero(kind == _LOAD)
    before = stores[found]
    last = np.where((before >= 0) & (place[before] == place[found]), kind[before], _NOTHING)
    order = np.argsort(time[found], kind="stable")
    return _Met(loads, load[found][order], place[found][order], last[order])


_LOAD, _STORE, _DECLARED, _NOTHING = 0, 1, 2, 3


def _accesses(memory: Memory, nest: FlatNest) -> Iterator[tuple[int, Tests, Fetch | Store]]:
    """Each with its place in a round, and when it is."""
    for at, (tests, one) in enumerate(nest.items):
        for load in _loads(one):
            if load.memory is memory:
                yield at, tests, load
        if isinstance(one, Store) and one.memory is memory:
            yield at, tests, one


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
