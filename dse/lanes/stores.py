"""Where each layer's weights lie: on the chip for good, sent once a frame and kept, or sent again for every tile.

What windows slide over is walked place by place, and all weights are wanted at every place. Sent again for each, they
would cost more time than the arithmetic. So they are kept, those first that would be sent most often, as far as memory
goes. Where the weights of a layer are larger than all that they meet, these stand still instead, and each weight passes
once. What brings a tensor takes LUTs however small it is: where a model has so many that this is most of a small chip,
the smallest lie on the chip for good, though not all of them could.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from penstock.compiler.analysis.graph import Graph, TensorOp, Windows
from penstock.compiler.analysis.spatial import spatial_loops
from penstock.compiler.design import WeightStore
from penstock.compiler.dialects.affine import projected_dims
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.platforms.resources import BRAM18_BITS, Resources

_KEPT = 0.5
"""Of the bits of a chip's memories. The rest is for lines, converters and FIFOs, and for blocks that are half full."""

_LOADED, _MOST_LOADED, _FOR_GOOD = 750, 0.25, 0.25
"""LUTs that bring a tensor to its kernel: part of a port, FIFOs, what takes words apart. What part of all LUTs that may
be before small weights lie in block RAM for good; and what part of that these may take."""

_COPIES, _TURNED = 3, 0.25
"""Of windows that are turned round: two blocks and what the kernel keeps; and what part of memories these may take."""

_LARGE, _FEW = 1 << 16, 4
"""Elements of a tensor, and how often each is used, so that it matters how it comes."""


@dataclass(frozen=True)
class Stores:
    """The usual place of weights, and of those layers whose own it is not."""

    usual: WeightStore = "rom"
    own: Mapping[str, WeightStore] = field(default_factory=dict[str, WeightStore])

    @staticmethod
    def of(graph: Graph, usual: WeightStore, limits: Resources) -> Stores:
        """With weights of frames' layers kept, where the others' are streamed; and small ones there for good."""
        if usual != "stream":
            return Stores(usual)
        own: dict[str, WeightStore] = dict.fromkeys(_for_good(graph, limits), "rom")
        bits = {op.layer: weight_bits(op, graph) for op in graph.operations}
        room = _KEPT * limits.memory_bits - sum(bits[layer] for layer in own)
        frames = spatial_loops(graph)
        sent = {op.layer: prod(op.trips[d] for d in frames.get(op.layer, ())) for op in graph.operations}
        for layer in sorted(sent, key=lambda layer: -sent[layer]):
            if sent[layer] > 1 and 0 < bits[layer] <= room and layer not in own:
                room -= bits[layer]
                own[layer] = "keep"
        return Stores(usual, own)

    def at(self, layer: str) -> WeightStore:
        return self.own.get(layer, self.usual)


def _for_good(graph: Graph, limits: Resources) -> list[str]:
    """The layers of the smallest weights, if bringing all weights took too many LUTs."""
    params = {op.layer: sum(map(graph.is_param, op.inputs)) for op in graph.operations}
    if sum(params.values()) * _LOADED <= _MOST_LOADED * limits.lut:
        return []
    found: list[str] = []
    room = _FOR_GOOD * limits.bram18 * BRAM18_BITS
    for op in sorted(graph.operations, key=lambda op: weight_bits(op, graph)):
        if params[op.layer] and (room := room - weight_bits(op, graph)) >= 0:
            found.append(op.layer)
    return found


def walked_frames(graph: Graph, stores: Stores) -> Mapping[str, tuple[int, ...]]:
    """The loops along frames of each layer that is walked place by place; not of those whose frames stand still.

    Nor of what is computed of such a frame with no window in between, if nobody behind wants it place by place: it
    comes channel by channel, and would be turned round to be summed up.
    """
    frames = spatial_loops(graph)
    still = {layer for layer in frames if stands_still(graph.by_layer[layer], graph, stores)}
    met = dict[str, bool]()
    for op in reversed(graph.operations):
        met[op.layer] = op.layer in still or _is_met(op, frames.get(op.layer, ()), graph, met)
    for op in graph.operations:
        if op.layer in frames and met[op.layer] and _comes_still(op, frames, still, graph):
            still.add(op.layer)
    return {layer: loops for layer, loops in frames.items() if layer not in still}


