"""The table of number types, and what keeps a list of its own because it is shipped without the compiler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, TensorType, VectorType, bf16, f16, f32, f64, i8

from penstock.compiler.backend.rtl.numbers import type_range
from penstock.compiler.errors import PenstockError
from penstock.compiler.runtime.penstock_runtime import words
from penstock.compiler.scalars.number_types import LISTED, NumberType, named, number_type


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row.name)
def test_a_row_agrees_with_itself(row: NumberType) -> None:
    assert named(row.name) is row
    assert row.dtype.itemsize * 8 >= row.bits
    assert row.is_float == (row.dtype.kind == "f") == (row.sv == "pattern")
    assert row.is_float or not row.is_sent or row.is_native or row.bits < 8, "hosts send whole elements"


@given(st.integers(1, 64))
def test_integers_of_every_width_follow_one_rule(bits: int) -> None:
    row = named(f"i{bits}")
    low, high = row.extremes if bits > 1 else (0, 1)
    kept = np.array([low, high]).astype(row.dtype)
    assert [int(n) for n in kept] == [low, high], "what numpy holds it in has room for all of its values"
    assert (type_range(IntegerType(bits)).low, row.sv) == (row.extremes[0], "signed")
    assert row.cpp in ("bool", f"int{bits}_t", f"ap_int<{bits}>")


def test_types_are_found_by_what_the_ir_has() -> None:
    word = VectorType(i8, [4])
    found = [number_type(kind).name for kind in (f16, f32, f64, IndexType(), i8, word, MemRefType(word, [3]))]
    assert found == ["f16", "f32", "f64", "index", "i8", "i8", "i8"]
    assert number_type(TensorType(IntegerType(4), [2, 2])).cpp == "ap_int<4>"
    with pytest.raises(PenstockError, match="no numpy type holds bf16"):
        number_type(bf16)


def test_the_runtime_knows_the_width_of_all_that_may_be_sent() -> None:
    """It is shipped with a package, so it cannot import the table."""
    for row in LISTED:
        if row.is_sent or row.name in words.BITS:
            assert words.element_bits(row.name) == row.bits, row.name
    assert set(words.BITS) <= {row.name for row in LISTED}
