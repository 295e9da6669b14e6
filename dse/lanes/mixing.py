"""Operators of both kinds within one kernel: so many of another implementation that DSPs and LUTs both suffice.

Every operator is of its kernel's first choice at the start. If one resource is short then, operators change to another
implementation: those first that take least of the other resource for what they save, of equals the largest kernel's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.analysis.pairs import PAIRINGS
from penstock.compiler.dialects.bindings import mixture
from penstock.compiler.dialects.scaling import scaling_of
from penstock.compiler.platforms import Resources
from penstock.compiler.schedule import Operator, OperatorLibrary, implementations
from penstock.dse.lanes.binding import bindable, operand_bits, operator_bits

Changes = Mapping[tuple[str, str], int]
"""How many operators of a layer's operation are built of what they were not built of at the start."""

STORED = 3
"""Stages of a running sum besides its adder: the word is loaded, stored, and seen by the next load."""


@dataclass(frozen=True)
class Changeable:
    """Operators of one kind in one kernel: what they are built of, and what they could be built of."""

    layer: str
    operation: str
    count: int
    here: Operator
    there: Operator
    saved: Resources
    """What a change saves, of each resource; less than nothing of what it takes."""

    def of_lanes(self, lanes: int) -> Changeable:
        """The same of so many lanes, where this is one's."""
        return Changeable(self.layer, self.operation, self.count * lanes, self.here, self.there, self.saved)

    def binding(self, changed: int) -> str:
        if changed >= self.count:
            return self.there.binding
        return mixture(changed, self.there.binding, self.here.binding)


def row_of(op: TensorOp, operation: str, library: OperatorLibrary, binding: str | None) -> Operator:
    """The library's row for an operation of a kernel; a whole product in a reduction is added to something."""
    name = "mac" if op.reductions and operation == "arith.muli" else operation
    return library.find(name, operator_bits(op, operation), binding)


def changeable_in_a_lane(op: TensorOp, library: OperatorLibrary, bindings: Mapping[str, str]) -> list[Changeable]:
    """The operators of one lane that could be built of something else than a kernel's bindings say."""
    found: list[Changeable] = []
    for operation in bindable(op):
        known = implementations(library, operation, operand_bits(op))
        here = row_of(op, operation, library, bindings.get(operation, known[0]))
        if here.lanes > 1:
            continue  # lanes that share an operator do so all together
        count = sum(inner.name == operation and not scaling_of(inner) for inner in op.op.body.block.ops)
        for name in [name for name in known if name not in (here.binding, *PAIRINGS)][:1]:
            there, bits = row_of(op, operation, library, name), operator_bits(op, operation)
            found.append(Changeable(op.layer, operation, count, here, there, here.area(bits) - there.area(bits)))
    return found


def changes_towards(area: Resources, limits: Resources, candidates: Sequence[Changeable]) -> tuple[Changes, bool]:
    """The fewest changes with which `area` keeps to the limits, and whether it does; else as many as there can be."""
    over = area - limits
    if over.lut > 0 and over.dsp > 0:
        return {}, False
    found: dict[tuple[str, str], int] = {}
    of_luts = over.lut > 0
    short, left = (over.lut, -over.dsp) if of_luts else (over.dsp, -over.lut)
    for one in sorted(candidates, key=lambda one: (_price(one, of_luts), -one.count)):
        saved, taken = (one.saved.lut, -one.saved.dsp) if of_luts else (one.saved.dsp, -one.saved.lut)
        if short <= 0 or saved <= 0:
            continue
        count = min(one.count, -(-short // saved), left // taken if taken > 0 else one.count)
        found[one.layer, one.operation] = count
        short, left = short - count * saved, left - count * taken
    return found, short <= 0


def _price(one: Changeable, of_luts: bool) -> float:
    """What a change takes of the resource that is left, for each unit of the one that is short."""
    saved, taken = (one.saved.lut, -one.saved.dsp) if of_luts else (one.saved.dsp, -one.saved.lut)
    return taken / saved if saved > 0 else float("inf")


def slowest_running_sum(one: Changeable, changed: int, running: int) -> int:
    """The latency of the slowest of a kernel's running sums, which are counted last."""
    latencies = [one.here.latency] if changed < one.count else []
    return max(latencies + ([one.there.latency] if changed > one.count - running else []))
