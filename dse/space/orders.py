"""In which order kernels walk through their tiles, and how a kernel walks along with the one before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from math import gcd, prod

from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.converting import converter_bits
from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.analysis.loops import LoopPlan, TileLoop
from penstock.compiler.design import KernelDesign
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.plan.value_orders import dtype_of
from penstock.compiler.scalars.number_types import type_bits
from penstock.dse.lanes.alignment import divisors

ORDER_PARALLEL, ORDER_REDUCTION, ORDER_CONNECTED = "parallel-outer", "reduction-outer", "connected"
AS_OTHERS = "as-others"
_MOST_DIMS = 4
"""Of a kernel whose orders are all looked at: with five there would be 120."""

LoopOrder = tuple[int, ...]
Streams = tuple[tuple[AffineMap, ITensorType], ...]
"""The operands that other kernels make: how they are indexed, and the order that they are made in."""


def order_of(op: TensorOp, scheme: str, outer: LoopOrder = ()) -> LoopOrder:
    """Of the tile loops. Point loops always have their reductions outside, so that partial sums rest.

    A frame's rows and columns, `outer`, stay outside of all else: so frames pass place by place.
    """
    parallel = [d for d in range(len(op.trips)) if d not in op.reductions and d not in outer]
    reduction = [d for d in op.reductions if d not in outer]
    return (*outer, *(reduction + parallel if scheme == ORDER_REDUCTION else parallel + reduction))


def tiles_of(trips: LoopOrder, size: int, outer: LoopOrder = (), grains: LoopOrder | None = None) -> LoopOrder:
    """Every dim's largest divisor up to a size; along a frame's rows and columns one place. Of a dim whose size each
    call says, it divides what that is a multiple of, by `grains`, unless it is the whole."""
    return tuple(
        1 if d in outer else trip if trip <= size else max(n for n in divisors(grain or trip) if n <= size)
        for d, (trip, grain) in enumerate(zip(trips, grains or (0,) * len(trips), strict=True))
    )


def order_choices(op: TensorOp) -> tuple[str, ...]:
    """Every order of a kernel's tile loops by name, the one that all kernels have first; none for many dims."""
    count = len(op.trips)
    if count > _MOST_DIMS:
        return (AS_OTHERS,)
    return (AS_OTHERS, *("".join(map(str, order)) for order in permutations(range(count))))


def named_order(name: str) -> LoopOrder:
    return tuple(int(digit) for digit in name)


def connected_order(op: TensorOp, trips: LoopOrder, kernel: KernelDesign, streams: Streams) -> LoopOrder:
    """The order with the least memory: for converters from the orders that its operands are made in, for operands
    that are kept and for sums that are not finished. Of equals, the one with parallel loops outside."""
    usual = order_of(op, ORDER_PARALLEL)
    if len(trips) > _MOST_DIMS or not streams:
        return usual
    operands = tuple((m, dtype_of(v)) for v, m in zip(op.inputs, op.operand_maps, strict=True))
    result = (op.result_map, dtype_of(op.result), bool(op.reductions))
    return _least_memory(op.layer, trips, op.iterators, kernel.tile, kernel.unroll, usual, operands, result, streams)


@lru_cache(maxsize=1 << 12)
def _least_memory(
    layer: str,
    trips: LoopOrder,
    iterators: tuple[IteratorTypeAttr, ...],
    tile: LoopOrder,
    unroll: LoopOrder,
    usual: LoopOrder,
    operands: tuple[tuple[AffineMap, Attribute], ...],
    result: tuple[AffineMap, Attribute, bool],
    streams: Streams,
) -> LoopOrder:
    def memory(plan: LoopPlan) -> tuple[int, int]:
        kept = [(plan.operand(m), kind) for m, kind in operands]
        if result[2]:
            kept.append((plan.result(result[0]), result[1]))
        converters = sum(converter_bits(made, plan.itensor(m, made.dtype)) for m, made in streams)
        return converters, sum(prod(access.kept) * type_bits(kind) for access, kind in kept if access.reused)

    plans: dict[tuple[TileLoop, ...], LoopPlan] = {}
    for order in (usual, *permutations(range(len(trips)))):
        plan = LoopPlan.of(layer, trips, iterators, tile, unroll, order)
        plans.setdefault(plan.steps, plan)  # where a dim stands that does not move makes no difference
    return min(plans.values(), key=memory).order


def made_in(op: TensorOp, trips: LoopOrder, kernel: KernelDesign) -> ITensorType:
    """The order in which a kernel makes its result."""
    plan = LoopPlan.of(op.layer, trips, op.iterators, kernel.tile, kernel.unroll, kernel.order)
    return plan.itensor(op.result_map, dtype_of(op.result))


def corresponding(
    producer: TensorOp, consumer: TensorOp, operand_dims: tuple[int | None, ...]
) -> dict[int, int] | None:
    """Consumer dim → producer dim along the shared tensor; None unless both index it by plain dims."""
    pairs = [(c, p) for c, p in zip(operand_dims, producer.result_dims, strict=True) if c is not None and p is not None]
    if not pairs or any(consumer.trips[c] != producer.trips[p] for c, p in pairs):
        return None
    return dict(pairs)


def follow_producer(
    graph: Graph,
    op: TensorOp,
    kernel: KernelDesign,
    kernels: Mapping[str, KernelDesign],
    grains: LoopOrder,
    *,
    connect: bool,
) -> KernelDesign:
    """Take tile, lanes and order over from the kernel that makes the streamed operand, where they fit.

    Lanes divide `grains`, of the kernel's dims whose size each call says.
    """
    for value, operand_dims in zip(op.inputs, op.operand_dims, strict=True):
        producer = graph.makers.get(value)
        if producer is None or producer.layer not in kernels:
            continue
        dims = corresponding(producer, op, operand_dims)
        if dims is None:
            continue
        made = kernels[producer.layer]
        if not op.reductions and len(dims) == len(op.trips):
            return walk_alike(kernel, made, dims)
        if connect and op.reductions:
            return same_lanes(op, kernel, made, dims, grains)
    return kernel


def walk_alike(kernel: KernelDesign, made: KernelDesign, dims: Mapping[int, int]) -> KernelDesign:
    """An elementwise kernel walks exactly as its operand is made: no converter, no buffer."""
    count = len(kernel.tile)
    return replace(
        kernel,
        tile=tuple(made.tile[dims[d]] for d in range(count)),
        unroll=tuple(made.unroll[dims[d]] for d in range(count)),
        order=tuple(sorted(range(count), key=lambda d: made.order.index(dims[d]))),
    )


def same_lanes(
    op: TensorOp, kernel: KernelDesign, made: KernelDesign, dims: Mapping[int, int], grains: LoopOrder
) -> KernelDesign:
    """A reduction takes its operand with the lanes it is made with, if its own lanes can be split that way."""
    wanted = {c: made.unroll[p] for c, p in dims.items()}
    if any(kernel.tile[c] % lanes for c, lanes in wanted.items()):
        return kernel
    rest, left = kernel.lanes, dict[int, int]()
    for lanes in wanted.values():
        if rest % lanes:
            return kernel
        rest //= lanes
    for dim in range(len(op.trips)):
        if dim not in wanted:
            left[dim] = max(d for d in divisors(gcd(kernel.tile[dim], grains[dim])) if rest % d == 0)
            rest //= left[dim]
    if rest != 1:
        return kernel
    return replace(kernel, unroll=tuple(wanted.get(d, left.get(d, 1)) for d in range(len(op.trips))))
