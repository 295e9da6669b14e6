"""Every core with its reference on the host, for the bench."""

from __future__ import annotations

from compiler.backend.rtl.primitives import find_primitive
from tests.rtl.primitive_bench import Case


def _case(name: str, op: str, operands: tuple[str, ...], result: str, reference: str, **attributes: str) -> Case:
    core = find_primitive(op, operands, result, attributes)
    assert core is not None, op
    return Case(name, op, core, reference, is_float=result == "f32")


F1, F2 = ("f32",), ("f32", "f32")
X, Y = "flushed(a)", "flushed(b)"

CASES = [
    _case("add", "arith.addf", F2, "f32", f"rounded({X} + {Y})"),
    _case("sub", "arith.subf", F2, "f32", f"rounded({X} - {Y})"),
    _case("mul", "arith.mulf", F2, "f32", f"rounded(static_cast<double>({X}) * {Y})"),
    *(
        _case(f"muli_{a}_{b}_{y}", "arith.muli", (f"i{a}", f"i{b}"), f"i{y}", f"integer_product(a, b, {a}, {b}, {y})")
        for a, b, y in ((8, 8, 16), (18, 18, 36), (9, 17, 8), (32, 32, 64), (33, 9, 42), (32, 32, 32), (20, 36, 56),
                        (64, 64, 64), (12, 40, 52), (48, 48, 64))
    ),
]  # fmt: skip

WORST_ULP: dict[str, int] = {}
"""What a core may be off by; the others equal the host bit for bit."""
