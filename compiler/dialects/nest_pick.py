"""Some lanes of a value, in another order or several times: slices, transposes and repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import AffineMapAttr, VectorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.formats import MapFormat
from penstock.compiler.dialects.nest_lane_op import BuiltOf, LaneOp
from penstock.compiler.dialects.types import vector_type


@irdl_op_definition
class PickOp(LaneOp):
    """Each lane of the result is the operand's lane, counted in C order, that `lanes` says for its index."""

    name = "nest.pick"
    value = operand_def(VectorType)
    lanes = prop_def(AffineMapAttr)
    result = result_def(VectorType)
    custom_directives = (MapFormat,)
    assembly_format = "$value `at` custom<MapFormat>($lanes) attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, lanes: AffineMap, shape: Sequence[int]) -> None:
        result = VectorType(vector_type(value).element_type, list(shape))
        super().__init__(operands=[value], result_types=[result], properties={"lanes": AffineMapAttr(lanes)})

    @property
    def factors(self) -> tuple[int, tuple[int, ...]]:
        """The operand's lane of the result's first, and how many lanes on it is a step further along each dim."""
        lanes = self.lanes.data
        return lanes.eval([0] * lanes.num_dims, [])[0], tuple(coefficients(lanes.results[0], lanes.num_dims))

    def built_of(self, bits: Sequence[int]) -> BuiltOf | None:
        return None

    def verify_(self) -> None:
        given, made = vector_type(self.value), vector_type(self.result)
        lanes, shape = self.lanes.data, made.get_shape()
        if len(lanes.results) != 1 or lanes.num_dims != len(shape) or given.element_type != made.element_type:
            raise VerifyException(f"pick: {lanes} does not make {made} of {given}")
        start, factors = self.factors
        ends = [factor * (size - 1) for factor, size in zip(factors, shape, strict=True)]
        low, high = start + sum(min(0, e) for e in ends), start + sum(max(0, e) for e in ends)
        if low < 0 or high >= prod(given.get_shape()):
            raise VerifyException(f"pick: lanes {low} to {high} of {given}")
