"""Operations on values of a kernel as scalar bodies of the nest dialect."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.types import integer_width
from penstock.compiler.hls_in.delays import REAL
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.integers import wrapped
from penstock.compiler.hls_in.storage import KernelArray, KernelStream, NumberKind
from penstock.compiler.scalars.operations import PREDICATES

_FLOAT: dict[str, Callable[..., Operation]] = {
    "add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp, "div": arith.DivfOp,
}  # fmt: skip
_INTEGER: dict[str, Callable[..., Operation]] = {
    "add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp, "div": arith.DivSIOp, "rem": arith.RemSIOp,
    "and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp, "shl": arith.ShLIOp, "shr": arith.ShRSIOp,
}  # fmt: skip
_UNSIGNED: dict[str, Callable[..., Operation]] = {
    "div": arith.DivUIOp, "rem": arith.RemUIOp, "shr": arith.ShRUIOp,
}  # fmt: skip
_FUNCTION: dict[str, Callable[[SSAValue], Operation]] = {
    "exp": math.ExpOp, "sqrt": math.SqrtOp, "tanh": math.TanhOp, "abs": math.AbsFOp, "log": math.LogOp,
    "erf": math.ErfOp, "floor": math.FloorOp, "ceil": math.CeilOp, "rsqrt": math.RsqrtOp, "negate": arith.NegfOp,
    "sin": math.SinOp, "cos": math.CosOp,
}  # fmt: skip
Signed = tuple[SSAValue, bool]
"""A scalar, and whether it has a sign if it is an integer."""


def type_of(kind: NumberKind, bits: int) -> Attribute | None:
    """What the compiler computes with; None for what it has no numbers for."""
    match kind:
        case "float":
            return Float32Type()
        case "double":
            return Float64Type()
        case "half":
            return Float16Type()
        case "bool":
            return IntegerType(1)
        case "int":
            return IntegerType(bits)
        case _:
            return None


def attribute_of(value: float, kind: Attribute) -> Attribute:
    if isinstance(kind, Float16Type | Float32Type | Float64Type):
        return FloatAttr(float(value), kind)
    whole, width = int(value), integer_width(kind)
    assert width is not None
    whole = (whole + (1 << (width - 1))) % (1 << width) - (1 << (width - 1)) if width > 1 else whole & 1
    return IntegerAttr(whole, IntegerType(width))


def body_of(node: KernelValue, arguments: list[Attribute], result: Attribute) -> Region | None:
    """The node on scalars of these types; None for what has no operation. Signs are those of its arguments."""
    block = Block(arg_types=arguments)
    known = len(node.args) == len(arguments)
    given: list[Signed] = [(value, node.args[i].signed if known else node.signed) for i, value in enumerate(block.args)]
    found = _compute(block, node, given, result)
    if found is None:
        return None
    block.add_op(nest.YieldOp(found))
    return Region(block)


def _compute(block: Block, node: KernelValue, given: list[Signed], result: Attribute) -> SSAValue | None:
    if node.op in _INTEGER or node.op in _FLOAT:
        table = _FLOAT if node.kind in REAL else _INTEGER
        if node.op not in table:
            return None
        if table is _INTEGER and not node.signed:
            table = _INTEGER | _UNSIGNED
        if node.op in ("shl", "shr") and table is not _FLOAT:
            return _shifted(block, table[node.op], node, given, result)
        left, right = (cast(block, value, result) for value in given)
        if node.op in ("div", "rem") and table is not _FLOAT:
            right = _divisor(block, node, right)
        return _add(block, table[node.op](left, right))
    if node.op in ("compare", "fcompare"):
        return _compared(block, node, *given)
    values = [value for value, _ in given]
    if node.op == "logic":
        return _add(block, (arith.AndIOp if node.comparison == "and" else arith.OrIOp)(values[0], values[1]))
    if node.op == "not":
        return _add(block, arith.XOrIOp(values[0], _add(block, arith.ConstantOp(IntegerAttr(1, IntegerType(1))))))
    if node.op == "select":
        return _add(block, arith.SelectOp(values[0], cast(block, given[1], result), cast(block, given[2], result)))
    if node.op in ("widen", "narrow", "convert", "fromint", "toint"):
        return cast(block, given[0], result, node.signed)
    if node.op in _FUNCTION and node.kind in REAL:
        return _add(block, _FUNCTION[node.op](cast(block, given[0], result)))
    if node.op == "abs":
        return _add(block, math.AbsIOp(cast(block, given[0], result)))
    return None


def _shifted(
    block: Block, shift: Callable[..., Operation], node: KernelValue, given: list[Signed], result: Attribute
) -> SSAValue:
    """By as many bits as a number has room for; what is shifted further than it has bits is 0, or its sign."""
    width, amount = integer_width(result), node.args[1].value if len(node.args) == 2 else None
    assert width is not None
    if amount is not None and 0 <= amount < width:
        left, right = (cast(block, value, result) for value in given)
        return _add(block, shift(left, right))
    wide = IntegerType(max(width, integer_width(given[0][0].type) or 0, integer_width(given[1][0].type) or 0))
    left, right = (cast(block, value, wide) for value in given)
    if amount is not None and amount >= (integer_width(wide) or 0):
        last = amount if node.op == "shr" and node.signed else 0
        if not last:
            return _constant(block, 0, result)
        right = _constant(block, (integer_width(wide) or 1) - 1, wide)
    return cast(block, (_add(block, shift(left, right)), node.signed), result)


def _divisor(block: Block, node: KernelValue, divisor: SSAValue) -> SSAValue:
    """What divides. Both sides of a choice are computed: where a source does not divide, 0 may stand here."""
    if len(node.args) == 2 and node.args[1].value:
        return divisor
    zero, one = (_constant(block, value, divisor.type) for value in (0, 1))
    return _add(block, arith.SelectOp(_add(block, arith.CmpiOp(divisor, zero, "eq")), one, divisor))


def _compared(block: Block, node: KernelValue, left: Signed, right: Signed) -> SSAValue:
    """Integers with and without signs are compared as what they are: C++'s own conversions came before."""
    wide: Attribute = max((left[0].type, right[0].type), key=_rank)
    name = PREDICATES[node.comparison]
    bits = integer_width(wide)
    signed = bits != 1 and (left[1] or right[1])  # a single bit is 0 or 1
    if bits is not None and bits > 1:
        room = signed and any(not s and value.type == wide for value, s in (left, right))
        wide = IntegerType(bits + room)
    first, second = cast(block, left, wide), cast(block, right, wide)
    if isinstance(wide, IntegerType):
        sign = "s" if signed else "u"
        return _add(block, arith.CmpiOp(first, second, name if name in ("eq", "ne") else sign + name))
    return _add(block, arith.CmpfOp(first, second, "une" if name == "ne" else f"o{name}"))


