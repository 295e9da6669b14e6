"""Along which loops an operation goes through windows, or through what windows are made of: a frame's rows and columns.

Such loops are walked outermost and one step at a time, so that a frame passes from layer to layer place by place, with
all channels of a place together. Then a layer begins when the first rows that it wants are there, and no frame is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp, Windows
from penstock.compiler.analysis.reshaping import merged_groups
from penstock.compiler.dialects.types import tensor_type

FrameDims = set[tuple[SSAValue, int]]


def spatial_loops(graph: Graph) -> Mapping[str, tuple[int, ...]]:
    """By layer, in the order of its result's dims, then those that its result has not; layers without any are left out.

    It spreads from the dims that windows slide along to everything that is walked together with them.
    """
    dims = frame_dims(graph.nodes)
    loops = {op.layer: _loops(op, dims) for op in graph.operations} if dims else {}
    return {layer: found for layer, found in loops.items() if found}


def frame_dims(nodes: Sequence[Node]) -> FrameDims:
    """The dims that windows slide along, and all that are walked together with them."""
    dims: FrameDims = set()
    if not any(isinstance(node, Windows) for node in nodes):
        return dims
    while True:
        known = len(dims)
        for node in nodes:
            _spread(node, dims)
        if len(dims) == known:
            return dims


def _spread(node: Node, dims: FrameDims) -> None:
    match node:
        case Windows():
            dims |= {(node.source, node.by.dim), (node.result, node.by.dim)}
            pairs = [[(node.source, d), (node.result, d)] for d in range(_rank(node.source))]
        case Slice():
            pairs = [[(node.source, d), (node.result, d)] for d in range(_rank(node.source))]
        case Concat():
            pairs = [[(v, d) for v in (*node.sources, node.result)] for d in range(_rank(node.result))]
        case TensorOp():
            pairs = [[*_walked(node, loop)] for loop in range(len(node.trips))]
        case Reshape():
            dims |= _of_merged(node, dims)
            return
    for together in pairs:
        if any(one in dims for one in together):
            dims.update(together)


def _of_merged(node: Reshape, dims: FrameDims) -> FrameDims:
    """The dims of which a frame's rows or columns are merged, as an enlarged one's are: walked one after the other."""
    whole, finer = sorted((node.source, node.result), key=_rank)
    shapes = [tensor_type(value).get_shape() for value in (finer, whole)]
    groups = merged_groups(*shapes) or []
    return {(finer, dim) for number, group in enumerate(groups) if (whole, number) in dims for dim in group}


def _walked(op: TensorOp, loop: int) -> FrameDims:
    """The dims of operands and result that a loop goes along; none where it only adds up."""
    found: FrameDims = {(op.result, d) for d, one in enumerate(op.result_dims) if one == loop}
    if not found:
        return set()
    for value, operand_dims in zip(op.inputs, op.operand_dims, strict=True):
        found |= {(value, d) for d, one in enumerate(operand_dims) if one == loop}
    return found


def _loops(op: TensorOp, dims: FrameDims) -> tuple[int, ...]:
    made = [loop for d, loop in enumerate(op.result_dims) if loop is not None and (op.result, d) in dims]
    read = [
        loop
        for value, operand_dims in zip(op.inputs, op.operand_dims, strict=True)
        for d, loop in enumerate(operand_dims)
        if loop is not None and loop not in made and (value, d) in dims
    ]
    return (*made, *dict.fromkeys(read))


def frame_lanes(graph: Graph) -> Mapping[str, Mapping[int, tuple[int, ...]]]:
    """By layer and loop along a frame: with how many lanes windows still pass in step. More than one for columns only.

    Several rows at once would wait for each other, and be kept as long.
    """
    found: dict[str, dict[int, tuple[int, ...]]] = {}
    operations = {op.layer: op for op in graph.operations}
    for layer, loops in spatial_loops(graph).items():
        op, columns = operations[layer], loops[-1]
        slides = [
            one
            for value, operand_dims in zip(op.inputs, op.operand_dims, strict=True)
            for one in slides_before(graph, value)
            if columns in operand_dims and operand_dims.index(columns) == one.by.dim
        ]
        in_step = tuple(n for n in range(1, op.trips[columns] + 1)
                        if op.trips[columns] % n == 0 and all(_in_step(one, n) for one in slides))  # fmt: skip
        found[layer] = {loop: in_step if loop == columns else (1,) for loop in loops}
    return found


def _in_step(node: Windows, windows: int) -> bool:
    extent = tensor_type(node.source).get_shape()[node.by.dim]
    return windows == 1 or node.by.paces(extent, windows * node.by.step, windows)


def _rank(value: SSAValue) -> int:
    return len(tensor_type(value).get_shape())


def slides_before(graph: Graph, value: SSAValue) -> list[Windows]:
    """The slides that made a tensor from a frame, the last one first; none where it is no windows."""
    found: list[Windows] = []
    while (maker := graph.slides.get(value)) is not None:
        found.append(maker)
        value = maker.source
    return found


def slides_of(graph: Graph, node: Windows) -> list[Windows]:
    """All slides on the way from a tensor to what reads its windows, this one's among them."""
    behind = [one for one in _behind(graph, node) if isinstance(one, Windows)]
    return [*reversed(slides_before(graph, node.result)), *behind]


def chained_dims(graph: Graph, node: Windows) -> tuple[int, ...]:
    """The dims that windows slide along on the way from a tensor to what reads its windows, in order."""
    return tuple(sorted({one.by.dim for one in slides_of(graph, node)}))


def window_readers(graph: Graph, node: Windows) -> list[TensorOp]:
    """The operations that compute on the windows, behind all slides."""
    return [one for one in _behind(graph, node) if isinstance(one, TensorOp)]


def _behind(graph: Graph, node: Windows) -> list[Node]:
    readers = graph.readers.get(node.result, [])
    return [*readers, *(further for one in readers if isinstance(one, Windows) for further in _behind(graph, one))]
