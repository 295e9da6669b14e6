"""Some bits of an integer of any width: read as a number, and written in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.compiler.hls_in.bindings import ArrayView, Slot, StreamView, unsupported
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.storage import NumberKind
from penstock.compiler.hls_in.syntax import Tree


class BitAccess(ABC):
    """The part of the walk that knows bits."""

    graph: ValueGraph

    @abstractmethod
    def value(self, tree: Tree) -> KernelValue: ...

    @abstractmethod
    def convert(self, node: KernelValue, kind: NumberKind, bits: int, signed: bool = True) -> KernelValue: ...

    @abstractmethod
    def target(self, tree: Tree) -> Slot | tuple[ArrayView, tuple[KernelValue, ...]] | StreamView | ArrayView: ...

    @abstractmethod
    def write(self, tree: Tree, value: KernelValue) -> KernelValue: ...

    def bits_of(self, tree: Tree) -> KernelValue:
        """Some bits of an integer, from the upper to the lower one."""
        _, place, whole, high, low = tree
        value, lower = self.value(whole), self.value(low)
        count = self._count_of(place, high, low)
        shifted = self.graph.operate("shr", value, lower, "int", value.bits, place[1], value.signed)
        mask = self.graph.constant((1 << count) - 1, "int", count, False)
        return self.graph.operate("and", shifted, mask, "int", count, place[1], signed=False)

    def _count_of(self, place: list[Any], high: Tree, low: Tree) -> int:
        upper, lower = self.value(high), self.value(low)
        width = upper.linear.plus(lower.linear, -1) if upper.linear is not None and lower.linear is not None else None
        if upper is lower:
            return 1
        if width is None or width.terms or width.base < 0:
            raise unsupported(place, "a range of bits that is not always as wide", "give it constant bounds")
        return width.base + 1

    def set_bits(self, tree: Tree, given: KernelValue) -> KernelValue:
        """An integer with some of its bits changed, assigned as a whole."""
        _, place, whole, high, low = tree
        old, lower, count = self.value(whole), self.value(low), self._count_of(place, high, low)
        slot = self.target(whole)
        kept = slot if isinstance(slot, Slot) else slot[0].array if isinstance(slot, tuple) else None
        bits, signed = (kept.bits, kept.signed) if kept is not None else (max(old.bits, 1), False)
        mask = self.graph.constant((1 << count) - 1, "int", count, False)
        hole = self.graph.operate("shl", mask, lower, "int", bits, place[1], signed=False)
        ones = self.graph.constant((1 << bits) - 1, "int", bits, False)
        rest = self.graph.operate("xor", hole, ones, "int", bits, place[1], signed=False)
        rest = self.graph.operate("and", old, rest, "int", bits, place[1], signed=False)
        cut = self.graph.operate("and", self.convert(given, "int", max(count, given.bits), False), mask, "int", count,
                                 place[1], signed=False)  # fmt: skip
        moved = self.graph.operate("shl", cut, lower, "int", bits, place[1], signed=False)
        whole_value = self.graph.operate("or", rest, moved, "int", bits, place[1], signed=False)
        self.write(whole, self.convert(whole_value, "int", bits, signed))
        return given
