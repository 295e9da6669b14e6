"""Scalar operations as C++ expressions with the interpreter's meaning, bit for bit.

Integer arithmetic wraps, so it goes through helpers of penstock_ops.h rather than through C++'s signed
operators, whose overflow is undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    Float32Type,
    FloatAttr,
    IntegerAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from penstock.compiler.backend.hls.bind_cpp import bind_op
from penstock.compiler.dialects.scaling import scaling_of
from penstock.compiler.dialects.types import integer_width
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.look_up import EntriesAttr, LookUpOp
from penstock.compiler.scalars.number_types import in_words, number_type
from penstock.compiler.scalars.operations import OPERATIONS, row_of

TableKey = tuple[EntriesAttr, Attribute, Attribute]
"""What makes two look-ups one table: the entries, and the types around them."""


def table_key(op: LookUpOp) -> TableKey:
    return op.entries, op.index.type, op.result.type


def cpp_type(kind: Attribute) -> str:
    """The C++ type of a scalar."""
    cpp = number_type(kind).cpp
    if cpp is None:
        raise PenstockError(
            code="unsupported-dtype", what=f"the HLS backend has no C++ type for {kind}",
            limit=in_words(lambda row: row.cpp is not None),
        )  # fmt: skip
    return cpp


def literal(value: Any, kind: Attribute) -> str:
    """A constant that reads back as exactly this value."""
    if (width := integer_width(kind)) is not None:
        number = int(value)
        if width == 1:
            return "true" if number & 1 else "false"
        if width == 64:
            return "INT64_MIN" if number == -(1 << 63) else f"INT64_C({number})"
        return "INT32_MIN" if number == -(1 << 31) else str(number)
    number = float(value)
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    single = isinstance(kind, Float32Type)
    text = str(np.float32(number)) if single else repr(number)  # the shortest that reads back
    if not any(c in text for c in ".einf"):
        text += ".0"
    return text + ("f" if single else "")


def constant_of(attribute: Attribute) -> str:
    """The literal of an IntegerAttr or FloatAttr, of its own type: beside an int8_t, helpers cannot take an int."""
    if isinstance(attribute, IntegerAttr):
        integer = cast("IntegerAttr[Any]", attribute)
        text = literal(integer.value.data, integer.type)
        return text if integer_width(integer.type) in (1, 32, 64) else f"{cpp_type(integer.type)}({text})"
    if isinstance(attribute, FloatAttr):
        number = cast("FloatAttr[Any]", attribute)
        return literal(number.value.data, number.type)
    raise PenstockError(code="unsupported-op", what=f"a constant of the form {attribute}")


def expression_of(op: Operation, args: Sequence[str], tables: Mapping[TableKey, str] = {}) -> str | None:
    """An operation's C++, without parentheses around all of it; None where it has none.

    `tables` are the functions of look-ups.
    """
    row = OPERATIONS.get(type(op))
    if row is None or row.cpp is None:
        return None
    if (scaling := scaling_of(op)) is not None:  # the exponent moves: the tools would build a multiplier
        value, exponent = scaling
        return f"pk::scale<{exponent}>({args[list(op.operands).index(value)]})"
    kind = op.results[0].type
    predicate = op.predicate.value.data if isinstance(op, arith.CmpiOp | arith.CmpfOp) else 0
    table = tables[table_key(op)] if isinstance(op, LookUpOp) else ""
    text = (row.cpp if isinstance(row.cpp, str) else row.cpp[predicate]).format(*args, T=cpp_type(kind), table=table)
    return f"({cpp_type(kind)})({text})" if row.promotes and integer_width(kind) not in (32, 64) else text


def supported_operations() -> tuple[str, ...]:
    """The scalar operations that this backend can write, by IR name."""
    return tuple(sorted(row.name for row in OPERATIONS.values() if row.cpp is not None))


def emit_constants(block: Block, fresh: Callable[[str], str]) -> tuple[list[str], dict[SSAValue, str]]:
    """The constants of a scalar body: what means something is named after its use, 0 and 1 stay."""
    lines: list[str] = []
    names: dict[SSAValue, str] = {}
    for op in block.ops:
        if isinstance(op, arith.ConstantOp):
            text = constant_of(op.value)
            if all(scaling_of(use.operation) for use in op.result.uses):
                names[op.result] = text
                continue
            if text in _PLAIN:
                names[op.result] = f"({text})" if text.startswith("-") else text
                continue
            use = next((use.operation for use in op.result.uses), None)
            names[op.result] = fresh(_role(use))
            lines.append(f"const {cpp_type(op.result.type)} {names[op.result]} = {text};")
    return lines, names


def emit_body(
    block: Block,
    arguments: Sequence[str],
    constants: Mapping[SSAValue, str],
    layer: str,
    fresh: Callable[[str], str],
    choices: Mapping[Operation, str],
    made: Mapping[SSAValue, str] | None = None,
    tables: Mapping[TableKey, str] = {},
) -> tuple[list[str], str]:
    """A scalar body as statements and the expression of its result. Inputs are C++ expressions.

    `choices` says what some of its operations are to be built of, `made` which of its values are there already,
    `tables` what the functions of its look-ups are called.
    """
    names: dict[SSAValue, str] = {**dict(zip(block.args, arguments, strict=True)), **constants, **(made or {})}
    lines: list[str] = []
    terminator = block.last_op
    assert terminator is not None
    for op in block.ops:
        if op is terminator:
            break
        if isinstance(op, arith.ConstantOp) or _is_hidden(op) or op.results[0] in names:
            continue
        factors = _narrow_factors(op)
        if factors is not None:
            expression = _narrow_product(op, factors, [names[factor] for factor in factors])
        else:
            expression = expression_of(op, [names[o] for o in op.operands], tables)
        if expression is None:
            raise PenstockError(
                code="unsupported-op", what=f"the HLS backend cannot write {op.name}", where=layer,
                limit="it writes " + ", ".join(supported_operations()),
            )  # fmt: skip
        if op in choices:
            name = names[op.results[0]] = fresh(row_of(op).label or "v")
            pragma = bind_op(name, op, choices[op])
            lines.append(f"{cpp_type(op.results[0].type)} {name};")
            lines += [pragma] if pragma else []
            lines.append(f"{name} = {expression};")
            continue
        if op.next_op is terminator and terminator.operands[0] is op.results[0]:
            return lines, expression
        name = fresh(row_of(op).label or "v")
        lines.append(f"const {cpp_type(op.results[0].type)} {name} = {expression};")
        names[op.results[0]] = name
    result = names[terminator.operands[0]]
    return lines, result[1:-1] if result.startswith("(-") else result


def _narrow_factors(op: Operation) -> tuple[SSAValue, SSAValue] | None:
    """The factors of a product that cannot overflow, before they were extended: what the hardware multiplies."""
    if not isinstance(op, arith.MuliOp):
        return None
    left, right = (o.owner.input if isinstance(o.owner, arith.ExtSIOp) else o for o in op.operands)
    widths = [integer_width(o.type) or 0 for o in (left, right)]
    fits = min(widths) > 1 and sum(widths) <= (integer_width(op.result.type) or 0)
    return (left, right) if fits else None


def _is_hidden(op: Operation) -> bool:
    """An extension that only products of narrow factors use is no statement."""
    users = [use.operation for use in op.results[0].uses]
    return isinstance(op, arith.ExtSIOp) and bool(users) and all(_narrow_factors(user) for user in users)


def _narrow_product(op: Operation, factors: Sequence[SSAValue], names: Sequence[str]) -> str:
    """`a * b` of the types that they have: a product of such a width is what the tool sees, and what it can bind."""
    result, text = op.results[0].type, f"{names[0]} * {names[1]}"
    narrow = [integer_width(factor.type) or 0 for factor in factors]
    native = all(width in (8, 16, 32) for width in narrow)
    if native and integer_width(result) == 64 and sum(narrow) > 32:  # in C++ the product of two int32_t is one
        return f"(int64_t){text}"
    return text if native and integer_width(result) in (32, 64) else f"({cpp_type(result)})({text})"


_PLAIN = (
    "0",
    "1",
    "-1",
    "0.0f",
    "1.0f",
    "-1.0f",
    "0.0",
    "1.0",
    "INT64_C(0)",
    "INT64_C(1)",
    "true",
    "false",
    "-INFINITY",
)


def _role(use: Operation | None) -> str:
    """What a constant is called after what it is for."""
    row = OPERATIONS.get(type(use)) if use is not None else None
    return (row.constant if row is not None else "") or "constant"
