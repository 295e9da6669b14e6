"""The matrix of scalar operations: whatever a model may contain has all that it needs, or its hole is named here."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i1, i8, i32
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Operation

from penstock.compiler.backend.hls.emit import operations_header
from penstock.compiler.backend.hls.scalar_cpp import expression_of
from penstock.compiler.backend.rtl.primitives import find_primitive, rom_of
from penstock.compiler.backend.rtl.scalar_sv import SPELLINGS
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.bounds import Bounds
from penstock.compiler.scalars.expansions import EXPANSIONS
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.scalars.operations import BY_NAME, OPERATIONS, ScalarOperation, evaluate
from penstock.compiler.schedule import library_names, load_library
from penstock.dse.evaluation.energy import energy_table
from penstock.profiling.csim import FLAGS, find_compiler

INCLUDE = Path(__file__).resolve().parents[2] / "compiler/backend/hls/include"
DOUBLE = {"arith.extf", "arith.truncf"}
KNOWN_HOLES = {
    "C++": {"arith.floordivsi", "arith.ceildivsi", "arith.index_cast"},
    "SystemVerilog": DOUBLE,
    "timing in open-ecp5": DOUBLE,
    "timing in vitis-ultrascale-plus": {"arith.floordivsi", "arith.ceildivsi"},
}
"""Where a model with such an operation is refused by its name. A hole that is filled leaves this list."""


def operation(row: ScalarOperation, kind: Attribute | None = None) -> Operation:
    """One on values that nothing is known of."""
    kind = kind or (f32 if makes_floats(row) else i32)
    result = i1 if row.kind in (arith.CmpiOp, arith.CmpfOp) else kind
    if row.kind is LookUpOp:
        return LookUpOp(AnyOp(result_types=[i8]).results[0], range(256), i32)
    operands = AnyOp(result_types=[kind] * 3).results[: inputs_of(row)]
    return row.kind.create(operands=operands, result_types=[result])


def inputs_of(row: ScalarOperation) -> int:
    if row.name in ("arith.select", "math.fma"):
        return 3
    pairs = row.traps or row.by_constant or row.promotes or isinstance(row.cpp, tuple) or "{1}" in (row.cpp or "")
    return 2 if pairs or row.name in ("math.copysign", "math.powf", "math.fpowi") else 1


def makes_floats(row: ScalarOperation) -> bool:
    functions = row.name.startswith("math.") and row.name != "math.absi"
    return functions or (row.name.endswith(("f", "fp", "bitcast", "select")) and row.name != "arith.cmpf")


def holes(row: ScalarOperation) -> list[str]:
    """What an operation lacks. One that is written out before a design is made needs a meaning and a bound."""
    if row.kind in EXPANSIONS:
        return [] if row.bounds is not None else ["a padding rule"]
    found = ["C++"] if row.cpp is None else []
    found += ["SystemVerilog"] if not has_hardware(row) else []
    for name in library_names():
        timed = row.operator is None or load_library(name, 100.0).knows(row.operator or row.name)
        found += [] if timed else [f"timing in {name}"]
    found += ["a padding rule"] if makes_floats(row) and row.bounds is None else []
    return found + ([] if energy_table().operation_pj(operation(row)) > 0 else ["energy"])


def has_hardware(row: ScalarOperation) -> bool:
    if row.name in SPELLINGS or row.kind is arith.ConstantOp:
        return True
    if isinstance(made := operation(row), LookUpOp):
        return "module entries" in rom_of(made).module("entries")
    whole, real = ("i32",) * inputs_of(row), ("f32",) * inputs_of(row)
    for operands, result in ((real, "f32"), (whole, "i32"), (real, "i32"), (whole, "f32")):
        try:
            return find_primitive(row.name, operands, result, {"predicate": "1"}) is not None
        except PenstockError:
            continue
    return False


@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_no_operation_has_a_hole_that_is_not_known(row: ScalarOperation) -> None:
    known = [name for name, names in KNOWN_HOLES.items() if row.name in names]
    assert sorted(holes(row)) == sorted(known), f"{row.name} lacks {holes(row)}, known is {known}"


def test_the_walk_finds_every_kind_of_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    class New(AnyOp):
        name = "math.new"

    row = ScalarOperation(New, lambda op, operands: operands[0])  # type: ignore[arg-type]
    monkeypatch.setitem(OPERATIONS, New, row)  # type: ignore[arg-type]
    assert {*holes(row)} == {*KNOWN_HOLES, "a padding rule"}


NUMBERS = st.floats(-12, 12, width=32)


@settings(max_examples=60)
@given(st.lists(st.tuples(NUMBERS, st.floats(0, 3), st.floats(0, 3)), min_size=3, max_size=3))
def test_padding_rules_hold_for_all_numbers_between_their_bounds(drawn: Sequence[tuple[float, float, float]]) -> None:
    """Also of those functions that nobody has thought of yet."""
    around = [Bounds(x - below, x + above) for x, below, above in drawn]
    for row in OPERATIONS.values():
        if row.bounds is None or row.kind in (arith.SelectOp, arith.BitcastOp, arith.SIToFPOp, arith.UIToFPOp):
            continue
        count = inputs_of(row)
        said = row.bounds(around[:count])
        got = float(evaluate(operation(row), [np.asarray(x, np.float32) for x, _, _ in drawn[:count]]))
        if said is not None and not math.isinf(got):  # how large an unbounded number may become is not looked at
            slack = 1e-4 + 1e-6 * abs(got)
            assert said.low - slack <= got <= said.high + slack, (row.name, drawn, said, got)


SPECIAL = [0.0, -0.0, 0.5, 1.0, 1.5, 2.0, -2.5, 3.7, -7.25, 10.0, 88.0, 1e-3, -1e-3, math.inf, -math.inf, math.nan]


def test_functions_in_cpp_are_the_interpreters(tmp_path: Path) -> None:
    """Every function of one float, by the header and the expression that are emitted."""
    rows = [row for row in OPERATIONS.values() if row.host is not None or row.name in ("arith.negf", "math.trunc")]
    rows = [row for row in rows if row.cpp is not None]
    lines = "\n".join(
        f'for (float x : xs) {{ float y = {expression_of(operation(row), ["x"])}; std::printf("%.9g\\n", y); }}'
        for row in rows
    )
    numbers = ", ".join("NAN" if x != x else f"{x}f" if abs(x) < 1e9 else ("-" * (x < 0)) + "INFINITY" for x in SPECIAL)
    (tmp_path / "penstock_ops.h").write_text(operations_header())
    (tmp_path / "t.cpp").write_text(
        f'#include <cstdio>\n#include "penstock_ops.h"\nint main() {{\nconst float xs[] = {{{numbers}}};\n{lines}\n}}\n'
    )
    build = [find_compiler(), *FLAGS, "-I", ".", "-I", str(INCLUDE), "t.cpp", "-o", "t"]
    subprocess.run(build, cwd=tmp_path, check=True)
    printed = subprocess.run(["./t"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    got: Any = np.array([np.float32(text) for text in printed]).reshape(len(rows), len(SPECIAL))
    assert len(rows) >= 11
    for row, values in zip(rows, got, strict=True):
        wanted = evaluate(operation(row), [np.array(SPECIAL, np.float32)])
        assert np.allclose(values, wanted, rtol=2e-7, atol=0, equal_nan=True), row.name


def test_names_are_those_of_the_ir() -> None:
    assert BY_NAME["math.exp"].kind.name == "math.exp"
    assert len(BY_NAME) == len(OPERATIONS)
