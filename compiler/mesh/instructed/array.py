"""An array of cores that runs programs, as facts: what its hardware is made of, the same for every kernel.

Words come in along rows (left operands) and columns (right operands), are kept by the cores they are for and handed on
to the others; sums leave down the columns. Every reader, writer, mover, multiplier and drain is an engine with a number
and a program of its own, which is loaded before a run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.machine import Machine

LEVELS = 5
"""Loops around a program."""
ROOM = 4
"""Words that a reader or a drain has ready."""
LINK = 2
"""Words on a link between two cores."""
MOST_SUMS = 64
"""Entries of the memories that sums add up in: wide ones, which AMD's tools make of LUTs."""
OPERAND, SUMS = 8, 4
"""Parts of a scratchpad: an eighth for either operand, a fourth for sums, twice, since they are read at two places."""
WIDEST = 64
_BODY = 8
PARTS = ("left", "right", "mac", "out")
KINDS = ("rows", "columns", "writers", *PARTS)
ALL = 63
"""A row or column of an engine's number: those of every row or column."""
GO = 0xFFFF
"""The number to which what is loaded last goes: all engines begin."""
MOST_SIDE = 62
MOST_TURNS, MOST_LENGTH, MOST_TILES, MOST_WORDS = 1 << 16, 1 << 16, 1 << 24, 1 << 26
"""What the counters hold: turns of a loop, words of an instruction, tiles of a mover, words of a channel's memory."""


@dataclass(frozen=True)
class CoreArray:
    """`rows` x `columns` cores; a step of the multipliers takes `tall` x `deep` and `deep` x `wide` bytes.

    `left`, `right`: words of a core's memories for operands; `sums`: entries of `tall` x `wide` sums.
    """

    rows: int
    columns: int
    tall: int
    wide: int
    deep: int
    word: int
    left: int
    right: int
    sums: int
    channels: int
    clock_mhz: float = 100.0

    @property
    def body(self) -> int:
        """Instructions of a port's program: one for every core that it serves apart."""
        return max(_BODY, self.rows, self.columns)

    @property
    def entry(self) -> int:
        """Bytes of an entry of sums."""
        return self.tall * self.wide * 4

    @property
    def parts(self) -> int:
        """Words of an entry."""
        return self.entry // self.word

    @property
    def cores(self) -> int:
        return self.rows * self.columns

    @property
    def multipliers(self) -> int:
        return self.cores * self.tall * self.wide * self.deep

    @property
    def readers(self) -> int:
        """Of rows first, then of columns."""
        return self.rows + self.columns

    @property
    def ports(self) -> int:
        """Readers first, then a writer a column."""
        return self.readers + self.columns

    def port(self, kind: str, row: int, column: int) -> int:
        return {"rows": row, "columns": self.rows + column, "writers": self.readers + column}[kind]

    def channel_of(self, port: int) -> int:
        """Readers of rows, of columns and writers each go round the channels."""
        first = 0 if port < self.rows else self.rows if port < self.readers else self.readers
        return (port - first) % self.channels

    @cached_property
    def used_channels(self) -> list[int]:
        return sorted({self.channel_of(port) for port in range(self.ports)})

    def clients(self, channel: int) -> tuple[list[int], list[int]]:
        """The readers and writers of a channel, in the order in which it serves them; writers go first."""
        mine = [port for port in range(self.ports) if self.channel_of(port) == channel]
        return [p for p in mine if p < self.readers], [p for p in mine if p >= self.readers]

    def text(self) -> str:
        return (
            f"{self.rows} x {self.columns} cores, {self.tall} x {self.wide} x {self.deep} products a cycle each, words "
            f"of {self.word} bytes, {self.channels} channels; a core has {self.left * self.word:,} + "
            f"{self.right * self.word:,} bytes for operands, {self.sums * self.entry:,} for sums"
        )


def array_of(machine: Machine) -> CoreArray:
    """The array that a description is built as; what keeps it from that is said."""
    rows, columns = (1, *machine.extents)[-2:]
    mat = machine.unit("mat")
    if mat is None or len(mat.shape) != 3:
        raise _not(machine, "its cores have no unit of kind mat with three sizes", "", "describe one, as [2, 2, 1]")
    if max(rows, columns) > MOST_SIDE:
        raise _not(machine, f"{rows} x {columns} cores", f"at most {MOST_SIDE} a side", "describe a part")
    if machine.sharing > 1:
        raise _not(machine, "several cores work on one scratchpad", "a core has its own", "give every core one")
    for dim, size in enumerate(machine.extents):
        if size > 1 and not machine.along[dim]:
            raise _not(machine, f"no network goes along {machine.core_dims[dim]}", "words go along rows and columns",
                       "add a network between neighbours")  # fmt: skip
    tall, wide, deep = mat.shape
    assert machine.outside is not None
    rates = [max(n.bandwidth for n in along) for along, size in zip(machine.along, machine.extents, strict=True)
             if size > 1]  # fmt: skip
    rate = min([*rates, machine.outside.bandwidth, WIDEST])
    word = min(1 << max(int(math.log2(rate)), 0), tall * wide * 4)
    for bytes_ in (tall * deep, wide * deep):
        if word % bytes_:
            raise _not(
                machine, f"a step takes {bytes_} bytes of an operand, and a word of a link has {word}",
                "a word has one or several steps", "describe wider links, or multipliers of another shape",
            )  # fmt: skip
    if tall * wide * 4 % word:
        raise _not(machine, f"{tall} x {wide} sums are no whole words of {word} bytes", "", "describe another mat unit")
    found = sized_array(
        (rows, columns), (tall, wide, deep), word, machine.capacity, len(machine.channels), machine.clock_mhz
    )
    if found is None:
        raise _not(machine, f"a scratchpad of {machine.capacity:,} bytes is too small",
                   "an eighth of it is for either operand, a fourth for sums", "describe a larger one")  # fmt: skip
    return found


def sized_array(
    grid: tuple[int, int], mat: tuple[int, int, int], word: int, scratchpad: int, channels: int, clock_mhz: float
) -> CoreArray | None:
    """An array of these sizes; None where a scratchpad holds less than two words or entries of sums."""
    (rows, columns), (tall, wide, deep) = grid, mat
    words, sums = scratchpad // OPERAND // word, scratchpad // SUMS // (tall * wide * 4)
    if words < 2 or sums < 2:
        return None
    words, sums = _power(words), min(MOST_SUMS, _power(sums))
    return CoreArray(rows, columns, tall, wide, deep, word, words, words, sums, channels, clock_mhz)


def _power(number: int) -> int:
    return 1 << (number.bit_length() - 1)


def _not(machine: Machine, what: str, limit: str, hint: str) -> PenstockError:
    return PenstockError(code="not-an-array", what=what, where=f"mesh {machine.name}", limit=limit, hint=hint)
