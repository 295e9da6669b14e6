"""Orders and what follows from them, each found once: how tensors lie in external memory, how streams reach them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf
from typing import Any

from penstock.compiler.analysis.converter import ConverterPlan
from penstock.compiler.analysis.converting import choose_plan
from penstock.compiler.analysis.packing import choose_layout, split_at_tiles, word_order
from penstock.compiler.analysis.walks import LoopOf
from penstock.compiler.dialects.itensor_types import ITensorType, LayoutAttr
from penstock.compiler.plan.parts import Order, Transfer


class OrderTable:
    """All orders of one program's designs, with the layouts that suit them and the transfers that they take."""

    def __init__(self) -> None:
        self._by_identity: dict[int, tuple[ITensorType, Order]] = {}
        self._by_value: dict[ITensorType, Order] = {}
        self._transfers: dict[Hashable, Transfer] = {}
        self._layouts: dict[Hashable, LayoutAttr | None] = {}
        self._equal: dict[Hashable, Any] = {}

    def of(self, kind: ITensorType) -> Order:
        found = self._by_identity.get(id(kind))
        if found is None:  # hashing a type walks through all of it
            order = self._by_value.setdefault(kind, Order(kind))
            found = self._by_identity[id(kind)] = (kind, order)  # held, so that its identity stays its own
        return found[1]

    def layout(
        self, order: Order, port_bits: int, stripes: int = 1, grains: tuple[int, ...] = (), room_from: float = inf
    ) -> LayoutAttr | None:
        """The layout in external memory that suits a stream; equal ones are the same object."""
        key = (order, port_bits, stripes, grains, room_from)
        if key not in self._layouts:
            layout = choose_layout(order.kind, port_bits, stripes, grains, room_from)
            self._layouts[key] = layout and self._equal.setdefault(layout, LayoutAttr.of(layout))
        return self._layouts[key]

    def load(self, order: Order, layout: LayoutAttr | None) -> Transfer:
        """The load that a stream of that order comes from, behind a converter where the order of the load differs.

        Memory is accessed a word at a time: where words are not the stream's own slices, a converter cuts them up. The
        layout is one that was found here.
        """
        return self._transfer(order, layout, loads=True)

    def store(self, order: Order, layout: LayoutAttr | None) -> Transfer:
        """The store that a stream of that order goes to, behind a converter that puts words together."""
        return self._transfer(order, layout, loads=False)

    def _transfer(self, order: Order, layout: LayoutAttr | None, *, loads: bool) -> Transfer:
        key = (order, id(layout), loads)
        if key not in self._transfers:
            found = self._find(order, layout, loads=loads)
            self._transfers[key] = self._equal.setdefault((found.stream, id(layout), found.through), found)
        return self._transfers[key]

    def _find(self, order: Order, layout: LayoutAttr | None, *, loads: bool) -> Transfer:
        """A converter that needs blocks is folded in: the load fills one while the other is sent on.

        One that holds a word stays a part of its own, so that the words before it burst into a FIFO.
        """
        if layout is None:
            return Transfer(order)
        words = self.of(word_order(order.kind, layout.layout))
        if words is order:
            return Transfer(order, layout)
        plan = choose_plan(words.kind, order.kind) if loads else choose_plan(order.kind, words.kind)
        if not isinstance(plan, ConverterPlan) or not _fits_tiles(layout, plan, plan.source if loads else plan.target):
            return Transfer(words, layout)
        return Transfer(order, layout, words)


def _fits_tiles(layout: LayoutAttr, plan: ConverterPlan, inside: Sequence[LoopOf]) -> bool:
    """Whether the loops by which blocks are handed over, and those inside, each stay within tiles or between them."""
    return all(split_at_tiles(loops, layout.layout) is not None for loops in (plan.shared, inside))
