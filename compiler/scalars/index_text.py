"""Index arithmetic as text that knows how it binds: the same for C++ and SystemVerilog."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


class Sum(str):
    """Text whose outermost operator is an addition; all other text may be a factor as it stands."""


def total(terms: Sequence[str], *, fold: bool = False) -> str:
    """Their sum, without zeros; `fold` adds numbers up."""
    kept = [t for t in terms if t != "0"] or ["0"]
    if len(kept) == 1:
        return kept[0]
    return str(sum(map(int, kept))) if fold and all(t.isdigit() for t in kept) else Sum(" + ".join(kept))


def times(expression: str, factor: int, *, fold: bool = False) -> str:
    if factor == 1 or expression == "0":
        return expression
    if fold and expression.isdigit():
        return str(int(expression) * factor)
    return f"({expression}) * {factor}" if isinstance(expression, Sum) else f"{expression} * {factor}"


def flat(shape: Sequence[int], index: Sequence[str], *, fold: bool = False) -> str:
    """The row-major position of a lane in a word."""
    position = "0"
    for extent, i in zip(shape, index, strict=True):
        if extent > 1:
            position = i if position == "0" else total([times(position, extent, fold=fold), i], fold=fold)
    return position


def linear(start: int, factors: Sequence[int], index: Sequence[str]) -> str:
    """A place that moves by a factor with each index."""
    terms = [times(i, factor, fold=True) for i, factor in zip(index, factors, strict=True) if factor]
    return total([*terms, str(start)], fold=True)


def unflat(shape: Sequence[int], place: str) -> list[str]:
    """A row-major place as an index of each dim."""
    found: list[str] = []
    for dim, size in enumerate(shape):
        inner = prod(shape[dim + 1 :])
        if place.isdigit():
            found.append(str(int(place) // inner % size))
        elif size == 1:
            found.append("0")
        else:
            along = place if inner == 1 else f"({place}) / {inner}"
            found.append(along if prod(shape[:dim]) == 1 else f"({along}) % {size}")
    return found
