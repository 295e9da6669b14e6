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
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from penstock.compiler.backend.hls.bind_cpp import bind_op
from penstock.compiler.dialects.scaling import scaling_of
from penstock.compiler.dialects.types import integer_width
from penstock.compiler.errors import PenstockError

_NATIVE = {8: "int8_t", 16: "int16_t", 32: "int32_t", 64: "int64_t"}


def cpp_type(kind: Attribute) -> str:
    """The C++ type of a scalar."""
    if (width := integer_width(kind)) is not None:
        return "bool" if width == 1 else _NATIVE.get(width, f"ap_int<{width}>")
    if isinstance(kind, Float32Type):
        return "float"
    if isinstance(kind, Float64Type):
        return "double"
    raise PenstockError(
        code="unsupported-dtype",
        what=f"the HLS backend has no C++ type for {kind}",
        limit="integers, f32 and f64",
    )


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


Emitter = Callable[[Operation, Sequence[str]], str]


def _call(name: str) -> Emitter:
    return lambda op, args: f"pk::{name}({', '.join(args)})"


def _infix(sign: str) -> Emitter:
    return lambda op, args: f"({args[0]} {sign} {args[1]})"


def _bitwise(sign: str) -> Emitter:
    """C++ computes in int what is narrower, so the way back is written out."""

    def write(op: Operation, args: Sequence[str]) -> str:
        expression, kind = f"({args[0]} {sign} {args[1]})", op.results[0].type
        return expression if integer_width(kind) in (32, 64) else f"({cpp_type(kind)}){expression}"

    return write


def _cast(op: Operation, args: Sequence[str]) -> str:
    return f"({cpp_type(op.results[0].type)})({args[0]})"


def _to_type(name: str) -> Emitter:
    return lambda op, args: f"pk::{name}<{cpp_type(op.results[0].type)}>({', '.join(args)})"


def _multiply(op: Operation, args: Sequence[str]) -> str:
    """A power of two moves the exponent: the tools would build a multiplier."""
    scaling = scaling_of(op)
    if scaling is None:
        return f"({args[0]} * {args[1]})"
    value, exponent = scaling
    return f"pk::scale<{exponent}>({args[list(op.operands).index(value)]})"


_SIGNED = ("==", "!=", "<", "<=", ">", ">=")
_UNSIGNED = ("ult", "ule", "ugt", "uge")
_ORDERED = ("==", ">", ">=", "<", "<=", "!=")


def _compare_integers(op: Operation, args: Sequence[str]) -> str:
    predicate = cast(arith.CmpiOp, op).predicate.value.data
    if predicate < len(_SIGNED):
        return f"({args[0]} {_SIGNED[predicate]} {args[1]})"
    return f"pk::{_UNSIGNED[predicate - len(_SIGNED)]}({args[0]}, {args[1]})"


def _compare_floats(op: Operation, args: Sequence[str]) -> str:
    predicate = cast(arith.CmpfOp, op).predicate.value.data
    x, y = args
    unordered = f"pk::unordered({x}, {y})"
    if predicate in (0, 15):
        return "false" if predicate == 0 else "true"
    if predicate in (7, 14):
        return f"(!{unordered})" if predicate == 7 else unordered
    holds = f"({x} {_ORDERED[(predicate - 1) % 7]} {y})"
    return f"({holds} && !{unordered})" if predicate < 7 else f"({holds} || {unordered})"


_EMITTERS: dict[type[Operation], Emitter] = {
    arith.SelectOp: lambda op, args: f"({args[0]} ? {args[1]} : {args[2]})",
    arith.AddiOp: _call("add"),
    arith.SubiOp: _call("sub"),
    arith.MuliOp: _call("mul"),
    arith.MinSIOp: _call("min"),
    arith.MaxSIOp: _call("max"),
    arith.MinUIOp: _call("umin"),
    arith.MaxUIOp: _call("umax"),
    arith.AndIOp: _bitwise("&"),
    arith.OrIOp: _bitwise("|"),
    arith.XOrIOp: _bitwise("^"),
    arith.ShLIOp: _call("shl"),
    arith.ShRSIOp: _bitwise(">>"),
    arith.ShRUIOp: _call("lshr"),
    arith.CmpiOp: _compare_integers,
    arith.ExtSIOp: _to_type("sext"),
    arith.ExtUIOp: _to_type("zext"),
    arith.TruncIOp: _to_type("trunc"),
    arith.SIToFPOp: _cast,
    arith.FPToSIOp: _to_type("to_int"),
    arith.AddfOp: _infix("+"),
    arith.SubfOp: _infix("-"),
    arith.MulfOp: _multiply,
    arith.DivfOp: _infix("/"),
    arith.NegfOp: lambda op, args: f"(-{args[0]})",
    arith.MaximumfOp: _call("maximum"),
    arith.MinimumfOp: _call("minimum"),
    arith.MaxnumfOp: _call("maxnum"),
    arith.MinnumfOp: _call("minnum"),
    arith.CmpfOp: _compare_floats,
    arith.ExtFOp: _cast,
    arith.TruncFOp: _cast,
    math_dialect.AbsFOp: _call("fabs"),
    math_dialect.SqrtOp: _call("sqrt"),
    math_dialect.RsqrtOp: _call("rsqrt"),
    math_dialect.ExpOp: _call("exp"),
    math_dialect.TanhOp: _call("tanh"),
    math_dialect.ErfOp: _call("erf"),
    math_dialect.LogOp: _call("log"),
    math_dialect.FloorOp: _call("floor"),
    math_dialect.CeilOp: _call("ceil"),
    math_dialect.RoundEvenOp: _call("rint"),
}


