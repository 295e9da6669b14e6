"""Loops that end early, and heads that leave something out: `break`, `while`, `do`, `for (;;)`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.schedule import ScheduledPipeline
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.simulator import VITIS, simulate
from penstock.profiling.kernels.values import check_values


def _cycles(path: Path) -> int:
    latency = simulate(time_kernel(read_kernel(path, "top"), delays_for(300)).design, VITIS).latency
    assert latency is not None
    return latency


LEFT = """
void top(const int a[32], int o[8], int p[32]) {
  int at = -1;
  for (int i = 0; i < 32; i++) { if (a[i] == 3) { at = i; break; } }
  o[0] = at;
  int k = 0;
  while (k < 12) { p[k] = a[k] * 2; k++; }
  o[1] = k;
  int j = 2;
  for (; j < 9; j++) p[j + 12] = a[j] + 1;
  o[2] = j;
  int t = 0;
  for (int i = 0; i < 16; i++) {
    if (a[i] < -5) continue;
    if (a[i] == 5) break;
    t += a[i];
    if (t > 20) { t -= 3; break; }
    p[i] = t;
  }
  o[3] = t;
  int n = 0;
  for (int b = 1; b < 32; b += b) n++;

  int q = 0, step = 0;
  for (q = 16; q; q >>= 1, step++) n += q * a[7];
  o[4] = n;
  o[5] = step + q;
  int left = 7, sum = 0;
  while (left--) sum++;
  while (left < 0) { sum += 10; left++; }
  o[6] = sum;
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < 8; i++) {
      if (a[i + 8 * r] > 4) break;
      p[i + 8 * r] = r;
    }
  o[7] = sum;
}
"""


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    return path


def _loops(path: Path) -> list[tuple[Pipeline, ScheduledPipeline]]:
    found = time_kernel(read_kernel(path, "top"), delays_for(300)).schedules.items()
    return [(item, made) for item, made in found if isinstance(item, Pipeline)]


def test_loops_that_end_early_compute_what_the_compiler_makes_of_them(tmp_path: Path) -> None:
    found = check_values(_write(tmp_path, LEFT), "top", sets=3)
    assert [(level.level, level.first) for level in found.levels] == [("interpreter", ""), ("emitted C++", "")]


def test_a_loop_that_break_leaves_takes_its_longest_run(tmp_path: Path) -> None:
    trips = [[counter.trip for counter in item.counters] for item, _ in _loops(_write(tmp_path, LEFT))]
    assert trips == [[32], [12], [7], [16], [5], [5], [7], [8]]  # the last is not flattened with the loop around it


def test_whiles_that_data_end_go_round_as_often_as_a_pragma_says(tmp_path: Path) -> None:
    path = _write(tmp_path, """
void top(const int a[32], int o[4], int n) {
  int i = 0, s = 0;
  while (s < n) {
#pragma HLS LOOP_TRIPCOUNT min=2 max=32
    s += a[i & 31];
    i++;
  }
  do {
#pragma HLS LOOP_TRIPCOUNT max=16
#pragma HLS PIPELINE II=3
    s -= a[i & 31];
  } while (s > 0);
  for (;;) {
#pragma HLS LOOP_TRIPCOUNT max=8
    if (s > 100) break;
    s += 7;
  }
  o[0] = s;
}
""")  # fmt: skip
    assert [(item.iterations, found.ii) for item, found in _loops(path)] == [(32, 1), (16, 3), (8, 1)]
    with pytest.raises(PenstockError) as raised:
        check_values(path, "top")
    assert raised.value.where == "kernel.cpp:4:3"
    assert "a while loop that data end" in raised.value.what


def test_each_loop_that_cannot_be_read_is_said_with_its_place(tmp_path: Path) -> None:
    path = _write(tmp_path, """void top(const int a[32], int o[4]) {
  int s = 0, i = 0;
  while (a[i] != 0) { s += a[i]; i = a[i] & 31; }
  do { if (s == 3) continue; s++; } while (s < 5);
  switch (s) { case 1: if (i) break; s = 4; break; default: s = 2; break; }
  for (;;) s++;
  o[0] = s;
}
""")  # fmt: skip
    with pytest.raises(PenstockError) as raised:
        read_kernel(path, "top")
    said = {error.where: error for error in (raised.value, *raised.value.others)}
    assert set(said) == {f"kernel.cpp:{place}" for place in ("3:3", "4:3", "5:3", "6:3")}
    assert "LOOP_TRIPCOUNT" in str(said["kernel.cpp:3:3"].hint)
    assert all(error.hint for error in said.values())


def test_bounds_that_the_loop_around_loads_are_read_where_they_are_loaded(tmp_path: Path) -> None:
    """Rows of a sparse matrix."""
    path = _write(tmp_path, """
void top(const float val[100], const int cols[100], const int rows[17], const float x[64], float y[16]) {
  for (int i = 0; i < 16; i++) {
    float sum = 0;
    int begin = rows[i], end = rows[i + 1];
    for (int j = begin; j < end; j++) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=10 avg=4
      sum += val[j] * x[cols[j]];
    }
    y[i] = sum;
  }
}
""")  # fmt: skip
    [(item, found)] = _loops(path)
    assert ([counter.trip for counter in item.counters], found.ii) == ([10], 7)


@pytest.mark.parametrize("row", ["int row = i * 64;", "row = i * 64;"])
def test_a_row_that_stands_still_in_the_inner_loop_is_an_address_that_is_known(tmp_path: Path, row: str) -> None:
    """c[row + j] is met again a row of the outermost loop later, not in the next iteration."""
    path = _write(tmp_path, f"""
