"""Makes an operand of every one-element tensor that a body reaches out for: MLIR inlines such reads as extractions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineConstantExpr, AffineMap
from xdsl.utils.hints import isa

from penstock.compiler.transforms.editor import Editor, shape_of
from penstock.compiler.transforms.generics import maps_of, rebuild
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class RaiseExtracts(Rewrite):
    """An element of a larger tensor depends on an index: that stays, and is refused by name."""

    name: ClassVar[str] = "raise-extracts"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            _raise(op)


def _raise(op: linalg.GenericOp) -> None:
    inputs, maps, block = list(op.inputs), maps_of(op), op.body.block
    for inner in list(block.ops):
        if isinstance(inner, tensor.ExtractOp) and all(size == 1 for size in shape_of(inner.tensor)):
            kind = inner.tensor.type
            assert isa(kind, TensorType)
            argument = block.insert_arg(inner.result.type, len(inputs))
            zeros = tuple(AffineConstantExpr(0) for _ in kind.get_shape())
            maps.insert(len(inputs), AffineMap(len(op.iterator_types), 0, zeros))
            inputs.append(inner.tensor)
            inner.result.replace_all_uses_with(argument)
            inner.detach()
            inner.erase()
    if len(inputs) > len(op.inputs):
        attributes = dict(op.attributes)
        rebuild(op, inputs=inputs, maps=maps).attributes.update(attributes)
