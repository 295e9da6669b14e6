"""Which kernels walk together: leaders of elementwise kernels, and walks that let neighbours start early."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.dialects.types import tensor_bits
from penstock.dse.lanes.joined import extended
from penstock.dse.lanes.walks import SOME, KernelWalk

_SOON = 64
"""What takes so many times less work than its reader is there soon."""


def leader_of(op: TensorOp, graph: Graph) -> TensorOp | None:
    """The kernel whose result an elementwise one walks along with; none for a reduction."""
    if op.reductions:
        return None
    for value, dims in zip(op.inputs, op.operand_dims, strict=True):
        producer = graph.makers.get(value)
        if producer is not None and sorted(d for d in dims if d is not None) == list(range(len(op.trips))):
            return producer
    return None


def alike(ops: Iterable[TensorOp], graph: Graph) -> list[list[TensorOp]]:
    """Kernels that do equal work with what they read together: if one of them changes alone, it waits for the others,
    or they for it."""
    found: dict[Hashable, list[TensorOp]] = {}
    for op in ops:
        found.setdefault((op.work, frozenset(op.inputs).intersection(graph.makers)), []).append(op)
    return list(found.values())


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
                like = walks[start.layer]
                found[other.layer] = replace(found[other.layer], outer=wanted, most=like.most, in_parts=like.in_parts)
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


def flowing(walks: Mapping[str, KernelWalk], large: Mapping[str, Sequence[int]], graph: Graph) -> dict[str, KernelWalk]:
    """The walks when every kernel takes in what the one before it makes as it comes, as far as its weights pass once.

    What comes slice by slice along one of a kernel's dims is walked along it, of several what is larger: the results go
    on so, or, along a reduction, they are all there at its end. Nothing is gained by the latter where what comes is
    there soon beside what the kernel does with it. A kernel to which nothing comes so walks its first dim.
    Where a tensor is `large`, with the dims along which it lies, only these are walked slowly: along others it would be
    sent again. A cache to which a row is joined comes along the dim on which its parts follow each other: turned
    otherwise, all of it would wait on the chip.
    """
    found = dict(walks)
    joined = extended(graph)
    slices: dict[str, int | None] = {}
    behind: dict[str, int] = {}  # the work of the busiest kernel of those whose slices come along; none before a whole
    for op in graph.operations:
        walked = [d for d, trip in enumerate(op.trips) if trip > 1]
        mine = [d for d in walked if d in large.get(op.layer, walked)] or walked
        coming = [
            (dim, behind[producer.layer])
            for value in sorted(op.inputs, key=tensor_bits, reverse=True)
            if (producer := graph.makers.get(value)) is not None
            for dim, theirs in shared_dims(op, producer).items()
            if theirs == slices[producer.layer] and dim in mine
        ]
        coming = [(d, work) for d, work in coming if d not in op.reductions or work * _SOON >= op.work]
        appended = [
            (dim, 0)
            for value, dims in zip(op.inputs, op.operand_dims, strict=True)
            if value in joined and (dim := dims[joined[value]]) in mine
        ]
        coming = [*appended, *coming]
        along = next(iter([*(d for d, _ in coming), *(d for d in mine if d not in op.reductions), *mine]), None)
        summed = along in op.reductions
        slices[op.layer] = None if summed else along
        whole = any(slices[one.layer] is None for v in op.inputs if (one := graph.makers.get(v)) is not None)
        behind[op.layer] = max(op.work, *(work for d, work in coming if d == along and not summed and not whole), 0)
        if op.layer in found and along is not None and not found[op.layer].frame:
            few = SOME if summed and op.trips[along] > SOME else 1
            follows = bool(coming) and not appended and len(walked) > 1  # of slices one after the other, few at once
            found[op.layer] = replace(found[op.layer], outer=(along,), most=few if follows else None, in_parts=False)
    return found
