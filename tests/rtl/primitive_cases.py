"""Every core with its reference on the host, for the bench."""

from __future__ import annotations

from penstock.compiler.backend.rtl.primitives import find_primitive
from penstock.compiler.scalars.operations import OPERATIONS
from tests.rtl.primitive_bench import Case


def _case(name: str, op: str, operands: tuple[str, ...], result: str, reference: str, **attributes: str) -> Case:
    core = find_primitive(op, operands, result, attributes)
    return Case(name, op, core, reference, is_float=result == "f32")


F1, F2 = ("f32",), ("f32", "f32")
X, Y = "flushed(a)", "flushed(b)"

APPROXIMATED = {row.name.partition(".")[2]: row.core.ulp for row in OPERATIONS.values() if row.core and row.core.ulp}

CASES = [
    _case("add", "arith.addf", F2, "f32", f"rounded({X} + {Y})"),
    _case("sub", "arith.subf", F2, "f32", f"rounded({X} - {Y})"),
    _case("mul", "arith.mulf", F2, "f32", f"rounded(static_cast<double>({X}) * {Y})"),
    *(
        _case(f"muli_{a}_{b}_{y}", "arith.muli", (f"i{a}", f"i{b}"), f"i{y}", f"integer_product(a, b, {a}, {b}, {y})")
        for a, b, y in ((8, 8, 16), (18, 18, 36), (9, 17, 8), (32, 32, 64), (33, 9, 42), (32, 32, 32), (20, 36, 56),
                        (64, 64, 64), (12, 40, 52), (48, 48, 64))
    ),
    *(
        _case(f"cmp_{p}", "arith.cmpf", F2, "i1", f"compare(as_float(a), as_float(b), {p})", predicate=str(p))
        for p in range(16)
    ),
    *(
        _case(op, f"arith.{op}f", F2, "f32", f"extreme(a, b, {larger}, {nan})")
        for op, larger, nan in (("maximum", "true", "true"), ("minimum", "false", "true"), ("maxnum", "true", "false"),
                                ("minnum", "false", "false"))
    ),
    *(
        _case(op, f"math.{op}", ("f32",), "f32", f"as_bits({function}(as_float(a)))")
        for op, function in (("trunc", "std::trunc"), ("floor", "std::floor"), ("ceil", "std::ceil"),
                             ("roundeven", "std::rint"), ("round", "std::round"))
    ),
    *(
        _case(f"sitofp_{w}", "arith.sitofp", (f"i{w}",), "f32", f"as_bits(float(sign_extend(a, {w})))")
        for w in (1, 8, 16, 17, 32, 33, 64)
    ),
    *(
        _case(f"uitofp_{w}", "arith.uitofp", (f"i{w}",), "f32", f"as_bits(float(a << {64 - w} >> {64 - w}))")
        for w in (1, 8, 32, 48, 64)
    ),
    *(
        _case(f"{op}_{w}", f"arith.{op}", F1, f"i{w}", f"saturated({X}, {w}, {signed})")
        for op, signed in (("fptosi", "true"), ("fptoui", "false"))
        for w in (8, 16, 32, 64)
    ),
    *(
        _case(op, f"arith.{op}", ("i32", "i32"), "i32", f"divided(a, b, {signed}, {rest}, {rounding}, got)")
        for op, signed, rest, rounding in (("divsi", "true", "false", 0), ("floordivsi", "true", "false", 1),
                                           ("ceildivsi", "true", "false", 2), ("divui", "false", "false", 0),
                                           ("remsi", "true", "true", 0), ("remui", "false", "true", 0))
    ),
    _case("div", "arith.divf", F2, "f32", f"rounded(static_cast<double>({X}) / {Y})"),
    _case("reciprocal", "reciprocal", F1, "f32", f"rounded(1.0 / {X})"),
    _case("rsqrt", "math.rsqrt", F1, "f32", f"rounded(1.0 / std::sqrt(static_cast<double>({X})))"),
    *(
        _case(name, f"math.{name}", F1, "f32", f"rounded(std::{name}(static_cast<double>({X})))")
        for name in APPROXIMATED if name != "rsqrt"
    ),
    _case("sqrt", "math.sqrt", F1, "f32", f"as_bits(std::sqrt({X}))"),
]  # fmt: skip

WORST_ULP = {**APPROXIMATED, "reciprocal": 2}
"""What a core may be off by; the others equal the host bit for bit."""
