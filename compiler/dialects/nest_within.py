"""Which lanes of a nest are padding: the one operation of the nest dialect that knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.dialects.builtin import AffineMapAttr, IntAttr, VectorType, i1
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_op_definition, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.formats import MapFormat, NumberFormat
from penstock.compiler.dialects.nest_lane_op import BuiltOf, LaneOp


@irdl_op_definition
class WithinOp(LaneOp):
    """Which of an iteration's lanes, side by side from `place` on, are among a dim's first `size` elements.

    What lies behind them is padding.
    """

    name = "nest.within"
    place = prop_def(AffineMapAttr)
    size = prop_def(IntAttr)
    result = result_def(VectorType)
    custom_directives = (MapFormat, NumberFormat)
    assembly_format = "custom<MapFormat>($place) `below` custom<NumberFormat>($size) attr-dict `:` type($result)"

    def __init__(self, place: AffineMap, size: int, lanes: int) -> None:
        super().__init__(
            properties={"place": AffineMapAttr(place), "size": IntAttr(size)}, result_types=[VectorType(i1, [lanes])]
        )

    @property
    def lanes(self) -> int:
        return self.result.type.get_shape()[0]

    @property
    def bounds(self) -> tuple[int, ...]:
        """The last place from which each lane is among them; below 0 where it never is.

        Places are whole steps apart, so that neighbouring lanes have the same bound but for one change.
        """
        place = self.place.data
        step = gcd(*coefficients(place.results[0], place.num_dims)) or 1
        return tuple((self.size.data - 1 - lane) // step * step for lane in range(self.lanes))

    def built_of(self, bits: Sequence[int]) -> BuiltOf:
        """Comparisons of the counter, one for all lanes of one bound."""
        return BuiltOf("arith.cmpi", len(set(self.bounds)), self.size.data.bit_length(), 1)

    def verify_(self) -> None:
        place = self.place.data
        if len(place.results) != 1 or place.eval([0] * place.num_dims, []) != (0,):
            raise VerifyException(f"within: {place} is no place along one dim, counted from 0")
        if self.result.type.element_type != i1 or len(self.result.type.get_shape()) != 1:
            raise VerifyException(f"within: {self.result.type} is not a row of bits")