def _is_met(op: TensorOp, frame: tuple[int, ...], graph: Graph, met: Mapping[str, bool]) -> bool:
    """Whether a kernel sums up each channel of a frame, or computes one of frames for those that may take it so."""
    if op.reductions:
        return set(frame) == set(op.reductions)
    readers = graph.readers.get(op.result, [])
    return bool(readers) and all(isinstance(one, TensorOp) and met.get(one.layer, False) for one in readers)


def _comes_still(op: TensorOp, frames: Mapping[str, tuple[int, ...]], still: set[str], graph: Graph) -> bool:
    """Whether all frames that a kernel reads are results of those that stand still."""
    made = {one.result for one in graph.operations if one.layer in still}
    loops = set(frames[op.layer])
    read = [
        value for value, dims in zip(op.inputs, op.operand_dims, strict=True)
        if not graph.is_param(value) and loops & {d for d in dims if d is not None}
    ]  # fmt: skip
    return bool(read) and made.issuperset(read)


def stands_still(op: TensorOp, graph: Graph, stores: Stores) -> bool:
    """Whether the weights that are sent to a layer of frames are larger than all that they meet."""
    weights = weight_bits(op, graph)
    met = sum(tensor_bits(value) for value in (*op.inputs, op.result) if not graph.is_param(value))
    return stores.at(op.layer) == "stream" and weights > met


def may_be_turned(graph: Graph, stores: Stores, limits: Resources) -> bool:
    """Whether memories hold what meets frames that stand still in another order than it comes in.

    Weights pass by once, and are kept nowhere, if all places meet each before the next one comes. Windows come place by
    place, so they are turned round for that. Where there is no room, they are kept as they come, and the weights of a
    few results at a time beside them.
    """
    frames, walked = spatial_loops(graph), walked_frames(graph, stores)
    still = [op for op in graph.operations if frames.get(op.layer) and op.layer not in walked and op.reductions]
    met = sum(tensor_bits(value) for op in still for value in op.inputs if not graph.is_param(value))
    return _COPIES * met <= _TURNED * limits.memory_bits


def weight_bits(op: TensorOp, graph: Graph) -> int:
    return sum(tensor_bits(value) for value in op.inputs if graph.is_param(value))


def passing_by(graph: Graph, stores: Stores) -> Mapping[str, tuple[int, ...]]:
    """The loops of kernels along large tensors that external memory brings, of which each element is used a few times.

    Tokens of these pass as fast as they come only if they are whole words of ports, which are powers of two. What
    meets windows is left out: their sides are no powers of two, and without lanes along them far fewer are left.
    """
    found: dict[str, tuple[int, ...]] = {}
    windows = {node.result for node in graph.nodes if isinstance(node, Windows)}
    for op in graph.operations:
        if not windows.isdisjoint(op.inputs):
            continue
        walked = [
            tuple([d for d in projected_dims(layout) if d is not None])
            for value, layout in zip(op.inputs, op.operand_maps, strict=True)
            if value in graph.arguments and not (graph.is_param(value) and stores.at(op.layer) != "stream")
        ]
        sizes = {dims: prod(op.trips[d] for d in dims) for dims in walked}
        large = [dims for dims, size in sizes.items() if size >= _LARGE and op.work <= _FEW * size]
        if large:
            found[op.layer] = tuple(sorted({d for dims in large for d in dims}))
    return found


def large_operands(graph: Graph, stores: Stores) -> Mapping[str, tuple[int, ...]]:
    """The loops of kernels along the largest tensor that external memory brings, where a large one is used again."""
    found: dict[str, tuple[int, ...]] = {}
    for op in graph.operations:
        sizes: dict[tuple[int, ...], int] = {}
        for value, layout in zip(op.inputs, op.operand_maps, strict=True):
            if value in graph.arguments and not (graph.is_param(value) and stores.at(op.layer) == "rom"):
                dims = tuple(sorted({d for d in projected_dims(layout) if d is not None}))
                sizes[dims] = prod(op.trips[d] for d in dims)
        if sizes and op.work > max(sizes.values()) >= _LARGE:
            found[op.layer] = max(sizes, key=lambda dims: sizes[dims])
    return found
