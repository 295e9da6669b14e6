"""Operator bindings as pragmas: a bound operation gets a variable of its own, which BIND_OP can name.

BIND_OP speaks for a variable, so lanes whose operators differ cannot share a loop: each run of lanes that are built
alike gets its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Block, Operation

from penstock.compiler.analysis.pairs import PAIRINGS
from penstock.compiler.dialects.bindings import Allotment
from penstock.compiler.scalars.operations import row_of

_FLOAT_DSP = {"add": "fulldsp", "sub": "fulldsp", "mul": "maxdsp"}  # what the library's rows were read off


def bind_op(variable: str, op: Operation, implementation: str) -> str | None:
    """The pragma, or None where the tool has none for the operation."""
    operator = row_of(op).bind
    if not operator:
        return None
    if implementation in PAIRINGS:  # a product that found no partner
        implementation = "dsp"
    if op.name.endswith("f"):
        implementation = _FLOAT_DSP.get(operator, implementation) if implementation == "dsp" else implementation
        operator = ("d" if isinstance(op.results[0].type, Float64Type) else "f") + operator
    return f"#pragma HLS BIND_OP variable={variable} op={operator} impl={implementation}"


@dataclass(frozen=True)
class LaneRun:
    """Consecutive lanes of a scalar body, and what its bound operations are built of there."""

    first: int
    last: int
    """The lane after the run."""
    choices: Mapping[Operation, str]


def runs_of(body: Block, lanes: int, allotment: Allotment) -> list[LaneRun]:
    """The lanes of a scalar body, cut where what an operation is built of changes."""
    taken = [(op, allotment.take(op, lanes)) for op in body.ops]
    spans = {op: (list(accumulate((count for count, _ in shares), initial=0)), shares) for op, shares in taken}
    cuts = sorted({cut for places, _ in spans.values() for cut in places} | {0, lanes})
    runs: list[LaneRun] = []
    for first, last in pairwise(cuts):
        choices: dict[Operation, str] = {}
        for op, (places, shares) in spans.items():
            choice = next(name for end, (_, name) in zip(places[1:], shares, strict=True) if end > first)
            if choice is not None:
                choices[op] = choice
        runs.append(LaneRun(first, last, choices))
    return runs
