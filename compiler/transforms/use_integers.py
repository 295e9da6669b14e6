"""Integer tensors where a float model computes with whole numbers times a scale, as quantised files do.

Whole numbers begin where a value is rounded within bounds. They flow on through what moves data, through products with
weights that are such numbers too, sums and maxima, and through elementwise operations (`whole_numbers`), at the scales
that they have; a tensor of 256 or fewer numbers is stored in eight bits, with an offset where it has no sign. So a
convolution of a quantised model multiplies i8 by i8 into i32. What else reads such a tensor scales it back itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import IntegerAttr, IntegerType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import trip_counts
from penstock.compiler.scalars.operations import evaluate, is_scalar_op
from penstock.compiler.transforms.body_builder import BodyBuilder, along_result
from penstock.compiler.transforms.editor import Editor, layer_of, shape_of, tensor_of
from penstock.compiler.transforms.find_grid import find_grid
from penstock.compiler.transforms.fixed_point import KnownNumbers, NotFixedPoint, TooWide
from penstock.compiler.transforms.generics import (
    PARALLEL,
    REDUCTION,
    body_ops,
    build_generic,
    empty,
    filled_with,
    is_reduction,
    maps_of,
    scalar_constant,
    yielded,
)
from penstock.compiler.transforms.parts import bounds, concat_along, cut_dims, moves_data, slice_along
from penstock.compiler.transforms.quantise_reductions import insert_reduction, loop_of, product_sum, reduced_terms
from penstock.compiler.transforms.quantiser import Quantiser
from penstock.compiler.transforms.reshapes import reshape
from penstock.compiler.transforms.rewrite import Rewrite
from penstock.compiler.transforms.simplify_bodies import simplify_body
from penstock.compiler.transforms.whole_numbers import ROUNDINGS, BodyNumber, BodyTranslator, Real, Scaled

_LARGEST_SHIFT = 54
_ACCUMULATOR = 1 << 31


@dataclass(frozen=True)
class UseIntegers(Rewrite):
    """Programs whose layers share the accelerator stay as they are: each layer has scales of its own."""

    name: ClassVar[str] = "use-integers"

    def rewrite(self, editor: Editor) -> None:
        if editor.program.layers is None and editor.program.has_weights:
            _Integers(editor).rewrite()


@dataclass(frozen=True)
class _Grid:
    """How a tensor's integers stand for its numbers: as `Scaled` has it, but along the dims of the tensor."""

    scale: Array
    offset: Array
    low: int
    high: int
    width: int

    @property
    def is_even(self) -> bool:
        return self.scale.size == 1 and self.offset.size == 1


