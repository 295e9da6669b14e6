"""Computes at compile time what depends on parameters and constants alone: weight transposes, batch-norm scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.arrays import Array
from penstock.compiler.interpreter.linalg import execute, run_generic
from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.transforms.editor import Editor, layer_of, shape_of
from penstock.compiler.transforms.generics import filled_with, scalar_constant
from penstock.compiler.transforms.parts import is_slice_or_concat
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class FoldParameters(Rewrite):
    """`growth`: a result may be so many times larger than the parameters it is made from. 1 keeps broadcasts.

    With `integers` only what is made of integers or gives them is computed, however large: counted places and
    distances, which are exact and have no scale of their own.
    """

    name: ClassVar[str] = "fold-parameters"

    growth: float = 1.0
    integers: bool = False

    def rewrite(self, editor: Editor) -> None:
        for op in list(editor.block.ops):
            result = self._evaluate(editor, op)
            if result is not None:
                editor.replace_by_param(op, _name(editor, op), result)

    def _evaluate(self, editor: Editor, op: Operation) -> Array | None:
        if isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
            source = op.operands[0]
            return editor.data(source).reshape(shape_of(op.results[0])) if editor.is_param(source) else None
        if is_slice_or_concat(op):
            known = all(editor.is_param(source) for source in op.operands)
            return execute(op, {x: editor.data(x)[None] for x in op.operands})[0] if known else None
        if isinstance(op, arith.ConstantOp) and isa(op.result.type, TensorType):
            return evaluate(op, [])
        if not isinstance(op, linalg.GenericOp):
            return None
        params = [x for x in op.inputs if editor.is_param(x)]
        values: dict[SSAValue, Array] = {}
        for value in op.operands:
            known = _known(editor, value)
            if known is None:
                return None
            values[value] = known
        if self.integers and not any(isinstance(get_element_type_or_self(x.type), IntegerType)
                                     for x in (*params, op.results[0])):  # fmt: skip
            return None
        given = sum(editor.data(x).size for x in params)
        size = 1
        for extent in shape_of(op.results[0]):
            size *= extent
        if params and not self.integers and size > self.growth * given:
            return None
        return run_generic(op, values)[0]


def _name(editor: Editor, op: Operation) -> str:
    if isinstance(op, arith.ConstantOp):
        return "constant"
    sources = [editor.name(x) for x in op.operands if editor.is_param(x)]
    return sources[0] if len(sources) == 1 else layer_of(op)


def _known(editor: Editor, value: SSAValue) -> Array | None:
    """The value of an operand at compile time, with the interpreter's axis of runs; None if it is not known."""
    if editor.is_param(value):
        return editor.data(value)[None]
    scalar = scalar_constant(value)
    if scalar is not None:
        return scalar
    owner = value.owner
    if isinstance(owner, tensor.EmptyOp):
        return execute(owner, {})
    filling = filled_with(value)
    if isinstance(owner, linalg.FillOp) and filling is not None:
        return execute(owner, {filling.result: execute(filling, {})})
    return None
