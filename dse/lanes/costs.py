"""What lanes of a kernel take: each its own operators, and those that two of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import arith

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.dialects.bindings import Allotment
from penstock.compiler.dialects.scaling import scaling_of
from penstock.compiler.platforms import Resources, total
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.schedule import OperatorLibrary
from penstock.compiler.schedule.bodies import Operators, flatten_body
from penstock.dse.lanes.binding import bindings_of, operator_bits, shared_product
from penstock.dse.lanes.mixing import Changeable, changeable_in_a_lane, row_of
from penstock.dse.lanes.walks import KernelWalk

OfLane = tuple[str, str, str]
"""A layer, what its adders are built of, and its multipliers."""
OfLanes = tuple[str, str, tuple[int, ...]]
"""A layer, what its multipliers are built of, and its lanes along each dim."""


@dataclass(frozen=True)
class KnownLanes:
    """What was found about single lanes, whatever there may be of them: fitters of one graph and library share it."""

    costs: dict[OfLane, Resources] = field(default_factory=dict[OfLane, Resources])
    shared: dict[OfLane, Resources] = field(default_factory=dict[OfLane, Resources])
    least: dict[OfLane, Resources] = field(default_factory=dict[OfLane, Resources])
    changeable: dict[OfLane, list[Changeable]] = field(default_factory=dict[OfLane, list[Changeable]])
    bindings: dict[OfLane, dict[str, str]] = field(default_factory=dict[OfLane, dict[str, str]])
    pairs: dict[OfLanes, Resources] = field(default_factory=dict[OfLanes, Resources])


@dataclass(frozen=True)
class LaneCosts:
    """Of kernels on one library, with one kind of multipliers; layers in `fixed` are as somebody decided."""

    library: OperatorLibrary
    multipliers: str
    fixed: frozenset[str]
    known: KnownLanes

    def shared(self, op: TensorOp) -> Resources:
        """One of the operators that two lanes share, if any do."""
        key = (op.layer, "", self.multipliers)
        if key not in self.known.shared:
            rows = {name: row_of(op, name, self.library, choice) for name, choice in self.bindings(op, "").items()}
            shared = [row.area(operator_bits(op, name)) for name, row in rows.items() if row.lanes > 1]
            self.known.shared[key] = total(shared)
        return self.known.shared[key]

    def of_pairs(self, op: TensorOp, unroll: Sequence[int]) -> Resources:
        """All that lanes have in common, unrolled so."""
        if not (one := self.shared(op)).dsp:
            return one
        key = (op.layer, self.multipliers, tuple(unroll))
        if key not in self.known.pairs:
            found = shared_product(op, unroll)
            self.known.pairs[key] = one * (prod(unroll) if found is None else found)
        return self.known.pairs[key]

    def of_lane(self, op: TensorOp, adders: str) -> Resources:
        """The operators of one lane that are its own."""
        key = (op.layer, adders, self.multipliers)
        if key not in self.known.costs:
            self.known.costs[key] = self._of_lane(op, adders)
        return self.known.costs[key]

    def _of_lane(self, op: TensorOp, adders: str) -> Resources:
        bindings = self.bindings(op, adders)
        if not op.reductions and any(isinstance(inner, arith.MuliOp) for inner in op.op.body.block.ops):
            return _of_whole_numbers(op, self.library, bindings)
        scales = self.library.knows("scale")
        inside = [i.name for i in op.op.body.block.ops if not (scales and scaling_of(i)) and self.library.knows(i.name)]
        rows = [(name, row_of(op, name, self.library, bindings.get(name))) for name in inside]
        return total([row.area(operator_bits(op, name)) for name, row in rows if row.lanes == 1])

    def changeable(self, op: TensorOp, walk: KernelWalk) -> list[Changeable]:
        """The operators of one lane that may be built of something else where their own kind does not suffice."""
        if not walk.mixed or op.layer in self.fixed:
            return []
        key = (op.layer, walk.adders, self.multipliers)
        if key not in self.known.changeable:
            found = changeable_in_a_lane(op, self.library, self.bindings(op, walk.adders))
            self.known.changeable[key] = found
        return self.known.changeable[key]

    def least(self, op: TensorOp, walk: KernelWalk) -> Resources:
        """What one lane takes at least of each resource, whatever its operators are built of."""
        key = (op.layer, walk.adders, self.multipliers)
        if not walk.mixed or op.layer in self.fixed:
            return self.of_lane(op, walk.adders)
        if key not in self.known.least:
            self.known.least[key] = self._least(op, walk)
        return self.known.least[key]

    def _least(self, op: TensorOp, walk: KernelWalk) -> Resources:
        cost = self.of_lane(op, walk.adders)
        if not (changeable := self.changeable(op, walk)):
            return cost
        saved = [one.saved * one.count for one in changeable]
        lut, dsp = sum(max(0, s.lut) for s in saved), sum(max(0, s.dsp) for s in saved)
        return replace(cost, lut=cost.lut - lut, dsp=cost.dsp - dsp)

    def bindings(self, op: TensorOp, adders: str) -> dict[str, str]:
        """What a kernel's design record says of its operators; nothing where it is the library's own choice."""
        key = (op.layer, adders, self.multipliers)
        if key not in self.known.bindings:
            wanted = {"adders": adders, "multipliers": self.multipliers}
            self.known.bindings[key] = bindings_of(op, self.library, wanted)
        return dict(self.known.bindings[key])


def _of_whole_numbers(op: TensorOp, library: OperatorLibrary, bindings: Mapping[str, str]) -> Resources:
    """The operators of one lane, as wide as the numbers that they meet: a scale's product of 64 bits is of 22 by 16."""
    block, operators = op.op.body.block, Operators(library, Allotment(bindings))
    bits = [type_bits(argument.type) for argument in block.args]
    flat = flatten_body(block, bits, [False] * len(bits), operators, 1, added=False)
    return total([step.operator.area(step.operand_bits) * step.count for step in flat.steps])