def _rank(kind: Attribute) -> tuple[int, int]:
    width = integer_width(kind)
    return (0, width) if width is not None else (1, _real(kind).bitwidth)


def _real(kind: Attribute) -> Float16Type | Float32Type | Float64Type:
    assert isinstance(kind, Float16Type | Float32Type | Float64Type)
    return kind


def cast(block: Block, number: Signed, wanted: Attribute, signed: bool = True) -> SSAValue:
    """The usual conversions of C++; `signed`: whether the integer that is wanted has a sign."""
    value, from_signed = number
    given = value.type
    if given == wanted:
        return value
    before, after = integer_width(given), integer_width(wanted)
    if before is not None and after is not None:
        if before > after:
            return _add(block, arith.TruncIOp(value, IntegerType(after)))
        whole = before == 1 or not from_signed
        return _add(block, (arith.ExtUIOp if whole else arith.ExtSIOp)(value, IntegerType(after)))
    if before is not None:
        whole = before == 1 or not from_signed
        return _add(block, (arith.UIToFPOp if whole else arith.SIToFPOp)(value, _real(wanted)))
    if after is not None:
        return _add(block, (arith.FPToSIOp if signed else arith.FPToUIOp)(value, IntegerType(after)))
    wider = _rank(wanted) > _rank(given)
    return _add(block, (arith.ExtFOp if wider else arith.TruncFOp)(value, _real(wanted)))


def _add(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def _constant(block: Block, value: int, kind: Attribute) -> SSAValue:
    width = integer_width(kind)
    assert width is not None
    return _add(block, arith.ConstantOp(IntegerAttr(wrapped(value, width, True), IntegerType(width))))


def converted(node: KernelValue, wanted: KernelValue | KernelArray | KernelStream) -> KernelValue:
    return KernelValue("convert", (node,), wanted.kind, wanted.bits, wanted.signed)
