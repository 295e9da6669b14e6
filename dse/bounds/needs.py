"""What part of one kernel's work must be done before another can begin, or is still to do once it has ended.

A kernel's first iteration takes an element of each operand. From there backwards it is followed how many indices along
each dim every kernel before it must have made: a sum needs all of its terms, whatever the order, lanes or tiles.
Forwards in the same way: an element that is made last keeps waiting whatever is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp, Windows
from penstock.compiler.dialects.types import tensor_type
from penstock.dse.bounds.operators import LeastBody

_PADDED = 7 / 6
"""A dim may be padded by a sixth: then a part of it is a smaller part."""

_READ = 1
"""A token is read in a later cycle than it is written."""

IndexCounts = tuple[int, ...]
"""How many indices along each dim of a tensor, or each loop of a kernel."""


@dataclass(frozen=True)
class WaitedFor:
    """Of a kernel's iterations, whatever its lanes.

    `cycles` pass at least between the last of them and the other kernel's first, or the other's last and the first.
    """

    share: float
    cycles: int
    loops: IndexCounts
    """How many indices of each loop the part is."""
    through: tuple[str, ...] = ()
    """The kernels that add up whole sums in these cycles, one term after the other counted as one addition."""


WaitedParts = Mapping[str, WaitedFor]


@dataclass(frozen=True)
class Needs:
    """By the kernel that waits, or is waited for: the others, with their parts."""

    before: Mapping[str, WaitedParts]
    """What must be done of kernels before one's first iteration."""
    after: Mapping[str, WaitedParts]
    """What is still to do of kernels after one's last iteration."""


def needs_of(graph: Graph, bodies: Mapping[str, LeastBody]) -> Needs:
    found = _Follower(graph, bodies)
    before = {op.layer: found.before(op) for op in graph.operations}
    return Needs(before, {op.layer: found.after(op) for op in graph.operations})


class _Follower:
    """Cycles are from a value to a value: where one is there, until the other can be."""

    def __init__(self, graph: Graph, bodies: Mapping[str, LeastBody]) -> None:
        self.bodies = bodies
        self.made_by: dict[SSAValue, Node] = {node.result: node for node in graph.nodes}
        self.readers: dict[SSAValue, list[Node]] = {}
        for node in graph.nodes:
            for value in dict.fromkeys(node.inputs):
                self.readers.setdefault(value, []).append(node)
        self._made: dict[tuple[SSAValue, IndexCounts], WaitedParts] = {}
        self._read: dict[tuple[SSAValue, IndexCounts], WaitedParts] = {}

    def before(self, op: TensorOp) -> WaitedParts:
        found: dict[str, WaitedFor] = {}
        for value in op.inputs:
            _join(found, self.made(value, (1,) * len(_shape(value))), _READ)
        return found

    def after(self, op: TensorOp) -> WaitedParts:
        found: dict[str, WaitedFor] = {}
        _join(found, self.read(op.result, (1,) * len(_shape(op.result))), self.bodies[op.layer].one_term, op.layer)
        return found

    def made(self, value: SSAValue, counts: IndexCounts) -> WaitedParts:
        """What must be done so that so many indices along each dim of a value are there."""
        key = (value, counts)
        if key not in self._made:
            self._made[key] = self._making(value, counts)
        return self._made[key]

    def _making(self, value: SSAValue, counts: IndexCounts) -> WaitedParts:
        node = self.made_by.get(value)
        match node:
            case TensorOp():
                body = self.bodies[node.layer]
                loops = _loops_of(node, counts)
                found = {node.layer: WaitedFor(share_of(loops, node.trips), body.one_term, loops, (node.layer,))}
                for source, dims in zip(node.inputs, node.operand_dims, strict=True):
                    wanted = tuple(1 if d is None else loops[d] for d in dims)
                    _join(found, self.made(source, wanted), _READ + body.one_term, node.layer)
                return found
            case Slice():
                return self.made(node.source, counts)
            case Concat():
                return self._joined(node, counts)
            case Reshape():
                return self.made(node.source, reshaped(_shape(value), _shape(node.source), counts))
            case Windows() if not node.by.pads(_shape(node.source)[node.by.dim]):
                # the places of a window, if it has more than one, are a dim of their own, the last
                plain = counts[: len(_shape(node.source))]
                return self.made(node.source, _with(plain, node.by.dim, 1))
            case _:  # an input of the model; windows over what is filled in need nothing
                return {}

    def _joined(self, node: Concat, counts: IndexCounts) -> WaitedParts:
        """Whatever of its sources it is: what all of them have in common, unless it must be some of each."""
        whole, wanted = sum(size for _, size in node.parts), counts[node.dim]
        certain: dict[str, WaitedFor] = {}
        either: list[WaitedParts] = []
        for source, (_, size) in zip(node.sources, node.parts, strict=True):
            least = wanted - (whole - size)
            either.append(self.made(source, _with(counts, node.dim, max(least, 1))))
            if least > 0:
                _join(certain, either[-1], 0)
        if certain:
            return certain
        shared = set(either[0]).intersection(*either[1:])
        parts = {layer: [one[layer] for one in either] for layer in sorted(shared)}
        return {layer: _common(found) for layer, found in parts.items()}

    def read(self, value: SSAValue, counts: IndexCounts) -> WaitedParts:
        """What cannot be done before so many indices along each dim of a value are there."""
        key = (value, counts)
        if key not in self._read:
            found: dict[str, WaitedFor] = {}
            for node in self.readers.get(value, ()):
                self._reading(node, value, counts, found)
            self._read[key] = found
        return self._read[key]

    def _reading(self, node: Node, value: SSAValue, counts: IndexCounts, found: dict[str, WaitedFor]) -> None:
        match node:
            case TensorOp():
                for source, dims in zip(node.inputs, node.operand_dims, strict=True):
                    if source is not value or None in dims or None in node.result_dims:
                        continue
                    known = {d: counts[index] for index, d in enumerate(dims) if d is not None}
                    loops = tuple(known.get(d, trip) for d, trip in enumerate(node.trips))
                    result = tuple(1 if d is None else loops[d] for d in node.result_dims)
                    part = WaitedFor(share_of(loops, node.trips), 0, loops)
                    _join(found, {node.layer: part}, _READ)
                    after = _READ + self.bodies[node.layer].one_term
                    _join(found, self.read(node.result, result), after, node.layer)
            case Slice():
                left = counts[node.dim] - (_shape(node.source)[node.dim] - _shape(node.result)[node.dim])
                if left > 0:
                    _join(found, self.read(node.result, _with(counts, node.dim, left)), 0)
            case Concat():
                _join(found, self.read(node.result, counts), 0)
            case Reshape():
                result = reshaped(_shape(node.source), _shape(node.result), counts)
                _join(found, self.read(node.result, result), 0)
            case Windows():  # perhaps no window has it
                pass


