"""Lanes one step at a time, and what numbers there are to choose from."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph, TensorOp, Windows
from penstock.compiler.platforms import Resources, total
from penstock.compiler.schedule import OperatorLibrary
from penstock.dse.lanes.alignment import BufferWalk, LoopNest, divisors
from penstock.dse.lanes.binding import operator_bits

DIMS_PARALLEL, DIMS_REDUCTION, DIMS_BALANCED = "parallel", "reduction", "balanced"
Unrolls = dict[str, tuple[int, ...]]


def slowest_first(
    operations: Sequence[TensorOp],
    unrolls: Unrolls,
    tiles: Mapping[str, tuple[int, ...]],
    lanes: int,
    along: str,
    boost: Callable[[TensorOp], float],
) -> Unrolls:
    """Hand out lanes one step at a time to the kernel that takes longest, while the total allows.

    `unrolls` has every kernel, `operations` are those that get lanes. A boost makes a kernel look longer, so that it
    is served earlier.
    """
    unrolls = dict(unrolls)
    budget = lanes - sum(prod(u) for u in unrolls.values())
    heap: list[tuple[float, int]] = []

    def wait(position: int) -> None:
        op = operations[position]
        heapq.heappush(heap, (-boost(op) * op.work / prod(unrolls[op.layer]), position))

    for position in range(len(operations)):
        wait(position)
    while heap:
        _, position = heapq.heappop(heap)
        op = operations[position]
        now = unrolls[op.layer]
        wider = _widen(op, tiles[op.layer], now, along)
        if wider is None or prod(wider) - prod(now) > budget:
            break  # the slowest kernel sets the pace: lanes for faster ones would be wasted
        budget -= prod(wider) - prod(now)
        unrolls[op.layer] = wider
        wait(position)
    return unrolls


def _widen(op: TensorOp, tile: tuple[int, ...], unroll: tuple[int, ...], along: str) -> tuple[int, ...] | None:
    """The next larger unroll: one dim by its smallest possible factor. None if nothing is left to unroll."""
    steps = {d: _next_factor(tile[d] // unroll[d]) for d in range(len(tile)) if tile[d] > unroll[d]}
    if not steps:
        return None
    preferred = {
        DIMS_PARALLEL: [d for d in steps if d not in op.reductions],
        DIMS_REDUCTION: [d for d in steps if d in op.reductions],
        DIMS_BALANCED: [],
    }[along]
    # the dim with the fewest lanes so far; of equals the innermost
    dim = min(preferred or steps, key=lambda d: (unroll[d], -d))
    return tuple(u * steps[d] if d == dim else u for d, u in enumerate(unroll))


def _next_factor(left: int) -> int:
    return min(d for d in divisors(left) if d > 1)


def loop_nests(graph: Graph) -> tuple[LoopNest, ...]:
    """The operations as loop nests over the tensors that they share.

    What reads windows reads the frame that they slide over, and goes along it with the windows' step.
    """
    windows = {node.result: node for node in graph.nodes if isinstance(node, Windows)}
    names: dict[SSAValue, str] = {}

    def walk(value: SSAValue, loops: Sequence[int | None]) -> BufferWalk:
        dims = tuple([(loop, 1) for loop in loops])
        while (slid := windows.get(value)) is not None:
            by, value = slid.by, slid.source
            dims = dims[:-1] if by.size > 1 else dims  # the places of a window are its last dim
            dims = tuple([(loop, n * by.step if d == by.dim else n) for d, (loop, n) in enumerate(dims)])
        return BufferWalk(names.setdefault(value, f"tensor{len(names)}"), dims)

    return tuple(
        LoopNest(
            op.layer,
            op.trips,
            writes=(walk(op.result, op.result_dims),),
            reads=tuple([walk(v, dims) for v, dims in zip(op.inputs, op.operand_dims, strict=True)]),
        )
        for op in graph.operations
    )


def lane_cost(op: TensorOp, library: OperatorLibrary) -> Resources:
    """The operators of one lane: what the body computes on its narrowest inputs."""
    known = {name for row in library.operators for name in row.ops}
    rows = [(inner.name, "mac" if inner.name == "arith.muli" else inner.name) for inner in op.op.body.block.ops]
    bits = {name: operator_bits(op, name) for name, _ in rows}
    return total([library.find(row, bits[name]).area(bits[name]) for name, row in rows if row in known])


def powers_of_two(first: int, last: int) -> list[int]:
    """Powers of two from the first at or above `first` to the first at or above `last`; at least one."""
    low, high = max(first - 1, 0).bit_length(), max(last - 1, 0).bit_length()
    return [1 << exponent for exponent in range(min(low, high), high + 1)]


def with_halfway(sizes: Sequence[int]) -> tuple[int, ...]:
    """Numbers of lanes between powers of two as well, so that a device can be filled."""
    return tuple(sorted({*sizes, *(size * 3 // 2 for size in sizes[:-1] if size > 1)}))
