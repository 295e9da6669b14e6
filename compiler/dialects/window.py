"""The window dialect: one operation, on tensors and on streams of them, that lays out the windows along a dim.

    %w = window.slide %x by <dim 1, 28 windows of 5, step 1, apart 1, before 2> fill 0.0 : f32
       : tensor<6x28x28xf32> -> tensor<6x28x28x5xf32>

Windows of two dims are two such operations, one after the other. What computes on windows is then a contraction or a
reduction like any other: a convolution sums products over the places of a window and the channels, a pooling takes
the largest place. On streams the operation is a line buffer: what no window wants any more is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, Data, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.itensor_types import ITensorType, expect_itensor
from penstock.compiler.dialects.types import tensor_type


@dataclass(frozen=True)
class Slide:
    """How a window slides along `dim`: `count` windows of `size` places.

    Place p of window n is element `n * step + p * apart - before`; what lies outside the tensor is padding.
    """

    dim: int
    count: int
    size: int
    step: int = 1
    apart: int = 1
    before: int = 0

    @property
    def reach(self) -> int:
        """From a window's first place to its last."""
        return (self.size - 1) * self.apart

    @property
    def end(self) -> int:
        """One behind the last place of the last window, counted from the first one's first."""
        return (self.count - 1) * self.step + self.reach + 1

    def pads(self, extent: int) -> bool:
        """Whether any place of a window lies outside a dim of that extent."""
        return self.before > 0 or self.end > extent + self.before

    def paces(self, extent: int, width: int, windows: int) -> bool:
        """Whether tokens of `width` places of such a dim become tokens of so many windows, all whole and in step."""
        return not (extent % width or self.count % windows or windows * self.step % width)

    def shape(self, source: Sequence[int]) -> tuple[int, ...]:
        """Of all windows: along the dim there are windows now, and their places are a last dim of its own."""
        sizes = list(source)
        sizes[self.dim] = self.count
        return (*sizes, *([self.size] if self.size > 1 else []))

    def along(self, dim: int) -> Slide:
        """The same along another dim."""
        return replace(self, dim=dim)

    def __str__(self) -> str:
        return (
            f"dim {self.dim}, {self.count} windows of {self.size}, step {self.step}, apart {self.apart}, "
            f"before {self.before}"
        )


@irdl_attr_definition
class SlideAttr(Data[Slide]):
    """`#window.by<dim 1, 28 windows of 5, step 1, apart 1, before 2>`."""

    name = "window.by"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Slide:
        numbers: list[int] = []
        with parser.in_angle_brackets():
            for words in ("dim",), (), ("windows", "of"), ("step",), ("apart",), ("before",):
                if numbers and words != ("windows", "of"):
                    parser.parse_punctuation(",")
                for word in words:
                    parser.parse_keyword(word)
                numbers.append(parser.parse_integer(allow_boolean=False))
        return Slide(*numbers)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


@irdl_op_definition
class SlideOp(IRDLOperation):
    """All windows along a dim of a tensor, or of the tensor that a stream carries. Padding is `fill`."""

    name = "window.slide"
    sym_name = opt_prop_def(StringAttr)
    source = operand_def(TensorType | ITensorType)
    by = prop_def(SlideAttr)
    fill = prop_def(Attribute)
    result = result_def(TensorType | ITensorType)
    traits = traits_def(Pure())
    assembly_format = "($sym_name^)? $source `by` $by `fill` $fill attr-dict `:` type($source) `->` type($result)"

    def __init__(
        self, source: SSAValue, by: Slide, fill: Attribute, result: Attribute, name: str | None = None
    ) -> None:
        label = None if name is None else StringAttr(name)
        properties = {"by": SlideAttr(by), "fill": fill, "sym_name": label}
        super().__init__(operands=[source], result_types=[result], properties=properties)

    def verify_(self) -> None:
        by, given, made = self.by.data, _shape(self.source), _shape(self.result)
        if not (0 <= by.dim < len(given)) or min(by.count, by.size, by.step, by.apart) < 1 or by.before < 0:
            raise VerifyException(f"slide: {by} of a tensor of shape {given}")
        if by.shape(given) != made:
            raise VerifyException(f"slide: windows of {given} by {by} have shape {by.shape(given)}, not {made}")
        if isinstance(self.source.type, ITensorType) != isinstance(self.result.type, ITensorType):
            raise VerifyException("slide: a stream gives a stream, a tensor a tensor")


def _shape(value: SSAValue) -> tuple[int, ...]:
    if isinstance(value.type, ITensorType):
        return tuple(expect_itensor(value).data_shape())
    return tuple(tensor_type(value).get_shape())


WindowDialect = Dialect("window", [SlideOp], [SlideAttr])
