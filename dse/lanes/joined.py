"""Dims along which something is joined to a cache: the keys of one more token to those of all before it.

What passes a join comes part by part, in tokens that lie in one part each. A kernel whose lanes along such a dim divide
no part waits until its tokens are put together of several; with lanes that divide every part it takes them as they
come, in whatever order its other dims are walked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd

from xdsl.ir import BlockArgument, SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, TensorOp
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.transforms.pad_dims import Dims
from penstock.dse.lanes.walks import FEW, KernelWalk

Joined = Mapping[int, int]
"""Dims of a kernel that pass a join, with what lanes along them divide if they divide every part."""


def extended(graph: Graph) -> dict[SSAValue, int]:
    """Tensors that are mostly an input, and what is computed behind it: with the dim along which that follows."""
    return {node.result: node.dim for node in _extending(graph)}


def joined_dims(graph: Graph, dims: Dims) -> dict[str, Joined]:
    """Those of each kernel that walks any, by layer."""
    parts: dict[int, int] = {}
    for node in _extending(graph):
        if (number := dims.of_value(node.result, node.dim)) is not None:
            parts[number] = gcd(parts.get(number, 0), *(size for _, size in node.parts))
    found: dict[str, Joined] = {}
    for op in graph.operations:
        here = {d: parts[n] for d in range(len(op.trips)) if (n := dims.of_loop(op, d)) in parts}
        if here:
            found[op.layer] = here
    return found


def _extending(graph: Graph) -> Iterator[Concat]:
    for node in graph.nodes:
        if isinstance(node, Concat):
            largest = max(node.sources, key=tensor_bits)
            if isinstance(largest, BlockArgument) and not all(isinstance(one, BlockArgument) for one in node.sources):
                yield node


def walks_in_parts(op: TensorOp, joined: Joined) -> Iterator[KernelWalk]:
    """Another dim outermost than what is joined, with lanes that divide each part of that."""
    for most in (None, *FEW) if joined else ():
        for d in (d for d, trip in enumerate(op.trips) if trip > 1 and d not in joined):
            if most is None or most < op.trips[d]:
                yield KernelWalk((d,), most=most, in_parts=True)


def beside_joined(
    operations: Sequence[TensorOp], dims: Dims, joined: Mapping[str, Joined]
) -> dict[str, tuple[int, ...]]:
    """Of kernels that walk what is joined: their other dims that all have which walk the same, in one order for all."""
    loops = [(op, {dims.of_loop(op, d): d for d, trip in enumerate(op.trips) if trip > 1}) for op in operations]
    found: dict[str, tuple[int, ...]] = {}
    for number in dict.fromkeys(dims.of_loop(op, d) for op in operations for d in joined.get(op.layer, {})):
        walking = [(op, here) for op, here in loops if number in here and len(here) > 1]
        if not walking:
            continue
        shared = [one for one in walking[0][1] if one != number and all(one in here for _, here in walking)]
        found |= {op.layer: tuple(here[one] for one in shared) for op, here in walking if shared}
    return found
