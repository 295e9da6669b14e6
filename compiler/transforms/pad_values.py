"""What lies in the padding of every tensor, and the masks that keep it out of reductions.

Inputs and parameters are padded with zeros. What an operation makes of padding follows from its body; a reduction over
a padded dim is right only where each of its padded terms is the neutral element of its sum. Where that is not known, a
mask puts it there: into the term, or once into what an elementwise operation before it makes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, OpResult, SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Reshape, Slice, TensorOp, Windows
from penstock.compiler.dialects.affine import projected_dims
from penstock.compiler.scalars.number_types import numpy_dtype
from penstock.compiler.scalars.operations import is_scalar_op, row_of
from penstock.compiler.transforms.pad_scalars import (
    FINITE,
    Bounds,
    Content,
    PadNumber,
    bounds_of,
    joined,
    run_body,
    same,
)

_NEUTRAL = {"arith.addf": 0.0, "arith.addi": 0, "arith.maximumf": -np.inf, "arith.minimumf": np.inf}

Class = int
ClassOf = Callable[[TensorOp, int], Class]
LoopSet = frozenset[int]
"""The loops of an operation, or dims of a tensor, in whose padding an element lies; in all others it does not."""


@dataclass(frozen=True)
class PaddingMask:
    """In the padding of one of its loops, an operation's term (where it reduces) or result is `value` instead."""

    layer: str
    loop: int
    value: PadNumber


def obstacle(operation: TensorOp, loop: int) -> str:
    """Why a loop of an operation cannot be padded, not even with a mask; empty where it can."""
    if any(is_scalar_op(op) and row_of(op).traps for op in operation.op.body.block.ops):
        return "it divides whole numbers, which padding may make zero"
    if loop in operation.reductions:
        combine, _ = combination(operation)
        if _neutral(combine) is None:
            return f"its {combine.name} over the dim knows no padding"
    return ""


def combination(operation: TensorOp) -> tuple[Operation, SSAValue]:
    """The operation that sums, and the term that it adds to what was there."""
    block = operation.op.body.block
    terminator = block.last_op
    assert isinstance(terminator, linalg.YieldOp)
    combine = terminator.operands[0].owner
    assert isinstance(combine, Operation)
    running = block.args[-1]
    return combine, next(o for o in combine.operands if o is not running)


def find_masks(graph: Graph, class_of: ClassOf, classes: Collection[Class]) -> tuple[PaddingMask, ...]:
    """The masks without which padding these classes of dims would change a result."""
    contents = _Contents(graph, class_of, classes)
    position = 0
    while position < len(graph.operations):
        mask = contents.missing(graph.operations[position])
        if mask is None:
            position += 1
            continue
        contents.masks[mask.layer, mask.loop] = mask.value
        position = contents.positions[mask.layer]
        contents.forget(position)
    contents.drop_needless()
    return tuple(PaddingMask(layer, loop, value) for (layer, loop), value in contents.masks.items())


class _Unread(Exception):
    """What a value holds at a place is to be known first."""

    def __init__(self, value: SSAValue, place: LoopSet) -> None:
        super().__init__()
        self.value, self.place = value, place


