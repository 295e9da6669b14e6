"""What the operations of a nest have in common that just make lanes of lanes: no memory, no channel, no guard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.irdl import IRDLOperation


@dataclass(frozen=True)
class BuiltOf:
    """So many scalar operators of one kind, side by side, at a width of operands and of results."""

    operator: str
    count: int
    operand_bits: int
    bits: int


class LaneOp(IRDLOperation):
    """An operation that says itself what it is built of."""

    def built_of(self, bits: Sequence[int]) -> BuiltOf | None:
        """Given the widths that its operands really have; None for what is only wires."""
        raise AssertionError(f"{self.name} does not say what it is built of")
