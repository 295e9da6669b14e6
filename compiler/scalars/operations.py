"""Scalar operations: one row says what an operation means, is written as, is built of, costs and is called.

What the open route writes as an expression instead of a core is in `backend/rtl/scalar_sv.py`, what an operator takes
on a target in `schedule/operators/*.toml`, both by the operation's name. A test walks the matrix and names every hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation, OpResult, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars import arithmetic as numbers
from penstock.compiler.scalars import bounds
from penstock.compiler.scalars.arithmetic import Compute, floating, integer, rounded_once, unsigned_integer
from penstock.compiler.scalars.look_up import LookUpOp, look_up

Energy = Literal["add", "multiply", "divide", "function", "other"]
"""A row of dse/evaluation/energy.toml; floats that do anything else cost an addition."""


@dataclass(frozen=True)
class RtlCore:
    """A module of backend/rtl/primitives that takes f32 and makes f32, with what it instantiates before it."""

    module: str
    latency: int
    parts: tuple[str, ...] = ()
    parameters: Mapping[str, int] = field(default_factory=dict[str, int])
    inputs: int = 1
    ulp: int = 0
    """How far it may be from the rounded result; 0: the host's, bit for bit."""


@dataclass(frozen=True)
class ScalarOperation:
    kind: type[Operation]
    compute: Compute
    energy: Energy = "other"
    cpp: str | tuple[str, ...] | None = None
    """With the operands {0}, {1}, the result's type {T} and a look-up's {table}; one for each predicate where the
    operation has one."""
    host: tuple[str, str] | None = None
    """pk::<name> as penstock_ops.h defines it for simulation, of x; hardware uses the tool's own, hls::<name>."""
    promotes: bool = False
    """C++ computes in int what is narrower, so the way back to the type is written out."""
    core: RtlCore | None = None
    bounds: bounds.Rule | None = None
    """What is known of a float as its result."""
    operator: str | None = ""
    """Its name in operator libraries: empty if its own, None if it is but wires."""
    by_constant: bool = False
    """Whether it is but wires if its second operand is a constant."""
    traps: bool = False
    """Whether a zero as its second operand is an error."""
    label: str = ""
    """What its result is called in emitted text, in SystemVerilog too unless that has a label of its own."""
    sv_label: str = ""
    constant: str = ""
    """What a constant operand is called in C++."""
    bind: str = ""
    """What BIND_OP calls it."""

    @property
    def name(self) -> str:
        return self.kind.name


def _call(name: str, arity: int = 2) -> str:
    return f"pk::{name}({', '.join(f'{{{i}}}' for i in range(arity))})"


def _to(name: str) -> str:
    return f"pk::{name}<{{T}}>({{0}})"


def _function(
    kind: type[Operation], compute: Compute, rule: bounds.Rule, host: str = "", core: RtlCore | None = None, *,
    name: str = "", label: str = "", energy: Energy = "function", operator: str = "",
) -> ScalarOperation:  # fmt: skip
    """One float to one. Without a definition for simulation it has no C++, and needs an expansion.

    `operator` is the function whose core and times it shares, on every target.
    """
    own = name or kind.name.partition(".")[2]
    cpp, defined = (_call(own, 1), (own, host)) if host else (None, None)
    return ScalarOperation(kind, compute, energy, cpp, defined, core=core, bounds=rule, operator=operator, label=label)


_INFIX = "{{0}} {} {{1}}"
PREDICATES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
"""What a comparison that a source writes is called; of signed integers, where signs matter, behind an s."""
_ORDERED = ("==", ">", ">=", "<", "<=", "!=")
_UNORDERED = _call("unordered")
_COMPARED_FLOATS = (
    "false", *(f"({_INFIX.format(sign)}) && !{_UNORDERED}" for sign in _ORDERED), f"!{_UNORDERED}",
    *(f"({_INFIX.format(sign)}) || {_UNORDERED}" for sign in _ORDERED), _UNORDERED, "true",
)  # fmt: skip
_COMPARED_INTEGERS = (*map(_INFIX.format, PREDICATES), *map(_call, ("ult", "ule", "ugt", "uge")))

