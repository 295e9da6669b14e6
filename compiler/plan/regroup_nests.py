"""Builds the nest of a converter between slices of other sizes: the last tokens, and what is picked from them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.nests import (
    NestFacts,
    NestValue,
    Place,
    Read,
    Select,
    Statement,
    Write,
)
from penstock.compiler.analysis.regroup import RegroupPlan
from penstock.compiler.dialects.affine import linear_sum
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Loop, Term
from penstock.compiler.dialects.nest_stack import Stacking
from penstock.compiler.plan.last_tokens import LastTokens, stack


def build_regroup(plan: RegroupPlan, source: Place, targets: Sequence[Place]) -> NestFacts:
    """From the FIFO `source` into the FIFOs `targets`."""
    at = len(plan.outer)
    loops = (*_named(plan.outer, 0), Loop("at", plan.slots), *_named(plan.inner, at))
    taken, sent = (_among(at, slots, plan.slots) for slots in (plan.reads, plan.writes))
    token = NestValue(source.shape, source.dtype)
    statements: list[Statement] = [Read(source, taken, token)]
    corner = [
        linear_sum([(at + 1 + i, step) for i, (_, step, target) in enumerate(plan.inner) if target == dim])
        for dim in range(len(plan.token))
    ]
    address = AffineMap(len(loops), 0, tuple(corner))
    lines = LastTokens(source, plan.depth, plan.line, address, plan.dim, at)
    before, loads = lines.load()
    statements += loads
    newest = token
    if taken.terms:
        newest = NestValue(source.shape, source.dtype)
        statements.append(Select(token, before[-1], taken, newest))
    known = [*before, newest]
    statements += lines.store(before, newest)
    picked: NestValue | None = None
    for first, slots in plan.picks.items():
        oldest, first = divmod(first, plan.taken)
        wanted = known[oldest : oldest - (-(first + plan.sent) // plan.taken)]
        by = Stacking(plan.dim, first, plan.sent, 1)
        one = NestValue(by.shape(source.shape), source.dtype)
        statements.append(stack(wanted, by, one))
        if picked is not None:
            chosen = NestValue(one.shape, one.dtype)
            statements.append(Select(one, picked, _among(at, slots, plan.slots), chosen))
            one = chosen
        picked = one
    assert picked is not None
    return NestFacts("regroup", loops, [*statements, *[Write(picked, target, sent) for target in targets]])


def _named(loops: Sequence[tuple[int, int, int | None]], first: int) -> list[Loop]:
    return [Loop(f"w{first + i}", trip) for i, (trip, _, _) in enumerate(loops)]


def _among(loop: int, slots: int, trip: int) -> GuardAttr:
    """In these slots, as bits."""
    return ALWAYS if slots == (1 << trip) - 1 else GuardAttr((Term(loop, "in", slots),))
