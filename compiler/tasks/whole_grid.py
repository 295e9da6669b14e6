"""Expressions of an instance's place for all places of a grid at once, where they are plain arithmetic."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_DIVIDED: dict[type[ast.AST], Callable[[Any, Any], Any]] = {ast.FloorDiv: np.floor_divide, ast.Mod: np.mod}
_LARGEST = 1 << 31

Everywhere = Array | tuple[Array, ...]


def everywhere(node: ast.expr, names: Mapping[str, object], places: Mapping[str, Array]) -> Everywhere | None:
    """The value at every place; None where it takes more than arithmetic on known numbers."""
    if isinstance(node, ast.Tuple):
        found = [everywhere(one, names, places) for one in node.elts]
        return tuple(one for one in found if isinstance(one, np.ndarray)) if _all_arrays(found) else None
    value = _value(node, names, places)
    size = len(next(iter(places.values()))) if places else 1
    return None if value is None else np.broadcast_to(np.asarray(value), (size,))


def _all_arrays(found: Sequence[object]) -> bool:
    return all(isinstance(one, np.ndarray) for one in found)


def _value(node: ast.expr, names: Mapping[str, object], places: Mapping[str, Array]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() as number) if abs(number) < _LARGEST:
            return number
        case ast.Name(id=name) if name in places:
            return places[name]
        case ast.Name(id=name):
            known = names.get(name)
            return known if isinstance(known, int) and abs(known) < _LARGEST else None
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, names, places), _value(right, names, places)
            if a is None or b is None:
                return None
            if type(op) in _DIVIDED:
                return _DIVIDED[type(op)](a, b) if isinstance(b, int) and b > 0 else None
            return _OPERATORS[type(op)](a, b) if type(op) in _OPERATORS else None
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            a, b = _value(left, names, places), _value(right, names, places)
            return None if a is None or b is None else _OPERATORS[type(op)](a, b)
        case ast.BoolOp(op=op, values=values):
            found = [_value(one, names, places) for one in values]
            if any(one is None for one in found):
                return None
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return join.reduce(np.broadcast_arrays(*found))
        case _:
            return None
