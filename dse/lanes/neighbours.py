"""Which kernels walk together: leaders of elementwise kernels, and walks that let neighbours start early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.dse.lanes.walks import KernelWalk


def leader_of(op: TensorOp, graph: Graph) -> TensorOp | None:
    """The kernel whose result an elementwise one walks along with; none for a reduction."""
    if op.reductions:
        return None
    for value, dims in zip(op.inputs, op.operand_dims, strict=True):
        producer = graph.makers.get(value)
        if producer is not None and sorted(d for d in dims if d is not None) == list(range(len(op.trips))):
            return producer
    return None


def shared_dims(consumer: TensorOp, producer: TensorOp) -> dict[int, int]:
    """Each dim of a kernel that is one of its operand's, and which of its producer's dims that is."""
    for value, dims in zip(consumer.inputs, consumer.operand_dims, strict=True):
        if value is producer.result:
            pairs = zip(dims, producer.result_dims, strict=True)
            return {mine: theirs for mine, theirs in pairs if mine is not None and theirs is not None}
    return {}


def follow(walks: Mapping[str, KernelWalk], start: TensorOp, graph: Graph) -> dict[str, KernelWalk]:
    """The walks when whoever makes or reads what `start` does goes in its order, and so on from neighbour to neighbour.

    A kernel whose slowest dim is a reduction gives its results at the end, in whatever order. One that goes through a
    frame goes through it place by place.
    """
    found = dict(walks)
    edges = [(p, c, shared_dims(c, p)) for c in graph.operations for v in c.inputs if (p := graph.makers.get(v))]
    waiting = [(start, walks[start.layer].outer)]
    met = {start.layer}
    while waiting:
        op, outer = waiting.pop(0)
        for producer, consumer, dims in edges:
            upward = consumer is op and producer.layer not in met
            if not upward and (producer is not op or consumer.layer in met):
                continue
            other = producer if upward else consumer
            known = dims if upward else {theirs: mine for mine, theirs in dims.items()}
            wanted = _prefix(outer, known)
            if not wanted:
                continue
            met.add(other.layer)
            if other.layer in found and not found[other.layer].frame:
                found[other.layer] = replace(found[other.layer], outer=wanted, most=walks[start.layer].most)
            waiting.append((other, wanted))
    return found


def _prefix(outer: tuple[int, ...], known: Mapping[int, int]) -> tuple[int, ...]:
    """The outermost dims as the neighbour calls them, up to the first that it does not have."""
    prefix: list[int] = []
    for d in outer:
        if d not in known:
            break
        prefix.append(known[d])
    return tuple(prefix)
