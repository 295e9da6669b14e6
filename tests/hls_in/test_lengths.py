"""Scalar arguments that end loops or move addresses: values with which a source stays in its arrays."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fence import read_sources
from penstock.profiling.kernels.explore.compare import arguments_of, compare_sources
from penstock.profiling.kernels.lengths import Lengths

SCALED = """
void top(const int a[64], int b[64], int n) {
  for (int i = 0; i < n; i++) {
#pragma HLS LOOP_TRIPCOUNT max=64
    b[i] = a[i] * 3;
  }
}
"""


def drawn(tmp_path: Path, text: str) -> list[dict[str, int]]:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    return Lengths(read_kernel(path, "top")).drawn(0)


def held(tmp_path: Path, text: str, other: str | None = None) -> tuple[int, int]:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    return compare_sources(read_sources(path), "top", other or text, tuple(arguments_of(path, "top")))


def test_a_bound_goes_as_far_as_its_pragma_says(tmp_path: Path) -> None:
    most, other = drawn(tmp_path, SCALED)
    assert most == {"n": 64}
    assert 0 < other["n"] < 64


@pytest.mark.parametrize(
    ("says", "most"),
    [
        ("", 128),  # the shortest array, though the pragma says more
        ("assert(n <= 100);", 100),
        ("assert(n % 32 == 0 && n < 128);", 96),
        ("n = n * 2;", 64),
        ("n += 8;", 120),
    ],
)
def test_arrays_asserts_and_sums_bound_it_too(says: str, most: int, tmp_path: Path) -> None:
    text = f"""#include <cassert>
void top(const float a[200], float b[128], int n) {{
  {says}
  for (int i = 0; i < n; i++) {{
#pragma HLS LOOP_TRIPCOUNT max=1024
    b[i] = a[i] + 1;
  }}
}}
"""
    assert drawn(tmp_path, text)[0] == {"n": most}
    compared, different = held(tmp_path, text)
    assert compared >= 328
    assert different == 0


def test_two_lengths_and_a_place_are_found_together(tmp_path: Path) -> None:
    text = """#include <cassert>
void top(const int a[256], int b[256], int rows, int columns, int first, int other, bool up) {
  assert(rows == columns);
  for (int i = 0; i < rows; i++) {
#pragma HLS LOOP_TRIPCOUNT max=40
    for (int j = 0; j < columns; j++) {
#pragma HLS LOOP_TRIPCOUNT max=40
      b[i * columns + j] = a[first + j] + (up ? other : 0);
    }
  }
}
"""
    most, smaller = drawn(tmp_path, text)
    assert most["rows"] == most["columns"] == 16
    assert 0 <= most["first"] <= 240
    assert set(most) == {"rows", "columns", "first"}
    assert smaller["rows"] == smaller["columns"] < 16
    assert held(tmp_path, text)[1] == 0


def test_a_count_that_goes_down_and_a_product_of_two(tmp_path: Path) -> None:
    text = """
void top(const int a[256], int b[256], unsigned char size, short last) {
  for (int i = size * size - 1; i >= 0; i--) {
#pragma HLS LOOP_TRIPCOUNT max=256
    b[i] = a[i] + 1;
  }
  for (int i = 4; i <= last; i += 4) {
#pragma HLS LOOP_TRIPCOUNT max=10
    b[i] += 2;
  }
}
"""
    most = drawn(tmp_path, text)[0]
    assert most["size"] == 16
    assert 40 <= most["last"] < 44


def test_every_turn_is_compared(tmp_path: Path) -> None:
    compared, different = held(tmp_path, SCALED, SCALED.replace("* 3", "* 5"))
    assert compared == 258  # both sets
    assert different > 100


def test_smaller_values_that_leave_variables_unwritten_are_passed_over(tmp_path: Path) -> None:
    text = """
void top(const int a[256], int b[256], int size) {
  int kept[16][16];
  for (int i = 0, r = 0, c = 0; i < size * size; i++, c++) {
#pragma HLS LOOP_TRIPCOUNT max=256
    if (c == size) { c = 0; r++; }
    kept[r][c] = a[i];
  }
  for (int r = 0; r < size; r++) {
#pragma HLS LOOP_TRIPCOUNT max=16
    for (int c = 0; c < size; c++) {
#pragma HLS LOOP_TRIPCOUNT max=16
      int sum = 0;
      for (int k = 0; k < 16; k++) sum += kept[r][k] * kept[k][c];
      b[r * 16 + c] = sum;
    }
  }
}
"""
    assert drawn(tmp_path, text)[0] == {"size": 16}
    compared, different = held(tmp_path, text, text.replace("kept[16][16]", "kept[16][16], more[99]"))
    assert compared == 513
    assert different == 0


def test_bounds_that_nothing_satisfies_are_refused(tmp_path: Path) -> None:
    text = SCALED.replace("int n) {", "int n) {\n  assert(n > 64);").replace("\nvoid", "#include <cassert>\nvoid")
    with pytest.raises(PenstockError, match="no values of n were found") as caught:
        drawn(tmp_path, text)
    assert (caught.value.code, caught.value.where) == ("no-values", "kernel.cpp:4:3")


def test_arguments_that_bound_nothing_may_be_any_number(tmp_path: Path) -> None:
    assert drawn(tmp_path, "void top(int a[8], int by) {\n  for (int i = 0; i < 8; i++) a[i] *= by;\n}\n") == []
