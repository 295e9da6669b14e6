"""Puts an elementwise operation between two reductions that follow each other directly.

Quantisation narrows values in elementwise operations, and a reduction reads narrow values.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block
from xdsl.ir.affine import AffineMap
from xdsl.utils.type import get_element_type_or_self

from compiler.program import Program
from compiler.transforms.editor import Editor, layer_of, shape_of, unique_name
from compiler.transforms.generics import PARALLEL, build_generic, empty, is_reduction


@dataclass(frozen=True)
class InsertRequantise:
    def apply(self, program: Program) -> Program:
        editor = Editor(program)
        for op in editor.generics():
            result = op.results[0]
            readers = [use for use in result.uses if is_reduction(use.operation)]
            if not is_reduction(op) or not readers:
                continue
            block = Block(arg_types=[get_element_type_or_self(result.type)] * 2)
            block.add_op(linalg.YieldOp(block.args[0]))
            target, rank = empty(result.type), len(shape_of(result))
            identity = AffineMap.identity(rank)
            layer = unique_name(f"{layer_of(op)}.requantise", editor.taken_layers())
            copy = build_generic([result], target.tensor, [identity] * 2, [PARALLEL] * rank, block, layer)
            editor.block.insert_ops_after([target, copy], op)
            for use in readers:
                use.operation.operands[use.index] = copy.results[0]
        return editor.finish()