def read_straight(op: TensorOp, graph: Graph) -> Mapping[str, tuple[int, ...]]:
    """By the kernel that makes what this one reads as it is: the loops by whose indices it has one element each."""
    found: dict[str, tuple[int, ...]] = {}
    for value, dims in zip(op.inputs, op.operand_dims, strict=True):
        maker, loops = graph.makers.get(value), tuple(d for d in dims if d is not None)
        if maker is not None and None not in maker.result_dims and loops and len({*loops}) == len(dims):
            found.setdefault(maker.layer, loops)
    return found


def _loops_of(op: TensorOp, counts: IndexCounts) -> IndexCounts:
    """How far each loop must have gone for so much of a result: a sum through all of its terms."""
    found = [trip if d in op.reductions else 1 for d, trip in enumerate(op.trips)]
    for place, d in enumerate(op.result_dims):
        if d is not None:
            found[d] = counts[place]
    return tuple(found)


def reshaped(shape: Sequence[int], other: Sequence[int], counts: IndexCounts) -> IndexCounts:
    """So many indices that are surely there along each dim of the same elements under another shape."""
    found: list[int] = []
    here = there = 0
    while there < len(other):
        mine, theirs = [here], [there]
        while (a := prod(shape[i] for i in mine if i < len(shape))) != (b := prod(other[i] for i in theirs)):
            if a < b:
                mine.append(mine[-1] + 1)
            else:
                theirs.append(theirs[-1] + 1)
        known = [(counts[i], shape[i]) for i in mine if i < len(shape)]
        large = [i for i in theirs if other[i] > 1]
        if all(count == size for count, size in known):
            found += [other[i] for i in theirs]
        elif len(large) == 1:
            found += [prod(count for count, _ in known) if i in large else 1 for i in theirs]
        else:
            found += [1] * len(theirs)
        here, there = mine[-1] + 1, theirs[-1] + 1
    return tuple(found)


def share_of(loops: IndexCounts, trips: Sequence[int]) -> float:
    """Of all iterations, in whatever steps: a whole dim takes all of its steps, a part of one its share of them."""
    return prod(1.0 if count >= trip else count / (trip * _PADDED) for count, trip in zip(loops, trips, strict=True))


def _common(parts: Sequence[WaitedFor]) -> WaitedFor:
    """What all parts have of a kernel, whichever of them it is that counts."""
    loops = tuple(min(counts) for counts in zip(*(one.loops for one in parts), strict=True))
    through = tuple(name for name in parts[0].through if all(name in one.through for one in parts))
    return WaitedFor(min(one.share for one in parts), min(one.cycles for one in parts), loops, through)


def _join(found: dict[str, WaitedFor], others: WaitedParts, cycles: int, *through: str) -> None:
    """Of two parts the larger one, and of equal ones what takes longer; the cycles are by way of `through`."""
    for layer, part in others.items():
        later = WaitedFor(part.share, part.cycles + cycles, part.loops, (*part.through, *through))
        if layer not in found or (found[layer].share, found[layer].cycles) < (later.share, later.cycles):
            found[layer] = later


def _with(counts: IndexCounts, dim: int, count: int) -> IndexCounts:
    return (*counts[:dim], count, *counts[dim + 1 :])


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(tensor_type(value).get_shape())
