"""A plan as programs: what every engine of an array does, in loops that are counted by the hardware.

A core meets its tiles in the order of the plan's loops. What the plan hoists stays in the core's memories, which are
rings of tiles: movers fill them ahead, as far as there is room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.facts import LoadFacts
from penstock.compiler.mesh.instructed.array import (
    LEVELS,
    MOST_LENGTH,
    MOST_TILES,
    MOST_TURNS,
    MOST_WORDS,
    CoreArray,
)
from penstock.compiler.mesh.instructed.product import TileOperand, TileProduct
from penstock.compiler.mesh.mapping import INSIDE, MeshPlan

MOST_SETS = 4
KEEP, PASS = 1, 2
OWN = 1
EngineFields = dict[int, int]
EngineKey = tuple[str, int, int]
"""Kind, row and column; what a kind has only one of along a side has 0 there."""


@dataclass(frozen=True)
class ArrayLoop:
    """`dim`: the grid's, or None for a kernel's own rounds."""

    dim: int | None
    count: int


@dataclass(frozen=True)
class OperandPlan:
    """How tiles of an operand come to the cores of a line: with which loops they change, through which they stay."""

    operand: TileOperand
    fact: LoadFacts
    depends: tuple[bool, ...]
    crossed: tuple[bool, ...]
    loops: tuple[ArrayLoop, ...]
    words: int
    """Of a tile."""
    shared: bool
    """All cores of a line take the same tiles."""
    room: int

    @property
    def kept(self) -> tuple[bool, ...]:
        return tuple(c and not d for c, d in zip(self.crossed, self.depends, strict=True))

    @cached_property
    def set_tiles(self) -> int:
        """Tiles that are kept together."""
        flags = zip(self.loops, self.crossed, self.depends, strict=True)
        return math.prod(loop.count for loop, c, d in flags if c and d)

    @property
    def sets(self) -> int:
        return min(MOST_SETS, self.room // (self.words * self.set_tiles))

    @property
    def fetched(self) -> int:
        """Tiles that a core takes in all."""
        return math.prod(loop.count for loop, kept in zip(self.loops, self.kept, strict=True) if not kept)

    @cached_property
    def tiles(self) -> int:
        """Tiles of one core that differ, as they lie in memory, in the order of the loops."""
        return math.prod(loop.count for loop, d in zip(self.loops, self.depends, strict=True) if d)

    def memory_steps(self) -> list[int]:
        return steps_of([loop.count for loop in self.loops], self.depends, self.words)

    def core_steps(self) -> list[int]:
        both = [c and d for c, d in zip(self.crossed, self.depends, strict=True)]
        return steps_of([loop.count for loop in self.loops], both, self.words)


def steps_of(counts: Sequence[int], depends: Sequence[bool], unit: int) -> list[int]:
    """How far a place moves when a loop goes on by one, if only those loops count that it depends on."""
    found = [0] * len(counts)
    for level in reversed(range(len(counts))):
        if depends[level]:
            found[level], unit = unit, unit * counts[level]
    return found


def increments(counts: Sequence[int], steps: Sequence[int]) -> list[int]:
    """How far a place moves when a loop goes on and all within it begin again."""
    found: list[int] = []
    behind = 0
    for count, step in zip(reversed(counts), reversed(steps), strict=True):
        found.append(step - behind)
        behind += step * (count - 1)
    return found[::-1]


@dataclass(frozen=True)
class ArrayProgram:
    array: CoreArray
    plan: MeshPlan
    product: TileProduct
    regions: dict[EngineKey, int] = field(default_factory=dict[EngineKey, int])

    def __post_init__(self) -> None:
        if len(self.loops) > LEVELS:
            raise self._not_run(f"it has {len(self.loops)} loops", f"at most {LEVELS}", "use larger blocks")
        for name, one in (("left", self.left), ("right", self.right)):
            if not one.sets:
                raise self._not_run(
                    f"{one.set_tiles} tiles of {one.words * self.array.word:,} bytes of its {name} operand are kept",
                    f"a core has {one.room * self.array.word:,} bytes for them", "use smaller blocks",
                )  # fmt: skip
        if self.tile_entries > self.array.sums:
            raise self._not_run(
                f"a tile of sums has {self.tile_entries} entries of {self.array.tall} x {self.array.wide}",
                f"a core has {self.array.sums}", "use smaller blocks",
            )  # fmt: skip
        self.regions.update(self._regions())
        self._check_counters()

    def _check_counters(self) -> None:
        """What is loaded has so many bits."""
        left, right = self.left, self.right
        lengths = (left.words * self.columns, right.words * self.rows, self.tile_entries * self.array.parts * self.rows)
        for what, found, most in (
            ("turns of a loop", max(self.counts, default=1), MOST_TURNS),
            ("words of an instruction", max(lengths), MOST_LENGTH),
            ("tiles of a core", max(left.fetched, right.fetched), MOST_TILES),
            ("words in a channel's memory", max(self.words.values()), MOST_WORDS),
        ):
            if found > most:
                raise self._not_run(f"{found:,} {what}", f"its counters go to {most:,}", "use smaller sizes")

    def _not_run(self, what: str, limit: str, hint: str) -> PenstockError:
        return PenstockError(code="array-too-small", what=what, where=self.product.store.where, limit=limit, hint=hint)

    @cached_property
    def loops(self) -> tuple[ArrayLoop, ...]:
        mapping = self.plan.mapping
        found = [ArrayLoop(dim, n) for dim, n in zip(mapping.order, mapping.trips, strict=True) if n > 1]
        return (*found, *([ArrayLoop(None, self.product.rounds)] if self.product.rounds > 1 else []))

    @cached_property
    def counts(self) -> list[int]:
        return [loop.count for loop in self.loops]

    @cached_property
    def spatial(self) -> tuple[int | None, int | None]:
        found = self.plan.mapping.spatial
        return (None, found[0]) if len(found) == 1 else (found[0], found[1])

    @cached_property
    def rows(self) -> int:
        """Rows whose cores work, the first ones."""
        return self.array.rows if self.spatial[0] is not None else 1

    @cached_property
    def columns(self) -> int:
        return self.array.columns if self.spatial[1] is not None else 1

    def place(self, row: int, column: int) -> tuple[int, ...]:
        return (column,) if len(self.plan.mapping.spatial) == 1 else (row, column)

    @cached_property
    def steps(self) -> tuple[int, int, int]:
        """Steps of the multipliers along a tile's rows, columns and depth."""
        rows, columns, inner = self.product.sizes
        array = self.array
        return -(-rows // array.tall), -(-columns // array.wide), -(-inner // array.deep)

    @property
    def tile_entries(self) -> int:
        return self.steps[0] * self.steps[1]

    @property
    def sum_tiles(self) -> int:
        return min(2, self.array.sums // self.tile_entries)

    @cached_property
    def waves(self) -> int:
        return self.plan.mapping.waves

    @cached_property
    def left(self) -> OperandPlan:
        array = self.array
        tile = -(-self.steps[0] * self.steps[2] * array.tall * array.deep // array.word)
        return self._operand(self.product.left, tile, self.spatial[1], array.left)

    @cached_property
    def right(self) -> OperandPlan:
        array = self.array
        tile = -(-self.steps[1] * self.steps[2] * array.wide * array.deep // array.word)
        return self._operand(self.product.right, tile, self.spatial[0], array.right)

    def _operand(self, operand: TileOperand, words: int, across: int | None, room: int) -> OperandPlan:
        facts, mapping = self.plan.facts, self.plan.mapping
        at = next(i for i, fact in enumerate(facts.loads) if fact.load is operand.load)
        fact, load = facts.loads[at], self.plan.loads[at]
        level = len(mapping.order) if load.level == INSIDE else load.level
        inside = set(mapping.order[level:])
        depends = tuple(fact.rounds if loop.dim is None else loop.dim in fact.depends for loop in self.loops)
        crossed = tuple(
            load.level != INSIDE or not fact.rounds if loop.dim is None else loop.dim in inside for loop in self.loops
        )
        shared = across is None or across not in fact.depends
        return OperandPlan(operand, fact, depends, crossed, self.loops, words, shared, room)

    @cached_property
    def engines(self) -> dict[EngineKey, EngineFields]:
        """What is loaded into every engine."""
        found: dict[EngineKey, EngineFields] = {}
        for row in range(self.array.rows):
            found["rows", row, 0] = self._reader("rows", row, self.left, self.columns) if row < self.rows else {9: 0}
        for column in range(self.array.columns):
            works = column < self.columns
            found["columns", 0, column] = self._reader("columns", column, self.right, self.rows) if works else {9: 0}
            found["writers", 0, column] = self._writer(column) if works else {9: 0}
        for row in range(self.array.rows):
            for column in range(self.array.columns):
                works = row < self.rows and column < self.columns
                idle: EngineFields = {9: 0}
                found["left", row, column] = self._mover(self.left, column, self.columns) if works else idle
                found["right", row, column] = self._mover(self.right, row, self.rows) if works else idle
                found["mac", row, column] = self._mac() if works else idle
                found["out", row, column] = self._drain(row) if column < self.columns else idle
        return found

    def _reader(self, kind: str, at: int, one: OperandPlan, across: int) -> EngineFields:
        """The farthest core's tiles go first, so that every core passes some on and then keeps one."""
        counts = [1 if kept else n for n, kept in zip(self.counts, one.kept, strict=True)]
        first = self.regions[(kind, at, 0) if kind == "rows" else (kind, 0, at)]
        cores = [0] if one.shared else list(reversed(range(across)))
        return port_fields(counts, one.memory_steps(), one.words, [first + c * one.tiles * one.words for c in cores])

    def _writer(self, column: int) -> EngineFields:
        """Sums of the last row come first."""
        counts = [1 if loop.dim is None else loop.count for loop in self.loops]
        words = self.tile_entries * self.array.parts
        steps = steps_of(counts, [True] * len(counts), words)
        first = self.regions["writers", 0, column]
        return port_fields(counts, steps, words, [first + r * self.waves * words for r in reversed(range(self.rows))])

    def _mover(self, one: OperandPlan, at: int, across: int) -> EngineFields:
        behind = across - 1 - at
        body = [(one.words, KEEP | (PASS if behind else 0))]
        if not one.shared:
            body = [*([(one.words * behind, PASS)] if behind else []), (one.words, KEEP)]
        return body_fields(one.fetched, one.sets * one.set_tiles * one.words, body)

    def _drain(self, row: int) -> EngineFields:
        words = self.tile_entries * self.array.parts
        body = [*([(words, OWN)] if row < self.rows else []), *([(words * min(row, self.rows), 0)] if row else [])]
        return body_fields(self.waves, self.sum_tiles * self.tile_entries, body)

    def _mac(self) -> EngineFields:
        tall, wide, deep = self.steps
        summed = tuple(loop.dim is None for loop in self.loops)
        sets = [(one.set_tiles * one.words, one.sets * one.set_tiles * one.words) for one in (self.left, self.right)]
        found: EngineFields = {
            **top_fields(self.counts), 9: 1, 10: tall - 1, 11: wide - 1, 12: deep - 1,
            14: self._mask(self.left.kept), 15: self._mask(self.left.crossed), 16: self._mask(self.right.kept),
            17: self._mask(self.right.crossed), 18: self._mask(summed), 19: sets[0][0], 20: sets[0][1], 21: sets[1][0],
            22: sets[1][1], 23: self.tile_entries, 24: self.sum_tiles * self.tile_entries,
            25: self.left.sets * self.left.set_tiles, 26: self.right.sets * self.right.set_tiles, 27: self.sum_tiles,
        }  # fmt: skip
        for first, one in ((32, self.left), (40, self.right)):
            more = increments(self.counts, one.core_steps())
            found |= {first + level: value for level, value in enumerate(_filled(more, 0))}
        return found

    def _mask(self, flags: Sequence[bool]) -> int:
        return sum(1 << level for level, flag in enumerate(_filled([int(f) for f in flags], 0)) if flag)

    def _regions(self) -> dict[EngineKey, int]:
        """Where what a port meets begins in its channel: one region behind the other."""
        found: dict[EngineKey, int] = {}
        read: dict[int, int] = {}
        written: dict[int, int] = {}
        for key, size in self.sizes().items():
            ends = written if key[0] == "writers" else read
            channel = self.array.channel_of(self.array.port(*key))
            found[key] = ends.get(channel, 0)
            ends[channel] = found[key] + size
        return found

    def sizes(self) -> dict[EngineKey, int]:
        """Words that every port meets, by its key."""
        left, right, words = self.left, self.right, self.tile_entries * self.array.parts
        found: dict[EngineKey, int] = {}
        for row in range(self.rows):
            found["rows", row, 0] = left.tiles * left.words * (1 if left.shared else self.columns)
        for column in range(self.columns):
            found["columns", 0, column] = right.tiles * right.words * (1 if right.shared else self.rows)
        for column in range(self.columns):
            found["writers", 0, column] = self.rows * self.waves * words
        return found

    @cached_property
    def words(self) -> dict[str, int]:
        """Words of every memory, by the name of its port."""
        found: dict[str, int] = {}
        for key, size in self.sizes().items():
            found[self.memory(key)] = self.regions[key] + size
        for channel in self.array.used_channels:
            for way, ports in zip(("in", "out"), self.array.clients(channel), strict=True):
                if ports:
                    found.setdefault(f"{way}_{channel}", 1)
        return found

    def memory(self, key: EngineKey) -> str:
        channel = self.array.channel_of(self.array.port(*key))
        return f"{'out' if key[0] == 'writers' else 'in'}_{channel}"


def port_fields(counts: Sequence[int], steps: Sequence[int], words: int, bases: Sequence[int]) -> EngineFields:
    found: EngineFields = {**top_fields(counts), 8: len(bases) - 1, 9: 1}
    more = _filled(increments(counts, steps), 0)
    for slot, base in enumerate(bases):
        row = [base, words - 1, *more]
        found |= {16 + 8 * slot + at: value for at, value in enumerate(row)}
    return found


def body_fields(turns: int, ring: int, body: Sequence[tuple[int, int]]) -> EngineFields:
    found: EngineFields = {0: turns - 1, 8: len(body) - 1, 9: 1, 10: ring - 1}
    for slot, (words, flags) in enumerate(body):
        found |= {16 + 8 * slot: words - 1, 17 + 8 * slot: flags}
    return found


def top_fields(counts: Sequence[int]) -> EngineFields:
    return {level: count - 1 for level, count in enumerate(_filled(counts, 1))}


def _filled(values: Sequence[int], by: int) -> list[int]:
    """As many as the hardware has loops, the innermost last."""
    return [by] * (LEVELS - len(values)) + list(values)
