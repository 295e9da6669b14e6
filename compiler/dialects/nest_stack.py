"""Lanes of several values side by side: how the places of a window come together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.nest_lane_op import BuiltOf, LaneOp
from penstock.compiler.dialects.types import vector_type


@irdl_op_definition
class StackOp(LaneOp):
    """Values of one shape as one with a last dim that counts them: lane (..., i) of it is lane (...) of the i-th."""

    name = "nest.stack"
    inputs = var_operand_def(VectorType)
    result = result_def(VectorType)
    assembly_format = "$inputs attr-dict `:` type($inputs) `->` type($result)"

    def __init__(self, inputs: Sequence[SSAValue]) -> None:
        kind = vector_type(inputs[0])
        result = VectorType(kind.element_type, [*kind.get_shape(), len(inputs)])
        super().__init__(operands=[list(inputs)], result_types=[result])

    def built_of(self, bits: Sequence[int]) -> BuiltOf | None:
        return None

    def verify_(self) -> None:
        kinds = {value.type for value in self.inputs}
        given, made = vector_type(self.inputs[0]), vector_type(self.result)
        if len(kinds) != 1 or (*given.get_shape(), len(self.inputs)) != tuple(made.get_shape()):
            raise VerifyException(f"stack: {len(self.inputs)} of {given} are not {made}")
