"""Operators of integers and doubles, as reports and generated files of the tool name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.area import area_of
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.timed import time_kernel


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    return path


def test_sums_of_integers_are_balanced(tmp_path: Path) -> None:
    """Sixty-four numbers in six levels of additions, not in sixty-four."""
    path = _write(tmp_path, """
void top(const int a[64][64], int b[64]) {
#pragma HLS array_partition variable=a complete dim=2
  for (int i = 0; i < 64; i++) {
#pragma HLS pipeline
    int s = 0;
    for (int j = 0; j < 64; j++) s += a[i][j];
    b[i] = s;
  }
}
""")  # fmt: skip
    [found] = time_kernel(read_kernel(path, "top"), delays_for(300)).schedules.values()
    assert found.depth <= 6


def test_a_product_of_integers_takes_a_stage_and_three_slices(tmp_path: Path) -> None:
    """mul_32s_32s_32_2_1 of the tool's reports; times 129 is an addition, times 8 are wires."""
    line = "void top(const int a[64], int b[64]) {{ for (int i = 0; i < 64; i++) b[i] = a[i] * {}; }}"
    seen: list[tuple[int, int]] = []
    for by in ("a[i]", "129", "8"):
        delays = delays_for(300)
        timed = time_kernel(read_kernel(_write(tmp_path, line.format(by)), "top"), delays)
        [found] = timed.schedules.values()
        seen.append((area_of(timed, delays).dsp, found.depth))
    assert seen == [(3, 4), (0, 3), (0, 3)]


def test_doubles_have_operators_and_what_has_none_is_said_with_its_place(tmp_path: Path) -> None:
    path = _write(tmp_path, """#include <hls_math.h>
void top(const double a[64], double b[64]) {
  double s = 0;
  for (int i = 0; i < 64; i++) s += a[i] * a[i];
  b[0] = s / 3.0 + sqrt(s);
}
""")  # fmt: skip
    timed = time_kernel(read_kernel(path, "top"), delays_for(300))
    [ii] = [found.ii for item, found in timed.schedules.items() if isinstance(item, Pipeline)]
    assert ii == 8  # seven stages, and one more
    path.write_text(path.read_text().replace("sqrt(s)", "log(s)"))
    with pytest.raises(PenstockError) as raised:
        time_kernel(read_kernel(path, "top"), delays_for(300))
    assert (raised.value.code, raised.value.where.split(":")[0]) == ("unsupported-source", "kernel.cpp")


def test_a_function_without_figures_is_refused_with_those_that_have_some(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include <hls_math.h>
    void top(const float a[8], float o[8]) { for (int i = 0; i < 8; i++) o[i] = hls::cosf(a[i]); }""")
    with pytest.raises(PenstockError, match=r"no figures for math\.cos") as refused:
        time_kernel(read_kernel(path, "top"), delays_for(300))
    assert refused.value.where.startswith("kernel.cpp:2:")
    assert "or write it with absf" in refused.value.hint
    assert "exp, " in refused.value.hint


def test_a_pointer_that_moves_is_named_where_it_does(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""void top(const int a[8], int o[8]) {
      const int *p = a;
      for (int i = 0; i < 8; i++) o[i] = *p++;
    }""")
    with pytest.raises(PenstockError, match="a pointer that moves is not supported") as refused:
        read_kernel(path, "top")
    assert refused.value.where == "kernel.cpp:3:43"
