"""Which core computes an operation, and the text of its files.

A core has `clk`, `ce`, the operands `a`, `b`, `c` and the result `y`; it takes one set of operands a cycle and has
exactly `latency` register stages, all held while `ce` is low.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from compiler.errors import PenstockError

_FOLDER = files("compiler.backend.rtl.primitives")
_MULT18 = ("ecp5_mult18.sv", "mult18.sv")


@dataclass(frozen=True)
class Primitive:
    """An instance of a module: its parameters are those that the operand widths ask for."""

    module: str
    latency: int
    inputs: tuple[int, ...]
    """Bits of a, b, c, as many as there are."""
    output: int
    files: tuple[str, ...]
    """Names for `source`, what is instantiated before what instantiates it."""
    parameters: Mapping[str, int] = field(default_factory=dict[str, int])


def find_primitive(
    op: str, operand_types: tuple[str, ...], result_type: str, attributes: Mapping[str, str] = {}
) -> Primitive | None:
    """The core for an operation on scalar types as the IR prints them ("f32", "i8").

    None where a SystemVerilog expression says it all: integer sums, comparisons, selections, shifts, sign changes.
    Besides the IR's names the schedule's are known: "mac" is a product, "reciprocal" has the divisor as its operand.
    """
    if op in _EXPRESSIONS:
        return None
    for kind in (*operand_types, result_type):
        if kind != "f32" and not (kind.startswith("i") and kind[1:].isdigit()):
            raise _unsupported(op, operand_types, f"{kind} is neither f32 nor an integer")
    if op in ("arith.muli", "mac"):
        return _multiply(op, operand_types, result_type)
    build = _CORES.get(op)
    if build is None:
        raise _unsupported(op, operand_types, "cores: " + ", ".join(sorted(_CORES)))
    return build


def source(file_name: str) -> str:
    """The SystemVerilog of a file that a primitive names."""
    return _FOLDER.joinpath(file_name).read_text()


_EXPRESSIONS = frozenset({
    "arith.constant", "arith.addi", "arith.subi", "arith.andi", "arith.ori", "arith.xori", "arith.shli", "arith.shrsi",
    "arith.shrui", "arith.cmpi", "arith.select", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui",
    "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.bitcast", "arith.negf", "math.absf",
    "math.absi", "math.copysign", "shift",
})  # fmt: skip


def _float(module: str, latency: int, operands: int, *parts: str, **parameters: int) -> Primitive:
    return Primitive(module, latency, (32,) * operands, 32, (*parts, f"{module}.sv"), parameters)


_CORES: dict[str, Primitive] = {
    "arith.addf": _float("fp32_add", 5, 2),
    "arith.subf": _float("fp32_add", 5, 2, SUBTRACT=1),
    "arith.mulf": _float("fp32_mul", 4, 2, *_MULT18),
}


def _multiply(op: str, operand_types: tuple[str, ...], result_type: str) -> Primitive:
    """The row of the operator library goes by the wider operand."""
    a, b, y = (int(kind[1:]) for kind in (*operand_types, result_type))
    widest = max(a, b)
    if widest > 64:
        raise _unsupported(op, operand_types, "products of up to 64 bits")
    if widest <= 18:
        return Primitive("int_mul", 2, (a, b), y, (*_MULT18, "int_mul.sv"), {"AW": a, "BW": b, "YW": y})
    latency = 4 if widest <= 36 else 5
    parameters = {"AW": a, "BW": b, "YW": y, "LATENCY": latency}
    return Primitive("int_mul_wide", latency, (a, b), y, (*_MULT18, "int_mul_wide.sv"), parameters)


def _unsupported(op: str, operand_types: tuple[str, ...], limit: str) -> PenstockError:
    return PenstockError(
        code="unsupported-op", what=f"no core computes {op} of {', '.join(operand_types)}",
        where="RTL primitives", limit=limit, hint="keep this operation out of the model, or use another backend",
    )  # fmt: skip
