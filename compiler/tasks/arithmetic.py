"""Names, numbers and conditions: what is known before a run comes out as a number, the rest as a value."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from penstock.compiler.tasks.affine import (
    Affine,
    Remainder,
    Test,
    Tests,
    as_affine,
    compared,
    compared_remainder,
    plain,
    rounds_of,
)
from penstock.compiler.tasks.kinds import GridLayout, TileKind
from penstock.compiler.tasks.tiles import MOST_LANES, RUNTIME, TileValues
from penstock.compiler.tasks.tree import Expr, Memory
from penstock.compiler.tasks.values import (
    Builtin,
    Condition,
    Placed,
    ReadValue,
)

_STATIC: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", lambda a, b: a + b), ast.Sub: ("sub", lambda a, b: a - b), ast.Mult: ("mul", lambda a, b: a * b),
    ast.FloorDiv: ("floordiv", lambda a, b: a // b), ast.Mod: ("mod", lambda a, b: a % b),
    ast.Div: ("div", lambda a, b: a / b), ast.Pow: ("pow", lambda a, b: a**b),
    ast.RShift: ("shr", lambda a, b: a >> b), ast.LShift: ("shl", lambda a, b: a << b),
    ast.BitAnd: ("and", lambda a, b: a & b), ast.BitOr: ("or", lambda a, b: a | b),
    ast.BitXor: ("xor", lambda a, b: a ^ b),
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_MOST_NUMBER = 1 << 62


class Arithmetic(TileValues):
    """Operators of the text."""

    def value(self, node: ast.expr) -> ReadValue:
        """What an expression is."""
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is None:
            raise self.error(
                node, f"{said(node)} is no part of the language", "use arithmetic, comparisons, indices and calls"
            )
        return read(node)

    def number(self, node: ast.expr, what: str) -> int:
        """A whole number that is known before a run."""
        found = self.value(node)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.error(node, f"{what} must be a whole number that is known before a run, not {self.say(found)}")
        return found

    def numbers(self, node: ast.expr, what: str) -> tuple[int, ...]:
        return self.sizes(node, self.value(node), what)

    def sizes(self, node: ast.expr, found: ReadValue, what: str) -> tuple[int, ...]:
        """One or more whole numbers of at least 1."""
        items = found if isinstance(found, tuple) else (found,)
        sizes = tuple(x for x in items if isinstance(x, int) and not isinstance(x, bool) and x >= 1)
        if len(sizes) != len(items):
            raise self.error(node, f"{what} must be whole numbers of at least 1 that are known before a run")
        return sizes

    def _constant(self, node: ast.Constant) -> ReadValue:
        if not isinstance(node.value, int | float | str | bool):
            raise self.error(node, f"{node.value!r} is no part of the language", "numbers, True and False are")
        if not isinstance(node.value, str):
            self._check_size(node, node.value)
        return node.value

    def _check_size(self, node: ast.AST, number: object) -> None:
        if isinstance(number, int) and abs(number) > _MOST_NUMBER:
            raise self.error(node, "the number is too large", limit=f"at most {_MOST_NUMBER}")
        if not isinstance(number, int | float) or not math.isfinite(number):
            raise self.error(node, f"{number} is no number of the language", "whole numbers and finite ones are")

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
        return self._bounded(node, tuple(self.value(item) for item in node.elts))

    def _list(self, node: ast.List) -> ReadValue:
        return self._bounded(node, tuple(self.value(item) for item in node.elts))

    def _bounded(self, node: ast.AST, items: tuple[ReadValue, ...]) -> ReadValue:
        """Lists of lists, each made of the one before, grow without end in a few lines."""
        count, left = 0, list(items)
        while left:
            one = left.pop()
            count += 1
            if count > MOST_LANES:
                raise self.error(node, "too many values in a list", "loop over parts of it", f"at most {MOST_LANES}")
            if isinstance(one, tuple):
                left.extend(one)
        return items

    def _generatorexp(self, node: ast.GeneratorExp) -> ReadValue:
        return self._listcomp(node)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> ReadValue:
        """Written out: its rounds are known."""
        over = node.generators[0]
        if len(node.generators) != 1 or not isinstance(over.target, ast.Name):
            raise self.error(node, "a list over more than one name", "write one loop in it")
        name, items = over.target.id, self._items(over.iter)
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
            start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (bounds[0], bounds[1], (*bounds, 1)[2])
            if (count := rounds_of(start, stop, step)) > MOST_LANES:
                raise self.error(node, f"{count} values in a list", limit=f"at most {MOST_LANES}")
            items = range(start, stop, step)
            return tuple(items)
        found = self.value(node)
        if not isinstance(found, tuple):
            raise self.error(node, f"{self.say(found)} has no parts")
        return found

    def _binop(self, node: ast.BinOp) -> ReadValue:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.MatMult):
            return self._placed(node, left, right)
        if type(node.op) not in _STATIC:
            raise self.error(node, f"{said(node.op)} is no part of the language")
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
            return self._bounded(node, left + right)
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise self.error(node, f"cannot compute with {self.say(left)} and {self.say(right)}")
        if name in ("pow", "shl") and (abs(right) > 64 or abs(left) > 1 << 32):
            raise self.error(node, "the number is too large")
        try:
            found = compute(left, right)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise self.error(node, f"cannot be computed: {error}") from None
        self._check_size(node, found)
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
                raise self.error(node, f"{said(node.op)} of {self.say(found)} is no part of the language")

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

    def _compared(self, node: ast.Compare, kind: ast.cmpop, left: ReadValue, right: ReadValue) -> bool | Tests | Expr:
        if isinstance(kind, ast.In | ast.NotIn) and isinstance(right, tuple) and isinstance(left, int):
            return (left in right) == isinstance(kind, ast.In)
        if type(kind) not in _COMPARED:
            raise self.error(node, f"{said(kind)} is no part of the language")
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
            joined, op = found[0], "and" if isinstance(node.op, ast.And) else "or"
            for one in found[1:]:
                joined = self.apply(node, op, [joined, one])
            return joined
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
        return self.chosen(node, test)

    def chosen(self, node: ast.IfExp, test: ReadValue) -> ReadValue:
        raise self.error(node, "this condition is not known here")

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


def said(node: ast.AST) -> str:
    return type(node).__name__
