"""Which core computes an operation, and the text of its files.

A core has `clk`, `ce`, the operands `a`, `b`, `c` and the result `y`; it takes one set of operands a cycle and has
exactly `latency` register stages, all held while `ce` is low.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from penstock.compiler.backend.rtl.primitives.functions import TABLES
from penstock.compiler.backend.rtl.primitives.polynomials import polynomial_module
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.operations import MULT18, OPERATIONS, RtlCore

_FOLDER = files("penstock.compiler.backend.rtl.primitives")


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
) -> Primitive:
    """The core for an operation on scalar types as the IR prints them ("f32", "i8").

    What an expression says better (`SPELLINGS` in scalar_sv.py) has none: integer sums, comparisons, selections,
    shifts. Besides the IR's names the schedule's are known: "mac" is a product, "reciprocal" has the divisor as its
    operand.
    """
    for kind in (*operand_types, result_type):
        if kind != "f32" and not (kind.startswith("i") and kind[1:].isdigit()):
            raise _unsupported(op, operand_types, f"{kind} is neither f32 nor an integer")
    if (by_width := _BY_WIDTH.get(op)) is not None:
        return by_width(op, operand_types, result_type, attributes)
    core = _CORES.get(op)
    if core is None:
        raise _unsupported(op, operand_types, "cores: " + ", ".join(sorted([*_CORES, *_BY_WIDTH])))
    if set(operand_types) != {"f32"} or len(operand_types) != len(core.inputs):
        raise _unsupported(op, operand_types, f"it takes {len(core.inputs)} f32")
    return core


@cache
def source(file_name: str) -> str:
    """The SystemVerilog of a file that a primitive names: written by hand, or generated."""
    if file_name in TABLES:
        return polynomial_module(TABLES[file_name])
    return _FOLDER.joinpath(file_name).read_text()


def _float(core: RtlCore) -> Primitive:
    files = (*core.parts, f"{core.module}.sv")
    return Primitive(core.module, core.latency, (32,) * core.inputs, 32, files, core.parameters)


_CORES = {row.name: _float(row.core) for row in OPERATIONS.values() if row.core is not None}
_CORES["reciprocal"] = _float(RtlCore("fp32_reciprocal", 6, (*MULT18, "reciprocal_polynomial.sv")))


def _compare(op: str, types: tuple[str, ...], result: str, attributes: Mapping[str, str]) -> Primitive:
    predicate = attributes.get("predicate", "")
    if not (predicate.isdigit() and int(predicate) < 16):
        raise _unsupported(op, types, f"the predicate is a number from 0 to 15, not {predicate!r}")
    return Primitive("fp32_compare", 1, (32, 32), 1, ("fp32_compare.sv",), {"PREDICATE": int(predicate)})


def _from_integer(op: str, types: tuple[str, ...], result: str, attributes: Mapping[str, str]) -> Primitive:
    width = _integer_width(op, types, types[0])
    signed = int(op == "arith.sitofp")
    latency = 4 if width <= 32 else 5
    return Primitive("int_to_fp32", latency, (width,), 32, ("int_to_fp32.sv",), {"W": width, "SIGNED": signed})


def _to_integer(op: str, types: tuple[str, ...], result: str, attributes: Mapping[str, str]) -> Primitive:
    width = _integer_width(op, types, result)
    signed = int(op == "arith.fptosi")
    return Primitive("fp32_to_int", 3, (32,), width, ("fp32_to_int.sv",), {"W": width, "SIGNED": signed})


def _multiply(op: str, types: tuple[str, ...], result: str, attributes: Mapping[str, str]) -> Primitive:
    """The row of the operator library goes by the wider operand."""
    a, b, y = (_integer_width(op, types, kind) for kind in (*types, result))
    widest = max(a, b)
    if widest <= 18:
        return Primitive(
            "int_mul", 2, (a, b), y, (*MULT18, "xilinx_dsp48.sv", "int_mul.sv"), {"AW": a, "BW": b, "YW": y}
        )
    latency = 4 if widest <= 36 else 5
    parameters = {"AW": a, "BW": b, "YW": y, "LATENCY": latency}
    return Primitive("int_mul_wide", latency, (a, b), y, (*MULT18, "int_mul_wide.sv"), parameters)


def _divide(op: str, types: tuple[str, ...], result: str, attributes: Mapping[str, str]) -> Primitive:
    """One core of 32 bits for all: the operator library goes by what operands need, which is less than their types."""
    widths = [_integer_width(op, types, kind) for kind in (*types, result)]
    unsigned = not _DIVISIONS[op].get("SIGNED", 1)
    if max(widths) > 32 or (unsigned and min(widths) < 32):
        raise _unsupported(op, types, "integers of up to 32 bits, unsigned ones of exactly 32")
    parameters = {"W": 32, "YW": widths[-1], **_DIVISIONS[op]}
    return Primitive("int_div", 34, (32, 32), widths[-1], ("int_div.sv",), parameters)


_DIVISIONS: dict[str, dict[str, int]] = {
    "arith.divsi": {},
    "arith.floordivsi": {"ROUND": 1},
    "arith.ceildivsi": {"ROUND": 2},
    "arith.divui": {"SIGNED": 0},
    "arith.remsi": {"REMAINDER": 1},
    "arith.remui": {"SIGNED": 0, "REMAINDER": 1},
}

_BY_WIDTH: dict[str, Callable[[str, tuple[str, ...], str, Mapping[str, str]], Primitive]] = {
    "arith.muli": _multiply,
    "mac": _multiply,
    "arith.cmpf": _compare,
    **dict.fromkeys(_DIVISIONS, _divide),
    "arith.sitofp": _from_integer,
    "arith.uitofp": _from_integer,
    "arith.fptosi": _to_integer,
    "arith.fptoui": _to_integer,
}


def _integer_width(op: str, operand_types: tuple[str, ...], kind: str) -> int:
    width = int(kind[1:]) if kind[1:].isdigit() and kind[0] == "i" else 0
    if not 1 <= width <= 64:
        raise _unsupported(op, operand_types, f"{kind} is not an integer of up to 64 bits")
    return width


def _unsupported(op: str, operand_types: tuple[str, ...], limit: str) -> PenstockError:
    return PenstockError(
        code="unsupported-op", what=f"no core computes {op} of {', '.join(operand_types)}",
        where="RTL primitives", limit=limit, hint="keep this operation out of the model, or use another backend",
    )  # fmt: skip
