"""Refuses, before any pass runs, what no pass can bring into the canonical form, and names its layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import TensorType, UnregisteredOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr
from xdsl.utils.hints import isa

from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.errors import Mistakes
from penstock.compiler.scalars.operations import is_scalar_op
from penstock.compiler.transforms.check_canonical import SOURCE, unsupported
from penstock.compiler.transforms.editor import Editor, shape_of
from penstock.compiler.transforms.generics import maps_of
from penstock.compiler.transforms.parts import is_static
from penstock.compiler.transforms.rewrite import Rewrite

_RESHAPES = (tensor.CollapseShapeOp, tensor.ExpandShapeOp)
_MOVES = (linalg.FillOp, tensor.EmptyOp, *_RESHAPES, tensor.ConcatOp, SlideOp, func.ReturnOp)


@dataclass(frozen=True)
class CheckSupported(Rewrite):
    """Forgets from which PyTorch operations the program was made, once all are accepted; changes nothing else."""

    name: ClassVar[str] = "check-supported"

    def rewrite(self, editor: Editor) -> None:
        mistakes = Mistakes()
        for op in editor.block.ops:
            with mistakes.noted():
                _check(op, editor.program.name)
        mistakes.raise_first()
        for op in editor.block.ops:
            op.attributes.pop(SOURCE, None)


def _check(op: Operation, model: str) -> None:
    if isinstance(op, linalg.GenericOp):
        _check_generic(op, model)
    elif isinstance(op, UnregisteredOp):
        raise unsupported(op, model, f"the operation {op.op_name.data}", is_ours=True)
    elif isinstance(op, tensor.ExtractSliceOp):
        _check_slice(op, model)
    elif not isinstance(op, _MOVES) and not isinstance(op, arith.ConstantOp) and not is_scalar_op(op):
        raise unsupported(op, model, f"the operation {op.name}", is_ours=True)


def _check_slice(op: tensor.ExtractSliceOp, model: str) -> None:
    strides = op.static_strides.get_values()
    if not is_static(op):
        raise unsupported(op, model, "a slice whose place is not known at compile time")
    if any(stride != 1 for stride in strides):
        raise unsupported(op, model, f"a slice with steps of {max(strides)}")


def _check_generic(op: linalg.GenericOp, model: str) -> None:
    if len(op.results) != 1:
        raise unsupported(op, model, f"an operation with {len(op.results)} results")
    for value, layout in zip(op.operands, maps_of(op), strict=True):
        if isa(value.type, TensorType) and any(size < 1 for size in shape_of(value)):
            raise unsupported(op, model, f"a tensor of shape {shape_of(value)}")
        for expr in layout.results:
            if not isinstance(expr, AffineDimExpr) and expr != AffineConstantExpr(0):
                raise unsupported(op, model, "a window or stride")
    for inner in op.body.block.ops:
        if not _is_body_op(inner):
            name = inner.op_name.data if isinstance(inner, UnregisteredOp) else inner.name
            raise unsupported(op, model, f"the scalar operation {name}", is_ours=True)


def _is_body_op(op: Operation) -> bool:
    return is_scalar_op(op) or isinstance(op, linalg.YieldOp | linalg.IndexOp)
