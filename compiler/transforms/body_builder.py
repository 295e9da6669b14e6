"""Builds an elementwise operation anew, with other types: the values that it reads, and parameters made on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import IntegerType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from penstock.compiler.arrays import Array
from penstock.compiler.interpreter.linalg import trip_counts
from penstock.compiler.transforms.editor import layer_of, shape_of, tensor_of
from penstock.compiler.transforms.generics import (
    build_generic,
    constant,
    empty,
    iterators_of,
    maps_of,
    without_unused_loops,
)
from penstock.compiler.transforms.quantiser import Quantiser


@dataclass
class BodyBuilder:
    """Collects the operands of a new generic: values that are read and parameters made on the way."""

    op: linalg.GenericOp
    inputs: list[SSAValue] = field(default_factory=list[SSAValue])
    maps: list[AffineMap] = field(default_factory=list[AffineMap])
    made: list[tuple[str, Array, int]] = field(default_factory=list[tuple[str, Array, int]])
    block: Block = field(default_factory=Block)

    def __post_init__(self) -> None:
        self.trips = trip_counts(self.op)

    def read(self, value: SSAValue, layout: AffineMap, element: Attribute) -> SSAValue:
        self.inputs.append(value)
        self.maps.append(layout)
        return self.block.insert_arg(element, len(self.block.args))

    def numbers(self, numbers: Array, element: IntegerType | None, what: str) -> SSAValue:
        """Numbers spread over the loops: a constant if there is one only, else a new parameter."""
        kind = f32 if element is None else element
        if numbers.size == 1 or np.all(numbers == numbers.flat[0]):
            op = constant(numbers.flat[0], kind)
            self.block.add_op(op)
            return op.result
        dtype = np.dtype(np.float32) if element is None else np.dtype(f"int{element.width.data}")
        rows = numbers if numbers.ndim > len(self.trips) else numbers[None]
        if np.all(rows == rows[:1]):
            rows = rows[:1]
        loops = [d for d, size in enumerate(rows.shape[1:]) if size > 1]
        if not loops and self.trips:  # one number a layer: along the innermost loop
            loops = [len(self.trips) - 1]
            rows = np.broadcast_to(rows, (*rows.shape[:-1], self.trips[-1]))
        data = rows.reshape([len(rows), *(rows.shape[1 + d] for d in loops)]).astype(dtype)
        self.made.append((what, data, len(self.block.args)))
        layout = AffineMap(len(self.trips), 0, tuple(AffineDimExpr(d) for d in loops))
        self.inputs.append(self.op.results[0])  # stands in for the parameter until the body is complete
        self.maps.append(layout)
        return self.block.insert_arg(kind, len(self.block.args))

    def spread(self, numbers: Array, layout: AffineMap) -> Array:
        """An operand's numbers along its dimensions, laid out along the loops."""
        if numbers.ndim > len(layout.results):
            return np.stack([self.spread(row, layout) for row in numbers])
        loops = [expr.position for expr in layout.results if isinstance(expr, AffineDimExpr)]
        arranged = numbers.transpose(sorted(range(len(loops)), key=lambda axis: loops[axis]))
        extents = {loop: numbers.shape[axis] for axis, loop in enumerate(loops)}
        return arranged.reshape([extents.get(d, 1) for d in range(len(self.trips))])

    def build(self, state: Quantiser, result: SSAValue, names: dict[str, str]) -> linalg.GenericOp:
        op = self.op
        for what, data, index in self.made:
            self.inputs[index] = state.param(names.get(what, f"{layer_of(op)}.{what}"), data)
        target = empty(tensor_of(shape_of(op.results[0]), result.type))
        self.block.insert_arg(result.type, len(self.block.args))
        self.block.add_op(linalg.YieldOp(result))
        maps, iterators = without_unused_loops([*self.maps, maps_of(op)[-1]], iterators_of(op))
        new = build_generic(self.inputs, target.tensor, maps, iterators, self.block, layer_of(op))
        assert op.parent is not None
        op.parent.insert_ops_before([target, new], op)
        return new


def along_result(scale: Array, layout: AffineMap) -> Array:
    """A scale along the loops, laid out along the result's dimensions."""
    full = np.asarray(scale)
    loops = [expr.position for expr in layout.results if isinstance(expr, AffineDimExpr)]
    others = [d for d in range(full.ndim) if d not in loops]
    return full.transpose([*loops, *others]).reshape([full.shape[d] for d in loops])
