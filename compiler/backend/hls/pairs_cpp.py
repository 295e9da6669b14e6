"""Lanes that share a multiplier, as C++: `pk::two_products` gives the products of two neighbours at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, SSAValue

from penstock.compiler.analysis.pairs import PAIRED, Pairing, narrow_product, pairing_of
from penstock.compiler.backend.hls.lines import CppLines
from penstock.compiler.backend.hls.nest_values import project, twin
from penstock.compiler.backend.hls.scalar_cpp import cpp_type, emit_body
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.bindings import Allotment
from penstock.compiler.dialects.types import lane_shape
from penstock.compiler.scalars.index_text import times

At = Callable[[SSAValue, Sequence[str]], str]
"""One lane of a value as C++."""


def arguments_at(op: nest.MapOp, index: Sequence[str], at: At) -> list[str]:
    """What the body of a map is given in a lane of its result."""
    return [
        at(value, [project(e, index) for e in lanes.data.results])
        for value, lanes in zip(op.inputs, op.lanes, strict=True)
    ]


@dataclass(frozen=True)
class PairsCpp:
    """A map whose lanes are paired."""

    op: nest.MapOp
    pairing: Pairing
    product: arith.MuliOp
    factors: tuple[BlockArgument, BlockArgument]

    @staticmethod
    def of(op: nest.MapOp, allotment: Allotment) -> PairsCpp | None:
        """None where lanes are not to be paired, or have no factor in common."""
        found = narrow_product(op.body.block)
        if found is None or not allotment.is_whole(found[0], PAIRED):
            return None
        pairing = pairing_of(op.body.block, [lanes.data for lanes in op.lanes], lane_shape(op.result))
        return None if pairing is None else PairsCpp(op, pairing, *found)

    def emit(
        self,
        out: CppLines,
        at: At,
        constants: Mapping[SSAValue, str],
        layer: str,
        fresh: Callable[[str], str],
    ) -> Generator[tuple[list[str], list[str], str]]:
        """For every lane the statements before it, its index, and its result; the loops around them are written."""
        shape, dim = lane_shape(self.op.result), self.pairing.dim
        pairs, odd = divmod(shape[dim], 2)
        block = self.op.body.block
        with out.lanes([pairs if d == dim else n for d, n in enumerate(shape)]) as half:
            both = [
                [times(i, 2) if d == dim else i for d, i in enumerate(half)],
                [twin(i) if d == dim else i for d, i in enumerate(half)],
            ]
            given = [arguments_at(self.op, index, at) for index in both]
            varied, shared = self.factors[1 - self.pairing.shared], self.factors[self.pairing.shared]
            names = [fresh("product"), fresh("product")]
            kind = cpp_type(self.product.result.type)
            apart = ", ".join(arguments[varied.index] for arguments in given)
            out.add(f"{kind} {names[0]}, {names[1]};")
            out.add(f"pk::two_products({apart}, {given[0][shared.index]}, {names[0]}, {names[1]});")
            for index, arguments, name in zip(both, given, names, strict=True):
                lines, result = emit_body(block, arguments, constants, layer, fresh, {}, {self.product.result: name})
                yield lines, index, result
        if odd:
            with out.lanes([1 if d == dim else n for d, n in enumerate(shape)]) as rest:
                last = [str(shape[dim] - 1) if d == dim else i for d, i in enumerate(rest)]
                arguments = arguments_at(self.op, last, at)
                lines, result = emit_body(block, arguments, constants, layer, fresh, {self.product: PAIRED})
                yield lines, last, result