void top(const float a[4096], float c[4096]) {{
  int row{"_" * row.startswith("int")};
  for (int k = 0; k < 8; k++)
    for (int i = 0; i < 64; i++) {{
      {row}
      for (int j = 0; j < 64; j++)
        c[row + j] += a[row + j];
    }}
}}
""")  # fmt: skip
    [(item, found)] = _loops(path)
    assert (item.iterations, found.ii) == (8 * 64 * 64, 1)
    assert check_values(path, "top").equal


def test_a_loop_around_others_that_break_leaves_goes_round_to_its_end(tmp_path: Path) -> None:
    """A sort that ends when nothing was swapped; rows by pointers, and one that memcpy fills in a function."""
    path = _write(tmp_path, """#include <string.h>
static void fetch(int to[16], const int *from) { memcpy(to, from, 16 * sizeof(int)); }
void top(const int a[8][16], int o[16]) {
  for (int i = 0; i < 8; i++) {
    int row[16], more = 0;
    fetch(row, a[i]);
    const int *same = a[i];
    for (int j = 0; j < 16; j++) {
      if (row[j] > o[j]) { o[j] = same[j]; more = 1; }
    }
    if (!more) break;
  }
}
""")  # fmt: skip
    kernel = read_kernel(path, "top")
    loops = [[counter.trip for counter in item.counters] for item, _ in _loops(path)]
    assert loops == [[16], [16]]
    assert kernel.notes == ["loops around others that break leaves go round to their end"]
    with pytest.raises(PenstockError, match="a loop around others that break leaves"):
        check_values(path, "top")


def test_a_loop_under_a_condition_is_counted(tmp_path: Path) -> None:
    """Neighbours of the nodes of a level, as a search through a graph visits them."""
    text = """
void top(const int begin[33], const int edge[128], int level[32]) {
  for (int n = 0; n < 32; n++) {
    if (level[n] == 3) {
      int from = begin[n], to = begin[n + 1];
      for (int k = from; k < to; k++) {
#pragma HLS LOOP_TRIPCOUNT max=8
        level[edge[k] & 31] = 4;
      }
    }
  }
}
"""
    path = _write(tmp_path, text)
    [(item, found)] = _loops(path)
    assert (item.iterations, found.ii) == (8, 1)
    assert "loops under conditions are counted as if these always held" in read_kernel(path, "top").notes
    with pytest.raises(PenstockError, match="a loop under a condition"):
        check_values(path, "top")
    turns = [
        _cycles(_write(tmp_path, text.replace(
            "    }\n  }\n}", f"    }} else for (int k = 0; k < {n}; k++) level[k] = 0;\n  }}\n}}"
        ))) for n in (3, 4, 20)
    ]  # fmt: skip
    assert turns[0] == turns[1] < turns[2]
    assert "of two branches with loops the longer one is counted" in read_kernel(path, "top").notes


def test_a_function_with_loops_under_a_condition_has_no_values(tmp_path: Path) -> None:
    path = _write(tmp_path, """static void fill(int o[8], int v) { for (int i = 0; i < 8; i++) o[i] = v; }
    void top(const int a[2], int o[8]) {
      fill(o, 1);
      if (a[0] > 100) fill(o, 2);
      o[0] = a[1] > 100 ? 3 : 4;
    }""")  # fmt: skip
    assert "loops under conditions are counted as if these always held" in read_kernel(path, "top").notes
    with pytest.raises(PenstockError, match="a loop under a condition") as refused:
        check_values(path, "top")
    assert refused.value.where == "kernel.cpp:4:7"


def test_a_flag_that_a_loop_sets_chooses_anew_in_each_turn(tmp_path: Path) -> None:
    text = """static void copy(const int a[8], int o[8]) { for (int i = 0; i < 8; i++) o[i] = a[i]; }
    static void slow(const int a[8], int o[8]) { for (int i = 0; i < 8; i++) o[i] = a[i] / (a[0] | 1); }
    void top(int a[8], int o[8]) {
      int turned = 0;
      for (int t = 0; t < 4; t++) {
        if (turned == 0) { copy(a, o); turned = 1; }
        else { %s(o, a); turned = 0; }
      }
    }"""
    fast, long = (_cycles(_write(tmp_path, text % name)) for name in ("copy", "slow"))
    assert long > fast


def test_a_function_that_is_left_early_may_call_others_behind_that(tmp_path: Path) -> None:
    """As corners of a triangle are looked at, beside the loop over its pixels."""
    path = tmp_path / "kernel.cpp"
    path.write_text("""
static int least(int a, int b) { return a < b ? a : b; }
static bool clipped(int a, int *to) {
  if (a < 0) return true;
  *to = least(a, 9);
  return false;
}
void top(const int a[8], int b[8][4]) {
  for (int i = 0; i < 8; i++) {
    int v = -1;
    bool over = clipped(a[i], &v);
    for (int j = 0; j < 4; j++) b[i][j] = over ? j : v + j;
  }
}
""")
    assert check_values(path, "top").equal


@pytest.mark.parametrize("step", ["v = a[i];", "v += a[i];", "v = v - a[i];", "v = in.read();"])
def test_a_while_over_what_is_read_anew_goes_round_as_a_pragma_says(step: str, tmp_path: Path) -> None:
    """The last statement of its body sets the variable that ends it, but does not count: nothing is known of it."""
    path = _write(tmp_path, f"""
#include <hls_stream.h>
void top(const int a[64], hls::stream<int> &in, int o[1]) {{
  int s = 0, i = 0, v = a[0];
  while (v != -1) {{
#pragma HLS LOOP_TRIPCOUNT max=64
    s += v;
    i++;
    {step}
  }}
  o[0] = s;
}}
""")  # fmt: skip
    assert [item.iterations for item, _ in _loops(path)] == [64]
