"""Writes the initial values of operations in their canonical forms.

A generic that only yields a constant becomes linalg.fill. An elementwise operation reads no old output: what it read
becomes an operand. A reduction starts from a constant: another start is added by an operation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.hints import isa
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.transforms.editor import Editor, layer_of, shape_of
from penstock.compiler.transforms.generics import (
    PARALLEL,
    build_generic,
    constant,
    empty,
    filled_with,
    is_elementwise,
    is_reduction,
    maps_of,
    rebuild,
    replace,
    scalar_constant,
    yielded,
)
from penstock.compiler.transforms.rewrite import Rewrite

_IDENTITIES: dict[type[Operation], float] = {arith.AddfOp: 0.0, arith.AddiOp: 0}


@dataclass(frozen=True)
class RaiseFills(Rewrite):
    name: ClassVar[str] = "raise-fills"

    def rewrite(self, editor: Editor) -> None:
        for op in list(editor.block.ops):
            if isinstance(op, arith.ConstantOp) and isa(op.result.type, TensorType):
                _splat_to_fill(op)
        for op in editor.generics():
            if is_elementwise(op) and not op.inputs and scalar_constant(yielded(op)) is not None:
                _to_fill(op)
        for op in editor.generics():
            if is_elementwise(op) and op.body.block.args[-1].first_use is not None:
                _read_output_as_input(op)
            elif is_reduction(op) and filled_with(op.outputs[0]) is None:
                _start_from_constant(editor, op)


def _splat_to_fill(op: arith.ConstantOp) -> None:
    numbers = evaluate(op, [])
    if np.all(numbers == numbers.flat[0]):
        source = constant(numbers.flat[0], get_element_type_or_self(op.result.type))
        target = empty(op.result.type)
        replace(op, [source, target, linalg.FillOp([source.result], [target.tensor])])


def _to_fill(op: linalg.GenericOp) -> None:
    value = yielded(op)
    number = scalar_constant(value)
    assert number is not None
    source, target = constant(number, value.type), empty(op.results[0].type)
    replace(op, [source, target, linalg.FillOp([source.result], [target.tensor])])


def _read_output_as_input(op: linalg.GenericOp) -> None:
    block, maps = op.body.block, maps_of(op)
    old = op.outputs[0]
    as_input = block.insert_arg(block.args[-1].type, len(op.inputs))
    block.args[-1].replace_all_uses_with(as_input)
    fresh = empty(old.type)
    assert op.parent is not None
    op.parent.insert_op_before(fresh, op)
    rebuild(op, inputs=[*op.inputs, old], init=fresh.tensor, maps=[*maps[:-1], maps[-1], maps[-1]])


def _start_from_constant(editor: Editor, op: linalg.GenericOp) -> None:
    combine: Any = yielded(op).owner
    if type(combine) not in _IDENTITIES:
        raise PenstockError(
            code="unsupported-op",
            what=f"a reduction by {combine.name} that starts from a tensor",
            where=layer_of(op),
            limit="reductions start from a constant; only sums may start from a tensor",
        )
    start, kind = op.outputs[0], op.results[0].type
    zero = constant(_IDENTITIES[type(combine)], combine.results[0].type)
    target = empty(kind)
    fill = linalg.FillOp([zero.result], [target.tensor])
    assert op.parent is not None
    op.parent.insert_ops_before([zero, target, fill], op)
    reduced = rebuild(op, init=fill.results[0])
    _add_after(editor, reduced, start)


def _add_after(editor: Editor, reduced: linalg.GenericOp, start: SSAValue) -> None:
    element = yielded(reduced).type
    block = Block(arg_types=[element] * 3)
    add_class = type(yielded(reduced).owner)
    assert issubclass(add_class, arith.AddfOp | arith.AddiOp)
    total = add_class(block.args[0], block.args[1])
    block.add_ops([total, linalg.YieldOp(total.result)])
    target = empty(reduced.results[0].type)
    identity = AffineMap.identity(len(shape_of(reduced.results[0])))
    layer = editor.free_layer(f"{layer_of(reduced)}.start")
    uses = list(reduced.results[0].uses)
    added = build_generic(
        [reduced.results[0], start], target.tensor, [identity] * 3, [PARALLEL] * identity.num_dims, block, layer
    )
    assert reduced.parent is not None
    reduced.parent.insert_ops_after([target, added], reduced)
    for use in uses:
        use.operation.operands[use.index] = added.results[0]
