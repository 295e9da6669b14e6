"""A stream slice by slice: placeholders, FIFOs to be, and what pulls from and pushes into them.

Pushing carries its destination: `itensor.write` takes a stream and gives the stream with one more slice in it, so
that definitions and uses stay plain until the stream level, where FIFOs are mutable.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, TensorType, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.itensor_types import ITensorType, expect_itensor
from penstock.compiler.dialects.stream import StreamType


@irdl_op_definition
class EmptyOp(IRDLOperation):
    """A stream that nothing has been written to."""

    name = "itensor.empty"
    result = result_def(ITensorType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result: ITensorType) -> None:
        super().__init__(result_types=[result])


@irdl_op_definition
class InstanceOp(IRDLOperation):
    """A stream that becomes a FIFO of its own."""

    name = "itensor.instance"
    sym_name = prop_def(StringAttr)
    result = result_def(ITensorType)
    assembly_format = "$sym_name attr-dict `:` type($result)"

    def __init__(self, name: str, result: ITensorType) -> None:
        super().__init__(result_types=[result], properties={"sym_name": StringAttr(name)})


@irdl_op_definition
class ReadOp(IRDLOperation):
    """Pulls the next slice; `init` is the tensor that it is stored to, where it is one."""

    name = "itensor.read"
    source = operand_def(ITensorType)
    init = opt_operand_def(TensorType)
    value = result_def(TensorType | VectorType)
    assembly_format = "$source (`init` $init^ `:` type($init))? attr-dict `:` type($source) `->` type($value)"

    def __init__(self, source: SSAValue, value: Attribute, init: SSAValue | None = None) -> None:
        super().__init__(operands=[source, init], result_types=[value])

    def verify_(self) -> None:
        _check_slice("read", expect_itensor(self.source), self.value.type)
        if self.init is not None and self.init.type != self.value.type:
            raise VerifyException(f"read: {self.value.type} cannot be stored to an init of {self.init.type}")


@irdl_op_definition
class WriteOp(IRDLOperation):
    """Pushes a slice: the result is the destination with it."""

    name = "itensor.write"
    value = operand_def(TensorType | VectorType)
    dest = operand_def(ITensorType)
    result = result_def(ITensorType)
    assembly_format = "$value `into` $dest attr-dict `:` type($value) `,` type($dest) `->` type($result)"

    def __init__(self, value: SSAValue, dest: SSAValue) -> None:
        super().__init__(operands=[value, dest], result_types=[dest.type])

    def verify_(self) -> None:
        _check_slice("write", expect_itensor(self.dest), self.value.type)
        if self.dest.type != self.result.type:
            raise VerifyException(f"write: into {self.dest.type} gives {self.result.type}; it is the same stream")


@irdl_op_definition
class ToStreamOp(IRDLOperation):
    """A stream with its order as the FIFO that carries it; lowering leaves none."""

    name = "itensor.to_stream"
    source = operand_def(ITensorType)
    result = result_def(StreamType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, result: StreamType) -> None:
        super().__init__(operands=[source], result_types=[result])

    def verify_(self) -> None:
        _check_token("to_stream", expect_itensor(self.source), self.result.type)


@irdl_op_definition
class FromStreamOp(IRDLOperation):
    """A FIFO as a stream whose order is known; lowering leaves none."""

    name = "itensor.from_stream"
    source = operand_def(StreamType)
    result = result_def(ITensorType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, result: ITensorType) -> None:
        super().__init__(operands=[source], result_types=[result])

    def verify_(self) -> None:
        _check_token("from_stream", expect_itensor(self.result), self.source.type)


def _check_slice(what: str, stream: ITensorType, value: Attribute) -> None:
    if value not in (stream.element, VectorType(stream.dtype, stream.element_shape)):
        raise VerifyException(f"{what}: {value} is no slice of {stream}")


def _check_token(what: str, stream: ITensorType, fifo: Attribute) -> None:
    token = VectorType(stream.dtype, stream.element_shape)
    if not isinstance(fifo, StreamType) or fifo.token != token:
        raise VerifyException(f"{what}: {stream} is carried by tokens of {token}, not by {fifo}")
