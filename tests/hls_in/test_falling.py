"""Loops that count down, and what small helpers around loops give."""

from __future__ import annotations

from pathlib import Path

from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.timed import time_kernel
from penstock.profiling.kernels.values import check_values


def test_addresses_fall_while_loops_count(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""void top(const int a[16], int o[16], int p[16]) {
      int s[16];
      for (int i = 0; i < 16; i++) s[i] = a[i];
      for (int i = 14; i >= 0; i--) s[i] = s[i] + s[i + 1] * 3;
      for (int i = 15; i > 0; i--) s[i] = s[i - 1] - a[15 - i];
      for (int i = 0; i < 16; i++) { o[15 - i] = s[i]; p[i] = s[15 - i]; }
    }""")
    check = check_values(path, "top", rtl=True)
    assert check.equal, check.levels
    assert [level.level for level in check.levels] == ["interpreter", "emitted C++", "SystemVerilog"]


ROUND = """#include <stdint.h>
static uint8_t turned(uint8_t x) {
  uint8_t y = x;
  for (int i = 0; i < 4; i++) { y = (y << 1) | (y >> 7); x ^= y; }
  return x ^ 0x63;
}
void top(uint8_t buf[16], const uint8_t key[16]) {
#pragma HLS ARRAY_PARTITION variable=buf cyclic factor=2
  uint8_t i = 16;
  while (i--) buf[i] = turned(buf[i]);
  for (i = 0; i < 16; i++) buf[i] ^= key[i];
}
"""


def test_what_a_helper_computes_after_its_loop_is_known_outside(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(ROUND)
    assert check_values(path, "top").equal
    assert time_kernel(read_kernel(path, "top"), delays_for(300)).schedules  # words outside of loops have banks too


def test_a_source_may_call_its_macros_as_it_likes(tmp_path: Path) -> None:
    """Headers of C++ use names that no program may have."""
    path = tmp_path / "kernel.cpp"
    names = ["N", "T", "W", "I", "A", "B", "D", "U", "Q", "O", "S", "X", "Y", "C", "K", "M", "DEPTH"]
    path.write_text(
        "".join(f"#define {name} {at}\n" for at, name in enumerate(names, 4))
        + """#include "ap_int.h"
        #include "ap_fixed.h"
        #include "ap_axi_sdata.h"
        #include "hls_math.h"
        #include "hls_stream.h"
        #include "hls_streamofblocks.h"
        #include "hls_vector.h"
        void top(const int a[N], int o[N]) {
          for (int i = 0; i < N; i++) o[i] = ap_int<9>(a[i]) + hls::max(W, a[i]);
        }"""
    )
    assert check_values(path, "top").equal
