"""Scalar operations of the language as bodies of the IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from penstock.compiler.dialects import nest
from penstock.compiler.scalars.operations import PREDICATES
from penstock.compiler.tasks.interpret import rounded_to_bfloat16
from penstock.compiler.tasks.kinds import BFLOAT16, FLOAT16, TileKind, bits_of, is_float
from penstock.compiler.tasks.tree import Apply, Const, Expr

_INTEGER: dict[str, Callable[..., Operation]] = {
    "add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp, "min": arith.MinSIOp, "max": arith.MaxSIOp,
    "and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp, "shr": arith.ShRSIOp, "shl": arith.ShLIOp,
}  # fmt: skip
_FLOAT: dict[str, Callable[..., Operation]] = {
    "add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp, "div": arith.DivfOp, "min": arith.MinimumfOp,
    "max": arith.MaximumfOp,
}  # fmt: skip
_FUNCTION: dict[str, Callable[[SSAValue], Operation]] = {
    "exp": math.ExpOp, "sqrt": math.SqrtOp, "tanh": math.TanhOp, "abs": math.AbsFOp,
}  # fmt: skip


def type_of(dtype: str) -> Attribute:
    return Float32Type() if dtype == "f32" else IntegerType(bits_of(dtype))


_LEAST_NORMAL, _MOST = 0x38800000, 0x477FF000
"""Of float16, as bits of float32: its least number with a leading 1, and where rounding leads beyond its largest."""


def attribute(value: float, dtype: str) -> IntegerAttr[IntegerType] | FloatAttr[Float32Type]:
    if dtype == BFLOAT16:
        return IntegerAttr(int(rounded_to_bfloat16(value).view(np.int32)) >> 16, IntegerType(16))
    if dtype == FLOAT16:
        return IntegerAttr(int(np.float32(value).astype(np.float16).view(np.int16)), IntegerType(16))
    if is_float(dtype):
        return FloatAttr(float(value), Float32Type())
    return IntegerAttr(int(value), IntegerType(bits_of(dtype)))


def shape_of(kind: TileKind) -> tuple[int, ...]:
    """The lanes of a value: a number is a row of one."""
    return kind.shape or (1,)


def body_of(value: Apply) -> tuple[Region, Sequence[Expr]]:
    """The operation on scalars, and the arguments that are no constants, each once, or one that is where all are."""
    given = list(dict.fromkeys(one for one in value.args if not isinstance(one, Const))) or list(value.args[:1])
    block = Block(arg_types=[type_of(one.kind.dtype) for one in given])
    arguments = dict(zip(given, block.args, strict=True))
    scalars: list[SSAValue] = []
    for one in value.args:
        if one in arguments:
            scalars.append(arguments[one])
        elif isinstance(one, Const):
            scalars.append(_add(block, arith.ConstantOp(attribute(one.value, one.kind.dtype))))
    result = _compute(block, value, scalars)
    block.add_op(nest.YieldOp(result))
    return Region(block), given


def combining(op: str, dtype: str) -> Region:
    """Two lanes as one."""
    block = Block(arg_types=[type_of(dtype)] * 2)
    made = (_FLOAT if is_float(dtype) else _INTEGER)[op](*block.args)
    block.add_op(made)
    block.add_op(nest.YieldOp(made.results[0]))
    return Region(block)


def _add(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def _compute(block: Block, value: Apply, given: Sequence[SSAValue]) -> SSAValue:
    dtype = value.args[-1].kind.dtype
    floats = is_float(dtype)
    op = value.op
    if op == "cast":
        return _cast(block, given[0], dtype, value.kind.dtype)
    if op == "where":
        return _add(block, arith.SelectOp(given[0], given[1], given[2]))
    if op in PREDICATES:
        name = PREDICATES[op]
        if floats:
            return _add(block, arith.CmpfOp(given[0], given[1], "une" if name == "ne" else f"o{name}"))
        return _add(block, arith.CmpiOp(given[0], given[1], name if name in ("eq", "ne") else f"s{name}"))
    if op == "neg":
        if floats:
            return _add(block, arith.NegfOp(given[0]))
        return _add(block, arith.SubiOp(_constant(block, 0, dtype), given[0]))
    if op == "abs" and not floats:
        return _add(block, arith.MaxSIOp(given[0], _add(block, arith.SubiOp(_constant(block, 0, dtype), given[0]))))
    if op == "sigmoid":
        grown = _add(block, math.ExpOp(_add(block, arith.NegfOp(given[0]))))
        one = _constant(block, 1, dtype)
        return _add(block, arith.DivfOp(one, _add(block, arith.AddfOp(one, grown))))
    if floats and op in _FUNCTION:
        return _add(block, _FUNCTION[op](given[0]))
    return _add(block, (_FLOAT if floats else _INTEGER)[op](*given))


def _constant(block: Block, value: float, dtype: str) -> SSAValue:
    return _add(block, arith.ConstantOp(attribute(value, dtype)))


def _widened(block: Block, value: SSAValue) -> SSAValue:
    """A bfloat16 as the float32 whose upper half it is."""
    upper = _add(block, arith.ExtUIOp(value, IntegerType(32)))
    return _add(block, arith.BitcastOp(_add(block, arith.ShLIOp(upper, _constant(block, 16, "i32"))), Float32Type()))


def _narrowed(block: Block, value: SSAValue) -> SSAValue:
    """A float32 as the nearest bfloat16, of two the even one. What is no number stays so."""

    def whole(number: int) -> SSAValue:
        return _constant(block, number, "i32")

    bits = _add(block, arith.BitcastOp(value, IntegerType(32)))
    upper = _add(block, arith.ShRSIOp(bits, whole(16)))
    nearest = _add(block, arith.AddiOp(_add(block, arith.AndIOp(upper, whole(1))), whole(0x7FFF)))
    rounded = _add(block, arith.ShRSIOp(_add(block, arith.AddiOp(bits, nearest)), whole(16)))
    size = _add(block, arith.AndIOp(bits, whole(0x7FFFFFFF)))
    undefined = _add(block, arith.CmpiOp(size, whole(0x7F800000), "sgt"))
    chosen = _add(block, arith.SelectOp(undefined, whole(0x7FC0), rounded))
    return _add(block, arith.TruncIOp(chosen, IntegerType(16)))


def _from_half(block: Block, value: SSAValue) -> SSAValue:
    """A float16 as the float32 that it is, exactly."""

    def whole(number: int) -> SSAValue:
        return _constant(block, number, "i32")

    bits = _add(block, arith.ExtUIOp(value, IntegerType(32)))
    sign = _add(block, arith.ShLIOp(_add(block, arith.AndIOp(bits, whole(0x8000))), whole(16)))
    size = _add(block, arith.AndIOp(bits, whole(0x7FFF)))
    moved = _add(block, arith.ShLIOp(size, whole(13)))
    normal = _add(block, arith.AddiOp(moved, whole(112 << 23)))
    none = _add(block, arith.AddiOp(moved, whole(224 << 23)))  # infinite, or no number
    steps = _add(block, arith.BitcastOp(_add(block, arith.SIToFPOp(size, Float32Type())), IntegerType(32)))
    small = _add(block, arith.SubiOp(steps, whole(24 << 23)))
    small = _add(block, arith.SelectOp(_add(block, arith.CmpiOp(size, whole(0), "eq")), whole(0), small))
    found = _add(block, arith.SelectOp(_add(block, arith.CmpiOp(size, whole(0x400), "slt")), small, normal))
    found = _add(block, arith.SelectOp(_add(block, arith.CmpiOp(size, whole(0x7C00), "slt")), found, none))
    return _add(block, arith.BitcastOp(_add(block, arith.OrIOp(found, sign)), Float32Type()))


def _to_half(block: Block, value: SSAValue) -> SSAValue:
    """A float32 as the nearest float16, of two the even one. What is no number stays so."""

    def whole(number: int) -> SSAValue:
        return _constant(block, number, "i32")

    bits = _add(block, arith.BitcastOp(value, IntegerType(32)))
    sign = _add(block, arith.AndIOp(_add(block, arith.ShRSIOp(bits, whole(16))), whole(0x8000)))
    size = _add(block, arith.AndIOp(bits, whole(0x7FFFFFFF)))
    odd = _add(block, arith.AndIOp(_add(block, arith.ShRSIOp(size, whole(13))), whole(1)))
    nearest = _add(block, arith.AddiOp(_add(block, arith.AddiOp(size, whole(0xFFF))), odd))
    normal = _add(block, arith.SubiOp(_add(block, arith.ShRSIOp(nearest, whole(13))), whole(112 << 10)))
    half = _constant(block, 0.5, "f32")  # in whose last place the small ones count: their sum is rounded there
    magnitude = _add(block, arith.BitcastOp(size, Float32Type()))
    summed = _add(block, arith.BitcastOp(_add(block, arith.AddfOp(magnitude, half)), IntegerType(32)))
    small = _add(block, arith.SubiOp(summed, whole(0x3F000000)))
    is_small = _add(block, arith.CmpiOp(size, whole(_LEAST_NORMAL), "slt"))
    found = _add(block, arith.SelectOp(is_small, small, normal))
    found = _add(block, arith.SelectOp(_add(block, arith.CmpiOp(size, whole(_MOST), "slt")), found, whole(0x7C00)))
    undefined = _add(block, arith.CmpiOp(size, whole(0x7F800000), "sgt"))
    found = _add(block, arith.SelectOp(undefined, whole(0x7E00), found))
    return _add(block, arith.TruncIOp(_add(block, arith.OrIOp(found, sign)), IntegerType(16)))


def _cast(block: Block, value: SSAValue, have: str, want: str) -> SSAValue:
    if have == want:
        return value
    if have == BFLOAT16:
        return _cast(block, _widened(block, value), "f32", want)
    if have == FLOAT16:
        return _cast(block, _from_half(block, value), "f32", want)
    if want == FLOAT16:
        return _to_half(block, _cast(block, value, have, "f32"))
    if want == BFLOAT16:
        return _narrowed(block, _cast(block, value, have, "f32"))
    if is_float(want):
        if have == "i1":
            value = _add(block, arith.ExtUIOp(value, IntegerType(32)))
        return _add(block, arith.SIToFPOp(value, Float32Type()))
    goal = IntegerType(bits_of(want))
    if is_float(have):
        whole = _add(block, arith.FPToSIOp(value, IntegerType(32)))
        return whole if want == "i32" else _add(block, arith.TruncIOp(whole, goal))
    if bits_of(have) == bits_of(want):
        return value
    if bits_of(have) > bits_of(want):
        return _add(block, arith.TruncIOp(value, goal))
    return _add(block, arith.ExtUIOp(value, goal) if have == "i1" else arith.ExtSIOp(value, goal))
