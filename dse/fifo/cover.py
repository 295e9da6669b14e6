"""The cheapest depths that answer every known failure: a covering problem, as an integer program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.dse.support.linear import LinearProgram

FailedDepths = dict[str, int]
"""Depths that do not suffice, however deep all other FIFOs are: one of these must be deeper."""


def cheapest_cover(failures: Sequence[FailedDepths], bits: Mapping[str, int], least: int) -> dict[str, int] | None:
    """Depths with the fewest bits such that each failure has a FIFO that is deeper; None where it took too long."""
    program = LinearProgram("depths")
    steps: dict[str, list[tuple[int, int]]] = {}
    for name in bits:
        depths = sorted({f[name] + 1 for f in failures if name in f})
        below = least
        for depth in depths:
            reached = program.choice(bits[name] * (depth - below))
            if steps.get(name):
                program.row({reached: 1, steps[name][-1][1]: -1}, "<=", 0)
            steps.setdefault(name, []).append((depth, reached))
            below = depth
    for failure in failures:
        deeper = [next(v for d, v in steps[name] if d == depth + 1) for name, depth in failure.items()]
        program.row(dict.fromkeys(deeper, 1.0), ">=", 1)
    if not failures:
        return dict.fromkeys(bits, least)
    found = program.solve(0.2)
    if found is None or not found.proven:
        return None
    return {n: max([least, *(d for d, v in steps.get(n, []) if found.chosen(v))]) for n in bits}
