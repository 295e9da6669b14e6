"""After how many iterations a memory's word is met again: the distance of a loop-carried dependence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.extents import Extents
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.schedule.flatten import FlatStep


@dataclass(frozen=True)
class CarriedWord:
    """Step `store` writes what step `load` reads `distance` iterations later."""

    store: int
    load: int
    distance: int
    held: bool
    """The word stays in a register, because the address stands still from one iteration to the next."""
    path: tuple[int, ...]
    """The steps from the load to the store, if that depends on it."""
    around: int
    """Stages around this path, to the next load."""
    spare: int
    """Stages that the path takes more where it is placed than it needs around."""


def path_between(steps: Sequence[FlatStep], source: int, sink: int) -> tuple[int, ...]:
    """The steps between a load and a store that depends on it; none if it does not."""
    between: set[int] = {source}
    for index in range(source + 1, sink + 1):
        if any(i in between for i in steps[index].inputs):
            between.add(index)
    if sink not in between:
        return ()
    needed = {sink}
    for index in range(sink, source, -1):
        if index in needed:
            needed |= {i for i in steps[index].inputs if i in between}
    return tuple(sorted(needed))


def stands_still(address: AffineMap, extents: Extents) -> bool:
    """Whether consecutive iterations meet the same word: the innermost turning loop does not move it."""
    turning = [loop for loop, trip in enumerate(extents.most) if trip > 1]
    return not turning or not any(_moves(address, turning[-1]))


def reuse_distance(store: AffineMap, load: AffineMap, lanes: Sequence[int], extents: Extents) -> int | None:
    """The least number of iterations, at any length, from a store of a word to a later load of it, or None.

    Exact for equal addresses in which different counters mean different words; otherwise the next
    iteration is assumed to need the word, which is safe.
    """
    if str(store) != str(load):
        return 1
    turning = [loop for loop, trip in enumerate(extents.most) if trip > 1]
    still = [loop for loop in turning if not any(_moves(store, loop))]
    moving = [loop for loop in turning if loop not in still]
    if not _words_differ(store, lanes, extents.most, moving):
        return 1
    if not still:
        return None
    inside = [loop for loop in moving if loop > still[-1]]
    distance = 1
    for loop in inside:
        distance *= extents.least[loop]
    return distance


def _moves(address: AffineMap, loop: int) -> list[int]:
    return [coefficients(e, address.num_dims)[loop] for e in address.results]


def _words_differ(address: AffineMap, lanes: Sequence[int], trips: Sequence[int], loops: Sequence[int]) -> bool:
    """Whether different counters of `loops` never touch the same element."""
    covered: set[int] = set()
    for expression, width in zip(address.results, lanes, strict=True):
        moving = [
            (abs(c), trips[i]) for i, c in enumerate(coefficients(expression, address.num_dims)) if c and i in loops
        ]
        reach = width
        for step, trip in sorted(moving):
            if step < reach:
                return False
            reach += step * (trip - 1)
        covered |= {i for i, c in enumerate(coefficients(expression, address.num_dims)) if c}
    return set(loops) <= covered
