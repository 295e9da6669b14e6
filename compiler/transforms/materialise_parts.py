"""Puts a copy where a constant or a parameter is joined with computed values, so that it has a stream of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.interpreter.linalg import execute
from penstock.compiler.transforms.editor import Editor, layer_of, shape_of
from penstock.compiler.transforms.generics import PARALLEL, build_generic, empty, filled_with
from penstock.compiler.transforms.parts import is_slice_or_concat
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class MaterialiseParts(Rewrite):
    """Parameters alone are cut and joined at compile time: see `FoldParameters`."""

    name: ClassVar[str] = "materialise-parts"

    def rewrite(self, editor: Editor) -> None:
        for op in list(editor.block.ops):
            if is_slice_or_concat(op):
                for index, value in enumerate(op.operands):
                    source = _as_param(editor, op, value)
                    if editor.is_param(source):
                        op.operands[index] = _copy(editor, op, source)


def _as_param(editor: Editor, op: Operation, value: SSAValue) -> SSAValue:
    number, fill = filled_with(value), value.owner
    if number is None or not isinstance(fill, linalg.FillOp):
        return value
    data = execute(fill, {number.result: execute(number, {})})[0]
    return editor.add_param(f"{layer_of(op)}.constant", data)


def _copy(editor: Editor, op: Operation, source: SSAValue) -> SSAValue:
    element = get_element_type_or_self(source.type)
    block = Block(arg_types=[element] * 2)
    block.add_op(linalg.YieldOp(block.args[0]))
    rank = len(shape_of(source))
    layer = editor.free_layer(f"{layer_of(op)}.part")
    target = empty(source.type)
    copy = build_generic([source], target.tensor, [AffineMap.identity(rank)] * 2, [PARALLEL] * rank, block, layer)
    editor.block.insert_ops_before([target, copy], op)
    return copy.results[0]
