"""A source means the same compiled by the machine's compiler, as nests, and as the C++ that is written of these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.to_nests import nests_of_kernel
from penstock.compiler.interpreter.stream import run
from penstock.profiling.kernels.open_route import run_open_route
from penstock.profiling.kernels.values import check_values, kernel_nests, random_memories

DATA = Path(__file__).parents[1] / "data" / "hls-sources"

DATAFLOW = """
#include <hls_stream.h>
void fill(float a[4][6], hls::stream<float> &to, float kept[6]) {
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 6; j++) {
      #pragma HLS pipeline II=1
      float x = a[i][j] * 2.0f;
      if (i == 3) kept[j] = x;
      to.write(x);
    }
  }
}
void drain(hls::stream<float> &from, float kept[6], float b[4][6], float scale) {
  float sum = 0;
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 6; j++) {
      #pragma HLS pipeline II=1
      float x = from.read();
      sum += x;
      float y = x > 0.5f ? x : sum;
      if (y < 0) y = -y;
      b[i][j] = y * scale + j;
    }
  }
  for (int j = 0; j < 6; j++) b[0][j] += kept[j];
}
void top(float a[4][6], float b[4][6], float scale) {
  #pragma HLS dataflow
  hls::stream<float> s;
  #pragma HLS stream variable=s depth=4
  float kept[6];
  fill(a, s, kept);
  drain(s, kept, b, scale);
}
"""
WHOLE = """
static const int weights[3] = {1, -2, 3};
void top(int a[10], int b[8], signed char c[8]) {
  for (int i = 0; i < 8; i++) {
    #pragma HLS pipeline
    int sum = b[i];
    for (int k = 0; k < 3; k++) sum += a[i + k] * weights[k] * c[i];
    if ((sum & 3) == 1) b[i] = sum >> 1;
    else if (i % 2 == 1) b[i] = i;
  }
}
"""
EDGES = """
void top(float a[16], float b[16], double c[16]) {
  float acc[3];
  #pragma HLS array_partition variable=acc complete
  acc[0] = 1.5f; acc[1] = 0; acc[2] = a[0];
  for (int i = 0; i < 16; i++) {
    #pragma HLS pipeline
    if (i > 0 && i < 15) b[i] = a[i - 1] + a[i + 1];
    acc[1] += a[i] * acc[0];
    c[i] = acc[1] * 0.1 + acc[2];
  }
}
"""
TURNS = """
void top(float a[5][7], float x[7], float y[7], float c[5][4], float tmp[5], int last[2], int m[5]) {
  int i, j, k;
  for (i = 0; i < 5; i++) {
    float row[4];
    #pragma HLS array_partition variable=row complete
    tmp[i] = 0;
    for (j = 0; j < 7; j++) tmp[i] = tmp[i] + a[i][j] * x[j];
    for (j = 0; j < 4; j++) row[j] = tmp[i] * j;
    for (k = 0; k < 3; k++)
      for (j = 0; j < 4; j++) {
        #pragma HLS pipeline II=1
        if (i + j > k) row[j] += a[i][j + k];
      }
    for (j = 0; j < 7; j++) y[j] = y[j] + a[i][j] * tmp[i];
    for (j = 0; j < 4; j++) c[i][j] = row[j] + x[k];
  }
  signed char narrow[5];
  short total = 0;
  for (int i = 0; i < 5; i++) narrow[i] = m[i] * 100;
  for (int i = 0; i < 5; i++) total += narrow[i] * narrow[i] * 7;
  last[0] = i * 10 + k;
  last[1] = total;
}
"""
SUMS = """
void top(float a[8][12], float x[12], float y[8]) {
  for (int i = 0; i < 8; i++) {
    float sum = 0;
    for (int j = 0; j < 12; j++) {
      #pragma HLS pipeline II=1
      sum += a[i][j] * x[j];
    }
    y[i] = sum;
  }
}
"""
UPDATED = """
void top(float a[5][9], float x[9], float y[9]) {
  for (int i = 0; i < 5; i++) {
    for (int j = 0; j < 9; j++) y[j] *= x[j];
    for (int k = 0; k < 3; k++)
      for (int j = 0; j < 9; j++) y[j] += a[i][j] * x[k];
  }
}
"""
HANDED = """
#include <hls_stream.h>
void first(float a[40], hls::stream<float> &to) {
  for (int i = 0; i < 40; i++) to.write(a[i] * 3.0f);
}
void second(hls::stream<float> &from, float b[20]) {
  for (int i = 0; i < 40; i++) {
    #pragma HLS pipeline II=1
    float x = from.read();
    if (i < 20) b[i] = x > 0 ? x : 0.0f;
  }
}
void top(float a[40], float b[20]) {
  #pragma HLS dataflow
  hls::stream<float> s;
  first(a, s);
  second(s, b);
}
"""


STRUCTS = """
#include <hls_stream.h>
#include <hls_vector.h>
#include <string.h>
#define LANES 4
enum { COUNT = 8 };
typedef hls::vector<float, LANES> Lanes;
struct Pair { float x; float y; };
struct Item { Pair pair; int tag; };
struct Sum {
  float total; int seen;
  Sum() : total(0), seen(0) {}
  void add(float v) { total += v; seen++; }
};
static Pair turned(Pair p, float by) { Pair q; q.x = p.y * by; q.y = p.x; return q; }
static void make(float a[COUNT], float b[COUNT], hls::stream<Item> &to, hls::stream<Lanes> &lanes) {
  float copy[COUNT];
  memcpy(copy, a, COUNT * sizeof(float));
  for (int i = 0; i < COUNT; i++) {
    #pragma HLS pipeline II=1
    Item it;
    it.pair = turned({copy[i], b[i]}, 2.0f);
    it.tag = i;
    to.write(it);
    Lanes v(a[i]);
    for (int k = 0; k < LANES; k++) v[k] += k;
    lanes << v * v;
  }
}
static void work(hls::stream<float> &from, hls::stream<float> &to) {
  for (int i = 0; i < COUNT; i++) to.write(from.read() + 1.0f);
}
static void use(hls::stream<Item> &from, hls::stream<Lanes> &lanes, hls::stream<float> out[LANES], float c[COUNT]) {
  for (int i = 0; i < COUNT; i++) {
    #pragma HLS pipeline II=1
    Item it = from.read();
    Lanes v;
    lanes >> v;
    Sum sum;
    sum.add(it.pair.x); sum.add(it.pair.y);
    float chosen;
    switch (i & 3) {
      case 0: chosen = v[0]; break;
      case 1: case 2: chosen = v[1]; break;
      default: chosen = v[3];
    }
    c[i] = sum.total * sum.seen + chosen + it.tag;
    for (int k = 0; k < LANES; k++) out[k].write(v[k]);
  }
}
static void join(hls::stream<float> from[LANES], float d[COUNT][LANES], float *last) {
  float kept;
  for (int i = 0, k = 0; i < COUNT; i++)
    for (k = 0; k < LANES; k++) { kept = from[k].read(); d[i][k] = kept; }
  *last = kept;
}
void top(float a[COUNT], float b[COUNT], float c[COUNT], float d[COUNT][LANES], float *last) {
  #pragma HLS dataflow
  hls::stream<Item> items("items");
  hls::stream<Lanes> lanes;
  hls::stream<float> out[LANES], more[LANES];
  #pragma HLS stream variable=items depth=16
  make(a, b, items, lanes);
  use(items, lanes, out, c);
  for (int k = 0; k < LANES; k++) {
    #pragma HLS unroll
    work(out[k], more[k]);
  }
  join(more, d, last);
}
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DATAFLOW, id="dataflow"),
        pytest.param(TURNS, id="turns"),
        pytest.param(STRUCTS, id="structs"),
        pytest.param(WHOLE, id="integers", marks=pytest.mark.slow),
        pytest.param(EDGES, id="edges", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_source_nests_and_their_cpp_give_the_same_bits(text: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(text)
    found = check_values(source, "top", seed=3)
    assert [level.first for level in found.levels] == ["", ""]
    assert all(level.compared for level in found.levels)


def test_a_source_that_computes_something_else_is_told(tmp_path: Path) -> None:
    """The levels are held against the source: one that the front end reads differently is seen."""
    source = tmp_path / "kernel.cpp"
    source.write_text(
        "void top(float a[8]) {\n  for (int i = 0; i < 8; i++)\n"
        "#ifdef __SYNTHESIS__\n    a[i] = a[i] * 2.0f;\n#else\n    a[i] = a[i] * 3.0f;\n#endif\n}\n"
    )
    found = check_values(source, "top")
    assert not found.equal
    assert found.levels[0].different == 8
    assert found.levels[0].first.startswith("a[0]: ")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("for (int i = 0; i < 8; i++) a[b[i]] = i;", "an address that is not linear"),
        ("int s = 0; for (int i = 0; i < 4; i++) { for (int j = 0; j < 8; j++) s += a[j]; for (int k = 0; k < 8; k++) "
         "b[k] += s; }", "carries 's' from one iteration to the next"),
        ("for (int i = 0; i < 8; i++) a[6 - i] = b[i];", "begins at -1 of memory"),
        ("for (int i = 0; i < 8; i++) a[i + 1] = b[i];", "reaches 9 in dim 0"),
    ],
)  # fmt: skip
def test_what_nests_do_not_have_is_refused_by_name(body: str, said: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(f"void top(int a[8], int b[8], signed char c[8]) {{\n  {body}\n}}\n")
    with pytest.raises(PenstockError, match=said):
        nests_of_kernel(read_kernel(source, "top"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "top"),
    [
        ("streamhls__polybench__allo__atax", "kernel_atax"),
        ("streamhls__polybench__streamhls__2560_DSPs__opt1__gesummv", "forward"),
    ],
)
def test_public_designs_mean_what_their_source_says(name: str, top: str) -> None:
    found = check_values(next((DATA / name).glob("*.cpp")), top, seed=1)
    assert [level.first for level in found.levels] == ["", ""]
    assert all(level.compared for level in found.levels)


def test_an_argument_that_is_read_and_written_is_copied_in_and_out_where_ports_are_apart(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(UPDATED)
    plain, apart = (kernel_nests(source, "top", 1000, apart=apart)[0] for apart in (False, True))
    assert apart.copies["y__out"] == "y"
    memories = random_memories(plain.arguments, 4)
    found = [run(nests.module, nests.memories(memories), nests.parameters) for nests in (plain, apart)]
    assert np.array_equal(found[0]["y"], found[1]["y__out"])
    assert not np.array_equal(found[0]["y"], memories["y"])


@pytest.mark.slow
@pytest.mark.parametrize("text", [SUMS, HANDED, UPDATED], ids=["sums", "handed", "updated"])
def test_their_systemverilog_gives_the_same_bits_in_the_simulators_cycles(text: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(text)
    found = check_values(source, "top", rtl=True)
    assert [level.first for level in found.levels] == ["", "", ""]
    hardware = found.levels[-1]
    assert hardware.level == "SystemVerilog"
    assert hardware.cycles is not None
    assert hardware.cycles == hardware.simulated_cycles


def test_an_argument_that_is_read_and_written_has_no_port_on_the_open_route(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text("void top(float a[8]) { for (int i = 0; i < 8; i++) a[i] = a[i] * 2.0f; }")
    nests = nests_of_kernel(read_kernel(source, "top"))
    with pytest.raises(PenstockError, match="'a' is read and written"):
        run_open_route(nests, random_memories(nests.arguments, 0))


@pytest.mark.slow
def test_a_source_that_uses_what_it_never_wrote_is_told_so(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text("void top(float a[8]) { float b[8]; for (int i = 0; i < 8; i++) { b[i] += 1.0f; a[i] = b[i]; } }")
    with pytest.raises(PenstockError, match="uses what it never wrote"):
        check_values(source, "top")


def test_loops_that_pragmas_unroll_stay_loops_where_there_are_too_many_operations(tmp_path: Path) -> None:
    """Rolled and unrolled, the nests compute the same; the rolled ones have fewer operations."""
    source = tmp_path / "kernel.cpp"
    source.write_text(
        "void top(float a[6][8], float b[8][5], float c[6][5]) {\n  float row[5];\n"
        "  #pragma HLS array_partition variable=row complete\n  for (int i = 0; i < 6; i++) {\n"
        "    for (int j = 0; j < 5; j++) {\n      #pragma HLS unroll\n      row[j] = 0;\n    }\n"
        "    for (int k = 0; k < 8; k++) {\n      #pragma HLS pipeline\n"
        "      for (int j = 0; j < 5; j++) row[j] += a[i][k] * b[k][j];\n    }\n"
        "    for (int j = 0; j < 5; j++) c[i][j] = row[j];\n  }\n}\n"
    )
    plain, rolled = kernel_nests(source, "top", 1000), kernel_nests(source, "top", 1)
    assert (plain[1], rolled[1]) == (False, True)
    sizes = [sum(1 for _ in found.module.walk()) for found, _ in (plain, rolled)]
    assert sizes[1] < sizes[0]
    memories = random_memories(plain[0].arguments, 2)
    given = [run(found.module, found.memories(memories), found.parameters)["c"] for found, _ in (plain, rolled)]
    assert np.array_equal(given[0], given[1])
    assert np.count_nonzero(given[0]) == 30


def test_a_word_that_is_asked_for_under_a_condition_alone_may_lie_outside_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""void top(const int a[8], int o[12]) {
      for (int k = 0; k < 12; k++) {
        int v = k < 8 ? a[k] : -1;
        o[k] = v + (k > 3 && k != 9 ? a[k - 4] : 7);
      }
    }""")
    assert check_values(path, "top", sets=2).equal
