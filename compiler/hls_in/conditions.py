"""Conditions of a kernel as guards of a nest: which of them loop counters decide, and in which terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.dialects.nest import GuardAttr, Term
from penstock.compiler.dialects.nest_attributes import MOST_LISTED
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.patterns import conjuncts, counters_of, evaluate, runs
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


def split(guard: KernelValue | None) -> tuple[list[KernelValue], list[KernelValue]]:
    """The parts of a condition that counters decide, and those that data decide."""
    parts = conjuncts(guard)
    return [p for p in parts if is_static(p)], [p for p in parts if not is_static(p)]


def never(parts: Sequence[KernelValue], item: Pipeline) -> bool:
    """Whether there is no iteration in which all parts hold, as far as each counter says by itself."""
    return any(not mask.any() for mask in _masks(parts, item).values())


def guard_of(parts: Sequence[KernelValue], item: Pipeline, loops: Sequence[Counter]) -> GuardAttr | None:
    """The parts together as a guard of a nest with these loops; None where one mixes counters or has no term."""
    if any(len(counters_of(part, item)) > 1 for part in parts):
        return None
    terms: list[Term] = []
    for counter, mask in _masks(parts, item).items():
        if counter not in loops:
            return None
        found = _terms(loops.index(counter), mask)
        if found is None:
            return None
        terms += found
    return GuardAttr(tuple(sorted(terms, key=lambda term: term.loop)))


def _masks(parts: Sequence[KernelValue], item: Pipeline) -> dict[Counter, NDArray[np.bool_]]:
    masks: dict[Counter, NDArray[np.bool_]] = {}
    for part in parts:
        met = counters_of(part, item)
        if len(met) == 1:
            counter = next(iter(met))
            mask = np.broadcast_to(evaluate(part, {counter: np.arange(counter.trip)}, item), counter.trip)
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