def supported_operations() -> tuple[str, ...]:
    """The scalar operations that this backend can write, by IR name."""
    return tuple(sorted([arith.ConstantOp.name, *(kind.name for kind in _EMITTERS)]))


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
            names[op.result] = fresh(_ROLES.get(type(use), "constant"))
            lines.append(f"const {cpp_type(op.result.type)} {names[op.result]} = {text};")
    return lines, names


def emit_body(
    block: Block,
    arguments: Sequence[str],
    constants: Mapping[SSAValue, str],
    layer: str,
    fresh: Callable[[str], str],
    choices: Mapping[Operation, str],
) -> tuple[list[str], str]:
    """A scalar body as statements and the expression of its result. Inputs are C++ expressions.

    `choices` says what some of its operations are to be built of.
    """
    names: dict[SSAValue, str] = {**dict(zip(block.args, arguments, strict=True)), **constants}
    lines: list[str] = []
    terminator = block.last_op
    assert terminator is not None
    for op in block.ops:
        if op is terminator:
            break
        if isinstance(op, arith.ConstantOp):
            continue
        emitter = _EMITTERS.get(type(op))
        if emitter is None:
            raise PenstockError(
                code="unsupported-op", what=f"the HLS backend cannot write {op.name}", where=layer,
                limit="it writes " + ", ".join(supported_operations()),
            )  # fmt: skip
        expression = emitter(op, [names[o] for o in op.operands])
        if op in choices:
            name = names[op.results[0]] = fresh(_LABELS.get(type(op), "v"))
            pragma = bind_op(name, op, choices[op])
            lines.append(f"{cpp_type(op.results[0].type)} {name};")
            lines += [pragma] if pragma else []
            lines.append(f"{name} = {_plain(expression)};")
            continue
        if op.next_op is terminator and terminator.operands[0] is op.results[0]:
            names[op.results[0]] = expression
            continue
        name = fresh(_LABELS.get(type(op), "v"))
        lines.append(f"const {cpp_type(op.results[0].type)} {name} = {_plain(expression)};")
        names[op.results[0]] = name
    return lines, _plain(names[terminator.operands[0]])


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
_ROLES: dict[type[Operation] | type[None], str] = {
    arith.ShRSIOp: "shift",
    arith.ShRUIOp: "shift",
    arith.ShLIOp: "shift",
    arith.MuliOp: "factor",
    arith.MulfOp: "factor",
    arith.DivfOp: "divisor",
    arith.AddiOp: "offset",
    arith.AddfOp: "offset",
    arith.SubfOp: "offset",
    arith.MaxSIOp: "least",
    arith.MaximumfOp: "least",
    arith.MinSIOp: "most",
    arith.MinimumfOp: "most",
    arith.CmpfOp: "limit",
    arith.CmpiOp: "limit",
}
_LABELS: dict[type[Operation], str] = {
    arith.MuliOp: "product",
    arith.MulfOp: "product",
    arith.AddiOp: "sum",
    arith.AddfOp: "sum",
    arith.ExtSIOp: "wide",
    arith.TruncIOp: "narrow",
    arith.MaxSIOp: "upper",
    arith.MinSIOp: "lower",
    arith.ShRSIOp: "shifted",
    arith.MaximumfOp: "upper",
    arith.SubfOp: "difference",
    arith.DivfOp: "quotient",
    arith.SIToFPOp: "real",
    arith.FPToSIOp: "whole",
    math_dialect.ExpOp: "power",
    math_dialect.RsqrtOp: "scale",
    math_dialect.RoundEvenOp: "rounded",
}


def _plain(expression: str) -> str:
    """Drop one pair of parentheses around a whole expression."""
    if not (expression.startswith("(") and expression.endswith(")")):
        return expression
    depth = 0
    for position, character in enumerate(expression):
        depth += (character == "(") - (character == ")")
        if depth == 0 and position < len(expression) - 1:
            return expression
    return expression[1:-1]
