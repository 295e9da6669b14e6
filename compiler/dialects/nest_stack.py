"""Lanes of several values side by side, taken window by window: how the places of windows come together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Data, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, prop_def, result_def, var_operand_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.nest_lane_op import BuiltOf, LaneOp
from penstock.compiler.dialects.types import vector_type


@dataclass(frozen=True)
class Stacking:
    """Along dim `along`, values of `width` lanes lie one behind the other: `count` windows of `size` of these lanes.

    Place p of window n is lane `first + n * step + p * apart`, counted through all values.
    """

    along: int
    first: int
    count: int
    size: int
    step: int = 1
    apart: int = 1

    @property
    def last(self) -> int:
        return self.first + (self.count - 1) * self.step + (self.size - 1) * self.apart

    def shape(self, given: Sequence[int]) -> tuple[int, ...]:
        """Of all windows; their places are a last dim of its own, where there are several."""
        sizes = list(given)
        sizes[self.along] = self.count
        return (*sizes, *([self.size] if self.size > 1 else []))

    def places(self, width: int) -> Iterator[tuple[int, int, int, int]]:
        """Window, place, the value it comes from, and the lane there."""
        for window in range(self.count):
            for place in range(self.size):
                yield window, place, *divmod(self.first + window * self.step + place * self.apart, width)

    def __str__(self) -> str:
        return (
            f"dim {self.along}, from {self.first}, {self.count} windows of {self.size}, step {self.step}, "
            f"apart {self.apart}"
        )


@irdl_attr_definition
class StackingAttr(Data[Stacking]):
    """`#nest.windows<dim 1, from 0, 2 windows of 3, step 1, apart 1>`."""

    name = "nest.windows"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Stacking:
        numbers: list[int] = []
        with parser.in_angle_brackets():
            for words in ("dim",), ("from",), (), ("windows", "of"), ("step",), ("apart",):
                if numbers and words != ("windows", "of"):
                    parser.parse_punctuation(",")
                for word in words:
                    parser.parse_keyword(word)
                numbers.append(parser.parse_integer(allow_boolean=False))
        return Stacking(*numbers)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


@irdl_op_definition
class StackOp(LaneOp):
    """Values of one shape, one behind the other along a dim, and of these lanes the windows that are wanted."""

    name = "nest.stack"
    inputs = var_operand_def(VectorType)
    by = prop_def(StackingAttr)
    result = result_def(VectorType)
    assembly_format = "$inputs `by` $by attr-dict `:` type($inputs) `->` type($result)"

    def __init__(self, inputs: Sequence[SSAValue], by: Stacking) -> None:
        kind = vector_type(inputs[0])
        result = VectorType(kind.element_type, by.shape(kind.get_shape()))
        super().__init__(operands=[list(inputs)], result_types=[result], properties={"by": StackingAttr(by)})

    @property
    def width(self) -> int:
        """Lanes of one value along the dim."""
        return vector_type(self.inputs[0]).get_shape()[self.by.data.along]

    @property
    def beside(self) -> list[int]:
        """The shape of all lanes at one place of the dim."""
        shape = vector_type(self.inputs[0]).get_shape()
        return [1 if dim == self.by.data.along else size for dim, size in enumerate(shape)]

    def lanes(self, index: Sequence[str]) -> Iterator[tuple[list[str], int, list[str]]]:
        """For one of these, by its index: lanes of the result, and for each a value and the lane of it that it is."""
        by = self.by.data
        for window, place, number, at in by.places(self.width):
            made, taken = list(index), list(index)
            made[by.along], taken[by.along] = str(window), str(at)
            yield [*made, *([str(place)] if by.size > 1 else [])], number, taken

    def built_of(self, bits: Sequence[int]) -> BuiltOf | None:
        return None

    def verify_(self) -> None:
        by, given, made = self.by.data, vector_type(self.inputs[0]), vector_type(self.result)
        shape = given.get_shape()
        if not 0 <= by.along < len(shape) or min(by.count, by.size, by.step, by.apart) < 1 or by.first < 0:
            raise VerifyException(f"stack: {by} of {given}")
        if len({value.type for value in self.inputs}) != 1 or by.shape(shape) != tuple(made.get_shape()):
            raise VerifyException(f"stack: {len(self.inputs)} of {given} by {by} are not {made}")
        if by.last >= len(self.inputs) * shape[by.along]:
            raise VerifyException(f"stack: {len(self.inputs)} of {given} have no lane {by.last} along dim {by.along}")
