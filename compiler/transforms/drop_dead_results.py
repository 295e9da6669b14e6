"""Removes results that nobody reads from operations with several: a maximum arrives with the index of its element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.transforms.editor import LAYER, Editor
from penstock.compiler.transforms.generics import build_generic, iterators_of, maps_of
from penstock.compiler.transforms.rewrite import Rewrite
from penstock.compiler.transforms.simplify_bodies import simplify_body


@dataclass(frozen=True)
class DropDeadResults(Rewrite):
    """Only where one result stays; the rest is for `CheckSupported` to refuse."""

    name: ClassVar[str] = "drop-dead-results"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            live = [index for index, result in enumerate(op.results) if result.first_use is not None]
            if len(op.results) > 1 and len(live) == 1 and _stands_alone(op, live[0]):
                _keep_only(op, live[0])


def _stands_alone(op: linalg.GenericOp, kept: int) -> bool:
    """Whether a result is computed without the running values of the others (the index of a maximum is not)."""
    terminator, block = op.body.block.last_op, op.body.block
    assert terminator is not None
    others = {argument for argument in block.args[len(op.inputs) :] if argument.index != len(op.inputs) + kept}
    needed: list[SSAValue] = [terminator.operands[kept]]
    while needed:
        value = needed.pop()
        if value in others:
            return False
        if isinstance(value.owner, Operation) and value.owner.parent is block:
            needed.extend(value.owner.operands)
    return True


def _keep_only(op: linalg.GenericOp, kept: int) -> None:
    maps, count, layer = maps_of(op), len(op.inputs), op.attributes[LAYER]
    assert isinstance(layer, StringAttr)
    block = op.body.detach_block(0)
    terminator = block.last_op
    assert isinstance(terminator, linalg.YieldOp)
    block.add_op(linalg.YieldOp(terminator.operands[kept]))
    terminator.detach()
    terminator.erase()
    new = build_generic(
        op.inputs, op.outputs[kept], [*maps[:count], maps[count + kept]], iterators_of(op), block, layer.data
    )
    assert op.parent is not None
    new.attributes.update(op.attributes)
    op.parent.insert_op_before(new, op)
    op.results[kept].replace_all_uses_with(new.results[0])
    op.detach()
    op.erase()
    simplify_body(new)
    for argument in reversed(block.args[count:]):
        if argument.index != count + kept:
            block.erase_arg(argument)
