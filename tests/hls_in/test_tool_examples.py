"""Kernels as the examples of tools and benchmark suites have them: each of these was once read wrongly, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Called, DataflowRegion, Pipeline, graphs
from penstock.compiler.hls_in.timed import Timed, time_kernel
from penstock.compiler.simulator import VITIS, simulate
from penstock.profiling.kernels.values import check_values


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    return path


def timed(path: Path) -> Timed:
    return time_kernel(read_kernel(path, "top"), delays_for(300))


TWO_OF_A_TEMPLATE = """
template <int K> int scaled(int x) { static int sum = 0; sum += x; return sum * K; }
template <int N> int last(const int *a) {
  int held[N];
  for (int i = 0; i < N; i++) held[i] = a[i] * N;
  int s = 0;
  for (int i = 0; i < N; i++) s += held[N - 1 - i] * i;
  return s;
}
void top(int x, const int a[9], int *out, int two[2]) {
  *out += scaled<1>(x) + scaled<2>(x) + scaled<3>(x);
  two[0] = last<5>(a);
  two[1] = last<9>(a);
}
"""


def test_functions_that_a_template_makes_have_memories_of_their_own(tmp_path: Path) -> None:
    check = check_values(written(tmp_path, TWO_OF_A_TEMPLATE), "top", sets=2)
    assert check.equal, check.levels
    sizes = [array.words for array in read_kernel(tmp_path / "kernel.cpp", "top").arrays if array.name == "held"]
    assert sorted(sizes) == [5, 9]


STAGES = """#include "hls_stream.h"
static void stages(hls::stream<int> &in, hls::stream<int> &out, const int *weights) {
#pragma HLS INLINE
  hls::stream<int> between;
  First: for (int i = 0; i < 100; i++) between.write(in.read() * weights[1]);
  Second: for (int i = 0; i < 100; i++) out.write(between.read() + 1);
}
void top(hls::stream<int> &in, hls::stream<int> &out) {
#pragma HLS DATAFLOW
  const int weights[4] = {3, 1, 4, 1};
  stages(in, out, weights);
}
"""


def test_loops_of_an_inlined_function_are_tasks_of_the_region_that_calls_it(tmp_path: Path) -> None:
    path = written(tmp_path, STAGES)
    (flow,) = read_kernel(path, "top").body
    assert isinstance(flow, DataflowRegion)
    assert [task.name for task in flow.tasks] == ["Loop_First_proc", "Loop_Second_proc"]
    result = simulate(timed(path).design, VITIS)
    assert result.latency < 150  # they run at the same time: else the first one fills its FIFO for ever
    assert check_values(path, "top").equal
    apart = written(tmp_path, STAGES.replace("#pragma HLS INLINE\n", ""))
    (flow,) = read_kernel(apart, "top").body
    assert isinstance(flow, DataflowRegion)
    assert [task.name for task in flow.tasks] == ["stages"]


@pytest.mark.parametrize(("said", "stays"), [("INLINE", False), ("INLINE off", True), ("", True)])
def test_inline_off_keeps_a_function_a_module(tmp_path: Path, said: str, *, stays: bool) -> None:
    pragma = f"#pragma HLS {said}\n" if said else ""
    path = written(
        tmp_path,
        f"""static int sum(const int a[8]) {{
{pragma}  int s = 0; for (int i = 0; i < 8; i++) s += a[i]; return s; }}
void top(const int a[8], int out[1]) {{ out[0] = sum(a); }}""",
    )
    assert any(isinstance(item, Called) for item in read_kernel(path, "top").body) is stays


def test_a_branch_that_an_unrolled_counter_leaves_out_meets_no_memory(tmp_path: Path) -> None:
    """The last of five taps is the new value: no bank has an access for it."""
    path = written(
        tmp_path,
        """void top(const int in[64], int out[64]) {
  int line[4][8];
#pragma HLS ARRAY_PARTITION variable=line dim=1 complete
  for (int r = 0; r < 8; r++) for (int c = 0; c < 8; c++) {
#pragma HLS PIPELINE
#pragma HLS DEPENDENCE variable=line inter false
    int sum = 0;
    for (int i = 0; i < 5; i++) {
      int tap = i < 4 ? line[i][c] : in[r * 8 + c];
      sum += tap;
      if (i > 0) line[i - 1][c] = tap;
    }
    out[r * 8 + c] = sum;
  }
}""",
    )
    (item,) = [one for one in graphs(read_kernel(path, "top").body) if isinstance(one, Pipeline)]
    loads = [n for n in item.graph.nodes if n.op == "load" and n.array is not None and n.array.name == "line"]
    assert len(loads) == 4
    assert [found.ii for found in timed(path).schedules.values()] == [1]


def test_a_number_by_reference_is_handed_on_by_its_address(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """#include <iostream>
static void total(const int a[8], int *into) {
  int s = 0;
  for (int i = 0; i < 8; i++) { std::cout << "a " << a[i] << std::endl; s += a[i]; }
  *into = s;
}
void top(const int a[8], int &out) { total(a, &out); }""",
    )
    assert check_values(path, "top").equal


TAKES_SIX = """#include "hls_stream.h"
static void pass(hls::stream<int> &in, hls::stream<int> &out) {
  for (int i = 0; i < 6; i++) out.write(in.read());
}
static void sum(hls::stream<int> &in, int *out) {
#pragma HLS PIPELINE
  int s = 0;
  for (int i = 0; i < 6; i++) s += in.read();
  *out = s;
}
void top(hls::stream<int> &in, int &out) {
#pragma HLS DATAFLOW
  hls::stream<int> between;
  pass(in, between);
  sum(between, &out);
}
"""


def test_tokens_that_an_iteration_takes_of_one_stream_come_one_a_cycle(tmp_path: Path) -> None:
    """Six of them pass through a FIFO of two: nobody waits for all at once."""
    path = written(tmp_path, TAKES_SIX)
    found = timed(path)
    (item,) = [one for one in found.schedules if isinstance(one, Pipeline) and not one.counters]
    taken = [found.schedules[item].starts[n] for n in item.graph.nodes if n.op == "take"]
    assert taken == list(range(taken[0], taken[0] + 6))
    assert found.schedules[item].depth > 6
    result = simulate(found.design, VITIS)
    assert not result.deadlock
    assert check_values(path, "top").equal


def test_tokens_that_an_iteration_puts_into_one_stream_do_so_too(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """#include "hls_stream.h"
static void twice(const int a[8], hls::stream<int> &out) {
  for (int i = 0; i < 8; i++) { out.write(a[i]); out.write(a[i] + 1); out.write(-a[i]); }
}
static void drain(hls::stream<int> &in, int b[24]) { for (int i = 0; i < 24; i++) b[i] = in.read(); }
void top(const int a[8], int b[24]) {
#pragma HLS DATAFLOW
  hls::stream<int> between;
  twice(a, between);
  drain(between, b);
}""",
    )
    found = timed(path)
    (item,) = [one for one in found.schedules if any(n.op == "put" for n in one.graph.nodes)]
    assert found.schedules[item].ii == 3
    put = [found.schedules[item].starts[n] for n in item.graph.nodes if n.op == "put"]
    assert put == list(range(put[0], put[0] + 3))
    assert not simulate(found.design, VITIS).deadlock
    assert check_values(path, "top").equal


def test_fixed_point_is_shifted_and_wide_words_that_live_on_are_cut(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """#include <math.h>
#include "ap_fixed.h"
#include "ap_int.h"
typedef ap_fixed<17, 9> pixel_t;
void top(const ap_uint<64> in[16], pixel_t out[16], float turn[16]) {
#pragma HLS data_pack variable=out
  static ap_uint<64> word;
  for (int i = 0; i < 16; i++) {
#pragma HLS PIPELINE
    word = in[i];
    out[i] = ((pixel_t)(word(7, 0)) >> 8);
    turn[i] = (float)(M_PI * 2) * i;
  }
}""",
    )
    assert [found.ii for found in timed(path).schedules.values()] == [1]


BEGUN = """
struct Inner { short low = 2; short high; };
struct Sum {
  int v = 5;
  Inner in;
  Sum() = default;
  void add(int x) { v += x * in.low; }
};
struct Counted {
  int step = 3, at;
  Counted(int from) : at(from) {}
  int next() { at += step; return at; }
};
void top(const int a[8], int out[2]) {
  Sum sum;
  Counted counted(10);
  static Sum kept;
  for (int i = 0; i < 8; i++) { sum.add(a[i]); out[1] = counted.next(); }
  kept.add(a[0]);
  out[0] = sum.v + kept.v;
}
"""


def test_fields_begin_with_what_their_struct_says(tmp_path: Path) -> None:
    check = check_values(written(tmp_path, BEGUN), "top")
    assert check.equal, check.levels


def test_values_of_a_kernel_with_a_union_are_not_claimed(tmp_path: Path) -> None:
    """Its fields are read as variables, and what one is told another is."""
    path = written(
        tmp_path,
        """union Bits { float f; unsigned u; };
