"""Operator bindings as pragmas: a bound operation gets a variable of its own, which BIND_OP can name."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Operation

_OPERATORS: dict[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AddfOp: "add",
    arith.SubfOp: "sub",
    arith.MulfOp: "mul",
    arith.DivfOp: "div",
}
_FLOAT_DSP = {"add": "fulldsp", "sub": "fulldsp", "mul": "maxdsp"}  # what the library's rows were read off


def bind_op(variable: str, op: Operation, implementation: str) -> str | None:
    """The pragma, or None where the tool has none for the operation."""
    operator = _OPERATORS.get(type(op))
    if operator is None:
        return None
    if op.name.endswith("f"):
        implementation = _FLOAT_DSP.get(operator, implementation) if implementation == "dsp" else implementation
        operator = ("d" if isinstance(op.results[0].type, Float64Type) else "f") + operator
    return f"#pragma HLS BIND_OP variable={variable} op={operator} impl={implementation}"
