"""What a scalar may be, as far as it is known: a number, a finite one between bounds, or anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from penstock.compiler.scalars.bounds import FINITE, Bounds, either
from penstock.compiler.scalars.look_up import LookUpOp, bounds_of_entries
from penstock.compiler.scalars.number_types import numpy_dtype
from penstock.compiler.scalars.operations import BY_NAME, evaluate

PadNumber = NDArray[Any]
"""An array without dims."""


Content = PadNumber | Bounds | None
"""None is anything: infinite, or no number."""


def same(content: Content, number: PadNumber | None) -> bool:
    """Whether it is known to be this number."""
    return number is not None and isinstance(content, np.ndarray) and np.array_equal(content, number)


def joined(contents: Sequence[Content]) -> Content:
    """One of them, nobody knows which."""
    first = contents[0]
    if isinstance(first, np.ndarray) and all(same(other, first) for other in contents):
        return first
    return _union([bounds_of(content) for content in contents])


def run_body(block: Block, contents: Sequence[Content]) -> Mapping[SSAValue, Content]:
    """What every value of a scalar body may be; the running result of a reduction is finite."""
    values: dict[SSAValue, Content] = dict.fromkeys(block.args, FINITE)
    values |= dict(zip(block.args, contents, strict=False))
    for op in block.ops:
        if op.results:
            values[op.results[0]] = _scalar(op, [values[o] if o in values else _captured(o) for o in op.operands])
    return values


def _captured(value: SSAValue) -> Content:
    """A constant that stands outside of the body."""
    return _scalar(value.owner, []) if isinstance(value.owner, arith.ConstantOp) else None


def _scalar(op: Operation, operands: Sequence[Content]) -> Content:
    numbers = [content for content in operands if isinstance(content, np.ndarray)]
    if len(numbers) == len(operands):
        result = evaluate(op, numbers)
        return None if _has_the_sign_of_a_zero(result, numbers) else result
    floats = isinstance(op.results[0].type, AnyFloat)
    if isinstance(op, LookUpOp) and floats:
        return bounds_of_entries(op)
    bounds = [bounds_of(content) for content in operands]
    zero = any(not number.any() for number in numbers)
    if op.name in ("arith.mulf", "arith.muli") and zero and (None not in bounds or not floats):
        return np.zeros((), numpy_dtype(op.results[0].type))
    if not floats:
        return FINITE
    if op.name in ("arith.addf", "arith.subf") and any(np.isinf(number) for number in numbers):
        if not any(content is None for content in operands):  # infinity, whatever finite number goes with it
            return evaluate(op, [_or_zero(content, numbers[0]) for content in operands])
        return None
    if op.name == "arith.select":
        bounds = bounds[1:]
    known = [one for one in bounds if one is not None]
    if len(known) < len(bounds):
        return None
    if op.name == "arith.mulf" and op.operands[0] is op.operands[1]:
        return Bounds(0.0, inf)
    rule = BY_NAME[op.name].bounds
    return None if rule is None else rule(known)


def _has_the_sign_of_a_zero(result: PadNumber, numbers: Sequence[PadNumber]) -> bool:
    """Whether it is infinite because something is divided by zero: a known zero may be one of either sign."""
    if not np.isinf(result).any():
        return False
    return any(not number.any() for number in numbers) and not any(np.isinf(number) for number in numbers)


def _or_zero(content: Content, like: PadNumber) -> PadNumber:
    return content if isinstance(content, np.ndarray) else np.zeros_like(like)


def bounds_of(content: Content) -> Bounds | None:
    """What a content is as a finite number; None where it may be none."""
    if not isinstance(content, np.ndarray):
        return content
    return Bounds(float(content), float(content)) if np.isfinite(content) else None


def _union(bounds: Sequence[Bounds | None]) -> Bounds | None:
    known = [one for one in bounds if one is not None]
    whole = either(known) if known else None
    return whole if len(known) == len(bounds) else None
