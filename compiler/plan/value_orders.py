"""In which order each value is made and read: the itensor types on both sides of every edge of the graph.

An operation's own types follow from its schedule. A slice follows the order of what it cuts, a concatenation the order
that its reader takes where the parts can be told apart in it, else that of its first part. A tensor in external memory
follows its first reader in the group; one that nothing but slices and concatenations read comes in whole words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from xdsl.ir import Attribute, SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp, Windows
from penstock.compiler.analysis.loops import LoopPlan, canonical_itensor
from penstock.compiler.analysis.parts import allows_parts, divisible, joined, part_of, row_major, row_major_words
from penstock.compiler.analysis.reshaping import reshaped_order
from penstock.compiler.analysis.spatial import chained_dims, slides_before, slides_of, window_readers
from penstock.compiler.design import Design
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.plan.parts import Computing
from penstock.compiler.scalars.number_types import type_bits


def loops_of(operation: TensorOp, design: Design) -> LoopPlan:
    """The loops of one operation under a design."""
    kernel = design.kernels[operation.layer]
    return LoopPlan.of(
        operation.layer, operation.trips, operation.iterators, kernel.tile, kernel.unroll, kernel.order
    )  # fmt: skip


@dataclass
class ValueOrders:
    """The orders of one group's values. `nodes` are the group's, in program order."""

    design: Design
    graph: Graph
    nodes: Sequence[Node]
    grains: Callable[[SSAValue], tuple[int, ...]] = lambda _value: ()
    """Of a tensor's dims whose size each call says, what that is always a multiple of; nothing of others."""
    made: dict[SSAValue, ITensorType] = field(default_factory=dict[SSAValue, ITensorType])
    taken: dict[SSAValue, ITensorType] = field(default_factory=dict[SSAValue, ITensorType])
    """In which order the first operation that reads a value takes it."""
    computing: Mapping[str, Computing] | None = None
    """By layer, where that is known: the orders are the same objects then."""
    _slid: dict[SSAValue, tuple[ITensorType, ITensorType]] = field(
        default_factory=dict[SSAValue, tuple[ITensorType, ITensorType]], repr=False
    )

    def __post_init__(self) -> None:
        own = {node.result for node in self.nodes}
        for operation in self.nodes:
            if isinstance(operation, TensorOp):
                made, operands = self._of(operation)
                self.made[operation.result] = made
                for value, taken in operands:
                    if value not in self.taken:
                        self.taken[value] = taken
                        if value not in own:
                            self.made[value] = taken
        for node in self.nodes:
            match node:
                case Slice():
                    self.made[node.result] = part_of(self.cut(node), node.dim, node.size)
                case Concat():
                    self.made[node.result] = self._joined(node)
                case Reshape():
                    self.made[node.result] = self.reshaped(node)[1]
                case Windows():
                    self.made[node.result] = self.slid(node)[1]
                case TensorOp():
                    pass

    def _of(self, operation: TensorOp) -> tuple[ITensorType, list[tuple[SSAValue, ITensorType]]]:
        """In which order an operation makes its result, and takes what is no parameter."""
        if self.computing is None:
            plan = loops_of(operation, self.design)
            operands = zip(operation.inputs, operation.operand_maps, strict=True)
            made = plan.itensor(operation.result_map, dtype_of(operation.result))
            return made, [(v, plan.itensor(m, dtype_of(v))) for v, m in operands if not self.graph.is_param(v)]
        known = self.computing[operation.layer]
        orders = zip(operation.inputs, known.operands, strict=True)
        return known.result.kind, [(v, o.kind) for v, o in orders if o is not None and not self.graph.is_param(v)]

    def of(self, value: SSAValue) -> ITensorType:
        """The order that a value is made in; one that no operation reads comes word by word as it lies in memory."""
        if value not in self.made:
            self.made[value] = self._in_words(value, 0)
        return self.made[value]

    def _in_words(self, value: SSAValue, lanes: int) -> ITensorType:
        """Row-major in words of a port, or of so many lanes if these are more."""
        dtype = dtype_of(value)
        return row_major_words(
            tensor_type(value).get_shape(), dtype, max(lanes, self.design.port_bits // type_bits(dtype)),
            self.grains(value),
        )  # fmt: skip

    def _joined(self, node: Concat) -> ITensorType:
        """The order of a concatenation: where its reader's has the parts one after the other, nothing is converted."""
        taken, first = self.taken.get(node.result), node.sources[0]
        if taken is not None and allows_parts(taken, node.dim, node.parts):
            return taken
        if first not in self.made and taken is not None:
            self.made[first] = self._in_words(first, prod(taken.element_shape))
        return joined(self.of(first), node.dim, node.parts)

    def cut(self, node: Slice) -> ITensorType:
        """The order in which the source of a slice passes, so that all its parts can be cut out."""
        return divisible(self.of(node.source), node.dim, [(s.start, s.size) for s in self.siblings(node)])

    def siblings(self, node: Slice) -> list[Slice]:
        """All parts of one tensor along one dim: they are cut out by one task."""
        same = [n for n in self.nodes if isinstance(n, Slice) and n.source is node.source]
        return [n for n in same if n.dim == node.dim]

    def reshaped(self, node: Reshape) -> tuple[ITensorType, ITensorType]:
        """As the source comes, where that is an order of the result too. Else row-major on both sides, in runs that
        neither shape breaks, as long as the source's slices."""
        shapes = [tensor_type(value).get_shape() for value in (node.source, node.result)]
        comes = self.of(node.source)
        passes = None if any(self.grains(node.source)) else reshaped_order(comes, *shapes)
        if passes is not None:
            return comes, passes
        made = comes.element_shape
        run = gcd(*(shape[-1] if shape else 1 for shape in shapes), made[-1] if made else 1)
        source, result = (
            row_major(shape, dtype_of(node.source), [*[1] * (len(shape) - 1), run] if shape else None)
            for shape in shapes
        )
        return source, result

    def slid(self, node: Windows) -> tuple[ITensorType, ITensorType]:
        """Place by place along all dims that windows slide along, at each all channels, the places of a window at once.

        Several dims slide one after the other, so all these slides walk alike. Where readers have lanes along a dim, so
        many windows of it leave at once.
        """
        if node.result not in self._slid:
            self._slid[node.result] = self._slide(node)
        return self._slid[node.result]

    def _slide(self, node: Windows) -> tuple[ITensorType, ITensorType]:
        along, shape = chained_dims(self.graph, node), tensor_type(node.source).get_shape()
        made = tensor_type(node.result).get_shape()
        given = _rank_of_frame(self.graph, node)
        channels = [d for d in range(given) if d not in along]
        slides = {one.by.dim: one for one in slides_of(self.graph, node)}
        windows = {d: self._at_once(slides[d], along) for d in along}
        taken = {d: 1 if n == 1 else n * slides[d].by.step for d, n in windows.items()}
        lanes = self._lanes(node, channels, prod(taken.values()))
        orders: list[ITensorType] = []
        for value, sizes in ((node.source, shape), (node.result, made)):
            element = [1 if d < given else size for d, size in enumerate(sizes)]
            for d in along:
                element[d] = (windows if slides[d] in slides_before(self.graph, value) else taken)[d]
            if channels:
                element[channels[-1]] = lanes
            walk = [(sizes[d] // element[d], element[d], d) for d in (*along, *channels)]
            orders.append(canonical_itensor(element, dtype_of(node.source), walk))
        return orders[0], orders[1]

    def _at_once(self, node: Windows, along: Sequence[int]) -> int:
        """How many windows leave at once along the dim of a slide, where its tokens can hold so many.

        As many as its readers have lanes; of the innermost dim more, if all channels at once were still too slow.
        """
        source, dim = tensor_type(node.source).get_shape(), node.by.dim
        wanted = max((n for one in self._reading(node) for n in self._unrolls(one, node, dim)), default=1)
        fitting = [n for n in range(wanted, node.by.count + 1, wanted)
                   if node.by.paces(source[dim], n * node.by.step, n)]  # fmt: skip
        if not fitting or dim != along[-1]:
            return wanted if wanted in fitting else 1
        slots, pace = self._places(node), self._pace(node)
        return next((n for n in fitting if slots <= pace * n * node.by.step or n == wanted > 1), 1)

    def _places(self, node: Windows) -> int:
        """Of a frame with its padding."""
        found = 1
        for one in slides_of(self.graph, node):
            found *= tensor_type(one.source).get_shape()[one.by.dim] + 2 * one.by.before
        return found

    def _pace(self, node: Windows) -> int:
        """Iterations of the reader that needs the fewest for a frame."""
        readers = [(one.trips, self.design.kernels[one.layer].unroll) for one in self._reading(node)]
        paces = [prod(trip // n for trip, n in zip(*one, strict=True)) for one in readers]
        return min(paces, default=self._places(node))

    def _reading(self, node: Windows) -> list[TensorOp]:
        """Its readers in this group."""
        return [one for one in window_readers(self.graph, node) if one in self.nodes]

    def _unrolls(self, reader: TensorOp, node: Windows, dim: int) -> list[int]:
        """The lanes that a reader has along a dim of windows."""
        unroll = self.design.kernels[reader.layer].unroll
        loops = [m[dim] for v, m in zip(reader.inputs, reader.operand_dims, strict=True) if self._comes(v, node)]
        return [unroll[loop] for loop in loops if loop is not None]

    def _lanes(self, node: Windows, channels: Sequence[int], at_once: int) -> int:
        """Channels at a time: as its readers take them, and so many that the windows keep up with their readers.

        `at_once` places of a frame pass together.
        """
        if not channels:
            return 1
        shape, dim = tensor_type(node.source).get_shape(), channels[-1]
        frame = self._places(node) * prod(shape[d] for d in channels) // at_once
        lanes = max((n for one in self._reading(node) for n in self._unrolls(one, node, dim)), default=1)
        grains = self.grains(node.source)
        part = (grains[dim] if grains else 0) or shape[dim]
        fitting = [n for n in range(lanes, part + 1) if part % n == 0 and n % lanes == 0]
        return next((n for n in fitting if frame <= self._pace(node) * n), part)

    def _comes(self, value: SSAValue, node: Windows) -> bool:
        """Whether a tensor is the windows of a slide, or further windows of them."""
        return node in slides_before(self.graph, value)

    def part(self, node: Concat, size: int) -> ITensorType:
        """The order in which a source of a concatenation is wanted."""
        return part_of(self.made[node.result], node.dim, size)


def _rank_of_frame(graph: Graph, node: Windows) -> int:
    """How many dims the tensor has from which all windows are made: the others are places of windows."""
    return len(tensor_type(slides_before(graph, node.result)[-1].source).get_shape())


def dtype_of(value: SSAValue) -> Attribute:
    return tensor_type(value).element_type
