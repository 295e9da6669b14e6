"""Memories as C++ arrays: how each is declared, subscripted, and cut by pragmas into the banks that were counted.

Lanes of one word are ARRAY_RESHAPE, banks are ARRAY_PARTITION. The tools take one of them for each dim, so a dim that
has both is declared as two: its words, which are partitioned, and the lanes of a word, which are reshaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.backend.hls.scalar_cpp import cpp_type
from penstock.compiler.dialects.directives import BanksAttr, Cut, MemoryDeclaration, banks_of, storage_of
from penstock.compiler.dialects.nest import memory_shape
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.dialects.types import memref_type


@dataclass(frozen=True)
class ArrayLayout:
    """A memory's dims with their cuts. In `registers` every element has its own."""

    shape: tuple[int, ...]
    cuts: tuple[Cut, ...]
    registers: bool

    @staticmethod
    def of(op: MemoryDeclaration) -> ArrayLayout:
        return ArrayLayout(memory_shape(op.result), banks_of(op).cuts, storage_of(op).kind.data == "registers")

    def split(self, dim: int) -> int:
        """The lanes of a word where the dim is declared as two; 1 where it is one."""
        cut = self.cuts[dim]
        return cut.word if cut.banks > 1 and not self.registers else 1

    @property
    def extents(self) -> tuple[int, ...]:
        """The dims as they are declared."""
        found: list[int] = []
        for dim, size in enumerate(self.shape):
            word = self.split(dim)
            found += [size] if word == 1 else [-(-size // word), word]
        return tuple(found)

    def pragmas(self, name: str) -> list[str]:
        lines: list[str] = []
        position = 0
        for dim, cut in enumerate(self.cuts):
            position += 1
            if self.registers:
                lines += _cut("PARTITION", name, position, self.shape[dim], whole=True)
                continue
            lines += _cut("PARTITION", name, position, cut.banks, whole=cut.complete)
            if self.split(dim) > 1:
                position += 1
                lines += _cut("RESHAPE", name, position, cut.word, whole=True)
            else:
                lines += _cut("RESHAPE", name, position, cut.word, whole=cut.complete)
        return lines


def argument_cuts(banks: BanksAttr, name: str) -> list[str]:
    """How an array that is an argument is cut: it has banks alone, each a port of its own."""
    cuts = enumerate(banks.cuts, start=1)
    return [line for dim, cut in cuts for line in _cut("PARTITION", name, dim, cut.banks, whole=cut.complete)]


def memory_declaration(op: MemoryDeclaration, name: str) -> str:
    kind = op.result.type.block if isinstance(op.result.type, BlocksType) else memref_type(op.result)
    return f"{cpp_type(kind.element_type)} {name}" + extents(ArrayLayout.of(op).extents)


def extents(shape: Sequence[int]) -> str:
    return "".join(f"[{size}]" for size in shape)


def _cut(how: str, name: str, dim: int, factor: int, *, whole: bool) -> list[str]:
    if factor == 1:
        return []
    style = "complete" if whole else f"cyclic factor={factor}"
    return [f"#pragma HLS ARRAY_{how} variable={name} {style} dim={dim}"]


def divided(lane: str, word: int) -> tuple[str, str]:
    """Which word a lane lies in, and where in it."""
    if lane.isdigit():
        return str(int(lane) // word), str(int(lane) % word)
    inner = lane if lane.isidentifier() else f"({lane})"
    return f"{inner} / {word}", f"{inner} % {word}"