MULT18 = ("ecp5_mult18.sv", "mult18.sv")
_EXP = (*MULT18, "exp2_polynomial.sv")
_ODD = (*MULT18, "significand_product.sv", "tanh_polynomial.sv", "erf_polynomial.sv")
_LOG = (*MULT18, "significand_product.sv", "log_polynomial.sv", "log2_polynomial.sv")
_FINITE = bounds.within(bounds.FINITE)


def _extreme(larger: int, nan_wins: int) -> RtlCore:
    return RtlCore("fp32_extreme", 1, parameters={"LARGER": larger, "NAN_WINS": nan_wins}, inputs=2)


def _round(mode: int) -> RtlCore:
    return RtlCore("fp32_round", 3, parameters={"MODE": mode})


_Row = ScalarOperation
_ROWS = (
    _Row(arith.ConstantOp, numbers.constant, cpp="", operator=None),
    _Row(
        arith.SelectOp, numbers.select, cpp="{0} ? {1} : {2}", bounds=bounds.either, sv_label="chosen"
    ),
    # integers
    _Row(
        arith.AddiOp, integer(np.add), "add", _call("add"), label="sum", constant="offset", bind="add"
    ),
    _Row(arith.SubiOp, integer(np.subtract), "add", _call("sub"), sv_label="less", bind="sub"),
    _Row(
        arith.MuliOp, integer(np.multiply), "multiply", _call("mul"), label="product", constant="factor", bind="mul"
    ),
    _Row(arith.DivSIOp, integer(numbers.divide_toward_zero), cpp=_call("div"), traps=True),
    _Row(arith.FloorDivSIOp, integer(numbers.floor_divide), traps=True),
    _Row(arith.CeilDivSIOp, integer(numbers.ceil_divide), traps=True),
    _Row(arith.RemSIOp, integer(numbers.remainder), cpp=_call("rem"), traps=True),
    _Row(arith.DivUIOp, unsigned_integer(numbers.unsigned_divide), cpp=_call("udiv"), traps=True),
    _Row(arith.RemUIOp, unsigned_integer(numbers.unsigned_remainder), cpp=_call("urem"), traps=True),
    _Row(arith.MinSIOp, integer(np.minimum), cpp=_call("min"), label="lower", constant="most"),
    _Row(arith.MaxSIOp, integer(np.maximum), cpp=_call("max"), label="upper", constant="least"),
    _Row(arith.MinUIOp, unsigned_integer(np.minimum), cpp=_call("umin")),
    _Row(arith.MaxUIOp, unsigned_integer(np.maximum), cpp=_call("umax")),
    _Row(arith.AndIOp, integer(np.bitwise_and), cpp=_INFIX.format("&"), promotes=True),
    _Row(arith.OrIOp, integer(np.bitwise_or), cpp=_INFIX.format("|"), promotes=True),
    _Row(arith.XOrIOp, integer(np.bitwise_xor), cpp=_INFIX.format("^"), promotes=True),
    _Row(
        arith.ShLIOp, numbers.shift(np.left_shift), cpp=_call("shl"), operator="shift", by_constant=True,
        constant="shift",
    ),
    _Row(
        arith.ShRSIOp, numbers.shift(np.right_shift), cpp=_INFIX.format(">>"), promotes=True, operator="shift",
        by_constant=True, label="shifted", constant="shift",
    ),
    _Row(
        arith.ShRUIOp, numbers.shift(np.right_shift, unsigned=True), cpp=_call("lshr"), operator="shift",
        by_constant=True, constant="shift",
    ),
    _Row(arith.CmpiOp, numbers.compare_integers, cpp=_COMPARED_INTEGERS, sv_label="holds", constant="limit"),
    _Row(LookUpOp, look_up, cpp="{table}({0})", bounds=bounds.anything, label="entry"),
    _Row(math.AbsIOp, integer(np.abs), cpp="{0} < 0 ? pk::sub(({T})0, {0}) : {0}"),
    # floats
    _Row(
        arith.AddfOp, floating(np.add), "add", _INFIX.format("+"), core=RtlCore("fp32_add", 5, inputs=2),
        bounds=bounds.total, label="sum", constant="offset", bind="add",
    ),
    _Row(
        arith.SubfOp, floating(np.subtract), "add", _INFIX.format("-"),
        core=RtlCore("fp32_add", 5, parameters={"SUBTRACT": 1}, inputs=2), bounds=bounds.difference,
        label="difference", sv_label="less", constant="offset", bind="sub",
    ),
    _Row(
        arith.MulfOp, floating(np.multiply), "multiply", _INFIX.format("*"),
        core=RtlCore("fp32_mul", 4, MULT18, inputs=2), bounds=bounds.product,
        label="product", constant="factor", bind="mul",
    ),
    _Row(
        arith.DivfOp, floating(np.divide), "divide", _INFIX.format("/"), core=RtlCore("fp32_div", 27, inputs=2),
        bounds=bounds.quotient, label="quotient", constant="divisor", bind="div",
    ),
    _Row(arith.NegfOp, floating(np.negative), "add", "-{0}", bounds=bounds.negated),
    _Row(
        arith.MaximumfOp, floating(np.maximum), cpp=_call("maximum"), core=_extreme(1, 1), bounds=bounds.larger,
        label="upper", constant="least",
    ),
    _Row(
        arith.MinimumfOp, floating(np.minimum), cpp=_call("minimum"), core=_extreme(0, 1), bounds=bounds.smaller,
        sv_label="lower", constant="most",
    ),
    _Row(arith.MaxnumfOp, floating(np.fmax), cpp=_call("maxnum"), core=_extreme(1, 0), bounds=bounds.larger),
    _Row(arith.MinnumfOp, floating(np.fmin), cpp=_call("minnum"), core=_extreme(0, 0), bounds=bounds.smaller),
    _Row(arith.CmpfOp, numbers.compare_floats, cpp=_COMPARED_FLOATS, sv_label="holds", constant="limit"),
    _Row(math.CopySignOp, floating(np.copysign), bounds=bounds.anything),
    _Row(math.FmaOp, rounded_once(numbers.fma), "multiply", bounds=bounds.anything),
    _Row(math.PowFOp, rounded_once(np.power), "function", bounds=bounds.anything),
    _Row(math.FPowIOp, rounded_once(np.power), "function", bounds=bounds.anything),
    # conversions
    _Row(arith.ExtFOp, numbers.convert, cpp="({T})({0})", bounds=_FINITE),
    _Row(arith.TruncFOp, numbers.convert, cpp="({T})({0})", bounds=_FINITE),
    _Row(arith.ExtSIOp, numbers.extend_signed, cpp=_to("sext"), operator=None, label="wide"),
    _Row(arith.ExtUIOp, numbers.extend_unsigned, cpp=_to("zext"), operator=None),
    _Row(arith.TruncIOp, numbers.truncate, cpp=_to("trunc"), operator=None, label="narrow"),
    _Row(arith.IndexCastOp, numbers.cast_index, operator=None),
    _Row(arith.BitcastOp, numbers.bitcast, cpp=_to("bitcast"), bounds=bounds.anything, operator=None),
    _Row(
        arith.SIToFPOp, numbers.extend_signed, cpp="({T})({0})", bounds=_FINITE, label="real", sv_label="number"
    ),
    _Row(arith.UIToFPOp, numbers.extend_unsigned, cpp="({T})pk::raw({0})", bounds=_FINITE),
    _Row(arith.FPToSIOp, numbers.float_to_integer(signed=True), cpp=_to("to_int"), label="whole"),
    _Row(arith.FPToUIOp, numbers.float_to_integer(signed=False), cpp=_to("to_uint")),
    # functions of one float, in the order in which penstock_ops.h has them
    _function(
        math.AbsFOp, floating(np.abs), bounds.within(bounds.POSITIVE), "std::fabs(x)", name="fabs", energy="add"
    ),
    _function(math.SqrtOp, floating(np.sqrt), bounds.root, "std::sqrt(x)", RtlCore("fp32_sqrt", 21)),
    _function(
        math.RsqrtOp, floating(numbers.reciprocal_root), bounds.reciprocal_root, "(T)1 / std::sqrt(x)",
        RtlCore("fp32_rsqrt", 6, (*MULT18, "rsqrt_polynomial.sv"), ulp=2), label="scale",
    ),
    _function(math.FloorOp, floating(np.floor), _FINITE, "std::floor(x)", _round(1), energy="add"),
    _function(math.CeilOp, floating(np.ceil), _FINITE, "std::ceil(x)", _round(2), energy="add"),
    _function(
        math.RoundEvenOp, floating(np.rint), _FINITE, "std::nearbyint(x)", _round(3), name="rint", label="rounded",
        energy="add",
    ),
    _function(math.TruncOp, floating(np.trunc), _FINITE, "std::trunc(x)", _round(0), energy="add"),
    _function(math.RoundOp, rounded_once(numbers.round_away), _FINITE, "std::round(x)", _round(4), energy="add"),
    _function(
        math.ExpOp, rounded_once(np.exp), bounds.power, "(T)std::exp((double)x)", RtlCore("fp32_exp", 9, _EXP, ulp=2),
        label="power",
    ),
    _function(
        math.TanhOp, rounded_once(np.tanh), bounds.within(bounds.UNIT), "(T)std::tanh((double)x)",
        RtlCore("fp32_odd", 11, _ODD, ulp=4),
    ),
    _function(
        math.ErfOp, rounded_once(numbers.erf), bounds.within(bounds.UNIT), "(T)std::erf((double)x)",
        RtlCore("fp32_odd", 11, _ODD, {"ERF": 1}, ulp=4),
    ),
    _function(
        math.LogOp, rounded_once(np.log), bounds.anything, "(T)std::log((double)x)",
        RtlCore("fp32_log", 13, _LOG, ulp=4),
    ),
    _function(
        math.Exp2Op, rounded_once(np.exp2), bounds.anything, "(T)std::exp2((double)x)",
        RtlCore("fp32_exp", 9, _EXP, {"BASE_TWO": 1}, ulp=2),
    ),
    _function(
        math.Log2Op, rounded_once(np.log2), bounds.anything, "(T)std::log2((double)x)",
        RtlCore("fp32_log", 13, _LOG, {"BASE_TWO": 1}, ulp=4), operator="math.log",
    ),
    _function(math.ExpM1Op, rounded_once(np.expm1), bounds.anything),
    _function(math.Log1pOp, rounded_once(np.log1p), bounds.anything),
    _function(math.SinOp, rounded_once(np.sin), bounds.within(bounds.UNIT)),
    _function(math.CosOp, rounded_once(np.cos), bounds.within(bounds.UNIT)),
)  # fmt: skip

