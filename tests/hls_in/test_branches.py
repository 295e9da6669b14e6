"""Streams that both branches of a condition on data meet: they are met in any case."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.simulator import VITIS, simulate
from penstock.profiling.kernels.values import check_values

SOURCE = """#include "hls_stream.h"
static void split(const int a[32], hls::stream<int> &s, hls::stream<int> &t) {
  for (int i = 0; i < 32; i++) {
#pragma HLS PIPELINE II=1
    s.write(a[i]);
    t.write(i);
  }
}
static void keep(hls::stream<int> &s, hls::stream<int> &t, hls::stream<int> &o) {
  int largest = 0;
  for (int i = 0; i < 32; i++) {
#pragma HLS PIPELINE II=1
    int v = s.read();
    if (v > 4) {
      o.write(largest - t.read());
      largest = v;
    } else {
      int w = %s;
      if (v < 0) o << w * 2;
      else o.write(v);
    }
  }
}
static void store(hls::stream<int> &o, int b[32]) { for (int i = 0; i < 32; i++) b[i] = o.read(); }
void top(const int a[32], int b[32]) {
#pragma HLS DATAFLOW
  hls::stream<int> s, t, o;
  split(a, s, t);
  keep(s, t, o);
  store(o, b);
}
"""


def test_what_both_branches_read_and_write_is_one_token(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCE % "t.read()")
    check = check_values(path, "top")
    assert check.equal, check.levels
    latency = simulate(time_kernel(read_kernel(path, "top"), delays_for(300)).design, VITIS).latency
    assert latency is not None
    assert 32 < latency < 48


def test_what_one_branch_alone_does_depends_on_data(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCE % "v")
    with pytest.raises(PenstockError, match="under a condition that depends on data") as refused:
        time_kernel(read_kernel(path, "top"), delays_for(300))
    assert refused.value.where.startswith("kernel.cpp:14:")
