"""Memories and channels of the stream level: what is in them, and which of it was ever written."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.types import memref_type, vector_type
from penstock.compiler.scalars.number_types import numpy_dtype

CellMask = NDArray[np.bool_]


def word_shape(kind: MemRefType[Attribute]) -> tuple[int, ...]:
    """The lanes of one element: none for a plain scalar, the word's shape in a widened memory."""
    element = kind.element_type
    return tuple(vector_type(element).get_shape()) if VectorType in type(element).mro() else ()


@dataclass
class MemoryCells:
    """The elements of a memory (a word's lanes are its last axes) and which of them hold something."""

    data: Array
    written: CellMask | None = None
    """None: all of them."""

    @staticmethod
    def empty(kind: Attribute, *lead: int) -> MemoryCells:
        """`lead` memories of a type, stacked; nothing in them is defined."""
        memref = memref_type(kind)
        shape = (*lead, *memref.get_shape(), *word_shape(memref))
        return MemoryCells(np.zeros(shape, numpy_dtype(memref.element_type)), np.zeros(shape, bool))

    @staticmethod
    def holding(kind: Attribute, values: Array) -> MemoryCells:
        memref = memref_type(kind)
        return MemoryCells(np.asarray(values).reshape(*memref.get_shape(), *word_shape(memref)))


@dataclass
class TokenQueue:
    """Tokens in flight, as the arrays in which they were written."""

    parts: deque[Array] = field(default_factory=deque[Array])
    count: int = 0
    bytes: int = 0

    def put(self, tokens: Array) -> None:
        if len(tokens):
            self.parts.append(tokens)
            self.count += len(tokens)
            self.bytes += tokens.nbytes

    def take(self, count: int) -> Array:
        """The next `count` (at least one) tokens; the caller has seen that they are there."""
        taken: list[Array] = []
        while count:
            part = self.parts.popleft()
            if len(part) > count:
                self.parts.appendleft(part[count:])
                part = part[:count]
            taken.append(part)
            count -= len(part)
            self.count -= len(part)
            self.bytes -= part.nbytes
        return taken[0] if len(taken) == 1 else np.concatenate(taken)


@dataclass
class Blocks:
    """Whole buffers in flight. Writer and reader each see a window of consecutive ones, stacked."""

    kind: Attribute
    blocks: dict[int, MemoryCells] = field(default_factory=dict[int, MemoryCells])
    written: int = 0
    """How many blocks are full, by writers' nests that ended and by the one that runs."""
    read: int = 0

    @property
    def count(self) -> int:
        return self.written - self.read

    @property
    def bytes(self) -> int:
        return sum(block.data.nbytes for block in self.blocks.values())

    def window(self, first: int, count: int) -> MemoryCells:
        """Blocks from number `first`; one that nobody began is empty."""
        memory = MemoryCells.empty(self.kind, count)
        assert memory.written is not None
        for i in range(count):
            block = self.blocks.get(first + i)
            if block is not None:
                assert block.written is not None
                memory.data[i], memory.written[i] = block.data, block.written
        return memory

    def keep(self, first: int, memory: MemoryCells) -> None:
        """Store what a writer made of its window."""
        assert memory.written is not None
        for i in range(len(memory.data)):
            self.blocks[first + i] = MemoryCells(memory.data[i], memory.written[i])

    def release(self, before: int) -> None:
        """The reader is done with all blocks before this number."""
        self.read = before
        for number in [n for n in self.blocks if n < before]:
            del self.blocks[number]
