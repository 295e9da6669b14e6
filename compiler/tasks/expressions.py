"""Reads expressions: numbers that are known come out as numbers, the rest as typed values of the task.

A `get` in an expression becomes a statement before it, so that gets happen in the order of the text.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from penstock.compiler.tasks.affine import Affine, Remainder, Test, as_affine, compared, compared_remainder, plain
from penstock.compiler.tasks.kinds import WIDEST_TOKEN, GridLayout, TileKind, bits_of, is_float, joined
from penstock.compiler.tasks.source import ProgramText, TaskError
from penstock.compiler.tasks.tree import Apply, Const, Expr, Fetch, Fold, Join, Memory, Shuffle, Var
from penstock.compiler.tasks.values import (
    Builtin,
    Condition,
    OwnFunction,
    Placed,
    StreamArray,
    StreamKind,
    TensorArgument,
)

ReadValue = Any
"""A number, a tuple, an `Affine`, a type, a declared thing, or an expression of the task."""

_STATIC: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add), ast.Sub: ("sub", operator.sub), ast.Mult: ("mul", operator.mul),
    ast.FloorDiv: ("floordiv", operator.floordiv), ast.Mod: ("mod", operator.mod), ast.Div: ("div", operator.truediv),
    ast.RShift: ("shr", operator.rshift), ast.LShift: ("shl", operator.lshift), ast.Pow: ("pow", operator.pow),
    ast.BitAnd: ("and", operator.and_), ast.BitOr: ("or", operator.or_), ast.BitXor: ("xor", operator.xor),
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_FUNCTIONS = ("exp", "sqrt", "tanh", "sigmoid")
MOST_LANES = 1 << 14
_MOST_NUMBER = 1 << 62
RUNTIME = (Const, Var, Fetch, Apply, Shuffle, Join, Fold)


class Expressions:
    """Reads expressions with names as `names` says. Tasks override what only they can do."""

    def __init__(self, source: ProgramText, names: dict[str, ReadValue], trips: dict[int, int]) -> None:
        self.source, self.names, self.trips = source, names, trips

    def error(self, node: ast.AST, what: str, hint: str = "", limit: str = "") -> TaskError:
        return self.source.error(node, what, hint, limit)

    def value(self, node: ast.expr) -> ReadValue:
        """What an expression is."""
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is None:
            raise self.error(
                node, f"{_said(node)} is no part of the language", "use arithmetic, comparisons, indices and calls"
            )
        return read(node)

    def number(self, node: ast.expr, what: str) -> int:
        """A whole number that is known before a run."""
        found = self.value(node)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.error(node, f"{what} must be a whole number that is known before a run, not {self.say(found)}")
        return found

    def numbers(self, node: ast.expr, what: str) -> tuple[int, ...]:
        found = self.value(node)
        items = found if isinstance(found, tuple) else (found,)
        if any(isinstance(x, bool) or not isinstance(x, int) or x < 1 for x in items):
            raise self.error(node, f"{what} must be whole numbers of at least 1 that are known before a run")
        return items

    def say(self, value: ReadValue) -> str:
        match value:
            case Affine() | Remainder():
                return "a number that depends on a loop's counter"
            case Memory():
                return f"{value.dtype}{list(value.shape)}"
            case TileKind():
                return f"the type {value}"
            case StreamArray():
                return f"the stream {value.name}"
            case Builtin():
                return f"the word {value.name}"
            case _ if isinstance(value, RUNTIME):
                return f"a value of type {value.kind}"
            case _:
                return repr(value)[:60]

    # -- atoms

    def _constant(self, node: ast.Constant) -> ReadValue:
        if not isinstance(node.value, int | float | str | bool):
            raise self.error(node, f"{node.value!r} is no part of the language", "numbers, True and False are")
        if isinstance(node.value, int) and abs(node.value) > _MOST_NUMBER:
            raise self.error(node, "the number is too large", limit=f"at most {_MOST_NUMBER}")
        return node.value

    def _name(self, node: ast.Name) -> ReadValue:
        if node.id not in self.names:
            import difflib

            near = difflib.get_close_matches(node.id, list(self.names), 1)
            raise self.error(
                node,
                f"{node.id!r} is not defined",
                f"did you mean {near[0]!r}?" if near else "define it before its use",
            )
        return self.names[node.id]

    def _tuple(self, node: ast.Tuple) -> ReadValue:
        return tuple(self.value(item) for item in node.elts)

    def _list(self, node: ast.List) -> ReadValue:
        return tuple(self.value(item) for item in node.elts)

    def _generatorexp(self, node: ast.GeneratorExp) -> ReadValue:
        return self._listcomp(node)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> ReadValue:
        """Written out: its rounds are known."""
        if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
            raise self.error(node, "a list over more than one name", "write one loop in it")
        over = node.generators[0]
        name, items = over.target.id, self._items(over.iter)  # pyright: ignore[reportAttributeAccessIssue]
        before, found = self.names.get(name), list[ReadValue]()
        for item in items:
            self.names[name] = item
            tests = [self.value(test) for test in over.ifs]
            if any(not isinstance(test, bool) for test in tests):
                raise self.error(node, "a list whose length depends on a run")
            if all(tests):
                found.append(self.value(node.elt))
        if before is None:
            self.names.pop(name, None)
        else:
            self.names[name] = before
        return tuple(found)

    def _items(self, node: ast.expr) -> tuple[ReadValue, ...]:
        if isinstance(node, ast.Call) and self.value(node.func) in (Builtin("range"), Builtin("unroll")):
            bounds = [self.number(one, "a bound") for one in node.args]
            if not 1 <= len(bounds) <= 3 or (len(bounds) == 3 and bounds[2] == 0):
                raise self.error(node, "range takes one to three numbers")
            items = range(*bounds)
            if len(items) > MOST_LANES:
                raise self.error(node, f"{len(items)} values in a list", limit=f"at most {MOST_LANES}")
            return tuple(items)
        found = self.value(node)
        if not isinstance(found, tuple):
            raise self.error(node, f"{self.say(found)} has no parts")
        return found

    # -- arithmetic

    def _binop(self, node: ast.BinOp) -> ReadValue:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.MatMult):
            return self._placed(node, left, right)
        if type(node.op) not in _STATIC:
            raise self.error(node, f"{_said(node.op)} is no part of the language")
        name, compute = _STATIC[type(node.op)]
        if (
            isinstance(left, RUNTIME)
            or isinstance(right, RUNTIME)
            or isinstance(left, Memory)
            or isinstance(right, Memory)
        ):
            return self.apply(node, name, [left, right])
        if isinstance(left, Affine | Remainder) or isinstance(right, Affine | Remainder):
            return self._affine(node, name, left, right)
        if isinstance(left, tuple) and isinstance(right, tuple) and name == "add":
            return left + right
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise self.error(node, f"cannot compute with {self.say(left)} and {self.say(right)}")
        if name in ("pow", "shl") and (abs(right) > 64 or abs(left) > 1 << 32):
            raise self.error(node, "the number is too large")
        try:
            found = compute(left, right)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise self.error(node, f"cannot be computed: {error}") from None
        if isinstance(found, int) and abs(found) > _MOST_NUMBER:
            raise self.error(node, "the number is too large", limit=f"at most {_MOST_NUMBER}")
        return found

    def _affine(self, node: ast.BinOp, name: str, left: ReadValue, right: ReadValue) -> ReadValue:
        if isinstance(left, Remainder) or isinstance(right, Remainder):
            raise self.error(node, "a remainder of a counter can only be compared with a number")
        if not isinstance(left, int | Affine) or not isinstance(right, int | Affine):
            raise self.error(node, f"cannot compute with {self.say(left)} and {self.say(right)}")
        a, b = as_affine(left), as_affine(right)
        if name in ("add", "sub"):
            return plain(a.plus(b, 1 if name == "add" else -1))
        if name == "mul" and (not a.terms or not b.terms):
            return plain(a.times(b.const) if not b.terms else b.times(a.const))
        if name == "floordiv" and not b.terms and (found := a.divided(b.const)) is not None:
            return plain(found)
        if name == "mod" and not b.terms and b.const > 0:
            kept = tuple((k, v) for k, v in a.terms if v % b.const)
            if not kept:
                return a.const % b.const
            if len(kept) == 1 and kept[0][1] == 1 and len(a.terms) == 1:
                return Remainder(kept[0][0], a.const, b.const)
        raise self.error(
            node, "this does not stay a sum of counters times whole numbers",
            "write the loop as two, so that each index is such a sum",
        )  # fmt: skip

    def _unaryop(self, node: ast.UnaryOp) -> ReadValue:
        found = self.value(node.operand)
        match node.op:
            case ast.USub() if isinstance(found, RUNTIME):
                return self.apply(node, "neg", [found])
            case ast.USub() if isinstance(found, Affine):
                return found.times(-1)
            case ast.USub() if isinstance(found, int | float):
                return -found
            case ast.Not() if isinstance(found, bool):
                return not found
            case ast.Not() if isinstance(found, Condition) and len(found.tests) == 1:
                return Condition((found.tests[0].opposite,))
            case _:
                raise self.error(node, f"{_said(node.op)} of {self.say(found)} is no part of the language")

    def _compare(self, node: ast.Compare) -> ReadValue:
        tests: list[Test] = []
        values = [self.value(one) for one in (node.left, *node.comparators)]
        for kind, left, right in zip(node.ops, values, values[1:], strict=False):
            found = self._compared(node, kind, left, right)
            if isinstance(found, RUNTIME):
                if len(node.ops) > 1:
                    raise self.error(node, "a chain of comparisons of values", "compare two at a time")
                return found
            if found is False:
                return False
            if found is not True:
                tests += found
        return Condition(tuple(tests)) if tests else True

    def _compared(self, node: ast.Compare, kind: ast.cmpop, left: ReadValue, right: ReadValue) -> ReadValue:
        if isinstance(kind, ast.In | ast.NotIn) and isinstance(right, tuple) and isinstance(left, int):
            return (left in right) == isinstance(kind, ast.In)
        if type(kind) not in _COMPARED:
            raise self.error(node, f"{_said(kind)} is no part of the language")
        sign = _COMPARED[type(kind)]
        if isinstance(left, (*RUNTIME, Memory)) or isinstance(right, (*RUNTIME, Memory)):
            return self.apply(node, sign, [left, right])
        if isinstance(left, Remainder) and isinstance(right, int):
            found = compared_remainder(left, sign, right, self.trips)
        elif isinstance(left, int | Affine) and isinstance(right, int | Affine):
            found = compared(left, sign, right, self.trips)
        elif isinstance(left, int | float) and isinstance(right, int | float):
            return {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
                    ">": left > right, ">=": left >= right}[sign]  # fmt: skip
        else:
            found = None
        if found is None:
            raise self.error(
                node, "this comparison is not of one loop's counter with a number",
                "compare each counter by itself, and join the comparisons with `and`",
            )  # fmt: skip
        return found

    def _boolop(self, node: ast.BoolOp) -> ReadValue:
        found = [self.value(one) for one in node.values]
        if any(isinstance(one, RUNTIME) for one in found):
            return self.apply(node, "and" if isinstance(node.op, ast.And) else "or", found)
        settled, tests = True, list[Test]()
        for one in found:
            if isinstance(one, Condition):
                tests += one.tests
            elif not isinstance(one, bool):
                raise self.error(node, f"{self.say(one)} is no condition")
        known = [one for one in found if isinstance(one, bool)]
        if isinstance(node.op, ast.And):
            settled = all(known)
            return (Condition(tuple(tests)) if tests else True) if settled else False
        if any(known):
            return True
        conditions = [one for one in found if isinstance(one, Condition)]
        if len(conditions) > 1:
            raise self.error(node, "`or` of conditions on counters", "write an `if` and an `elif` with the same body")
        return conditions[0] if conditions else False

    def _ifexp(self, node: ast.IfExp) -> ReadValue:
        test = self.value(node.test)
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse)
        if isinstance(test, RUNTIME):
            raise self.error(node, "a condition on values chooses between values", "write where(condition, one, other)")
        return self.chosen(node, test)

    def chosen(self, node: ast.IfExp, test: ReadValue) -> ReadValue:
        raise self.error(node, "this condition is not known here")

    # -- types, layouts, streams

    def _placed(self, node: ast.BinOp, left: ReadValue, right: ReadValue) -> ReadValue:
        if isinstance(left, TileKind) and isinstance(right, GridLayout):
            return Placed(right, left)
        if (
            isinstance(left, RUNTIME)
            or isinstance(right, RUNTIME)
            or isinstance(left, Memory)
            or isinstance(right, Memory)
        ):
            return self._matmul(node, left, right)
        raise self.error(node, f"{self.say(left)} @ {self.say(right)} means nothing", "write T[shape] @ Layout(...)")

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
            shape = shape if isinstance(shape, tuple) else (shape,)
            if kind.shape or any(not isinstance(x, int) or x < 1 for x in shape):
                raise self.error(parts[1], "the shape of a stream's tokens must be whole numbers of at least 1")
            kind = TileKind(kind.dtype, shape)
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

    # -- calls

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
            shape = shape if isinstance(shape, tuple) else (shape,)
            return self._spread(node, self.runtime(node, one), shape)
        raise self.error(node, f"{word} cannot be called here")

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
        if len(found) == 1:
            found = list(found[0])
        if all(isinstance(one, int | float) for one in found):
            return min(found) if word == "min" else max(found)
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
        if op == "add":
            value = self.cast(node, value, TileKind(joined(value.kind.dtype, value.kind.dtype)))
        axes = range(rank - 1, -1, -1) if axis is None else [axis % rank]
        for one in axes:
            shape = value.kind.shape[:one] + value.kind.shape[one + 1 :]
            value = Fold(op, value, one, TileKind(value.kind.dtype, shape))
        return value

    def _matmul(self, node: ast.AST, left: ReadValue, right: ReadValue) -> ReadValue:
        a, b = self.runtime(node, left), self.runtime(node, right)
        (m, k), (rows, n) = _matrix(a.kind.shape, row=True), _matrix(b.kind.shape, row=False)
        if len(a.kind.shape) not in (1, 2) or len(b.kind.shape) not in (1, 2) or k != rows:
            raise self.error(node, f"matmul of {a.kind} and {b.kind}: the inner dims differ")
        if m * k * n > MOST_LANES:
            raise self.error(
                node, f"matmul of {a.kind} and {b.kind} is {m * k * n} products at a time",
                "loop over rows, columns or parts of the sum, and multiply smaller tiles", f"at most {MOST_LANES}",
            )  # fmt: skip
        dtype = joined(a.kind.dtype, b.kind.dtype)
        spots = [(i, j, p) for i in range(m) for j in range(n) for p in range(k)]
        shape = (m, n, k)
        one = Shuffle(a, tuple(i * k + p for i, _, p in spots), TileKind(a.kind.dtype, shape))
        other = Shuffle(b, tuple(p * n + j for _, j, p in spots), TileKind(b.kind.dtype, shape))
        products = Apply(
            "mul",
            (self.cast(node, one, TileKind(dtype)), self.cast(node, other, TileKind(dtype))),
            TileKind(dtype, shape),
        )
        sums = Fold("add", products, 2, TileKind(dtype, (m, n)))
        wanted = a.kind.shape[:-1] + b.kind.shape[1:]
        return sums if wanted == (m, n) else Shuffle(sums, tuple(range(m * n)), TileKind(dtype, wanted))

    def _where(self, node: ast.Call, test: ReadValue, one: ReadValue, other: ReadValue) -> ReadValue:
        if isinstance(test, bool):
            return one if test else other
        condition = self.runtime(node, test)
        if condition.kind.dtype != "i1":
            raise self.error(node, f"where asks a condition, not a value of type {condition.kind}")
        one, other = self._alike(node, [one, other])
        shape = self._common(node, [condition, one, other])
        parts = [self._spread(node, part, shape) for part in (condition, one, other)]
        return Apply("where", tuple(parts), TileKind(one.kind.dtype, shape))

    def _stacked(self, node: ast.Call, many: ReadValue) -> ReadValue:
        if not isinstance(many, tuple) or not many:
            raise self.error(node, "stack takes a list of values")
        values = self._alike(node, list(many))
        if len({v.kind for v in values}) != 1:
            raise self.error(node, "stack takes values of one type", limit=", ".join(str(v.kind) for v in values)[:120])
        return Join(tuple(values), TileKind(values[0].kind.dtype, (len(values), *values[0].kind.shape)))

    # -- values of a task

    def runtime(self, node: ast.AST, value: ReadValue) -> Expr:
        """The value as one of the task."""
        match value:
            case bool():
                return Const(int(value), TileKind("i1"))
            case int():
                if not -(1 << 31) <= value < 1 << 31:
                    raise self.error(node, f"{value} does not fit 32 bits")
                return Const(value, TileKind("i32"))
            case float():
                return Const(value, TileKind("f32"))
            case _ if isinstance(value, RUNTIME):
                return value
            case Memory():
                return self.whole(node, value)
            case Affine() | Remainder():
                raise self.error(
                    node, "a loop's counter is no value", "keep a variable of your own and add 1 to it each round"
                )
            case _:
                raise self.error(node, f"{self.say(value)} is no value")

    def whole(self, node: ast.AST, memory: Memory) -> Expr:
        raise self.error(node, f"{memory.name} is no value here")

    def cast(self, node: ast.AST, value: ReadValue, kind: TileKind) -> ReadValue:
        if isinstance(value, int | float) and not isinstance(value, bool) and not kind.shape:
            number = float(value) if is_float(kind.dtype) else int(value)
            if isinstance(number, int) and not -(1 << (bits_of(kind.dtype) - 1)) <= number < 1 << bits_of(kind.dtype):
                raise self.error(node, f"{number} does not fit {kind}")
            return Const(_wrapped(number, kind.dtype) if isinstance(number, int) else number, kind)
        made = self.runtime(node, value)
        if kind.shape and made.kind.shape != kind.shape:
            made = self._spread(node, made, kind.shape)
        if made.kind.dtype == kind.dtype:
            return made
        return Apply("cast", (made,), made.kind.of(kind.dtype))

    def apply(self, node: ast.AST, op: str, values: list[ReadValue]) -> Expr:
        """An operation on values, each lane by itself; the smaller shape is repeated."""
        args = self._alike(node, values, widen=op not in ("and", "or", "xor"))
        dtype = args[0].kind.dtype
        if op in ("exp", "sqrt", "tanh", "sigmoid", "div") and not is_float(dtype):
            raise self.error(
                node, f"{'/' if op == 'div' else op} of {args[0].kind}", "cast it: float32(x)" if op != "div" else
                "use >> for powers of two, or cast to float32",
            )  # fmt: skip
        if op in ("floordiv", "mod", "pow"):
            raise self.error(
                node, f"{op} of values is no part of the language", "divide by powers of two with >>, or in float32"
            )
        if op in ("shl", "shr", "and", "or", "xor") and is_float(dtype):
            raise self.error(node, f"{op} of {args[0].kind}", "cast it to an integer first")
        shape = self._common(node, args)
        args = [self._spread(node, one, shape) for one in args]
        result = "i1" if op in ("==", "!=", "<", "<=", ">", ">=") else dtype
        return Apply(op, tuple(args), TileKind(result, shape))

    def _alike(self, node: ast.AST, values: list[ReadValue], widen: bool = True) -> list[Expr]:
        """With numbers of one type: a written number takes the type of what it meets."""
        args = [self.runtime(node, value) for value in values]
        own = [
            a.kind.dtype
            for a, v in zip(args, values, strict=True)
            if not isinstance(v, int | float) or isinstance(v, bool)
        ]
        if any(isinstance(v, float) for v in values):
            own.append("f32")
        if not own:
            own = [a.kind.dtype for a in args]
        if set(own) == {"i1"} and not widen:
            dtype = "i1"
        else:
            dtype = own[0]
            for other in own:
                dtype = joined(dtype, other)
            if not widen and len(set(own)) == 1:
                dtype = own[0]
        return [self.cast(node, v if isinstance(v, int | float) and not isinstance(v, bool) else a, TileKind(dtype))
                for a, v in zip(args, values, strict=True)]  # fmt: skip

    def _common(self, node: ast.AST, args: list[Expr]) -> tuple[int, ...]:
        rank = max(len(a.kind.shape) for a in args)
        shape: list[int] = []
        for dim in range(rank):
            sizes = {a.kind.shape[dim - rank] for a in args if len(a.kind.shape) >= rank - dim} - {1}
            if len(sizes) > 1:
                raise self.error(node, f"shapes do not fit: {' and '.join(str(a.kind) for a in args)}")
            shape.append(sizes.pop() if sizes else 1)
        if math.prod(shape) > MOST_LANES:
            raise self.error(
                node, f"{math.prod(shape)} lanes at a time", "loop over parts of it", f"at most {MOST_LANES}"
            )
        return tuple(shape)

    def _spread(self, node: ast.AST, value: Expr, shape: tuple[int, ...]) -> Expr:
        """Repeated along the dims that it lacks, as NumPy does."""
        have = value.kind.shape
        if have == shape:
            return value
        own = (1,) * (len(shape) - len(have)) + have
        if len(own) != len(shape) or any(o not in (1, s) for o, s in zip(own, shape, strict=True)):
            raise self.error(node, f"a value of type {value.kind} does not fill {list(shape)}")
        if isinstance(value, Const):
            return Const(value.value, TileKind(value.kind.dtype, shape))
        lanes = [0]
        for size, goal in zip(own, shape, strict=True):
            lanes = [base * size + (place if size > 1 else 0) for base in lanes for place in range(goal)]
        return Shuffle(value, tuple(lanes), TileKind(value.kind.dtype, shape))

    def _shape(self, node: ast.AST, value: ReadValue) -> tuple[int, ...]:
        match value:
            case Memory() | TensorArgument() if getattr(value, "shape", None) or isinstance(value, TensorArgument):
                return value.shape if isinstance(value, Memory) else value.kind.shape
            case tuple():
                return (len(value),)
            case _ if isinstance(value, RUNTIME) and value.kind.shape:
                return value.kind.shape
            case _:
                raise self.error(node, f"{self.say(value)} has no length")

    # -- what only tasks have

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


def _wrapped(number: int, dtype: str) -> int:
    bits = bits_of(dtype)
    return number & 1 if bits == 1 else (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _matrix(shape: tuple[int, ...], *, row: bool) -> tuple[int, int]:
    if len(shape) == 2:
        return shape[0], shape[1]
    size = shape[0] if shape else 0
    return (1, size) if row else (size, 1)


def _said(node: ast.AST) -> str:
    return type(node).__name__


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def bound(names: Mapping[str, ReadValue], node: ast.AST) -> dict[str, ReadValue]:
    """What the names in a piece of the text mean."""
    return {name: names[name] for name in names_in(node) if name in names}