@dataclass
class _Integers:
    editor: Editor
    state: Quantiser = field(init=False)
    grids: dict[SSAValue, _Grid] = field(default_factory=dict[SSAValue, _Grid])
    """Of tensors that are integers now; the old operation's result takes part as the new one's."""

    def __post_init__(self) -> None:
        self.state = Quantiser(self.editor, {})

    def rewrite(self) -> None:
        for op in list(self.editor.block.ops):
            try:
                if isinstance(op, linalg.GenericOp):
                    (self._reduce if is_reduction(op) else self._compute)(op)
                elif moves_data(op) and any(x in self.grids for x in op.operands):
                    self._move(op)
            except NotFixedPoint:
                self._take_reals(op)
        self._return_reals()
        self.editor.remove_dead()
        for argument, name in self.state.names.items():
            if argument in self.editor.block.args:
                self.editor.rename(argument, name)

    def _define(self, old: Operation, new: Operation, grid: _Grid) -> None:
        if new.parent is None:
            assert old.parent is not None
            old.parent.insert_op_before(new, old)
        self.grids[new.results[0]] = grid
        old.results[0].replace_all_uses_with(new.results[0])
        old.detach()
        old.erase()

    def _take_reals(self, op: Operation) -> None:
        """Gives a float operation its operands as floats again."""
        for index, value in enumerate(op.operands):
            if value in self.grids:
                op.operands[index] = self._real(value, op)

    def _return_reals(self) -> None:
        terminator = self.editor.block.last_op
        assert isinstance(terminator, func.ReturnOp)
        self._take_reals(terminator)

    def _real(self, value: SSAValue, before: Operation) -> SSAValue:
        rank, block = len(shape_of(value)), Block(arg_types=[f32, f32])
        block.add_op(linalg.YieldOp(block.args[0]))
        target, identity = empty(tensor_of(shape_of(value), f32)), AffineMap.identity(rank)
        owner = value.owner
        layer = self.editor.free_layer(f"{layer_of(owner) if isinstance(owner, Operation) else 'input'}.scale")
        copy = build_generic([value], target.tensor, [identity] * 2, [PARALLEL] * rank, block, layer)
        assert before.parent is not None
        before.parent.insert_ops_before([target, copy], before)
        builder, result, _ = self._body(copy, 0, is_real=True)
        return self._put(copy, builder, result)

    def _put(self, op: linalg.GenericOp, builder: BodyBuilder, result: BodyNumber) -> SSAValue:
        assert not isinstance(result, KnownNumbers)
        new = builder.build(self.state, result.value, {})
        simplify_body(new)
        op.results[0].replace_all_uses_with(new.results[0])
        op.detach()
        op.erase()
        return new.results[0]

    def _read(self, builder: BodyBuilder, value: SSAValue, layout: AffineMap) -> BodyNumber:
        if self.editor.is_param(value):
            data = self.editor.data(value)
            if data.dtype == np.float32:
                return KnownNumbers(builder.spread(data, layout))
        if (grid := self.grids.get(value)) is None:
            kind: Any = value.type
            return Real(builder.read(value, layout, kind.element_type))
        scale, offset = builder.spread(grid.scale, layout), builder.spread(grid.offset, layout)
        read = builder.read(value, layout, IntegerType(grid.width))
        return Scaled(read, scale, grid.low, grid.high, grid.width, offset)

    # elementwise operations

    def _compute(self, op: linalg.GenericOp) -> None:
        if not any(x in self.grids for x in op.inputs) and not any(_rounds(inner) for inner in body_ops(op)):
            return
        if get_element_type_or_self(op.results[0].type) != f32:
            raise NotFixedPoint("no float result")
        is_real = all(isinstance(use.operation, func.ReturnOp) for use in op.results[0].uses)
        _, _, shift = self._body(op, None, is_real=is_real)
        for tried in [shift] if shift is not None else range(_LARGEST_SHIFT, 0, -1):
            try:
                builder, result, _ = self._body(op, tried, is_real=is_real)
                break
            except TooWide:
                continue
        else:
            raise NotFixedPoint("no common scale fits 64 bits")
        written = maps_of(op)[-1]
        new = self._put(op, builder, result)
        if isinstance(result, Scaled):
            ones = np.ones([1] * len(builder.trips), np.int64)  # what is one number is so along every loop
            scale, offset = (along_result(x * ones, written) for x in (result.scale, result.offset))
            self.grids[new] = _Grid(scale, offset, result.low, result.high, result.width)

    def _body(
        self, op: linalg.GenericOp, shift: int | None, *, is_real: bool
    ) -> tuple[BodyBuilder, BodyNumber, int | None]:
        """The body at one shift, or as if any fitted; and the shift at which it is exact."""
        builder = BodyBuilder(op)
        given: dict[SSAValue, BodyNumber] = {
            argument: self._read(builder, value, layout)
            for argument, value, layout in zip(op.body.block.args, op.inputs, maps_of(op), strict=False)
        }
        found = _known_numbers(body_ops(op), given)
        translator = BodyTranslator(builder.block, builder.numbers, shift, found)
        for inner in body_ops(op):
            if inner.results[0] not in found:
                found[inner.results[0]] = translator.translate(inner)
        result = found[yielded(op)]
        if isinstance(result, Scaled) and not is_real:
            return builder, translator.narrowed(result), translator.finest
        return builder, Real(translator.real(result)), translator.finest

    # reductions

    def _reduce(self, op: linalg.GenericOp) -> None:
        if not any(x in self.grids for x in op.inputs):
            return
        try:
            terms = reduced_terms(op)
        except PenstockError as error:
            raise NotFixedPoint("terms that are no products of two") from error
        start = filled_with(op.outputs[0])
        number = None if start is None else scalar_constant(start.result)
        if number is None:
            raise NotFixedPoint("no constant to start from")
        if isinstance(yielded(op).owner, arith.MaximumfOp):
            self._maximum(op, terms, float(number))
        elif isinstance(yielded(op).owner, arith.AddfOp) and number == 0:
            self._sum(op, terms)
        else:
            raise NotFixedPoint("another reduction")

    def _maximum(self, op: linalg.GenericOp, terms: list[int], start: float) -> None:
        if len(terms) != 1 or (grid := self.grids.get(op.inputs[terms[0]])) is None or not grid.is_even:
            raise NotFixedPoint("a maximum over scales")
        value, kind = op.inputs[terms[0]], IntegerType(grid.width)
        block = Block(arg_types=[kind, kind])
        largest = arith.MaxSIOp(block.args[1], block.args[0])
        block.add_ops([largest, linalg.YieldOp(largest.result)])
        maps = [maps_of(op)[terms[0]], maps_of(op)[-1]]
        new = insert_reduction(op, [value], maps, block, kind, _stored(start, grid, lowest=True))
        rank = len(shape_of(op.results[0]))
        self._define(
            op, new, replace(grid, scale=grid.scale.reshape([1] * rank), offset=grid.offset.reshape([1] * rank))
        )

    def _sum(self, op: linalg.GenericOp, terms: list[int]) -> None:
        """Sum of (x + ox) * w over the loops is that of x * w, and an offset that is known."""
        trips, maps = trip_counts(op), maps_of(op)
        reduced = tuple(d for d, kind in enumerate(op.iterator_types) if kind == REDUCTION)
        shape = tuple(trips[d] if d in reduced else 1 for d in range(len(trips)))
        layouts, values, kinds = list[AffineMap](), list[SSAValue](), list[IntegerType]()
        scale: Array = np.ones([1] * len(trips))
        offset: Array = np.zeros([1] * len(trips), np.int64)
        weight, bound, width = np.ones([1] * len(trips), np.int64), 1, 0
        for position in sorted(terms, key=lambda term: self.editor.is_param(op.inputs[term])):
            value, layout = op.inputs[position], maps[position]
            if self.editor.is_param(value):
                whole, own = self._weight(value, layout, maps[-1])
                value = self.state.param(self.editor.name(value), whole[None])
                kinds.append(IntegerType(8 * whole.itemsize))
                weight = weight * _spread(whole.astype(np.int64), layout, len(trips))
                scale = scale * _spread(own, layout, len(trips))
            else:
                if (grid := self.grids.get(value)) is None:
                    raise NotFixedPoint("a factor that is not whole")
                scale = scale * _spread(grid.scale, layout, len(trips))
                if len(layouts) and (np.any(grid.offset) or np.any(offset)):
                    raise NotFixedPoint("a product of two that have offsets")
                offset = offset + _spread(grid.offset, layout, len(trips))
                bound *= max(abs(grid.low), abs(grid.high))
                kinds.append(IntegerType(grid.width))
            width += kinds[-1].width.data
            values.append(value)
            layouts.append(layout)
        if any(scale.shape[d] != 1 for d in reduced):
            raise NotFixedPoint("scales that differ within a sum")
        magnitude = np.broadcast_to(np.abs(weight), np.broadcast_shapes(weight.shape, shape))
        bound *= int(np.max(np.sum(magnitude, axis=reduced)))
        moved = np.broadcast_to(offset * weight, np.broadcast_shapes(offset.shape, weight.shape, shape))
        moved = np.sum(moved, axis=reduced, keepdims=True)
        if bound + int(np.max(np.abs(moved))) >= _ACCUMULATOR or width > 32:
            raise NotFixedPoint("sums of more than 32 bits")
        new = insert_reduction(op, values, [*layouts, maps[-1]], product_sum(kinds), IntegerType(32), 0)
        grid = _Grid(along_result(scale, maps[-1]), along_result(moved, maps[-1]), -bound, bound, 32)
        self._define(op, new, grid)

    def _weight(self, value: SSAValue, layout: AffineMap, written: AffineMap) -> tuple[Array, Array]:
        """A weight's whole numbers, and their scales with one entry along the dims that are summed over."""
        data = self.editor.data(value)
        if data.dtype != np.float32:
            raise NotFixedPoint("no floats")
        kept = [axis for axis in range(data.ndim) if loop_of(layout, axis) in written.used_dims()]
        others = [axis for axis in range(data.ndim) if axis not in kept]
        rows = data.transpose([*kept, *others]).reshape(int(np.prod([data.shape[a] for a in kept])), -1)
        if (found := find_grid(rows)) is None:
            raise NotFixedPoint("weights on no grid")
        back = np.argsort([*kept, *others])
        moved = [data.shape[axis] for axis in (*kept, *others)]
        whole = found[0].reshape(moved).transpose(back)
        scales = found[1].reshape([*(data.shape[a] for a in kept), *([1] * len(others))]).transpose(back)
        if np.all(scales == scales.flat[0]):
            scales = scales.reshape(-1)[:1].reshape([1] * data.ndim)
        fits = np.min(whole) >= -128 and np.max(whole) < 128
        return whole.astype(np.int8 if fits else np.int16), scales

    # what moves data

    def _move(self, op: Operation) -> None:
        if not all(x in self.grids for x in op.operands):
            raise NotFixedPoint("whole and real parts")
        grids = [self.grids[x] for x in op.operands]
        first = grids[0]
        if (
            not all(one.is_even for one in grids)
            or len({(g.scale.item(), g.offset.item(), g.width) for g in grids}) > 1
        ):
            raise NotFixedPoint("parts of other scales")
        sources, kind = list(op.operands), IntegerType(first.width)
        low, high = min(g.low for g in grids), max(g.high for g in grids)
        if isinstance(op, tensor.ExtractSliceOp):
            (dim,) = cut_dims(op)
            new: Operation = slice_along(sources[0], dim, bounds(op)[0][dim], bounds(op)[1][dim], op)
        elif isinstance(op, tensor.ConcatOp):
            new = concat_along(sources, op.dim.value.data, op)
        elif isinstance(op, SlideOp):
            fill: Any = op.fill
            stored = 0
            if op.by.data.pads(shape_of(sources[0])[op.by.data.dim]):
                stored = _stored(fill.value.data, first, lowest=True)
            low, high = min(low, stored), max(high, stored)
            new = SlideOp(sources[0], op.by.data, IntegerAttr(stored, kind), tensor_of(shape_of(op.result), kind))
            new.attributes.update(op.attributes)
        else:
            new = reshape(sources[0], shape_of(op.results[0]))
            new.attributes.update(op.attributes)
        ones = [1] * len(shape_of(op.results[0]))
        self._define(op, new, _Grid(first.scale.reshape(ones), first.offset.reshape(ones), low, high, first.width))


