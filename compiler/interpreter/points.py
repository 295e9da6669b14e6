"""The body of a linalg.generic at all points of its reduction loops, the first one first.

What a body makes of its operands alone is worked out for many points at once; what goes on from the result so far, for
one after the other. Every number has the bits of a run of the whole body, point by point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.scalars.operations import row_of

_ELEMENTS = 1 << 18
"""Of a value that is worked out at once: more do not stay in a processor's cache."""


@dataclass(frozen=True)
class GenericLoops:
    """The numbers of a generic's loops of both kinds, and how often each runs."""

    reductions: Sequence[int]
    parallels: Sequence[int]
    trips: Sequence[int]


def run_body(
    op: linalg.GenericOp, operands: Sequence[Array], state: Array, outer: Mapping[SSAValue, Array], loops: GenericLoops
) -> Array:
    """The result after the last point. Operands have an axis for each reduction loop, one of runs, and one for each
    parallel loop, of size one where they do not follow it; the result has the latter two."""
    apart, onwards, result = _parts(op)
    sizes = [loops.trips[d] for d in loops.reductions]
    space = prod(map(max, zip(*(x.shape[len(sizes) :] for x in operands), strict=True)))
    space = max(space, prod(loops.trips[d] for d in loops.parallels), state.size)
    at_once = max(_ELEMENTS // space, 1) if all(_exact(one) for one in apart) else 1
    arguments, so_far = op.body.block.args[:-1], op.body.block.args[-1]
    made = {one.results[0] for one in onwards} | {so_far}
    read = list(dict.fromkeys(x for x in (*(x for one in onwards for x in one.operands), result) if x not in made))
    places = {x: place for place, x in enumerate([so_far, *read, *(one.results[0] for one in onwards)])}
    steps = [(one, row_of(one).compute, [places[x] for x in one.operands]) for one in onwards]
    with np.errstate(all="ignore"):
        for first in range(0, prod(sizes), at_once):
            points = _points(sizes, first, at_once)
            values: dict[SSAValue, Array] = {
                argument: _at(x, points) for argument, x in zip(arguments, operands, strict=True)
            }
            for one in apart:
                values[one.results[0]] = (
                    _index(one.dim.value.data, points, loops)
                    if isinstance(one, linalg.IndexOp)
                    else row_of(one).compute(one, [values[x] if x in values else outer[x] for x in one.operands])
                )
            rows = [_by_point(values[x]) if x in values else (outer[x], True) for x in read]
            for point in range(min(at_once, prod(sizes) - first)):
                here = [state, *(x if same else x[point] for x, same in rows)]
                for one, compute, taken in steps:
                    here.append(compute(one, [here[place] for place in taken]))
                state = here[places[result]]
    return state


def _parts(op: linalg.GenericOp) -> tuple[list[Operation], list[Operation], SSAValue]:
    """What does not follow from the result so far, what does, and what is yielded."""
    block = op.body.block
    follows = {cast("SSAValue", block.args[-1])}
    apart, onwards = list[Operation](), list[Operation]()
    for one in block.ops:
        if isinstance(one, linalg.YieldOp):
            return apart, onwards, one.operands[0]
        if follows.isdisjoint(one.operands):
            apart.append(one)
        else:
            onwards.append(one)
            follows.add(one.results[0])
    raise PenstockError(code="invalid-ir", what=f"the body of {op.name} yields nothing")


def _exact(op: Operation) -> bool:
    """Whether its bits are the same in any layout: numpy's functions differ by how their arguments lie in memory."""
    return isinstance(op, linalg.IndexOp | LookUpOp) or op.name.split(".")[0] == arith.Arith.name


def _points(sizes: Sequence[int], first: int, count: int) -> list[Array]:
    """The indices along each reduction loop of so many points, the last loop the fastest."""
    if not sizes:
        return []
    return list(np.unravel_index(np.arange(first, min(first + count, prod(sizes))), sizes))


def _at(value: Array, points: Sequence[Array]) -> Array:
    """An operand at these points: they are the first axis, of size one where the operand is the same for all."""
    sizes = value.shape[: len(points)]
    if all(size == 1 for size in sizes):
        return value[(0,) * len(sizes)][None]
    if len(points[0]) == 1:
        return value[tuple(min(int(along[0]), size - 1) for along, size in zip(points, sizes, strict=True))][None]
    return value[tuple(np.minimum(along, size - 1) for along, size in zip(points, sizes, strict=True))]


def _by_point(value: Array) -> tuple[Array, bool]:
    """What is indexed by a point, or what is the same at all of them."""
    if value.ndim == 0:
        return value, True
    return (value[0], True) if len(value) == 1 else (value, False)


def _index(loop: int, points: Sequence[Array], loops: GenericLoops) -> Array:
    """What linalg.index gives for a loop, at these points."""
    axes = 2 + len(loops.parallels)
    axis = 2 + loops.parallels.index(loop) if loop in loops.parallels else 0
    along = points[loops.reductions.index(loop)] if axis == 0 else np.arange(loops.trips[loop])
    return along.reshape([-1 if other == axis else 1 for other in range(axes)])
