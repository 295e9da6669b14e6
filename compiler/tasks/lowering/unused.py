"""Takes out of a task's nests what nobody reads: values that lead nowhere, stores into memories that are never loaded.

A program may compute more than it uses. What it says to the outside (tokens got and put, tensors stored) stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.compiler.analysis.nests import (
    Constant,
    Load,
    Map,
    NestFacts,
    NestValue,
    Other,
    Place,
    Read,
    Reduce,
    Select,
    Statement,
    StoreFact,
    Write,
)


def drop_unused(nests: Sequence[NestFacts]) -> None:
    """Keeps of one task's nests what is felt outside, and all that it is made of, through memories too."""
    live: set[Place] = set()
    while True:
        kept = [_used(facts.statements, live) for facts in nests]
        loaded = {one.place for statements in kept for one in statements if isinstance(one, Load)}
        if loaded <= live:
            break
        live |= loaded
    for facts, statements in zip(nests, kept, strict=True):
        facts.statements = statements


def _used(statements: Sequence[Statement], live: set[Place]) -> list[Statement]:
    wanted: set[NestValue] = set()
    kept: list[Statement] = []
    for one in reversed(statements):
        if _acts(one, live) or (not isinstance(one, Write | StoreFact) and one.result in wanted):
            wanted.update(operands(one))
            kept.append(one)
    return kept[::-1]


def _acts(one: Statement, live: set[Place]) -> bool:
    """Whether a statement is felt outside its nest."""
    if isinstance(one, StoreFact):
        return not one.place.is_own or one.place in live
    return isinstance(one, Read | Write)


def operands(one: Statement) -> tuple[NestValue, ...]:
    """The values that a statement takes."""
    match one:
        case Select(inside, outside, _, _):
            return (inside, outside)
        case Map(inputs, _, _, _) | Other(_, inputs, _):
            return inputs
        case Reduce(value, _, _, _) | Write(value, _, _) | StoreFact(value, _, _, _):
            return (value,)
        case Read() | Load() | Constant():
            return ()
