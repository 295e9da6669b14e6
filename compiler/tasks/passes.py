"""In which order a body's tokens pass its ports: worked out round by round, since all of it is known before a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.compiler.tasks.tree import For, Get, Put, Stmt, StreamEnd, When

MOST_STEPS = 1 << 16
"""Statements that are looked at; of longer orders nothing is known."""


def passes(statements: Sequence[Stmt], most: int = MOST_STEPS) -> list[tuple[StreamEnd, bool]] | None:
    """The ports that tokens pass, in order, and whether they are put; None where that takes too long to see."""
    found: list[tuple[StreamEnd, bool]] = []
    for count, (port, puts) in enumerate(_walk(statements, {})):
        if port is not None:
            found.append((port, puts))
        if count > most:
            return None
    return found


def _walk(statements: Sequence[Stmt], counters: dict[int, int]) -> Iterator[tuple[StreamEnd | None, bool]]:
    for one in statements:
        match one:
            case For():
                rounds = _by_round(one)
                for number in range(one.trip):
                    counters[one.loop] = number
                    yield None, False
                    yield from _walk(rounds(number), counters)
            case When():
                if all(test.holds(counters[test.loop]) for test in one.tests):
                    yield from _walk(one.body, counters)
            case Get() | Put():
                yield one.port, isinstance(one, Put)
            case _:
                pass


def _by_round(loop: For) -> Callable[[int], Sequence[Stmt]]:
    """What may happen in a round of a loop: of many choices by its counter, each is looked at in its own round only."""
    always: list[tuple[int, Stmt]] = []
    chosen: dict[int, list[tuple[int, Stmt]]] = {}
    for place, one in enumerate(loop.body):
        own = (
            [t.value for t in one.tests if t.loop == loop.loop and t.comparison == "eq" and not t.every]
            if isinstance(one, When)
            else []
        )
        (chosen.setdefault(own[0], []) if own else always).append((place, one))
    if not chosen:
        return lambda number: loop.body

    def of(number: int) -> Sequence[Stmt]:
        return [one for _, one in sorted([*always, *chosen.get(number, ())], key=lambda pair: pair[0])]

    return of
