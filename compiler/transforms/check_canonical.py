"""Verifies that a program is in the form that tiling takes, and names the layer that is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.hints import isa

from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import trip_counts
from penstock.compiler.scalars.operations import REDUCTIONS, is_scalar_op, row_of
from penstock.compiler.transforms.editor import LAYER, Editor, layer_of, shape_of
from penstock.compiler.transforms.generics import PARALLEL, body_ops, filled_with, is_reduction, maps_of, yielded
from penstock.compiler.transforms.parts import cut_dims, is_static, moves_data
from penstock.compiler.transforms.rewrite import Rewrite

SOURCE = "penstock.source"
"""The PyTorch operation that an imported one was made from, for error messages."""
_SUPPORTED = "supported are elementwise operations and sums or maxima of them, indexed without strides or windows"


@dataclass(frozen=True)
class CheckCanonical(Rewrite):
    """Changes nothing. Raises for the first operation that is not canonical."""

    name: ClassVar[str] = "check-canonical"

    def rewrite(self, editor: Editor) -> None:
        layers: set[str] = set()
        for op in editor.block.ops:
            match op:
                case linalg.GenericOp():
                    _check_generic(op, editor.program.name)
                    if layer_of(op) in layers:
                        raise unsupported(op, editor.program.name, "a second operation with this name")
                    layers.add(layer_of(op))
                case linalg.FillOp() | tensor.EmptyOp():
                    pass
                case arith.ConstantOp() if not isa(op.result.type, TensorType):
                    pass
                case tensor.ExtractSliceOp():
                    if not is_static(op) or len(cut_dims(op)) != 1:
                        raise unsupported(op, editor.program.name, "a slice of several dims")
                case tensor.ConcatOp():
                    pass
                case func.ReturnOp():
                    for value in op.arguments:
                        _check_returned(editor, value, editor.program.name)
                case tensor.CollapseShapeOp() | tensor.ExpandShapeOp() | SlideOp():
                    pass
                case _:
                    raise unsupported(op, editor.program.name, f"the operation {op.name}")


def _check_returned(editor: Editor, value: SSAValue, model: str) -> None:
    if not isinstance(value.owner, linalg.GenericOp) and not moves_data(value.owner):
        constant = isinstance(value.owner, Operation)
        what = "a constant" if constant else f"{editor.name(value)!r} unchanged"
        raise PenstockError(
            code="unsupported-op", what=f"forward returns {what}", where=model,
            hint="return only values that the model computes from its inputs",
        )  # fmt: skip


def _check_generic(op: linalg.GenericOp, model: str) -> None:
    if len(op.results) != 1:
        raise unsupported(op, model, f"an operation with {len(op.results)} results")
    if LAYER not in op.attributes:
        raise unsupported(op, model, "an operation without a layer name")
    for value, layout in zip(op.operands, maps_of(op), strict=True):
        if not isa(value.type, TensorType):
            raise unsupported(op, model, f"a scalar operand of type {value.type}")
        if any(size < 1 for size in shape_of(value)):
            raise unsupported(op, model, f"a tensor of shape {shape_of(value)}")
        dims = [e.position for e in layout.results if isinstance(e, AffineDimExpr)]
        if len(dims) != len(layout.results) or len(set(dims)) != len(dims):
            raise unsupported(op, model, f"an operand indexed by {layout}")
    written, loops = maps_of(op)[-1].used_dims(), trip_counts(op)
    parallel = {d for d, kind in enumerate(op.iterator_types) if kind == PARALLEL and loops[d] > 1}
    if not parallel <= written:
        raise unsupported(op, model, "an operation that writes its result more than once")
    block = op.body.block
    for inner in body_ops(op):
        if not is_scalar_op(inner) or row_of(inner).cpp is None:
            raise unsupported(op, model, f"the scalar operation {inner.name}", is_ours=True)
        if any(isinstance(x.owner, Operation) and x.owner.parent is not block for x in inner.operands):
            raise unsupported(op, model, "a body that uses values from outside")
    if is_reduction(op):
        _check_reduction(op, model)
    elif block.args[-1].first_use is not None:
        raise unsupported(op, model, "an elementwise operation that reads its own output")


def _check_reduction(op: linalg.GenericOp, model: str) -> None:
    if filled_with(op.outputs[0]) is None:
        raise unsupported(op, model, "a reduction that does not start from a constant")
    accumulator, combine = op.body.block.args[-1], yielded(op).owner
    if not isinstance(combine, REDUCTIONS):
        name = combine.name if isinstance(combine, Operation) else "copying"
        raise unsupported(op, model, f"a reduction by {name}")
    if combine.operands[0] is not accumulator or accumulator.uses.get_length() != 1:
        raise unsupported(op, model, "a reduction whose terms depend on the running result")


def unsupported(op: Operation, model: str, what: str, *, is_ours: bool = False) -> PenstockError:
    """In PyTorch's words where they are known: what is ours is then left out."""
    source = op.attributes.get(SOURCE)
    if isinstance(source, StringAttr):
        what = f"the operation {source.data} is not supported" + ("" if is_ours else f": it needs {what}")
    else:
        what = f"{what} is not supported"
    return PenstockError(
        code="unsupported-op", what=what, where=f"layer '{layer_of(op)}' of {model}", limit=_SUPPORTED,
        hint="replace the layer, or do this step on the host before or after the model",
    )  # fmt: skip