void top(const float a[4], unsigned b[4]) {
  for (int i = 0; i < 4; i++) { Bits bits; bits.f = a[i]; b[i] = bits.u; }
}""",
    )
    assert timed(path).schedules
    with pytest.raises(PenstockError, match="the union 'bits', whose fields lie in one place"):
        check_values(path, "top")


@pytest.mark.parametrize("chosen", ["b[i] > s", "(b[i] > 0 ? b[i] > s : b[i] < s)", "true"])
def test_a_choice_between_a_comparison_and_a_number_is_a_number(tmp_path: Path, chosen: str) -> None:
    path = written(
        tmp_path,
        f"""void top(const short b[8], signed char s, long o[16]) {{
  for (int i = 0; i < 8; i++) {{
    o[i] = (b[i] > 0 ? (int)({chosen}) : -(int)s) >> 1;
    o[8 + i] = b[i] > 0 ? -(int)s : (int)({chosen});
  }}
}}""",
    )
    assert check_values(path, "top", sets=2).equal


@pytest.mark.parametrize("sign", [">", ">=", "<", "<=", "==", "!="])
def test_truths_are_compared_as_0_and_1(tmp_path: Path, sign: str) -> None:
    path = written(
        tmp_path,
        f"""void top(const int a[8], const int b[8], int o[8]) {{
  for (int i = 0; i < 8; i++) o[i] = (a[i] & (b[i] > 2)) {sign} (b[i] < 3);
}}""",
    )
    assert check_values(path, "top", sets=2).equal


STRUCTS = """
struct Sample { float re; double weight; unsigned char tag; };
typedef struct { int x, y; } Point;
void top(const Sample in[9], Point at[4], Point *moved, float out[9]) {
  for (int i = 0; i < 9; i++) out[i] = in[i].re * (float)in[i].weight + in[i].tag;
  for (int i = 0; i < 4; i++) { at[i].x += i; at[i].y = -at[i].x; }
  moved->x = at[3].y;
  moved->y = 7;
}
"""


def test_structs_that_a_host_gives_are_compared_field_by_field(tmp_path: Path) -> None:
    check = check_values(written(tmp_path, STRUCTS), "top", sets=2)
    assert check.equal, check.levels
    assert [level.compared for level in check.levels] == [2 * (4 + 4 + 2 + 9)] * 2


def test_a_struct_that_no_array_a_field_is_says_so(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """struct In { int a; }; struct Out { In in; int b; };
void top(Out o[4]) { for (int i = 0; i < 4; i++) { o[i].b = o[i].in.a + 1; } }""",
    )
    with pytest.raises(PenstockError, match="the struct 'o' as an argument"):
        check_values(path, "top")


def test_numbers_are_swapped(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """#include <algorithm>
void top(int a[16]) {
  for (int r = 0; r < 16; r++)
    for (int j = 0; j < 15; j++)
      if (a[j] > a[j + 1]) std::swap(a[j], a[j + 1]);
}""",
    )
    assert check_values(path, "top").equal


def test_of_a_struct_behind_a_pointer_one_field_may_be_met_alone(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """typedef struct { unsigned char r, g, b; } px;
unsigned top(px img[16], const px *key) {
  unsigned n = 0;
  for (int i = 0; i < 16; i++) if (img[i].r > key->r) { n++; img[i].g = 255 - img[i].b; }
  return n;
}""",
    )
    assert check_values(path, "top", sets=2).equal


def test_what_printing_changes_is_changed(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """#include <cstdio>
void top(int a[4]) {
  int k = 0;
  for (int i = 0; i < 4; i++) { printf("%d %d", k++, a[i]); a[i] += k; }
}""",
    )
    assert check_values(path, "top").equal
