"""Functions that a pragma makes one pipeline, without a loop around."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.to_nests import nests_of_kernel
from penstock.profiling.kernels.analysis import analyse_kernel
from penstock.profiling.kernels.values import check_values

SORT = """
template <typename T> void ordered(T &a, T &b, bool up) {
#pragma HLS INLINE
  if ((a > b) == up) { T t = a; a = b; b = t; }
}
void top(const int in[8], int out[8]) {
#pragma HLS ARRAY_PARTITION variable=in complete
#pragma HLS ARRAY_PARTITION variable=out complete
#pragma HLS PIPELINE II=1
  int a[8];
#pragma HLS ARRAY_PARTITION variable=a complete
  for (int i = 0; i < 8; i++) a[i] = in[i];
  for (int k = 2; k <= 8; k *= 2)
    for (int j = k / 2; j > 0; j /= 2)
      for (int i = 0; i < 8; i++)
        if ((i ^ j) > i) ordered(a[i], a[i ^ j], (i & k) == 0);
  for (int i = 0; i < 8; i++) out[i] = a[i];
}
"""


def test_what_a_pipelined_function_leaves_in_registers_is_seen_outside(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SORT)
    check = check_values(path, "top")
    assert check.equal
    assert all(level.compared == 8 for level in check.levels)


def test_a_pipelined_function_begins_a_run_every_ii_cycles(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SORT)
    analysis = analyse_kernel(path, "top")
    assert (analysis.interval, (analysis.latency or 0) > 1) == (1, True)
    path.write_text(SORT.replace("variable=in complete", "variable=in cyclic factor=2"))  # four words at a time
    assert analyse_kernel(path, "top").interval == 2


def test_a_kernel_that_writes_nothing_has_no_nests(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("void top(const int in[8]) { int a[8]; for (int i = 0; i < 8; i++) a[i] = in[i] * 3; }")
    with pytest.raises(PenstockError, match="changes nothing that is seen outside") as refused:
        nests_of_kernel(read_kernel(path, "top"))
    assert refused.value.where.startswith("kernel.cpp:1:")


def test_what_nests_do_not_have_is_refused_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include "ap_int.h"
    void top(const ap_uint<256> in[8], int out[8]) {
      for (int i = 0; i < 8; i++) out[i] = in[i][i];
    }""")
    with pytest.raises(PenstockError, match="integers of 256 bits") as refused:
        nests_of_kernel(read_kernel(path, "top"))
    assert refused.value.where == "kernel.cpp:2:33"
    path.write_text("""void top(const int at[4], int out[8]) {
      out[at[0] & 7] = 1;
      out[at[1] & 7] += 2;
    }""")
    with pytest.raises(PenstockError, match="address that is not linear") as refused:
        nests_of_kernel(read_kernel(path, "top"))
    assert refused.value.where == "kernel.cpp:2:1"


def test_numbers_that_the_top_gives_by_reference_are_results(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""void inner(int v, int &s) { s = v * 3; }
    int top(const int a[8], const int &by, int &sum, float &last, int &third) {
      sum = 0;
      for (int i = 0; i < 8; i++) sum += a[i] * by;
      if (sum > 20) last = sum * 0.5f; else last = 2;
      inner(sum, third);
      return 0;
    }""")
    check = check_values(path, "top", sets=3)
    assert check.equal
    assert [level.compared for level in check.levels] == [12, 12]  # what it returns is one, too
