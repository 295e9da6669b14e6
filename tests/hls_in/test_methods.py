"""What structs of a source do themselves: operators, methods that give structs or places."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline, graphs
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.simulator import VITIS, simulate
from penstock.profiling.kernels.values import check_values

COMPLEX = """
struct Complex {
  float re, im;
  Complex operator*(const Complex &o) const {
    Complex r;
    r.re = re * o.re - im * o.im;
    r.im = re * o.im + im * o.re;
    return r;
  }
};
void top(const float a[8], const float b[8], float o[8]) {
  for (int i = 0; i < 4; i++) {
    Complex x, y;
    x.re = a[2 * i]; x.im = a[2 * i + 1]; y.re = b[2 * i]; y.im = b[2 * i + 1];
    Complex z = x * y;
    o[2 * i] = z.re; o[2 * i + 1] = z.im;
  }
}
"""
OPERATORS = """
struct P {
  int x, y;
  static int twice(int d) { return 2 * d; }
  P moved(int d) const { P r; r.x = x + twice(d); r.y = y - d; return r; }
  bool operator<(const P &o) const { return x < o.x; }
  P &operator+=(const P &o) { x += 2 * o.x; y += o.y; return *this; }
};
P operator-(const P &a, const P &b) { P r; r.x = a.x - 3 * b.x; r.y = a.y - b.y; return r; }
void top(const int a[8], int o[8]) {
  for (int i = 0; i < 4; i++) {
    P p;
    p.x = a[2 * i]; p.y = a[2 * i + 1];
    P q = p.moved(3);
    P s = p - q;
    s += q;
    o[2 * i] = s.x; o[2 * i + 1] = s < q ? s.y : q.y;
  }
}
"""
PLACES = """
template <class T, int N> struct Words {
  T data[N];
  T &operator[](int at) { return data[at]; }
  const T &operator[](int at) const { return data[at]; }
};
struct Grid {
  int cells[2][3];
  int &at(int row, int column) { return cells[row][column]; }
  int &operator()(int row, int column) { return this->at(row, column); }
};
void top(const int a[6], int o[6]) {
  Words<int, 4> some;
  Grid grid;
  for (int i = 0; i < 4; i++) some[i] = a[i] + 1;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++) {
      grid.at(i, j) = some[i + j] * 2;
      grid(i, j) += a[j];
    }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++) o[3 * i + j] = grid.at(i, j) + grid(1, 2);
}
"""


@pytest.mark.parametrize("text", [COMPLEX, OPERATORS, PLACES], ids=["complex", "operators", "places"])
def test_a_struct_does_what_its_own_operators_and_methods_say(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    check = check_values(path, "top")
    assert check.equal, check.levels


def test_a_structs_words_come_from_a_stream_into_an_array(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include "ap_fixed.h"
    #include "hls_stream.h"
    typedef ap_fixed<16, 6> number;
    template <typename T, unsigned N> struct array {
      typedef T value_type;
      T data[N];
      T &operator[](unsigned at) { return data[at]; }
    };
    template <class D> void collect(hls::stream<D> &s, number o[32]) {
      typename D::value_type data[32];
      for (int i = 0; i < 8; i++) {
        D pack = s.read();
        for (int j = 0; j < 4; j++) data[i * 4 + j] = pack[j];
      }
      for (int i = 0; i < 32; i++) o[i] = data[i];
    }
    void top(hls::stream<array<number, 4> > &s, number o[32]) { collect(s, o); }""")
    latency = simulate(time_kernel(read_kernel(path, "top"), delays_for(300)).design, VITIS).latency
    assert latency is not None
    assert 64 < latency < 80  # what is written first is read after it


def test_what_a_function_changes_by_reference_is_carried_by_a_loop(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""
    struct Random {
      unsigned s;
      unsigned next() { s ^= s << 13; s ^= s >> 17; s ^= s << 5; return s; }
    };
    void larger(int v, int at, int &most, int &where) { if (v > most) { most = v; where = at; } }
    void largest(const int a[4], int turn, int &most, int &where) {
      for (int i = 0; i < 4; i++) {
        #pragma HLS UNROLL
        larger(a[i] - turn * 3, 4 * turn + i, most, where);
      }
    }
    void top(const int a[4], int o[2], int r[8]) {
      int most = -100, where = -1;
      Random random;
      random.s = 7;
      for (int k = 0; k < 8; k++) {
        #pragma HLS PIPELINE
        largest(a, k, most, where);
        r[k] = random.next() & 255;
      }
      o[0] = most;
      o[1] = where;
    }""")
    check = check_values(path, "top", sets=3)
    assert check.equal, check.levels
    carried = [len(item.carried) for item in graphs(read_kernel(path, "top").body) if isinstance(item, Pipeline)]
    assert carried == [3]


@pytest.mark.parametrize("method", ["empty", "full", "size"])
def test_what_a_stream_of_structs_cannot_be_asked_is_said_of_the_method(method: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(f"""#include <hls_stream.h>
struct P {{ int a; short b; }};
void top(hls::stream<P> &in, int o[1]) {{
  for (int i = 0; i < 8; i++)
    if (!in.{method}()) o[0] += in.read().a;
}}
""")
    with pytest.raises(PenstockError) as raised:
        read_kernel(path, "top")
    assert f".{method}() is not supported" in raised.value.what
    assert raised.value.where == "kernel.cpp:5:10"
