"""What an option of a pragma says: numbers, and what is computed of them, of constants and of macros."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping

_OPERAND = r"(?:\((?:[^()]|\([^()]*\))*\)|[^\s()=,*/%+]+(?:\s*\[[^\]]*\])?)"
_VALUE = rf"{_OPERAND}(?:\s*[*/%+,]\s*{_OPERAND}|\s+-\s+{_OPERAND})*"
_OPTION = re.compile(rf"([A-Za-z_]\w*)(?:\s*=\s*({_VALUE}))?")
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_SCOPED = re.compile(r"\b(?:\w+\s*::\s*)*(\w+)\s*::\s*(\w+)")
_MOST_DEEP = 16
_MOST_LETTERS = 500
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip
Constants = Mapping[str, "int | str"]
"""Numbers by name; of a macro its text."""


def options_of(body: str) -> Iterator[tuple[str, str]]:
    """The options of a pragma in order: "min = N * 2 off" is ("min", "N * 2") and ("off", "")."""
    for match in _OPTION.finditer(body):
        yield match[1], (match[2] or "").strip()


def constant_of(text: str, constants: Constants, deep: int = 0) -> int | None:
    """A constant expression of C++ as far as pragmas have them: + - * / % and parentheses. None: it is none."""
    if deep > _MOST_DEEP or len(text) > _MOST_LETTERS:
        return None

    def named(match: re.Match[str]) -> str:
        """A name behind its scope: a struct's constant as the number that it is, a namespace's by its name alone."""
        value = constants.get(f"{match[1]}::{match[2]}")
        return match[2] if value is None else f"({value})"

    plain = _SCOPED.sub(named, _SUFFIX.sub(r"\1", text)).replace("/", "//").strip()
    try:
        tree = ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _value(tree, constants, deep)


def _value(tree: ast.expr, constants: Constants, deep: int) -> int | None:
    match tree:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            found = constants.get(name)
            return constant_of(found, constants, deep + 1) if isinstance(found, str) else found
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            value = _value(inner, constants, deep)
            return None if value is None else -value
        case ast.BinOp(left=one, op=sign, right=other):
            left, right = _value(one, constants, deep), _value(other, constants, deep)
            if left is None or right is None:
                return None
            if isinstance(sign, (ast.FloorDiv, ast.Mod)):
                if right == 0:
                    return None
                whole = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
                return whole if isinstance(sign, ast.FloorDiv) else left - whole * right
            found = _BINARY.get(type(sign))
            return found(left, right) if found is not None else None
        case _:
            return None
