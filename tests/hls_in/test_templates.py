"""Templates of types and constants, overloads, structs of templates, and the memories that each call has of its own."""

from __future__ import annotations

from pathlib import Path

from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import DataflowRegion, Pipeline, graphs
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.simulator import VITIS, Network, simulate
from penstock.profiling.kernels.values import check_values

TEMPLATES = """
struct Sizes { static const int n = 4; typedef short number; enum { more = 7 }; };
template <int N, bool SUMMED> int folded(int v) {
  int s = 0;
  for (int i = 0; i < N; i++) s += v;
  return SUMMED ? s : v;
}
template <class T, typename CONFIG> struct Keeper {
  T kept[CONFIG::n];
  typename CONFIG::number last;
  T step(T x) {
    for (int i = 0; i < CONFIG::n; i++) last += kept[i] * x;
    return last + CONFIG::more;
  }
};
template <typename T> T larger(T a, T b) { return a > b ? a : b; }
int twice(int a) { return 2 * a; }
int twice(int a, int b) { return 2 * a + b; }
void top(int a[4], float b[2]) {
  Keeper<int, Sizes> keeper;
  keeper.last = 0;
  for (int i = 0; i < 4; i++) keeper.kept[i] = a[i];
  a[0] = keeper.step(a[1]) + folded<3, true>(a[2]) + larger(a[0], a[1]) + twice(a[1]) + twice(a[0], a[1]);
  a[1] = folded<2, false>(a[3]);
  b[0] = larger(b[0], b[1]);
}
"""
LANES = """
#include <hls_stream.h>
#include <hls_vector.h>
typedef hls::vector<float, 4> four;
static void read(const four *in, hls::stream<four> s[2]) {
  for (int i = 0; i < 64; i++) {
#pragma HLS pipeline II=1
    s[i & 1].write(in[i]);
  }
}
static void work(hls::stream<four> &a, hls::stream<four> &b) {
  for (int i = 0; i < 32; i++) {
#pragma HLS pipeline II=1
    four x = a.read();
    b.write(x * x + four(1.0f));
  }
}
static void write(hls::stream<four> s[2], four *out) {
  for (int i = 0; i < 64; i++) {
#pragma HLS pipeline II=1
    out[i] = s[i & 1].read();
  }
}
static void both(hls::stream<four> a[2], hls::stream<four> b[2]) {
#pragma HLS dataflow
  work(a[0], b[0]);
  work(a[1], b[1]);
}
extern "C" void top(const four *in, four *out) {
#pragma HLS INTERFACE m_axi port=in depth=64 bundle=g0
#pragma HLS INTERFACE m_axi port=out depth=64 bundle=g1
#pragma HLS dataflow
  hls::stream<four> s[2], t[2];
#pragma HLS stream variable=s depth=16
#pragma HLS stream variable=t depth=16
  read(in, s);
  both(s, t);
  write(t, out);
}
"""


def test_templates_are_read_as_their_calls_make_them(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(TEMPLATES)
    assert all(level.equal for level in check_values(source, "top").levels)


def test_a_counter_chooses_among_streams_in_every_iteration_and_each_task_has_its_own_memories(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(LANES)
    kernel = read_kernel(source, "top")
    flow = kernel.body[0]
    assert isinstance(flow, DataflowRegion)
    timed = time_kernel(kernel, delays_for(300))
    assert isinstance(timed.design, Network)
    assert [p.name for p in timed.design.processes] == ["read", "work", "work_1", "write"]
    assert [p.phases[0].trips for p in timed.design.processes] == [(64,), (32,), (32,), (64,)]
    result = simulate(timed.design, VITIS)
    assert result.deadlock is None
    assert result.latency < 64 + 64 + 40  # a load takes m_axi's usual 64 cycles
    assert all(level.equal for level in check_values(source, "top").levels)


def test_a_pointer_to_a_struct_of_tables_is_that_struct(tmp_path: Path) -> None:
    """As programs of C hand on a context; &one and a later part of a table too."""
    path = tmp_path / "kernel.cpp"
    path.write_text("""
struct Context { int table[16]; int key[8]; int rounds; };
struct Point { int x, y; };
static void expand(Context *c, const int *k) {
  for (int i = 0; i < 8; i++) c->key[i] = k[i] ^ c->table[i];
  c->rounds = 3;
}
static void mix(int *buf, const int *key, int *count) {
  for (int i = 0; i < 8; i++) buf[i] ^= key[i];
  *count = *count + 1;
}
static void scale(Point *p, int n) { for (int i = 0; i < 8; i++) { p[i].x *= n; p[i].y = p[i].x + 1; } }
static void swap(Point *p) { int t = p->x; p->x = p->y; p->y = t; }
void top(const int k[8], const int t[16], int buf[8], int o[4]) {
  int n = 5;
  Context own;
  for (int i = 0; i < 16; i++) own.table[i] = t[i];
  expand(&own, k);
  mix(buf, own.key, &n);
  mix(buf, &own.table[8], &n);
  Point many[8], one;
  for (int i = 0; i < 8; i++) { many[i].x = k[i]; many[i].y = 0; }
  scale(many, 3);
  one.x = many[2].x;
  one.y = many[5].y;
  swap(&one);
  o[0] = n;
  o[1] = own.rounds;
  o[2] = one.x;
  o[3] = one.y;
}
""")
    assert check_values(path, "top", sets=2).equal


def test_pragmas_name_constants_of_a_templates_struct_and_of_what_it_is_made_of(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""
namespace nnet {
struct base_config { static const unsigned reuse = 1; static const unsigned lanes = 2; };
template <class CONFIG_T, class OTHER_T> void scale(const int a[32], int b[32]) {
#pragma HLS ARRAY_PARTITION variable=b cyclic factor=CONFIG_T::lanes*OTHER_T::lanes
  for (unsigned i = 0; i < CONFIG_T::n_in; i++) {
#pragma HLS PIPELINE II=CONFIG_T::reuse
    b[i] = a[i] * 3;
  }
}
}
struct config2 : nnet::base_config { static const unsigned n_in = 32; static const unsigned reuse = n_in / 8; };
void top(const int a[32], int b[32]) {
#pragma HLS ARRAY_PARTITION variable=a cyclic factor=config2::reuse
  nnet::scale<config2, nnet::base_config>(a, b);
}""")
    kernel = read_kernel(path, "top")
    assert [array.banks for array in kernel.arrays] == [4, 4]
    assert [item.target for item in graphs(kernel.body) if isinstance(item, Pipeline)] == [4]
