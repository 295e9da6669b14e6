"""Brings constants into the bodies that use them, so that every body can be read on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.generics import constant, filled_with, scalar_constant
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class InlineConstants(Rewrite):
    """Captured constants, scalar operands, filled tensors and one-element parameters become body constants.

    Their operands stay, unread; `DropUnusedOperands` removes them.
    """

    name: ClassVar[str] = "inline-constants"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            _inline_captured(op)
            for argument, value in zip(op.body.block.args, op.inputs, strict=False):
                found = _known_value(editor, value)
                if found is not None and argument.first_use is not None:
                    op.body.block.insert_op_before(found, _first(op))
                    argument.replace_all_uses_with(found.result)


def _first(op: linalg.GenericOp) -> Operation:
    first = op.body.block.first_op
    assert first is not None
    return first


def _inline_captured(op: linalg.GenericOp) -> None:
    inlined: dict[SSAValue, arith.ConstantOp] = {}
    for inner in list(op.body.block.ops):
        for index, operand in enumerate(inner.operands):
            source = operand.owner
            if isinstance(source, arith.ConstantOp) and source.parent is not op.body.block:
                if operand not in inlined:
                    inlined[operand] = source.clone()
                    op.body.block.insert_op_before(inlined[operand], _first(op))
                inner.operands[index] = inlined[operand].result


def _known_value(editor: Editor, value: SSAValue) -> arith.ConstantOp | None:
    """A constant with the value of an operand that is the same everywhere."""
    if not isa(value.type, TensorType):
        number = scalar_constant(value)
        return None if number is None else constant(number, value.type)
    filling = filled_with(value)
    if filling is not None:
        return filling.clone()
    if editor.is_param(value) and editor.data(value).size == 1:
        return constant(editor.data(value), value.type.get_element_type())
    return None
