"""What happens to a stream on its way: it changes its order, is copied, cut, joined."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.formats import NumberFormat, NumbersFormat
from penstock.compiler.dialects.itensor_types import ITensorType, expect_itensor, ints, unpack


class _Reordering(IRDLOperation, ABC):
    """One stream in, one stream out: the same data under another type."""

    sym_name = prop_def(StringAttr)
    source = operand_def(ITensorType)
    result = result_def(ITensorType)
    traits = traits_def(Pure())
    assembly_format = "$sym_name $source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, name: str, source: SSAValue, result: ITensorType) -> None:
        super().__init__(operands=[source], result_types=[result], properties={"sym_name": StringAttr(name)})


@irdl_op_definition
class ConverterOp(_Reordering):
    """Changes the layout of a stream through a local buffer."""

    name = "itensor.converter"

    def verify_(self) -> None:
        source, result = expect_itensor(self.source), expect_itensor(self.result)
        if source.data_shape() != result.data_shape() or source.dtype != result.dtype:
            raise VerifyException(
                f"converter {self.sym_name.data}: {source.data_shape()} x {source.dtype} cannot become "
                f"{result.data_shape()} x {result.dtype}; a converter changes the order, not the data"
            )


@irdl_op_definition
class ForkOp(IRDLOperation):
    """Copies a stream for several readers."""

    name = "itensor.fork"
    sym_name = prop_def(StringAttr)
    source = operand_def(ITensorType)
    copies = var_result_def(ITensorType)
    traits = traits_def(Pure())
    assembly_format = "$sym_name $source attr-dict `:` type($source) `->` type($copies)"

    def __init__(self, name: str, source: SSAValue, count: int) -> None:
        super().__init__(
            operands=[source], result_types=[[source.type] * count], properties={"sym_name": StringAttr(name)}
        )

    def verify_(self) -> None:
        if len(self.copies) < 2 or any(c.type != self.source.type for c in self.copies):
            raise VerifyException(f"fork {self.sym_name.data}: needs two or more results of its source's type")


@irdl_op_definition
class ChunkOp(IRDLOperation):
    """Parts of a stream along one dim, each in the order of the whole; `starts` says where each begins."""

    name = "itensor.chunk"
    sym_name = prop_def(StringAttr)
    dim = prop_def(IntAttr)
    starts = prop_def(ArrayAttr[IntAttr])
    source = operand_def(ITensorType)
    parts = var_result_def(ITensorType)
    traits = traits_def(Pure())
    custom_directives = (NumberFormat, NumbersFormat)
    assembly_format = (
        "$sym_name $source `along` custom<NumberFormat>($dim) `at` custom<NumbersFormat>($starts) attr-dict "
        "`:` type($source) `->` type($parts)"
    )

    def __init__(
        self, name: str, source: SSAValue, dim: int, starts: Sequence[int], parts: Sequence[ITensorType]
    ) -> None:
        super().__init__(
            operands=[source],
            result_types=[list(parts)],
            properties={"sym_name": StringAttr(name), "dim": IntAttr(dim), "starts": ints(starts)},
        )

    def verify_(self) -> None:
        name, whole = self.sym_name.data, expect_itensor(self.source)
        if len(self.starts) != len(self.parts) or not self.parts:
            raise VerifyException(f"chunk {name}: needs one start a part, and a part at least")
        for start, part in zip(unpack(self.starts), self.parts, strict=True):
            _check_part(f"chunk {name}", whole, expect_itensor(part), self.dim.data, start)


@irdl_op_definition
class ConcatOp(IRDLOperation):
    """Streams one after the other along one dim, in the order of the whole."""

    name = "itensor.concat"
    sym_name = prop_def(StringAttr)
    dim = prop_def(IntAttr)
    sources = var_operand_def(ITensorType)
    result = result_def(ITensorType)
    traits = traits_def(Pure())
    custom_directives = (NumberFormat,)
    assembly_format = (
        "$sym_name $sources `along` custom<NumberFormat>($dim) attr-dict `:` type($sources) `->` type($result)"
    )

    def __init__(self, name: str, sources: Sequence[SSAValue], dim: int, result: ITensorType) -> None:
        super().__init__(
            operands=[list(sources)],
            result_types=[result],
            properties={"sym_name": StringAttr(name), "dim": IntAttr(dim)},
        )

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each source begins in the result."""
        sizes = [expect_itensor(s).data_shape()[self.dim.data] for s in self.sources]
        return tuple(sum(sizes[:i]) for i in range(len(sizes)))

    def verify_(self) -> None:
        name, whole = self.sym_name.data, expect_itensor(self.result)
        for start, source in zip(self.starts, self.sources, strict=True):
            _check_part(f"concat {name}", whole, expect_itensor(source), self.dim.data, start)
        total = sum(expect_itensor(s).data_shape()[self.dim.data] for s in self.sources)
        if total != whole.data_shape()[self.dim.data]:
            raise VerifyException(f"concat {name}: parts of {total} do not fill {whole.data_shape()}")


@irdl_op_definition
class ReassociateOp(_Reordering):
    """The same elements in the same order as slices of a reshaped tensor."""

    name = "itensor.reassociate"

    def verify_(self) -> None:
        source, result = expect_itensor(self.source), expect_itensor(self.result)
        if source.dtype != result.dtype or not np.array_equal(source.places(), result.places()):
            raise VerifyException(
                f"reassociate {self.sym_name.data}: {source} and {result} do not send the same elements in the same "
                "order; convert to an order that both shapes share first"
            )


def _check_part(what: str, whole: ITensorType, part: ITensorType, dim: int, start: int) -> None:
    """A part has the whole's slices and extents, but for its own range along `dim`."""
    wanted, given = list(whole.data_shape()), list(part.data_shape())
    size = given[dim]
    if part.element != whole.element:
        raise VerifyException(f"{what}: slices of {part.element_shape} out of {whole.element_shape}")
    if start % whole.element_shape[dim] or size % whole.element_shape[dim] or start + size > wanted[dim]:
        raise VerifyException(
            f"{what}: {start} to {start + size} of dim {dim} is no whole number of slices of {whole.element_shape}"
        )
    wanted[dim] = given[dim]
    if wanted != given:
        raise VerifyException(f"{what}: a part of {tuple(given)} along dim {dim} of {whole.data_shape()}")
