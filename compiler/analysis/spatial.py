"""Along which loops an operation goes through windows, or through what windows are made of: a frame's rows and columns.

Such loops are walked outermost and one step at a time, so that a frame passes from layer to layer place by place, with
all channels of a place together. Then a layer begins when the first rows that it wants are there, and no frame is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp, Windows
from penstock.compiler.analysis.reshaping import merged_groups
from penstock.compiler.dialects.types import tensor_type

FrameDim = tuple[SSAValue, int]
FrameDims = set[FrameDim]


def spatial_loops(graph: Graph) -> Mapping[str, tuple[int, ...]]:
    """By layer, in the order of its result's dims, then those that its result has not; layers without any are left out.

    It spreads from the dims that windows slide along to everything that is walked together with them.
    """
    dims = frame_dims(graph.nodes)
    loops = {op.layer: _loops(op, dims) for op in graph.operations} if dims else {}
    return {layer: found for layer, found in loops.items() if found}


def frame_dims(nodes: Sequence[Node]) -> FrameDims:
    """The dims that windows slide along, and all that are walked together with them."""
    dims: FrameDims = {one for node in nodes if isinstance(node, Windows) for one in _slid(node)}
    if not dims:
        return dims
    bound: dict[FrameDim, list[Sequence[FrameDim]]] = defaultdict(list)
    for node in nodes:
        if isinstance(node, Reshape):
            for merged, parts in _of_merged(node):
                bound[merged].append(parts)
            continue
        for together in _together(node):
            for one in together:
                bound[one].append(together)
    waiting = list(dims)
    while waiting:
        for together in bound.pop(waiting.pop(), ()):
            new = [one for one in together if one not in dims]
            dims.update(new)
            waiting += new
    return dims


def _slid(node: Windows) -> tuple[FrameDim, FrameDim]:
    return (node.source, node.by.dim), (node.result, node.by.dim)


def _together(node: Node) -> list[list[FrameDim]]:
    """The dims of an operation's values that are walked together."""
    match node:
        case Windows() | Slice():
            return [[(node.source, d), (node.result, d)] for d in range(_rank(node.source))]
        case Concat():
            return [[(v, d) for v in (*node.sources, node.result)] for d in range(_rank(node.result))]
        case TensorOp():
            return _walked(node)
        case _:
            return []


def _of_merged(node: Reshape) -> Iterator[tuple[FrameDim, list[FrameDim]]]:
    """By merged dim those that became it, which are walked one after the other: of rows or columns, as of an enlarged
    frame's.
    """
    whole, finer = sorted((node.source, node.result), key=_rank)
    shapes = [tensor_type(value).get_shape() for value in (finer, whole)]
    for number, group in enumerate(merged_groups(*shapes) or []):
        yield (whole, number), [(finer, dim) for dim in group]


def _walked(op: TensorOp) -> list[list[FrameDim]]:
    """By loop the dims of operands and result that it goes along; none where it only adds up."""
    found: dict[int, list[FrameDim]] = {}
    for d, loop in enumerate(op.result_dims):
        if loop is not None:
            found.setdefault(loop, []).append((op.result, d))
    for value, operand_dims in zip(op.inputs, op.operand_dims, strict=True):
        for d, loop in enumerate(operand_dims):
            if loop in found:
                found[loop].append((value, d))
    return list(found.values())


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
    for layer, loops in spatial_loops(graph).items():
        op, columns = graph.by_layer[layer], loops[-1]
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
