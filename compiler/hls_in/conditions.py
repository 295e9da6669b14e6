"""Conditions of a kernel as guards of a nest: which of them loop counters decide, and in which terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.dialects.nest import GuardAttr, Term
from penstock.compiler.dialects.nest_attributes import MOST_LISTED
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.patterns import conjuncts, counters_of, evaluate, runs
from penstock.compiler.hls_in.pieces import PiecePart
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.storage import Counter

_MOST_PERIODS = 64


def is_static(node: KernelValue) -> bool:
    """Whether loop counters alone decide it."""
    if node.constant:
        return True
    if node.op in ("logic", "not"):
        return all(is_static(arg) for arg in node.args)
    return node.op == "compare" and all(_counts(arg) for arg in node.args)


def _counts(node: KernelValue) -> bool:
    if node.linear is not None:
        return True
    return node.op in ("add", "sub", "mul", "rem", "div", "and", "shr") and all(map(_counts, node.args))


def split(guard: KernelValue | None, item: Pipeline) -> tuple[list[KernelValue], list[KernelValue]]:
    """The parts of a condition that one counter decides, and those that several or data decide."""
    parts = [(p, is_static(p) and len(counters_of(p, item)) <= 1) for p in conjuncts(guard)]
    return [p for p, simple in parts if simple], [p for p, simple in parts if not simple]


def never(parts: Sequence[KernelValue], part: PiecePart) -> bool:
    """Whether there is no iteration in which all conditions hold, as far as each counter says by itself."""
    return any(not mask.any() for mask in _masks(parts, part).values())


def guard_of(
    parts: Sequence[KernelValue], part: PiecePart, loops: Sequence[Counter], *, inside: bool = False
) -> GuardAttr | None:
    """The conditions together, and the part's own iterations, as a guard of a nest with these loops; None where one
    mixes counters or has no term. `inside`: for what is looked at in the part's iterations alone."""
    if any(not is_static(one) or len(counters_of(one, part.item)) > 1 for one in parts):
        return None
    held = {loop: np.zeros(loop.trip, bool) for loop in part.window}
    for loop, (first, count) in part.window.items():
        held[loop][first : first + count] = True
    masks = {loop: np.ones(loop.trip, bool) for loop in held} if inside else dict(held)
    for counter, mask in _masks(parts, part).items():
        if counter not in part.at:
            return None
        loop, offset = part.at[counter]
        placed = np.zeros(loop.trip, bool)
        placed[offset : offset + counter.trip] = mask
        if inside and placed[held[loop]].all() if loop in held else placed.all():
            continue
        masks[loop] = masks.get(loop, np.ones(loop.trip, bool)) & placed
    terms: list[Term] = []
    for loop, mask in masks.items():
        found = _terms(loops.index(loop), mask)
        if found is None:
            return None
        terms += found
    return GuardAttr(tuple(sorted(terms, key=lambda term: term.loop)))


def _masks(parts: Sequence[KernelValue], part: PiecePart) -> dict[Counter, NDArray[np.bool_]]:
    masks: dict[Counter, NDArray[np.bool_]] = {}
    for one in parts:
        met = counters_of(one, part.item)
        if len(met) == 1 and is_static(one):
            counter = next(iter(met))
            mask = np.broadcast_to(evaluate(one, {counter: np.arange(counter.trip)}, part.item), counter.trip)
            masks[counter] = masks.get(counter, np.ones(counter.trip, bool)) & mask
    return masks


def _terms(loop: int, mask: NDArray[np.bool_]) -> list[Term] | None:
    """The values of one counter in as few comparisons as there are."""
    trip = len(mask)
    if mask.all():
        return []
    held = runs(mask)
    if len(held) == 1:
        start, count = held[0]
        if count == 1:
            return [Term(loop, "eq", start)]
        low = [Term(loop, "ge", start)] if start else []
        return low + ([Term(loop, "le", start + count - 1)] if start + count < trip else [])
    missing = np.flatnonzero(~mask)
    if len(missing) == 1:
        return [Term(loop, "ne", int(missing[0]))]
    places = np.arange(trip)
    for every in range(2, min(trip, _MOST_PERIODS)):
        first = int(np.flatnonzero(mask)[0]) if mask.any() else trip
        if first < every and np.array_equal(mask, places % every == first):
            return [Term(loop, "eq", first, every)]
    if trip <= MOST_LISTED and mask.any():
        return [Term(loop, "in", sum(1 << int(i) for i in np.flatnonzero(mask)))]
    return None
