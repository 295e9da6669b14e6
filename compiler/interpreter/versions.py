"""Which store each load sees, for a stretch of iterations at once: memory accesses become uses of versions.

Every store of a cell makes a new version of it, and a load uses the last version before it in iteration and body
order. With that known, loads and stores need no order of their own any more; values alone say what comes first.
The versions lie in a pool: the undefined one, those from before the stretch that are loaded, one for each store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.interpreter.cells import Cells, Indices
from penstock.compiler.interpreter.memory import CellMask, MemoryCells

UNDEFINED = 0
"""The version that nobody wrote. It holds zeros; nothing that is used may come from it."""


@dataclass(frozen=True)
class MemoryEvent:
    """The loads or stores of one operation: where it stands in the body, when it happens, which cells."""

    position: int
    when: CellMask
    cells: Indices


@dataclass(frozen=True)
class VersionUse:
    """What an operation's loads see: a version, and the iteration that made it (-1: an earlier stretch), per cell."""

    versions: Indices
    writers: Indices
    stores: Indices
    """Which of the memory's stores made it."""


@dataclass(frozen=True)
class Definition:
    """The versions that an operation's stores make, in iterations `rows`: from `first` on, a row each."""

    rows: Indices
    first: int
    cells_each: int

    @property
    def slots(self) -> slice:
        return slice(self.first, self.first + len(self.rows) * self.cells_each)

    @property
    def versions(self) -> Indices:
        """A row for each of `rows`."""
        return np.arange(self.slots.start, self.slots.stop, dtype=np.int64).reshape(-1, self.cells_each)


@dataclass(frozen=True)
class Versions:
    """All versions of a memory's cells in one stretch of iterations."""

    count: int
    uses: tuple[VersionUse, ...]
    definitions: tuple[Definition, ...]
    old_cells: Indices
    """The cells whose contents from before are versions 1, 2, ..."""
    last_cells: Indices
    last_versions: Indices
    """What the memory holds afterwards."""

    @staticmethod
    def of(loads: Sequence[MemoryEvent], stores: Sequence[MemoryEvent], iterations: int, body: int) -> Versions:
        span = iterations * body
        keys, made_by, made_in = _concatenated(stores, body, span)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]

        uses: list[VersionUse] = []
        old: list[Indices] = []
        known = 1
        for load in loads:
            at = np.arange(iterations, dtype=np.int64)[:, None] * body + load.position
            wanted = load.cells * span
            index = np.searchsorted(keys, wanted + at) - 1
            found = index >= 0
            if len(keys):
                found &= keys[index] >= wanted
            seen = order[np.where(found, index, 0)] if len(keys) else np.zeros(index.shape, np.int64)
            found &= load.when[:, None]
            missing = ~found & load.when[:, None]
            cells = load.cells[missing]
            versions = np.where(found, -1 - seen, UNDEFINED)  # stores follow once the number of old ones is known
            versions[missing] = np.arange(known, known + len(cells))
            known += len(cells)
            old.append(cells)
            uses.append(
                VersionUse(
                    versions,
                    np.where(found, made_in[seen] if len(keys) else -1, -1),
                    np.where(found, made_by[seen] if len(keys) else -1, -1),
                )
            )
        for use in uses:
            use.versions[use.versions < 0] = known - 1 - use.versions[use.versions < 0]

        definitions: list[Definition] = []
        first = known
        for store in stores:
            rows = np.flatnonzero(store.when)
            definitions.append(Definition(rows, first, store.cells.shape[1]))
            first += len(rows) * store.cells.shape[1]
        cells = keys // span
        last = np.flatnonzero(np.append(cells[1:] != cells[:-1], True)) if len(cells) else np.zeros(0, np.int64)
        none = np.zeros(0, np.int64)
        return Versions(
            first, tuple(uses), tuple(definitions), np.concatenate([none, *old]), cells[last], known + order[last]
        )

    def pool(self, cells: Cells, memory: MemoryCells, base: int) -> Array:
        """Room for all versions, the old ones filled in. The cells of these versions count from `base`."""
        pool = np.zeros((self.count, cells.lanes), memory.data.dtype)
        if len(self.old_cells):
            pool[1 : 1 + len(self.old_cells)] = cells.gather(memory.data, self.old_cells + base)
        return pool

    def defined(self, cells: Cells, memory: MemoryCells, base: int) -> CellMask:
        """Which versions hold something, as far as the memory from before tells; stores are taken to."""
        pool = np.ones(self.count, bool)
        pool[UNDEFINED] = False
        if len(self.old_cells) and memory.written is not None:
            pool[1 : 1 + len(self.old_cells)] = cells.gather(memory.written, self.old_cells + base).all(axis=1)
        return pool

    def leave(self, cells: Cells, memory: MemoryCells, base: int, pool: Array, defined: CellMask) -> None:
        """Put the last versions into the memory."""
        numbers = self.last_cells + base
        cells.scatter(memory.data, numbers, pool[self.last_versions])
        if memory.written is not None:
            rows = np.repeat(defined[self.last_versions][:, None], cells.lanes, axis=1)
            cells.scatter(memory.written, numbers, rows)


def _concatenated(stores: Sequence[MemoryEvent], body: int, span: int) -> tuple[Indices, Indices, Indices]:
    """Every store of a cell: its key (by cell, then by time), its operation's number and its iteration."""
    keys, made_by, made_in = ([np.zeros(0, np.int64)] for _ in range(3))
    for number, store in enumerate(stores):
        rows = np.flatnonzero(store.when)
        cells = store.cells[rows]
        keys.append((cells * span + (rows * body + store.position)[:, None]).reshape(-1))
        made_by.append(np.full(cells.size, number, np.int64))
        made_in.append(np.repeat(rows, store.cells.shape[1]))
    return np.concatenate(keys), np.concatenate(made_by), np.concatenate(made_in)
