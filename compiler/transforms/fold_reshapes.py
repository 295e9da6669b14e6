"""Removes reshapes at the border of the function, where the host's C-ordered bytes are the same in both shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import func, tensor
from xdsl.ir import Operation

from penstock.compiler.transforms.editor import Editor, shape_of
from penstock.compiler.transforms.reshapes import refinement, reshape
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class FoldReshapes(Rewrite):
    """An input takes the shape that its readers want; a result is returned in the shape it is computed in.

    The signature keeps the user's shapes: arguments and results may differ from it by a reshape.
    """

    name: ClassVar[str] = "fold-reshapes"

    def rewrite(self, editor: Editor) -> None:
        cancel_reshapes(editor)
        normalise_reshapes(editor)
        for op in reversed(list(editor.block.ops)):
            if is_reshape(op):
                _fold_into_return(op)


def is_reshape(op: object) -> bool:
    return isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp)


def cancel_reshapes(editor: Editor) -> None:
    """Skip pairs of reshapes that undo each other, and give inputs the shape that all their readers want."""
    for op in list(editor.block.ops):
        if is_reshape(op) and op.parent is not None:
            _fold_into_source(editor, op)


def normalise_reshapes(editor: Editor) -> None:
    """A reshape of a reshape splits as little as it must, then merges: no detour through a flat tensor."""
    for op in list(editor.block.ops):
        source = op.operands[0].owner if is_reshape(op) else None
        if isinstance(source, Operation) and is_reshape(source) and op.results[0].first_use is not None:
            _shorten(editor, op, source)


def _shorten(editor: Editor, op: Operation, source: Operation) -> None:
    first, between, last = (shape_of(v) for v in (source.operands[0], op.operands[0], op.results[0]))
    finest = refinement(first, last)
    if finest is None or (isinstance(op, tensor.CollapseShapeOp) and finest == between):
        return
    value = source.operands[0]
    for shape in (finest, last):
        if shape_of(value) != shape:
            new = reshape(value, shape)
            new.attributes.update(op.attributes)
            editor.block.insert_op_before(new, op)
            value = new.results[0]
    op.results[0].replace_all_uses_with(value)


def _fold_into_source(editor: Editor, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    if shape_of(source) == shape_of(result):
        result.replace_all_uses_with(source)
    elif isinstance(source.owner, tensor.CollapseShapeOp | tensor.ExpandShapeOp) and (
        shape_of(source.owner.operands[0]) == shape_of(result)
    ):
        result.replace_all_uses_with(source.owner.operands[0])
    elif editor.is_input(source):
        readers = [use.operation for use in source.uses]
        if all(is_reshape(reader) and reader.results[0].type == result.type for reader in readers):
            argument = editor.retype(source, result.type)
            for reader in readers:
                reader.results[0].replace_all_uses_with(argument)
                reader.detach()
                reader.erase()


def _fold_into_return(op: Operation) -> None:
    for use in list(op.results[0].uses):
        if isinstance(use.operation, func.ReturnOp):
            use.operation.operands[use.index] = op.operands[0]
