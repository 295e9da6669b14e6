"""Builds the nests of tasks that pass tokens on as they are: parts of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.analysis.nests import NestFacts, NestValue, Place, Read, Select, Statement
from penstock.compiler.analysis.parts import range_loops
from penstock.compiler.analysis.walks import LoopOf
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Loop, Term
from penstock.compiler.plan.converter_nests import push

CONCAT = "concat"
"""What a nest is called that sends on several tensors one after the other."""


@dataclass(frozen=True)
class Range:
    """A part of a tensor along the dim at which it is cut, and the FIFOs that its tokens come from or go to."""

    start: int
    size: int
    fifos: Sequence[Place]


def build_chunk(kind: ITensorType, dim: int, source: Place, parts: Sequence[Range]) -> NestFacts:
    """Every token of a stream passes once and goes to the parts whose range it lies in."""
    loops, along = range_loops(kind, dim)
    value = NestValue(source.shape, source.dtype)
    statements: list[Statement] = [Read(source, ALWAYS, value)]
    for part in parts:
        statements += push(value, part.fifos, _range_guard(loops, along, part))
    return NestFacts("chunk", _named(loops), statements)


def build_concat(kind: ITensorType, dim: int, parts: Sequence[Range], targets: Sequence[Place]) -> NestFacts:
    """Every token of the whole comes from the source in whose range it lies."""
    loops, along = range_loops(kind, dim)
    sources = [(fifo, _range_guard(loops, along, part)) for part in parts for fifo in part.fifos]
    return NestFacts(CONCAT, _named(loops), _select(sources, targets))


def _select(sources: Sequence[tuple[Place, GuardAttr]], targets: Sequence[Place]) -> list[Statement]:
    """Read the FIFO whose guard holds, and send on the token that it gave."""
    statements: list[Statement] = []
    chosen: NestValue | None = None
    for source, guard in sources:
        token = NestValue(source.shape, source.dtype)
        statements.append(Read(source, guard, token))
        if chosen is None:
            chosen = token
        else:
            outside, chosen = chosen, NestValue(source.shape, source.dtype)
            statements.append(Select(token, outside, guard, chosen))
    assert chosen is not None
    return [*statements, *push(chosen, targets, ALWAYS)]


def _named(loops: Sequence[LoopOf]) -> tuple[Loop, ...]:
    return tuple([Loop(f"w{i}", trip) for i, (trip, _, _) in enumerate(loops)])


def _range_guard(loops: Sequence[LoopOf], along: int, part: Range) -> GuardAttr:
    """The trips of loop `along` that lie in a range of its dim; terms that always hold are left out."""
    trip, step, _ = loops[along]
    first, last = part.start // step, (part.start + part.size) // step - 1
    if first == last and trip > 1:
        return GuardAttr((Term(along, "eq", first),))
    terms = [Term(along, "ge", first)] if first > 0 else []
    terms += [Term(along, "le", last)] if last < trip - 1 else []
    return GuardAttr(tuple(terms))
