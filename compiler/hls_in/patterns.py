"""In which iterations of a pipeline a condition holds, as the simulator's token patterns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.dependence import strides
from penstock.compiler.hls_in.graph import KernelValue, LinearForm
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.storage import Counter
from penstock.compiler.schedule.pattern import PatternLevel, TokenPattern

MOST_ITERATIONS = 200_000_000


def pattern_of(guard: KernelValue | None, item: Pipeline) -> TokenPattern:
    """The iterations in which an access happens; every one without a guard."""
    counters = item.counters or [Counter("once", 1)]
    masks: dict[Counter, NDArray[np.bool_]] = {}
    for term in conjuncts(guard):
        met = counters_of(term, item)
        if len(met) == 1:
            counter = next(iter(met))
            mask = evaluate(term, {counter: np.arange(counter.trip)}, item)
            masks[counter] = masks.get(counter, np.ones(counter.trip, bool)) & np.broadcast_to(mask, counter.trip)
        elif met:
            return _together(guard, item)
        elif not bool(np.all(evaluate(term, {}, item))):
            return TokenPattern((PatternLevel((), 1),))
    stride = strides(counters)
    return TokenPattern(
        tuple(PatternLevel(runs(masks[c]) if c in masks else ((0, c.trip),), stride[c]) for c in counters)
    )


def _together(guard: KernelValue | None, item: Pipeline) -> TokenPattern:
    """A condition that mixes counters: every iteration is looked at."""
    if item.iterations > MOST_ITERATIONS // 10:
        raise PenstockError(
            code="unsupported-source", what="a condition that mixes loop counters over so many iterations",
            where=item.where,
            limit=f"{item.iterations:,} iterations", hint="write it as conditions on single counters",
        )  # fmt: skip
    shape = [c.trip for c in item.counters]
    values = {
        c: np.arange(c.trip).reshape([-1 if d == i else 1 for d in range(len(shape))])
        for i, c in enumerate(item.counters)
    }
    mask: NDArray[np.bool_] = np.ones(shape, bool)
    for term in conjuncts(guard):
        mask &= np.broadcast_to(evaluate(term, values, item), shape)
    return TokenPattern((PatternLevel(runs(mask.ravel()), 1),))


def conjuncts(guard: KernelValue | None) -> list[KernelValue]:
    if guard is None:
        return []
    if guard.op == "logic" and guard.comparison == "and":
        return [term for arg in guard.args for term in conjuncts(arg)]
    return [guard]


def counters_of(node: KernelValue, item: Pipeline) -> set[Counter]:
    if node.linear is not None:
        return {c for c, _ in node.linear.terms}
    return {c for arg in node.args for c in counters_of(arg, item)}


def evaluate(node: KernelValue, values: dict[Counter, NDArray[np.int64]], item: Pipeline) -> NDArray[np.bool_]:
    if node.constant:
        return np.array(bool(node.value))
    if node.op == "not":
        return ~evaluate(node.args[0], values, item)
    if node.op == "logic":
        left, right = (evaluate(arg, values, item) for arg in node.args)
        return left & right if node.comparison == "and" else left | right
    if node.op == "compare":
        left, right = (_number(arg, values) for arg in node.args)
        if left is not None and right is not None:
            signs = {
                "==": np.equal,
                "!=": np.not_equal,
                "<": np.less,
                "<=": np.less_equal,
                ">": np.greater,
                ">=": np.greater_equal,
            }
            return signs[node.comparison](left, right)
    raise PenstockError(
        code="unsupported-source", what="a stream is read or written under a condition that depends on data",
        where=f"{item.where.partition(':')[0]}:{node.line or item.line}:1",
        hint="read or write it in iterations that loop counters decide",
    )  # fmt: skip


def _number(node: KernelValue, values: dict[Counter, NDArray[np.int64]]) -> NDArray[np.int64] | None:
    if node.linear is not None:
        return _linear(node.linear, values)
    if node.op in ("add", "sub", "mul", "rem", "div", "and", "shr"):
        left, right = (_number(arg, values) for arg in node.args)
        if left is None or right is None:
            return None
        with np.errstate(divide="ignore"):
            signs = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "rem": np.fmod, "div": _towards_zero,
                     "and": np.bitwise_and, "shr": np.right_shift}  # fmt: skip
            return signs[node.op](left, right)
    return None


def _towards_zero(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """A quotient as C++ has it."""
    return (left - np.fmod(left, right)) // right


def _linear(linear: LinearForm, values: dict[Counter, NDArray[np.int64]]) -> NDArray[np.int64] | None:
    total: NDArray[np.int64] = np.array(linear.base, np.int64)
    for counter, factor in linear.terms:
        if counter not in values:
            return None
        total = total + values[counter] * factor
    return total


def runs(mask: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.view(np.int8), [0]))))
    return tuple((int(a), int(b - a)) for a, b in zip(edges[::2], edges[1::2], strict=True))
