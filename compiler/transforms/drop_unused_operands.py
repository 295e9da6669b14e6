"""Removes operands that a body does not read, and reads an operand that is given twice only once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.hints import isa

from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.generics import empty, is_elementwise, maps_of, rebuild
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class DropUnusedOperands(Rewrite):
    """Elementwise operations also get a fresh tensor.empty as output if the body does not read the old one."""

    name: ClassVar[str] = "drop-unused-operands"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            drop_unused_operands(op)


def drop_unused_operands(op: linalg.GenericOp) -> linalg.GenericOp:
    maps, block = maps_of(op), op.body.block
    kept: list[int] = []
    first: dict[tuple[int, AffineMap], int] = {}
    for index, value in enumerate(op.inputs):
        earlier = first.setdefault((id(value), maps[index]), index)
        if earlier != index:
            block.args[index].replace_all_uses_with(block.args[earlier])
        elif block.args[index].first_use is not None or _only_bound(op, maps, index):
            kept.append(index)
    output = _fresh_output(op)
    if len(kept) == len(op.inputs) and output is op.outputs[0]:
        return op
    inputs = [op.inputs[index] for index in kept]
    new_maps = [*(maps[index] for index in kept), maps[-1]]
    for index in reversed(range(len(op.inputs))):
        if index not in kept:
            block.erase_arg(block.args[index])
    return rebuild(op, inputs=inputs, init=output, maps=new_maps)


def _only_bound(op: linalg.GenericOp, maps: list[AffineMap], index: int) -> bool:
    """Whether a loop's trip count is known from this operand alone."""
    if not isa(op.inputs[index].type, TensorType):
        return False
    others: set[int] = set()
    for position, layout in enumerate(maps):
        if position > index or (position < index and op.body.block.args[position].first_use is not None):
            others |= layout.used_dims()
    return not maps[index].used_dims() <= others | maps[-1].used_dims()


def _fresh_output(op: linalg.GenericOp) -> SSAValue:
    argument: Any = op.body.block.args[-1]
    output = op.outputs[0]
    if not is_elementwise(op) or argument.first_use is not None or isinstance(output.owner, tensor.EmptyOp):
        return output
    fresh = empty(output.type)
    assert op.parent is not None
    op.parent.insert_op_before(fresh, op)
    return fresh.tensor
