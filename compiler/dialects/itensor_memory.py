"""Loads and stores: the tasks between external memory and streams."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.itensor_types import ITensorType, LayoutAttr, expect_itensor
from penstock.compiler.dialects.types import tensor_type


class _TransferOp(IRDLOperation, ABC):
    """What loads and stores have in common.

    `layout` says how the tensor lies in external memory. With `through`, words pass in that order to or from a
    block, one being moved while the other is used.
    """

    sym_name = prop_def(StringAttr)
    layout = opt_prop_def(LayoutAttr)
    through = opt_prop_def(ITensorType)
    source = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$sym_name $source (`in` $layout^)? (`through` $through^)? attr-dict `:` type($source) `->` type($result)"
    )

    def __init__(
        self,
        name: str,
        source: SSAValue,
        result: Attribute,
        layout: LayoutAttr | None = None,
        through: ITensorType | None = None,
    ) -> None:
        properties = {"sym_name": StringAttr(name), "layout": layout, "through": through}
        super().__init__(operands=[source], result_types=[result], properties=properties)

    @property
    @abstractmethod
    def tensor(self) -> SSAValue:
        """The side in external memory."""

    @property
    @abstractmethod
    def stream(self) -> SSAValue:
        """The other side."""

    @property
    def words(self) -> ITensorType:
        """The order in which memory is accessed."""
        return self.through or expect_itensor(self.stream)

    def verify_(self) -> None:
        what, stream = f"{self.name.removeprefix('itensor.')} {self.sym_name.data}", expect_itensor(self.stream)
        _check_covers(what, self.tensor.type, stream, self.layout)
        _check_through(what, self.words, stream, self.layout)


@irdl_op_definition
class LoadOp(_TransferOp):
    """DMA from external memory: streams a tensor in the order of the result's type."""

    name = "itensor.load"
    source = operand_def(TensorType)
    result = result_def(ITensorType)

    @property
    def tensor(self) -> SSAValue:
        return self.source

    @property
    def stream(self) -> SSAValue:
        return self.result


@irdl_op_definition
class StoreOp(_TransferOp):
    """DMA to external memory: writes a stream into a tensor."""

    name = "itensor.store"
    source = operand_def(ITensorType)
    result = result_def(TensorType)

    @property
    def tensor(self) -> SSAValue:
        return self.result

    @property
    def stream(self) -> SSAValue:
        return self.source


def _check_covers(what: str, tensor: Attribute, stream: ITensorType, layout: LayoutAttr | None) -> None:
    kind = tensor_type(tensor)
    shape = stream.data_shape()
    if layout is None:
        if tuple(kind.get_shape()) != shape or kind.element_type != stream.dtype:
            raise VerifyException(f"{what}: {stream} covers {shape}, the tensor is {tensor}")
        return
    tile = layout.layout.tile
    if len(tile) != len(shape) or any(n % t for n, t in zip(shape, tile, strict=True)):
        raise VerifyException(f"{what}: tile {tile} does not divide {shape}")
    if kind != layout.packed(stream):
        raise VerifyException(f"{what}: {shape} in {layout} lies as {layout.packed(stream)}, the tensor is {tensor}")


def _check_through(what: str, words: ITensorType, stream: ITensorType, layout: LayoutAttr | None) -> None:
    """Packed memory is accessed a whole word at a time, in an order that covers the stream's data."""
    if layout is not None and words.element_shape != layout.layout.word:
        raise VerifyException(f"{what}: moves slices of {words.element_shape}, a word is {layout.layout.word}")
    if words.data_shape() != stream.data_shape() or words.dtype != stream.dtype:
        raise VerifyException(f"{what}: {words} covers {words.data_shape()}, the stream {stream.data_shape()}")
