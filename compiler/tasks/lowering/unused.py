"""Takes out of a task's nests what nobody reads: values that lead nowhere, stores into memories that are never loaded.

A program may compute more than it uses. What it says to the outside (tokens got and put, tensors stored) stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.compiler.analysis import nests as fact


def drop_unused(nests: Sequence[fact.NestFacts]) -> None:
    """Keeps of one task's nests what is felt outside, and all that it is made of, through memories too."""
    live: set[fact.Place] = set()
    while True:
        kept = [_used(facts.statements, live) for facts in nests]
        loaded = {one.place for statements in kept for one in statements if isinstance(one, fact.Load)}
        if loaded <= live:
            break
        live |= loaded
    for facts, statements in zip(nests, kept, strict=True):
        facts.statements = statements


def _used(statements: Sequence[fact.Statement], live: set[fact.Place]) -> list[fact.Statement]:
    wanted: set[fact.NestValue] = set()
    kept: list[fact.Statement] = []
    for one in reversed(statements):
        if _acts(one, live) or (not isinstance(one, fact.Write | fact.StoreFact) and one.result in wanted):
            wanted.update(operands(one))
            kept.append(one)
    return kept[::-1]


def _acts(one: fact.Statement, live: set[fact.Place]) -> bool:
    """Whether a statement is felt outside its nest."""
    if isinstance(one, fact.StoreFact):
        return not one.place.is_own or one.place in live
    return isinstance(one, fact.Read | fact.Write)


def operands(one: fact.Statement) -> tuple[fact.NestValue, ...]:
    """The values that a statement takes."""
    match one:
        case fact.Select(inside, outside, _, _):
            return (inside, outside)
        case fact.Map(inputs, _, _, _) | fact.Other(_, inputs, _):
            return inputs
        case fact.Reduce(value, _, _, _) | fact.Write(value, _, _) | fact.StoreFact(value, _, _, _):
            return (value,)
        case fact.Read() | fact.Load() | fact.Constant():
            return ()
