"""What calls give: values that are left out, references to what lies nowhere, and headers that say what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.profiling.kernels.analysis import analyse_kernel
from penstock.profiling.kernels.values import check_values

LEFT_OUT = """
static int scaled(int x, int by = 3, int plus = 1 + 2) { return x * by + plus; }
template <int N> static int moved(int x, int k = 2 * N) { return x + k; }
struct counter {
  int held;
  int step(int by = 2, bool twice = false) { held += twice ? 2 * by : by; return held; }
};
void top(const int a[32], int o[32]) {
  for (int i = 0; i < 32; i++) {
    counter c;
    c.held = i;
    o[i] = scaled(a[i]) + scaled(a[i], 5) + scaled(i, 2, 9) + moved<7>(i) + c.step() + c.step(5) + c.step(1, true);
  }
}
"""
REFERENCES = """
static int add(const int &x, const short &y) { return x + 2 * y; }
static void put(int *o, int i, const int &v) { o[i] = v; }
static void up(int &x) { x++; }
template <class T> static T biggest(const T &a, const T &b) { return a > b ? a : b; }
void top(const int a[32], int o[32], int p[32], int q[32]) {
  for (int i = 0; i < 32; i++) {
    int z = a[i];
    o[i] = add(a[i] + 1, 7) + add(z, (short)z) + add(-z, (short)a[i]);
    put(p, i, 3 * z);
    up(z);
    q[i] = biggest(a[i], -z) + biggest(4, z);
  }
}
"""
SHIFTED = """
#include "ap_shift_reg.h"
void top(const int a[64], int o[64]) {
  static ap_shift_reg<int, 8> line[2];
  for (int i = 0; i < 64; i++) {
#pragma HLS PIPELINE II=1
    int x = line[0].shift(a[i]);
    int y = line[1].shift(x, 3);
    o[i] = x + 2 * y + line[0].read(2);
  }
}
"""
LANES = """
#include <array>
typedef std::array<int, 8> row;
static int sum(const row &r) {
  int s = 0;
  for (unsigned i = 0; i < r.size(); i++) s += r[i];
  return s;
}
void top(const int a[32], int o[32]) {
  std::array<int, 4> w = {1, 2, 3, 4};
  row t;
  t.fill(3);
  t[2] = a[0];
  for (int i = 0; i < 32; i++) o[i] = a[i] * w[1] + sum(t) + w.back();
}
"""

BEGUN = """
template <int N> struct squares {
  int v[N];
  squares() { for (int i = 0; i < N; i++) v[i] = i * i; }
};
struct sum { int s, n; sum() : s(5), n(2) {} sum(int k) { s = k; n = 1; } };
struct plain { int k; };
void top(const int a[16], int o[16]) {
  squares<16> t;
  for (int i = 0; i < 16; i++) {
    sum x, y(3);
    plain z, w;
    z.k = 4;
    w = z;
    x.s += a[i];
    o[i] = x.s * x.n + y.s + t.v[i] + w.k;
  }
}
"""
BRACES = """
struct pair { int x, y; };
struct one { int k; int v[3]; int m; };
struct other { pair q; int v[2][2]; };
void top(const int a[32], int o[32]) {
  one w = {7, 1, 2, 3, 9}, u = {7, {4, 5}, 6}, z = {1};
  other s = {{7, 1}, {{2, 3}, {9, 8}}}, e = {1, 2, 3, 4, 5, 6};
  pair l[2] = {{1, 2}, {3, 4}};
  for (int i = 0; i < 32; i++)
    o[i] = a[i] * w.v[1] + w.m * w.k + w.v[2] + u.v[0] + u.v[2] * 3 + u.m + z.k + z.v[1] + s.v[1][0] + s.q.x * s.q.y +
           l[1].x + l[0].y + e.v[1][0] + e.q.y * 100;
}
"""


@pytest.mark.parametrize(
    "text",
    [LEFT_OUT, REFERENCES, SHIFTED, LANES, BRACES, BEGUN],
    ids=["left-out", "references", "shifted", "lanes", "braces", "begun"],
)
def test_values_are_those_of_the_source(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    assert check_values(path, "top").equal


def test_a_shift_register_takes_a_word_each_cycle(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SHIFTED)
    (loop,) = analyse_kernel(path, "top").loops
    assert loop.ii == 1


def test_headers_of_a_host_are_read_where_no_kernel_uses_them(tmp_path: Path) -> None:
    """As sources of generators have them: text, files and containers in functions that the top does not call."""
    path = tmp_path / "kernel.cpp"
    path.write_text("""
#include "hls_stream.h"
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>
template <class T, unsigned N> void load(T *w, const char *name) {
  std::ifstream in(std::string(name).c_str(), std::ios::binary);
  if (in.fail()) std::cerr << "no " << std::string(name) << std::endl;
  std::string line;
  while (std::getline(in, line, ',')) std::istringstream(line) >> w[0];
}
template <class S, class T> void copied(std::vector<S> from, T into[8]) { std::copy(from.cbegin(), from.cend(), into); }
template <class T> typename std::enable_if<std::is_same<T, int>::value, T>::type twice(T x) { return 2 * x; }
template <class T> typename std::enable_if<!std::is_same<T, int>::value, T>::type twice(T x) { return x; }
void top(const int a[8], const short b[8], int o[8]) {
  for (int i = 0; i < 8; i++) o[i] = twice(a[i]) + twice(b[i]);
}
""")
    assert analyse_kernel(path, "top").latency is not None
    assert check_values(path, "top").equal


def test_what_the_compiler_works_out_is_a_constant(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""
constexpr int log2_up(int x) { return (x <= 2) ? 1 : 1 + log2_up((x + 1) / 2); }
template <int N> constexpr int squared() { return N * N; }
constexpr int twice(int x) { return 2 * x; }
constexpr float half(float x) { return 0.5f * x; }
void top(const int a[32], int o[32], float p[32]) {
  static constexpr int N = log2_up(300);
  int w[N];
  for (int i = 0; i < N; i++) w[i] = i * squared<3>();
  for (int i = 0; i < 32; i++) { o[i] = a[i] * N + w[N - 1] + twice(a[i]) + twice(5); p[i] = half(3) * a[i]; }
}
""")
    assert check_values(path, "top").equal


def test_objects_without_fields_and_arrays_of_one_name_between_tasks(tmp_path: Path) -> None:
    """Function objects, and a function that a dataflow region inlines twice, each time with arrays of its own."""
    path = tmp_path / "kernel.cpp"
    path.write_text("""
#include "hls_stream.h"
struct larger { int operator()(int a, int b) { return a > b ? a : b; } };
template <class Op> int both(int a, int b, Op op) { return op(a, b); }
template <int N> void layer(hls::stream<int> &in, hls::stream<int> &out) {
#pragma HLS INLINE
  int data[16], res[16];
  for (int i = 0; i < 16; i++) data[i] = in.read();
  for (int i = 0; i < 16; i++) { larger op; res[i] = both(data[15 - i], N, op); }
  for (int i = 0; i < 16; i++) out.write(res[15 - i]);
}
void top(hls::stream<int> &in, hls::stream<int> &out) {
#pragma HLS DATAFLOW
  hls::stream<int> between;
  layer<3>(in, between);
  layer<5>(between, out);
}
""")
    found = analyse_kernel(path, "top")
    assert found.latency is not None
    assert {wait[0] for task in found.tasks for wait in task.waits} >= {"data_2", "res_2"}
