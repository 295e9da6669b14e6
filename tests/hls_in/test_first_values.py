"""What lies in memories from the start, and what follows where nobody writes them."""

from __future__ import annotations

from pathlib import Path

from penstock.compiler.hls_in.area import area_of
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.timed import time_kernel
from penstock.profiling.kernels.values import check_values


def dsps(path: Path) -> int:
    delays = delays_for(300)
    return area_of(time_kernel(read_kernel(path, "top"), delays), delays).dsp


def test_numbers_of_any_width_have_their_first_values(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include "ap_int.h"
    static ap_uint<9> wide[4] = {1, 2, 300, 4};
    const ap_int<9> fixed[4] = {-1, 2, -30, 4};
    ap_int<9> square[2][2] = {{-1, 2}, {-30, 4}};
    void top(const int a[4], int o[4]) {
      ap_int<9> own[4] = {5, 6, 7, 8};
      for (int i = 0; i < 4; i++) o[i] = a[i] + wide[i] * fixed[i] + own[i] + square[0][1];
    }""")
    assert check_values(path, "top").equal


WEIGHTS = """#include "ap_fixed.h"
ap_fixed<16, 6> w[4] = {0.5, -0.25, 1.5, %s};
ap_fixed<16, 6> kept[4] = {0.5, -0.25, 1.5, 3.14};
void top(const ap_fixed<16, 6> a[4], ap_fixed<32, 12> o[4]) {
#pragma HLS ARRAY_PARTITION variable=a complete
#pragma HLS ARRAY_PARTITION variable=o complete
#pragma HLS PIPELINE II=1
  for (int i = 0; i < 4; i++) o[i] = a[i] * w[i];
}
"""


def test_weights_that_nobody_writes_are_constants(tmp_path: Path) -> None:
    """A product by few binary digits is an addition or wires; by many it is one."""
    path = tmp_path / "kernel.cpp"
    path.write_text(WEIGHTS % "4")
    assert dsps(path) == 0
    path.write_text(WEIGHTS % "3.14")
    assert dsps(path) == 1
    written = (WEIGHTS % "3.14").replace("PIPELINE II=1", "PIPELINE II=1\n  w[0] = a[1];")
    path.write_text(written)
    assert dsps(path) == 4


def test_a_large_memory_that_lives_on_begins_with_zeros(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""
void top(const int a[64], int b[64]) {
  static int seen[8192];
  for (int i = 0; i < 64; i++) {
    seen[i * 100] += a[i];
    b[i] = seen[i * 100] + seen[i * 128 + 1];
  }
}
""")
    found = check_values(path, "top")
    assert found.equal, found.to_json()