OPERATIONS: dict[type[Operation], ScalarOperation] = {row.kind: row for row in _ROWS}
BY_NAME = {row.name: row for row in _ROWS}

FUNCTIONS = tuple(row.host for row in _ROWS if row.host is not None)
REDUCTIONS = (arith.AddfOp, arith.AddiOp, arith.MaximumfOp, arith.MaxSIOp)
"""What terms may be reduced with; the order of their operands does not matter."""


def is_scalar_op(op: Operation) -> bool:
    return type(op) in OPERATIONS


def row_of(op: Operation) -> ScalarOperation:
    row = OPERATIONS.get(type(op))
    if row is None:
        raise PenstockError(
            code="unsupported-op",
            what=f"no scalar semantics for {op.name}",
            hint=f"supported: {', '.join(sorted(BY_NAME))}",
        )
    return row


def is_constant(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp)


def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
    """The result of a one-result arith or math operation; operands broadcast against each other."""
    row = row_of(op)
    with np.errstate(all="ignore"):
        return row.compute(op, operands)


def evaluate_chain(chain: Iterable[Operation], known: Mapping[SSAValue, Array]) -> Mapping[SSAValue, Array]:
    """The results of these as well, which stand in an order in which each comes after what it reads."""
    values = dict(known)
    for op in chain:
        values[op.results[0]] = evaluate(op, [values[operand] for operand in op.operands])
    return values


def is_wires(op: Operation) -> bool:
    """Whether it takes nothing: neither time nor logic."""
    row = row_of(op)
    return row.operator is None or (row.by_constant and isinstance(op.operands[1].owner, arith.ConstantOp))
