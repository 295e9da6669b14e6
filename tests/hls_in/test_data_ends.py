"""Loops that a number of the top ends: their values, as far as they go round."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.timed import time_kernel
from penstock.profiling.kernels.values import check_values

SOURCES = {
    "vector": """
void top(const int a[64], int b[64], int n) {
  for (int i = 0; i < n; i++) {
#pragma HLS LOOP_TRIPCOUNT max=64
#pragma HLS PIPELINE II=1
    b[i] = a[i] * 3;
  }
}
""",
    "rows and columns": """
static float dot(const float x[16], const float y[16], int m) {
  float sum = 0;
  for (int k = 0; k < m; k++) {
#pragma HLS LOOP_TRIPCOUNT max=16
    sum += x[k] * y[k];
  }
  return sum;
}
void top(const float a[8][16], const float x[16], float b[8], float c[8], unsigned char n, int m) {
  int i;
  for (i = 0; i < n; i++) {
#pragma HLS LOOP_TRIPCOUNT max=8
    b[i] = dot(a[i], x, m);
  }
  if (i > 3) c[0] = i;
  for (i = 7; i >= n; i--) {
#pragma HLS LOOP_TRIPCOUNT max=8
    c[i] = a[i][0] + 1;
  }
}
""",
    "loops around loops": """
void top(int b[8][16], int c[8], int n, int m) {
  for (int i = 0; i <= n - 1; i++) {
#pragma HLS LOOP_TRIPCOUNT max=8
    int most = 0;
    for (int j = 0; j < m; j++) {
#pragma HLS LOOP_TRIPCOUNT max=16
      most = b[i][j] > most ? b[i][j] : most;
    }
    c[i] = most;
    for (int j = 0; j < 16; j++) b[i][j] -= c[i];
  }
}
""",
    "unrolled": """
void top(const int a[64], int b[64], int n) {
#pragma HLS ARRAY_PARTITION variable=b cyclic factor=4
  for (int i = 0; i < n; i++) {
#pragma HLS LOOP_TRIPCOUNT max=64
#pragma HLS UNROLL factor=4
    b[i] += a[i];
  }
}
""",
}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_values_are_the_source_s_for_all_lengths(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCES[name])
    for seed in range(3):
        found = check_values(path, "top", seed=seed)
        assert found.equal, found.to_json()
        assert found.rolled


def test_hardware_has_them_too(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCES["vector"])
    found = check_values(path, "top", rtl=True)
    assert found.equal, found.to_json()


def test_cycles_are_those_of_the_longest_run(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCES["vector"])
    ends = time_kernel(read_kernel(path, "top"), delays_for(300))
    path.write_text(SOURCES["vector"].replace("i < n", "i < 64"))
    whole = time_kernel(read_kernel(path, "top"), delays_for(300))
    assert [(s.ii, s.depth) for s in ends.schedules.values()] == [(s.ii, s.depth) for s in whole.schedules.values()]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("i < n", "i < a[n & 7]"), "a loop over 'i' that data end"),
        (("i = 0", "i = n - 64"), "a loop over 'i' that data end"),
        (("b[i] = a[i] * 3", "b[a[i] & 63] = 3"), "an address that is not linear"),
    ],
)
def test_what_is_left_is_refused_for_its_own_reason(change: tuple[str, str], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCES["vector"].replace(*change))
    with pytest.raises(PenstockError, match=reason):
        check_values(path, "top")