def _stored(number: float, grid: _Grid, *, lowest: bool) -> int:
    """The integer that stands for a number that is known; of what is below all, the least."""
    least = -(1 << (grid.width - 1))
    steps = number / grid.scale.item() - grid.offset.item()
    if steps <= least and lowest:
        return least
    if steps != np.rint(steps) or steps >= -least:
        raise NotFixedPoint("a number between the steps")
    return int(steps)


def _spread(numbers: Array, layout: AffineMap, loops: int) -> Array:
    """Numbers along an operand's dims, laid out along the loops."""
    positions = [loop_of(layout, axis) for axis in range(len(layout.results))]
    arranged = numbers.transpose(sorted(range(len(positions)), key=lambda axis: positions[axis]))
    extents = {loop: numbers.shape[axis] for axis, loop in enumerate(positions)}
    return arranged.reshape([extents.get(d, 1) for d in range(loops)])


def _rounds(op: Operation) -> bool:
    """Whether whole numbers may begin here."""
    return isinstance(op, ROUNDINGS) or (isinstance(op, arith.SelectOp) and op.lhs.type == f32)


def _known_numbers(ops: Sequence[Operation], given: dict[SSAValue, BodyNumber]) -> dict[SSAValue, BodyNumber]:
    """The values of a body that are known before it runs, with those given."""
    found = dict(given)
    for op in ops:
        operands = [found.get(x) for x in op.operands]
        known = [x.numbers for x in operands if isinstance(x, KnownNumbers)]
        if len(known) == len(operands) and is_scalar_op(op):
            found[op.results[0]] = KnownNumbers(evaluate(op, known))
    return found
