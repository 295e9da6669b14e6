"""Kernels of one number a row, spread over the time in which a row passes.

A norm holds a row back until its factor is there. What makes factors gets one number where the norm gets a row, and a
pipeline that stops as a whole gives none away before as many others have come in as it has stages: so many rows wait.
With iterations as far apart as its numbers come, it holds one, and whoever waits for it waits no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.analysis.loops import LoopPlan
from penstock.compiler.design import LONGEST_INTERVAL, KernelDesign
from penstock.dse.lanes.neighbours import leader_of

_FEW = 4


def spread_out(
    kernels: Mapping[str, KernelDesign],
    graph: Graph,
    trips: Callable[[TensorOp], Sequence[int]],
    fixed: Collection[str] = (),
) -> dict[str, KernelDesign]:
    """The kernels with intervals between the iterations of those whose results others repeat; not of the `fixed`."""
    found = dict(kernels)
    repeated = _repeated(graph)
    for op in graph.operations:
        if op.layer in repeated and op.layer not in fixed and (root := _summed_by(op, graph)) is not None:
            apart = _apart(op, trips(op), root, trips(root), kernels)
            found[op.layer] = replace(kernels[op.layer], interval=max(1, min(apart, LONGEST_INTERVAL)))
    return found


def _apart(
    op: TensorOp, trips: Sequence[int], root: TensorOp, summed: Sequence[int], kernels: Mapping[str, KernelDesign]
) -> int:
    """Cycles of the sum for each number that leaves it.

    Of numbers that leave together the last is late by the time of all. Where that happens a few times a run, all are
    done in the time of one.
    """
    own, theirs = kernels[op.layer], kernels[root.layer]
    steps = LoopPlan.of(root.layer, summed, root.iterators, theirs.tile, theirs.unroll, theirs.order).steps
    sums = [place for place, step in enumerate(steps) if step.dim in root.reductions]
    results = prod(step.trip for step in steps if step.dim not in root.reductions)
    together = prod(step.trip for step in steps[sums[-1] + 1 :]) if sums else results
    mine = prod(trip // lanes for trip, lanes in zip(trips, own.unroll, strict=True))
    if mine == 1:
        return 1
    at_once = max(1, together * mine // results)
    apart = prod(step.trip for step in steps) // mine
    return apart if mine > _FEW * at_once else apart // at_once


def _repeated(graph: Graph) -> set[str]:
    """Elementwise kernels of which a reader takes each number many times, or makes another one that is taken so."""
    found: set[str] = set()
    for op in reversed(graph.operations):
        readers = [one for one in graph.operations if op.result in one.inputs and not one.reductions]
        if not op.reductions and any(one.work > op.work or one.layer in found for one in readers):
            found.add(op.layer)
    return found


def _summed_by(op: TensorOp, graph: Graph) -> TensorOp | None:
    """The sum, or other reduction, that a kernel goes along with."""
    leader = leader_of(op, graph)
    return leader if leader is None or leader.reductions else _summed_by(leader, graph)
