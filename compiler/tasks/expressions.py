"""Reads expressions: numbers that are known come out as numbers, the rest as typed values of the task.

A `get` in an expression becomes a statement before it, so that gets happen in the order of the text.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from penstock.compiler.tasks.affine import Affine
from penstock.compiler.tasks.arithmetic import Arithmetic
from penstock.compiler.tasks.kinds import MOST_FRACTION, WIDEST_TOKEN, GridLayout, TileKind, fixed, is_float, joined
from penstock.compiler.tasks.tiles import RUNTIME
from penstock.compiler.tasks.tree import Expr, Fold, Shuffle
from penstock.compiler.tasks.values import (
    Builtin,
    OwnFunction,
    ReadValue,
    StreamKind,
)

_FUNCTIONS = ("exp", "sqrt", "tanh", "sigmoid")


class Expressions(Arithmetic):
    """Reads expressions with names as `names` says. Tasks override what only they can do."""

    def _subscript(self, node: ast.Subscript) -> ReadValue:
        found = self.value(node.value)
        match found:
            case TileKind(shape=()):
                return TileKind(found.dtype, self.numbers(node.slice, "a shape"))
            case Builtin("Stream"):
                return self._stream(node)
            case StreamKind(dims=()):
                return StreamKind(found.kind, found.depth, self.numbers(node.slice, "an array of streams"))
            case tuple():
                if isinstance(self.value(node.slice), Affine):
                    raise self.error(
                        node, "an element of a tuple that depends on a loop's counter",
                        f"declare a table, `c: int32[{len(found)}] = (...)`, and index that; or loop with unroll(n)",
                    )  # fmt: skip
                at = self.number(node.slice, "an index")
                if not -len(found) <= at < len(found):
                    raise self.error(node, f"there are {len(found)} of them", limit=f"the index is {at}")
                return found[at]
            case _:
                return self.indexed(node, found)

    def indexed(self, node: ast.Subscript, found: ReadValue) -> ReadValue:
        if isinstance(found, RUNTIME):
            return self._lanes(node, found)
        raise self.error(node, f"{self.say(found)} has no elements here")

    def _lanes(self, node: ast.Subscript, value: Expr) -> ReadValue:
        """Elements of a tile that are known before a run."""
        shape, keep, ranges = value.kind.shape, list[int](), list[range]()
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(items) > len(shape):
            raise self.error(node, f"{len(items)} indices for a value of type {value.kind}")
        for dim, size in enumerate(shape):
            item = items[dim] if dim < len(items) else ast.Slice()
            if isinstance(item, ast.Slice):
                low = self.number(item.lower, "the start of a slice") if item.lower else 0
                high = self.number(item.upper, "the end of a slice") if item.upper else size
                step = self.number(item.step, "the step of a slice") if item.step else 1
                if step < 1 or not 0 <= low < high <= size:
                    raise self.error(node, f"the slice {low}:{high} is not within {size}")
                ranges.append(range(low, high, step))
                keep.append(len(ranges[-1]))
                continue
            at = self.value(item)
            if isinstance(at, Affine):
                raise self.error(
                    node, "a tile's element that depends on a loop's counter",
                    "declare an array, `x: T[shape] = ...`, and index that; or loop with unroll(n)",
                )  # fmt: skip
            if not isinstance(at, int) or not -size <= at < size:
                raise self.error(node, f"index {self.say(at)} is not within {size}")
            ranges.append(range(at % size, at % size + 1))
        lanes = [0]
        for size, places in zip(shape, ranges, strict=True):
            lanes = [base * size + place for base in lanes for place in places]
        return Shuffle(value, tuple(lanes), TileKind(value.kind.dtype, tuple(keep)))

    def _stream(self, node: ast.Subscript) -> StreamKind:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kind = self.value(parts[0])
        if not isinstance(kind, TileKind) or len(parts) > 3:
            raise self.error(node, "a stream is Stream[T], Stream[T, shape] or Stream[T, shape, depth]")
        if len(parts) > 1:
            shape = self.value(parts[1])
            if kind.shape:
                raise self.error(parts[1], "the tokens of this stream have a shape already", "give the shape once")
            kind = TileKind(kind.dtype, self.sizes(parts[1], shape, "the shape of a stream's tokens"))
        depth = self.number(parts[2], "a depth") if len(parts) > 2 else 0
        if len(parts) > 2 and not 1 <= depth <= 1 << 20:
            raise self.error(parts[2], f"a stream cannot be {depth} deep", limit=f"1 to {1 << 20}")
        if kind.bits > WIDEST_TOKEN:
            raise self.error(
                node, f"tokens of {kind.bits} bits are too wide",
                "send rows or columns of the tile, one after the other",
                f"at most {WIDEST_TOKEN} bits",
            )  # fmt: skip
        return StreamKind(kind, depth)

    def _call(self, node: ast.Call) -> ReadValue:
        if isinstance(node.func, ast.Attribute):
            return self.method(node, node.func)
        found = self.value(node.func)
        if isinstance(found, TileKind):
            (one,) = self._arguments(node, 1)
            return self.cast(node, one, found)
        if isinstance(found, OwnFunction):
            return self.inlined(node, found)
        if not isinstance(found, Builtin):
            raise self.error(node, f"{self.say(found)} cannot be called")
        word = found.name
        if word == "Layout":
            return self._layout(node)
        if word in ("min", "max"):
            return self._extreme(node, word)
        if word in ("sum",) or (word in ("min", "max") and node.keywords):
            return self._fold(node, "add")
        if word == "matmul":
            left, right = self._arguments(node, 2)
            return self._matmul(node, left, right)
        if word == "where":
            test, one, other = self._arguments(node, 3)
            return self._where(node, test, one, other)
        if word == "abs" or word in _FUNCTIONS:
            (one,) = self._arguments(node, 1)
            if isinstance(one, int | float):
                return abs(one) if word == "abs" else self._known(node, word, float(one))
            return self.apply(node, word, [one])
        if word == "fixed":
            return self._fixed_kind(node)
        if word == "len":
            (one,) = self._arguments(node, 1)
            return self._shape(node, one)[0]
        if word == "transpose":
            (one,) = self._arguments(node, 1)
            tile = self.runtime(node, one)
            if len(tile.kind.shape) != 2:
                raise self.error(node, f"transpose takes a tile of two dims, not {tile.kind}")
            rows, columns = tile.kind.shape
            lanes = tuple(r * columns + c for c in range(columns) for r in range(rows))
            return Shuffle(tile, lanes, TileKind(tile.kind.dtype, (columns, rows)))
        if word == "stack":
            (many,) = self._arguments(node, 1)
            return self._stacked(node, many)
        if word == "broadcast":
            one, shape = self._arguments(node, 2)
            return self._spread(node, self.runtime(node, one), self.sizes(node, shape, "a shape"))
        raise self.error(node, f"{word} cannot be called here")

    def _fixed_kind(self, node: ast.Call) -> TileKind:
        bits, whole = self._arguments(node, 2)
        if isinstance(bits, int) and isinstance(whole, int) and 2 <= bits <= 32 and 0 <= bits - whole <= MOST_FRACTION:
            return TileKind(fixed(bits, bits - whole))
        raise self.error(
            node, f"fixed({self.say(bits)}, {self.say(whole)}) is no type",
            "write fixed(BITS, WHOLE): all bits, and those before the point with the sign",
            f"2 to 32 bits, at most {MOST_FRACTION} behind the point",
        )  # fmt: skip

    def _arguments(self, node: ast.Call, count: int) -> list[ReadValue]:
        if len(node.args) != count or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.error(node, f"it takes {count} argument{'s' * (count > 1)}, by place")
        return [self.value(one) for one in node.args]

    def _known(self, node: ast.Call, word: str, number: float) -> float:
        try:
            match word:
                case "exp":
                    return math.exp(number)
                case "sqrt":
                    return math.sqrt(number)
                case "tanh":
                    return math.tanh(number)
                case _:
                    return 1 / (1 + math.exp(-number))
        except (ArithmeticError, ValueError) as error:
            raise self.error(node, f"cannot be computed: {error}") from None

    def _layout(self, node: ast.Call) -> GridLayout:
        parts = [self.value(one) for one in node.args]
        text = "".join(str(part) for part in parts)
        axes: list[int | None] = []
        at = 0
        while at < len(text):
            if text[at] == "R":
                axes.append(None)
                at += 1
                continue
            digits = at + 1
            while digits < len(text) and text[digits].isdecimal() and digits < at + 3:
                digits += 1
            if text[at] != "S":
                raise self.error(
                    node, f"{text!r} is no layout", 'a letter a dim: Layout("S0R") cuts the first along axis 0'
                )
            axes.append(int(text[at + 1 : digits] or 0))
            at = digits
        cut = [axis for axis in axes if axis is not None]
        if len(set(cut)) != len(cut):
            raise self.error(node, f"{text!r} cuts two dims along one axis", "an axis cuts at most one dim of a tensor")
        return GridLayout(tuple(axes))

    def _extreme(self, node: ast.Call, word: str) -> ReadValue:
        if node.keywords or (len(node.args) == 1 and not isinstance(self.value(node.args[0]), tuple)):
            return self._fold(node, word)
        found = [self.value(one) for one in node.args]
        if len(found) == 1 and isinstance(found[0], tuple):
            found = list(found[0])
        if not found:
            raise self.error(node, f"{word} of nothing", "give it the values to choose from")
        numbers = [one for one in found if isinstance(one, int | float)]
        if len(numbers) == len(found):
            return min(numbers) if word == "min" else max(numbers)
        result = found[0]
        for one in found[1:]:
            result = self.apply(node, word, [result, one])
        return result

    def _fold(self, node: ast.Call, op: str) -> ReadValue:
        """sum(x), max(x, axis=1)."""
        axis: int | None = None
        for keyword in node.keywords:
            if keyword.arg != "axis":
                raise self.error(node, f"{keyword.arg} is no argument of it", "axis is")
            axis = self.number(keyword.value, "an axis")
        if len(node.args) != 1:
            raise self.error(node, "it takes one value, and an axis")
        value = self.runtime(node, self.value(node.args[0]))
        rank = len(value.kind.shape)
        if rank == 0 or (axis is not None and not -rank <= axis < rank):
            raise self.error(node, f"{value.kind} has no such dim to be combined along")
        if op == "add" or is_float(value.kind.dtype):
            value = self.cast(node, value, TileKind(joined(value.kind.dtype, value.kind.dtype)))
        axes = range(rank - 1, -1, -1) if axis is None else [axis % rank]
        for one in axes:
            shape = value.kind.shape[:one] + value.kind.shape[one + 1 :]
            value = Fold(op, value, one, TileKind(value.kind.dtype, shape))
        return value

    def method(self, node: ast.Call, on: ast.Attribute) -> ReadValue:
        raise self.error(node, f".{on.attr}() has no meaning here", "streams are used inside tasks")

    def inlined(self, node: ast.Call, function: OwnFunction) -> ReadValue:
        raise self.error(node, "functions are called inside tasks")

    def _attribute(self, node: ast.Attribute) -> ReadValue:
        if node.attr == "T":
            return self._call(ast.copy_location(ast.Call(ast.Name("transpose"), [node.value], []), node))
        if node.attr == "shape":
            return self._shape(node, self.value(node.value))
        raise self.error(node, f".{node.attr} is no part of the language", "put and get are called: s.get()")


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def bound(names: Mapping[str, ReadValue], node: ast.AST) -> dict[str, ReadValue]:
    """What the names in a piece of the text mean."""
    return {name: names[name] for name in names_in(node) if name in names}
