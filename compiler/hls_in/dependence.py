"""After how many iterations a word that was written is read again."""

from __future__ import annotations

from math import prod

from penstock.compiler.hls_in.graph import KernelValue, LinearForm
from penstock.compiler.hls_in.storage import Counter


def strides(counters: list[Counter]) -> dict[Counter, int]:
    return {c: prod(inner.trip for inner in counters[i + 1 :]) for i, c in enumerate(counters)}


def distance(store: KernelValue, load: KernelValue, counters: list[Counter]) -> int | None:
    """Iterations from a store to the load that meets its word, at least 1; None if they never meet.

    What cannot be told is taken to meet in the next iteration, as the tool takes it.
    """
    steps: dict[Counter, int] = {}
    for written, read in zip(store.args[1:], load.args, strict=True):
        a, b = written.linear, read.linear
        if a is None or b is None:
            return 1
        own_a = [(c, f) for c, f in a.terms if c in counters]
        own_b = [(c, f) for c, f in b.terms if c in counters]
        if own_a != own_b:
            difference = a.plus(b, -1)
            return None if _never(difference) else 1
        solved = _solve(a.base - b.base, own_a)
        if solved is None:
            return None
        if isinstance(solved, int):
            return 1
        for counter, step in solved.items():
            if steps.setdefault(counter, step) != step:
                return None
    stride = strides(counters)
    ends, begins = pinned(store.guard), pinned(load.guard)
    held = {c for c in counters if ends.get(c) == c.trip - 1 or begins.get(c) == 0}
    """Counters that cannot have gone on between the two: the store is in their last turn, or the load in the first."""
    fixed = sum(step * stride[c] for c, step in steps.items())
    free = sorted(stride[c] for c in counters if c not in steps and c.trip > 1 and c not in held)
    if fixed > 0:
        return min([fixed, *(rest for s in free if (rest := fixed % s) > 0 and fixed > s)])
    if fixed == 0:
        return free[0] if free else None
    reached = [fixed + s * -(-(1 - fixed) // s) for s in free if s > -fixed or s * -(-(1 - fixed) // s)]
    return min((value for value in reached if value > 0), default=None)


def pinned(guard: KernelValue | None) -> dict[Counter, int]:
    """Counters whose value a condition fixes."""
    found: dict[Counter, int] = {}
    waiting = [guard] if guard is not None else []
    while waiting:
        node = waiting.pop()
        if node.op == "logic" and node.comparison == "and":
            waiting += node.args
        elif node.op == "compare" and node.comparison == "==":
            a, b = node.args[0].linear, node.args[1].linear
            if a is not None and b is not None:
                difference = a.plus(b, -1)
                if len(difference.terms) == 1 and difference.base % difference.terms[0][1] == 0:
                    found[difference.terms[0][0]] = -difference.base // difference.terms[0][1]
    return found


def _never(difference: LinearForm) -> bool:
    low, high = difference.range
    return low > 0 or high < 0


def _solve(difference: int, terms: list[tuple[Counter, int]]) -> dict[Counter, int] | int | None:
    """Steps of the counters that add up to `difference`: the only ones, 1 where there may be several, None for none."""
    found: dict[Counter, int] = {}
    rest = difference
    ordered = sorted(terms, key=lambda term: -abs(term[1]))
    for i, (counter, factor) in enumerate(ordered):
        reach = sum(abs(f) * (c.trip - 1) for c, f in ordered[i + 1 :])
        if reach * 2 >= abs(factor) and reach >= abs(factor):
            return 1  # several iterations name one word
        step = round(rest / factor)
        if abs(rest - step * factor) > reach:
            return None
        found[counter] = step
        rest -= step * factor
        if abs(step) >= counter.trip:
            return None
    return None if rest else found
