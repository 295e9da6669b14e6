"""Lanes that share a multiplier, as C++: `pk::two_products` gives the products of two neighbours at once.

Where lanes are summed, `pk::two_more` adds both products to those before them, and `pk::take_apart` gives the two sums.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, SSAValue

from penstock.compiler.analysis.pairs import (
    CHAINED,
    PAIRED,
    PAIRINGS,
    Cascade,
    Pairing,
    chains_of,
    narrow_product,
    pairing_of,
)
from penstock.compiler.backend.hls import pragmas
from penstock.compiler.backend.hls.lines import UNROLL, CppLines, extents, subscripts
from penstock.compiler.backend.hls.nest_values import project, twin
from penstock.compiler.backend.hls.scalar_cpp import TableKey, cpp_type, emit_body
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.bindings import Allotment
from penstock.compiler.dialects.types import lane_shape, vector_type
from penstock.compiler.scalars.index_text import times, total, unflat

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
    summed: bool
    """As they are made, where they can be."""

    @staticmethod
    def of(op: nest.MapOp, allotment: Allotment) -> PairsCpp | None:
        """None where lanes are not to be paired, or have no factor in common."""
        found = narrow_product(op.body.block)
        kind = next((name for name in PAIRINGS if found is not None and allotment.is_whole(found[0], name)), None)
        if found is None or kind is None:
            return None
        pairing = pairing_of(op.body.block, [lanes.data for lanes in op.lanes], lane_shape(op.result))
        return None if pairing is None else PairsCpp(op, pairing, *found, kind == CHAINED)

    def chains(self) -> Cascade | None:
        """How the products are added up as they are made, where nothing but a sum asks for them."""
        uses = list(self.op.result.uses)
        if not self.summed or len(uses) != 1 or not isinstance(sums := uses[0].operation, nest.ReduceOp):
            return None
        dims = [d.data for d in sums.dims]
        return chains_of(self.pairing, self.op.body.block, lane_shape(self.op.result), sums.body.block, dims)

    def emit_chains(self, out: CppLines, at: At, chains: Cascade, fresh: Callable[[str], str]) -> tuple[str, list[int]]:
        """The name and the lanes of the sums: one a chain."""
        shape, dim = lane_shape(self.op.result), self.pairing.dim
        left, kind = chains.left(shape), cpp_type(vector_type(self.op.result).element_type)
        name, first = fresh("sums"), next(d for d in chains.dims if shape[d] > 1)
        out.add(f"{kind} {name}{extents(left)};", *([pragmas.lanes_in_parallel(name)] if prod(left) > 1 else []))
        pairs, odd = divmod(shape[dim], 2)
        for halves in (pairs, 0)[: 1 + odd]:
            with out.lanes([max(halves, 1) if d == dim else n for d, n in enumerate(left)]) as index:
                chain, link = fresh("chain"), fresh("link")
                place = total([times(index[first], chains.length), link])
                out.add("#pragma HLS EXPRESSION_BALANCE off", f"ap_int<48> {chain} = 0;")
                with out.block(f"for (int {link} = 0; {link} < {chains.length}; ++{link})"):
                    out.add(UNROLL)
                    terms = dict(zip(chains.dims, unflat([shape[d] for d in chains.dims], place), strict=True))
                    even, twins = self._both([terms.get(d, i) for d, i in enumerate(index)], paired=halves > 0)
                    apart, common = self._factors(even, twins, at)
                    more = f"{chain} = pk::two_more({apart}, {common}, {chain});"
                    out.add(more if chains.terms % chains.length == 0 else f"if ({place} < {chains.terms}) {more}")
                one, other = fresh("sum"), fresh("sum")
                out.add(f"{kind} {one}, {other};", f"pk::take_apart({chain}, {one}, {other});")
                even, twins = self._both(index, paired=halves > 0)
                if even:
                    out.add(f"{name}{subscripts(left, even)} = {one};")
                out.add(f"{name}{subscripts(left, twins)} = {other};")
        return name, list(left)

    def _both(self, index: Sequence[str], *, paired: bool) -> tuple[list[str], list[str]]:
        """The lanes of a pair, by their index with its number; the odd one that is left is the second of none."""
        dim, odd = self.pairing.dim, str(lane_shape(self.op.result)[self.pairing.dim] - 1)
        even = [times(i, 2) if d == dim else i for d, i in enumerate(index)] if paired else []
        return even, [(twin(i) if paired else odd) if d == dim else i for d, i in enumerate(index)]

    def _factors(self, even: Sequence[str], twins: Sequence[str], at: At) -> tuple[str, str]:
        """What is different in the two lanes, and what they have in common."""
        given = [arguments_at(self.op, index, at) for index in (even, twins) if index]
        varied, shared = self.factors[1 - self.pairing.shared].index, self.factors[self.pairing.shared].index
        apart = [arguments[varied] for arguments in given]
        return ", ".join(apart if even else ["0", *apart]), given[0][shared]

    def emit(
        self,
        out: CppLines,
        at: At,
        constants: Mapping[SSAValue, str],
        layer: str,
        fresh: Callable[[str], str],
        tables: Mapping[TableKey, str],
    ) -> Generator[tuple[list[str], list[str], str]]:
        """For every lane the statements before it, its index, and its result; the loops around them are written."""
        shape, dim = lane_shape(self.op.result), self.pairing.dim
        pairs, odd = divmod(shape[dim], 2)
        block = self.op.body.block
        with out.lanes([pairs if d == dim else n for d, n in enumerate(shape)]) as half:
            both = self._both(half, paired=True)
            given = [arguments_at(self.op, index, at) for index in both]
            names = [fresh("product"), fresh("product")]
            kind = cpp_type(self.product.result.type)
            apart, common = self._factors(*both, at)
            out.add(f"{kind} {names[0]}, {names[1]};")
            out.add(f"pk::two_products({apart}, {common}, {names[0]}, {names[1]});")
            for index, arguments, name in zip(both, given, names, strict=True):
                made: dict[SSAValue, str] = {self.product.result: name}
                lines, result = emit_body(block, arguments, constants, layer, fresh, {}, made, tables)
                yield lines, index, result
        if odd:
            with out.lanes([1 if d == dim else n for d, n in enumerate(shape)]) as rest:
                last = [str(shape[dim] - 1) if d == dim else i for d, i in enumerate(rest)]
                arguments = arguments_at(self.op, last, at)
                choices: dict[Operation, str] = {self.product: PAIRED}
                lines, result = emit_body(block, arguments, constants, layer, fresh, choices, tables=tables)
                yield lines, last, result
