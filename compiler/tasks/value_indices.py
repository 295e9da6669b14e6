"""An index that is a value of the run: `counts[v] += 1`. All places of that dim are met, and comparisons choose one.

So such a memory is registers, as hardware is that can meet any of its words in any round without waiting. An index that
is not within the dim reads 0 and stores nothing, at every level.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import dataclass
from math import prod

from penstock.compiler.tasks.expressions import Expressions
from penstock.compiler.tasks.kinds import TileKind, is_fixed, is_float
from penstock.compiler.tasks.tiles import RUNTIME
from penstock.compiler.tasks.tree import Const, Expr, Join, Shuffle, Var
from penstock.compiler.tasks.values import ReadValue

MOST_CHOSEN = 256
"""Places among which a value may choose."""
_INDEX = TileKind("i32")


@dataclass(frozen=True)
class ChosenPlace:
    """Along which dim of what is met a value chooses."""

    axis: int
    at: Expr


class ValueIndices(Expressions):
    """Expressions whose indices may be values."""

    @abstractmethod
    def kept_now(self, value: Expr) -> Var:
        """The value under a name, so that it is worked out once and here."""

    def chosen_place(self, node: ast.AST, at: Expr, axis: int, size: int, name: str) -> ChosenPlace:
        """The place that a value names along a dim of this size."""
        kind = at.kind
        if kind.shape or is_float(kind.dtype) or is_fixed(kind.dtype) or kind.dtype == "i1":
            raise self.error(node, f"the index is {self.say(at)}", "cast it to one whole number: int32(x)")
        if size > MOST_CHOSEN:
            raise self.error(
                node, f"a value chooses among {size} places of {name}",
                "cut the array into parts of several tasks, each of which takes the indices that are its own",
                f"at most {MOST_CHOSEN}: all of them are registers",
            )  # fmt: skip
        return ChosenPlace(axis, self.kept_now(self.cast(node, at, _INDEX)))

    def picked(self, node: ast.AST, tile: Expr, place: ChosenPlace) -> Expr:
        """What stands at that place, a dim of the shape less; 0 where it is none of the places."""
        shape, axis = tile.kind.shape, place.axis
        found = self._halved(node, self.kept_now(tile), place)
        found = _reshaped(found, (*shape[:axis], *shape[axis + 1 :]))
        asked = [self.apply(node, ">=", [place.at, 0]), self.apply(node, "<", [place.at, shape[axis]])]
        return self.kept_now(self._one_of(node, self.apply(node, "and", [*asked]), found, Const(0, found.kind)))

    def _halved(self, node: ast.AST, tile: Expr, place: ChosenPlace) -> Expr:
        """By each bit of the index the one half of the places or the other, until one is left."""
        size = tile.kind.shape[place.axis]
        while size > 1:
            half = 1 << (size - 1).bit_length() - 1
            low, high = (_part(tile, place.axis, *ends) for ends in ((0, half), (half, size)))
            if size < 2 * half:  # what is too short to be chosen lane by lane is worked out by itself
                low, high = (self._halved(node, self.kept_now(one), place) for one in (low, high))
            bit = self.apply(node, "!=", [self.apply(node, "and", [place.at, half]), 0])
            tile, size = self.kept_now(self._one_of(node, bit, high, low)), half if size == 2 * half else 1
        return tile

    def with_one(self, node: ast.AST, old: Expr, value: Expr, place: ChosenPlace) -> Expr:
        """All places as they were, but for the chosen one."""
        shape, axis = old.kind.shape, place.axis
        numbers = Join(tuple(Const(n, _INDEX) for n in range(shape[axis])), TileKind("i32", (shape[axis],)))
        column = _reshaped(numbers, (shape[axis], *(1,) * (len(shape) - axis - 1)))
        here = self.apply(node, "==", [column, place.at])
        return self._one_of(node, here, _reshaped(value, (*shape[:axis], 1, *shape[axis + 1 :])), old)

    def _one_of(self, node: ast.AST, condition: Expr, one: Expr, other: Expr) -> Expr:
        found = self._where(node, condition, one, other)
        assert isinstance(found, RUNTIME)
        return found

    def _lanes(self, node: ast.Subscript, value: Expr) -> ReadValue:
        items = list(node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])
        for dim, item in enumerate(items[: len(value.kind.shape)]):
            at = None if isinstance(item, ast.Slice) else self.value(item)
            if isinstance(at, RUNTIME):
                axis = sum(isinstance(one, ast.Slice) for one in items[:dim])
                place = self.chosen_place(item, at, axis, value.kind.shape[dim], "a tile")
                items[dim] = ast.copy_location(ast.Slice(), item)
                rest = ast.copy_location(ast.Subscript(node.value, ast.Tuple(items, ast.Load()), node.ctx), node)
                found = super()._lanes(rest, value)
                assert isinstance(found, RUNTIME)
                return self.picked(node, found, place)
        return super()._lanes(node, value)


def _reshaped(value: Expr, shape: tuple[int, ...]) -> Expr:
    if value.kind.shape == shape:
        return value
    return Shuffle(value, tuple(range(prod(shape))), TileKind(value.kind.dtype, shape))


def _part(tile: Expr, axis: int, first: int, end: int) -> Expr:
    """Places that follow each other along a dim."""
    shape = tile.kind.shape
    inner, size = prod(shape[axis + 1 :]), shape[axis]
    lanes = tuple(
        (outer * size + one) * inner + rest
        for outer in range(prod(shape[:axis])) for one in range(first, end) for rest in range(inner)
    )  # fmt: skip
    return Shuffle(tile, lanes, TileKind(tile.kind.dtype, (*shape[:axis], end - first, *shape[axis + 1 :])))