@dataclass
class _Contents:
    """The contents of every tensor by place, under the masks that were chosen so far."""

    graph: Graph
    class_of: ClassOf
    classes: Collection[Class]
    masks: dict[tuple[str, int], PadNumber] = field(default_factory=dict[tuple[str, int], PadNumber])
    known: dict[tuple[SSAValue, LoopSet], Content] = field(default_factory=dict[tuple[SSAValue, LoopSet], Content])
    reading: bool = False
    """Whether something is being worked out, and what it needs is worked out before it."""

    def __post_init__(self) -> None:
        self.nodes = {node.result: node for node in self.graph.nodes}
        self.positions = {op.layer: number for number, op in enumerate(self.graph.operations)}

    def forget(self, position: int) -> None:
        """A mask in an operation changes what is known of it, and of what comes after it."""
        before = {op.result for op in self.graph.operations[:position]}
        self.known = {key: content for key, content in self.known.items() if key[0] in before}

    def drop_needless(self) -> None:
        """A mask that was chosen for one reader may have made another one needless that stands beside it."""
        readers: dict[str, set[str]] = {}
        for operation in self.graph.operations:
            makers = {maker.layer for v in operation.inputs if isinstance(maker := self.nodes.get(v), TensorOp)}
            for layer in makers & {layer for layer, _ in self.masks}:
                readers.setdefault(layer, set()).update(makers - {layer})
        masked = {layer for layer, _ in self.masks}
        for key in list(self.masks):
            layer, before = key[0], self.masks
            if not readers.get(layer, set()) & masked:
                continue
            self.masks = {other: number for other, number in before.items() if other != key}
            self.forget(self.positions[layer])
            if any(self.missing(op) for op in self.graph.operations[self.positions[layer] :]):
                self.masks = before
                self.forget(self.positions[layer])

    def missing(self, operation: TensorOp) -> PaddingMask | None:
        """The cheapest mask for the first place at which a reduction would see its padding."""
        reduced = self._padded(operation, operation.reductions)
        if not reduced:
            return None
        combine, _ = combination(operation)
        neutral = _neutral(combine)
        assert neutral is not None, f"{operation.layer} cannot be padded"
        for place in _places(reduced):
            if place and not same(self._term(operation, place), neutral):
                found = [
                    mask
                    for loop in sorted(place)
                    for mask in (
                        *self._before(operation, loop, place, neutral),
                        PaddingMask(operation.layer, loop, neutral),
                    )
                ]
                return min(found, key=lambda mask: self.graph.by_layer[mask.layer].work)
        return None

    def _before(self, operation: TensorOp, loop: int, place: LoopSet, neutral: PadNumber) -> list[PaddingMask]:
        """Masks in the elementwise operations whose results it reads, each of which alone would do."""
        found: list[PaddingMask] = []
        for value, indexing_map in zip(operation.inputs, operation.operand_maps, strict=True):
            maker, dims = self.nodes.get(value), projected_dims(indexing_map)
            if not isinstance(maker, TensorOp) or maker.reductions or loop not in dims:
                continue
            outer = projected_dims(maker.result_map)[dims.index(loop)]
            if outer is None or (maker.layer, outer) in self.masks:
                continue
            zero = np.zeros((), numpy_dtype(value.type))
            for number in (zero, neutral.astype(zero.dtype)):
                if same(self._term(operation, place, {value: number}), neutral):
                    found.append(PaddingMask(maker.layer, outer, number))
                    break
        return found

    def _padded(self, operation: TensorOp, loops: Sequence[int]) -> list[int]:
        return [loop for loop in loops if self.class_of(operation, loop) in self.classes]

    def _term(self, operation: TensorOp, place: LoopSet, given: Mapping[SSAValue, Content] | None = None) -> Content:
        """What an elementwise operation yields at a place, or what a reduction adds."""
        for (layer, loop), number in reversed(self.masks.items()):
            if layer == operation.layer and loop in place:
                return number
        contents = [
            given[value] if given and value in given
            else self._read(value, frozenset(d for d, loop in enumerate(projected_dims(m)) if loop in place))
            for value, m in zip(operation.inputs, operation.operand_maps, strict=True)
        ]  # fmt: skip
        values = run_body(operation.op.body.block, contents)
        terminator = operation.op.body.block.last_op
        assert terminator is not None
        return values[combination(operation)[1] if operation.reductions else terminator.operands[0]]

    def _read(self, value: SSAValue, place: LoopSet) -> Content:
        if not isinstance(value, OpResult):  # an input or a parameter
            return np.zeros((), numpy_dtype(value.type)) if place else FINITE
        if (value, place) not in self.known:
            if self.reading:
                raise _Unread(value, place)
            self._read_back(value, place)
        return self.known[value, place]

    def _read_back(self, value: SSAValue, place: LoopSet) -> None:
        """What must be known before comes first, on a list of its own: networks are deeper than Python's stack."""
        left = [(value, place)]
        self.reading = True
        try:
            while left:
                try:
                    self.known[left[-1]] = self._made(*left[-1])
                    left.pop()
                except _Unread as unread:
                    left.append((unread.value, unread.place))
        finally:
            self.reading = False

    def _made(self, value: SSAValue, place: LoopSet) -> Content:
        match self.nodes[value]:
            case Slice() | Reshape() as node:
                return self._read(node.source, place)
            case Windows() as node:
                fill: Any = node.fill
                outside = np.array(fill.value.data, numpy_dtype(node.source.type))
                return joined([self._read(node.source, place), outside])
            case Concat() as node:
                return joined([self._read(source, place) for source in node.sources])
            case TensorOp() as node:
                loops = projected_dims(node.result_map)
                return self._result(node, frozenset(loop for d in place if (loop := loops[d]) is not None))

    def _result(self, operation: TensorOp, place: LoopSet) -> Content:
        if not operation.reductions:
            return self._term(operation, place)
        reduced = self._padded(operation, operation.reductions)
        terms = [self._term(operation, place | inside) for inside in _places(reduced)]
        neutral = _neutral(combination(operation)[0])
        seen = [term for term in terms if not same(term, neutral)]
        if seen:
            return _summed(combination(operation)[0].name, seen)
        start: Any = getattr(operation.init, "value", None)
        return FINITE if start is None else np.array(start.data, numpy_dtype(operation.result.type))


def _summed(combine: str, terms: Sequence[Content]) -> Content:
    """One term or many: a sum has their sign, and the largest is one of them."""
    whole = bounds_of(joined(terms))
    if whole is None or "max" in combine or "min" in combine:
        return whole
    if combine != "arith.addf":
        return FINITE
    return Bounds(0.0 if whole.low >= 0 else -np.inf, 0.0 if whole.high <= 0 else np.inf)


def _places(loops: Sequence[int]) -> list[LoopSet]:
    """Every set of them, the small ones first."""
    return [frozenset(some) for size in range(len(loops) + 1) for some in combinations(loops, size)]


def _neutral(combine: Operation) -> PadNumber | None:
    dtype = numpy_dtype(combine.results[0].type)
    if combine.name == "arith.maxsi":
        return np.array(np.iinfo(dtype).min, dtype)
    number = _NEUTRAL.get(combine.name)
    return None if number is None else np.array(number, dtype)
