"""Keeps the last tokens of a stream along a dim, each with whatever passes beside it, until the next one arrives.

All of them are met at one address in every slot. So where they are too long for LUTs they are one memory, whose words
hold a place of each: block RAMs of their own would be as many, each with most of its width empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.banks import WIDEST_WORD
from penstock.compiler.analysis.nests import Load, NestValue, Other, Place, Select, Statement, StoreFact
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Term
from penstock.compiler.dialects.nest_stack import Stacking
from penstock.compiler.scalars.number_types import type_bits

_WORDS_IN_LUTS = 128
"""Up to so many words LUTs hold a memory on every target, and are as many whatever lies beside what."""


@dataclass(frozen=True)
class LastTokens:
    """The `count` tokens before that of a slot, at most. `line` is the shape of what passes at one place of the dim."""

    token: Place
    count: int
    line: tuple[int, ...]
    address: AffineMap
    """Where in a line a slot is."""
    dim: int
    loop: int
    """Which loop goes along the dim: nothing from before its first slot is wanted."""

    def load(self) -> tuple[list[NestValue], list[Statement]]:
        """All of them, oldest first."""
        before = [NestValue(self.token.shape, self.token.dtype) for _ in range(self.count)]
        if not self._together:
            pairs = zip(self._lines, before, strict=True)
            return before, [Load(line, self.address, ALWAYS, value) for line, value in pairs]
        word, width = self._word, self.token.shape[self.dim]
        taken = [stack([word], Stacking(self.dim, i * width, width, 1), value) for i, value in enumerate(before)]
        return before, [Load(self._lines[0], self.address, ALWAYS, word), *taken]

    def store(self, before: Sequence[NestValue], newest: NestValue) -> list[Statement]:
        """What the next slot at this place finds as its last tokens."""
        known = [*before, newest][1:]
        if not self._together:
            pairs = zip(self._lines, known, strict=True)
            return [StoreFact(value, line, self.address, ALWAYS) for line, value in pairs]
        statements: list[Statement] = []
        begun = GuardAttr((Term(self.loop, "ge", 1),))
        for i, value in enumerate(before[1:]):  # a word is written whole, also where there was nothing before
            known[i] = NestValue(value.shape, value.dtype)
            statements.append(Select(value, newest, begun, known[i]))
        word = self._word
        joined = stack(known, Stacking(self.dim, 0, word.shape[self.dim], 1), word)
        return [*statements, joined, StoreFact(word, self._lines[0], self.address, ALWAYS)]

    @property
    def _together(self) -> bool:
        elements = prod(self.token.shape)
        fits = self.count * elements * type_bits(self.token.dtype) <= WIDEST_WORD
        return self.count > 1 and fits and prod(self.line) // elements > _WORDS_IN_LUTS

    @cached_property
    def _lines(self) -> tuple[Place, ...]:
        """The memories: a place is itself, not what it says."""
        if self._together:
            return (Place("lines", "buffer", self._longer(self.line), self.token.dtype),)
        return tuple([Place(f"line_{i}", "buffer", self.line, self.token.dtype) for i in range(self.count)])

    @property
    def _word(self) -> NestValue:
        return NestValue(self._longer(self.token.shape), self.token.dtype)

    def _longer(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(size * self.count if d == self.dim else size for d, size in enumerate(shape))


def stack(values: Sequence[NestValue], by: Stacking, result: NestValue) -> Other:
    """Values of one shape, one behind the other along a dim, and of their lanes the windows that are wanted."""
    operands = Block(arg_types=[VectorType(v.dtype, v.shape) for v in values]).args
    return Other(nest.StackOp(operands, by), tuple(values), result)
