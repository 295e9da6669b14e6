"""Arrays that are filled once with constants are ROMs; those that are not stay memories with their loops."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline, ReadKernel, graphs
from penstock.profiling.kernels.analysis import analyse_kernel
from penstock.profiling.kernels.values import check_values

GUIDE = """
#include <math.h>
typedef short din1_t;
void init_sin_table(din1_t sin_table[256]) {
  int i;
  for (i = 0; i < 256; i++) {
    double real_val = sin(M_PI * (double)(i - 128) / 256.0);
    sin_table[i] = (din1_t)(32768.0 * real_val);
  }
}
int top(din1_t inval, unsigned char idx) {
  short sin_table[256];
  init_sin_table(sin_table);
  return (int)inval * (int)sin_table[idx];
}
"""
"""What the guide shows of math.h."""

ACTIVATION = """
#include <cmath>
#include "ap_fixed.h"
typedef ap_fixed<16, 6> data_T;
typedef ap_fixed<18, 8> table_t;
struct config { static const unsigned table_size = 1024; static const unsigned n_in = 16; typedef ::table_t table_t; };
inline float sigmoid_of(float input) { return 1.0 / (1 + std::exp(-input)); }
template <typename CONFIG_T, int N_TABLE> void init_table(typename CONFIG_T::table_t table_out[N_TABLE]) {
  for (int ii = 0; ii < N_TABLE; ii++) {
    float in_val = 2 * 8.0 * (ii - float(N_TABLE) / 2.0) / float(N_TABLE);
    typename CONFIG_T::table_t real_val = sigmoid_of(in_val);
    table_out[ii] = real_val;
  }
}
template <class in_T, class res_T, typename CONFIG_T>
void sigmoid(in_T data[CONFIG_T::n_in], res_T res[CONFIG_T::n_in]) {
#ifdef __HLS_SYN__
  bool initialized = false;
  typename CONFIG_T::table_t table[CONFIG_T::table_size];
#else
  static bool initialized = false;
  static typename CONFIG_T::table_t table[CONFIG_T::table_size];
#endif
  if (!initialized) {
    init_table<CONFIG_T, CONFIG_T::table_size>(table);
    initialized = true;
  }
#pragma HLS PIPELINE
  for (unsigned ii = 0; ii < CONFIG_T::n_in; ii++) {
    int data_round = data[ii] * CONFIG_T::table_size / 16;
    int index = data_round + 8 * (int)CONFIG_T::table_size / 16;
    if (index < 0) index = 0;
    if (index > (int)CONFIG_T::table_size - 1) index = CONFIG_T::table_size - 1;
    res[ii] = (res_T)table[index];
  }
}
void top(data_T data[16], data_T res[16]) {
#pragma HLS ARRAY_PARTITION variable=data complete
#pragma HLS ARRAY_PARTITION variable=res complete
  sigmoid<data_T, data_T, config>(data, res);
}
"""
"""As generators of networks have it: built anew by the compiler, kept by the simulation."""


def read(tmp_path: Path, text: str) -> ReadKernel:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    return read_kernel(path, "top")


def pipelines(kernel: ReadKernel) -> int:
    return sum(isinstance(one, Pipeline) for one in graphs(kernel.body))


def test_a_function_of_constants_makes_a_rom(tmp_path: Path) -> None:
    kernel = read(tmp_path, GUIDE)
    (array, words), = kernel.tables.items()  # fmt: skip
    assert array.constant
    assert words == tuple(int(32768.0 * math.sin(math.pi * (i - 128) / 256.0)) for i in range(256))
    assert pipelines(kernel) == 0
    assert kernel.notes == ["sin_table is a ROM: what fills it at kernel.cpp:13:3 is known, and takes no time"]


def test_a_table_of_a_generated_network_is_read_by_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(ACTIVATION)
    found = analyse_kernel(path, "top")
    (loop,) = found.loops
    assert (loop.ii, found.area["bram18"], found.area["dsp"]) == (1, 8, 0)


def filled(loop: str, after: str = "", before: str = "int t[64];") -> str:
    return f"""
#include <math.h>
static void ramp(int t[64]) {{ for (int i = 0; i < 64; i++) t[i] = 3 * i - 7; }}
static void half(int t[64]) {{ for (int i = 0; i < 32; i++) t[i] = 3 * i - 7; }}
static void twice(int t[64]) {{ for (int i = 0; i < 64; i++) {{ t[i] = i; t[i % 8] = 3; }} }}
static void moved(int t[64], const int a[64]) {{ for (int i = 0; i < 64; i++) t[i] = a[0] + i; }}
static void cosines(float t[64]) {{ for (int i = 0; i < 64; i++) t[i] = cosf(0.1f * i); }}
void top(const int a[64], int o[64]) {{
  int n = 0;
  {before}
  {loop}
  for (int i = 0; i < 64; i++) o[i] = a[i] + (int)t[i] + n;
  {after}
}}
"""


@pytest.mark.parametrize(
    "loop",
    [
        "ramp(t);",
        "for (int i = 0; i < 64; i++) t[i] = (i * i) >> 2;",
        "int k; for (k = 0; k < 64; k += 2) { t[k] = k; t[k + 1] = -k; } n = k;",
        "for (int i = 0; i < 64; i++) { unsigned c = i;"
        " for (int k = 0; k < 8; k++) c = c & 1 ? (c >> 1) ^ 0x8Cu : c >> 1; t[i] = c; }",
    ],
)
def test_what_constants_and_counters_decide_is_known(tmp_path: Path, loop: str) -> None:
    kernel = read(tmp_path, filled(loop))
    assert [array.name for array in kernel.tables] == ["t"]
    assert pipelines(kernel) == 1
    assert check_values(tmp_path / "kernel.cpp", "top").equal


def test_floats_are_rounded_as_c_rounds_them(tmp_path: Path) -> None:
    source = filled("cosines(t);", before="float t[64];").replace("(int)t[i]", "(int)(1e6f * t[i])")
    assert read(tmp_path, source).tables
    assert check_values(tmp_path / "kernel.cpp", "top").equal


@pytest.mark.parametrize(
    ("loop", "after", "before"),
    [
        ("ramp(t);", "ramp(t); t[3] = 4;", "int t[64];"),
        ("ramp(t); t[a[0] & 63] = 4;", "", "int t[64];"),
        ("half(t);", "", "int t[64];"),
        ("twice(t);", "", "int t[64];"),
        ("moved(t, a);", "", "int t[64];"),
        ("for (int i = 0; i < 64; i++) t[i] = i + a[i];", "", "int t[64];"),
        ("if (a[0] > 0) ramp(t);", "", "static int t[64];"),
        ("for (int i = 0; i < 64; i++) t[i] += i;", "", "static int t[64];"),
        ("for (int i = 0; i < 64; i++) t[i] = (int)floorf(0.3f * i);", "", "int t[64];"),
    ],
)
def test_what_is_stored_to_again_or_hangs_on_data_stays_a_memory(
    tmp_path: Path, loop: str, after: str, before: str
) -> None:
    kernel = read(tmp_path, filled(loop, after, before))
    assert not kernel.tables
    assert pipelines(kernel) >= 2
    assert not any("ROM" in note for note in kernel.notes)


def test_what_is_stored_to_far_from_where_it_was_filled_stays_a_memory(tmp_path: Path) -> None:
    """The block in which it is filled does not say so."""
    text = filled("{ ramp(t); }", "for (int i = 0; i < 64; i++) t[i] = a[i]; o[3] = t[a[1] & 63];")
    kernel = read(tmp_path, text)
    assert not kernel.tables
    assert pipelines(kernel) == 3


def test_a_loop_around_and_a_second_call_fill_the_same_table(tmp_path: Path) -> None:
    text = """
static void ramp(int t[64]) { for (int i = 0; i < 64; i++) t[i] = 3 * i - 7; }
static void add(const int a[64], int o[64]) {
  int t[64];
  ramp(t);
  for (int i = 0; i < 64; i++) o[i] = a[i] + t[i];
}
void top(const int a[64], const int b[64], int o[64], int p[64]) { add(a, o); add(b, p); }
"""
    kernel = read(tmp_path, text)
    assert len(kernel.tables) == 1
    assert pipelines(kernel) == 2
    assert check_values(tmp_path / "kernel.cpp", "top").equal


def test_functions_without_hardware_are_known_of_constants_alone(tmp_path: Path) -> None:
    text = """
#include <math.h>
static void angles(float t[16]) { for (int i = 0; i < 16; i++) t[i] = atanf(ldexpf(1.0f, -i)); }
void top(float o[16]) {
  float t[16];
  angles(t);
  for (int i = 0; i < 16; i++) o[i] = t[i];
}
"""
    (words,) = read(tmp_path, text).tables.values()
    assert words == pytest.approx([math.atan(2.0**-i) for i in range(16)], rel=1e-7)
    path = tmp_path / "other.cpp"
    path.write_text("#include <math.h>\nvoid top(const float a[16], float o[16]) {\n"
                    "  for (int i = 0; i < 16; i++) o[i] = atanf(a[i]);\n}\n")  # fmt: skip
    with pytest.raises(PenstockError, match="atan"):
        analyse_kernel(path, "top")


def test_one_function_may_fill_several_fields_and_arrays(tmp_path: Path) -> None:
    text = """
typedef struct { int re, im; } pair;
static void fill(pair t[32], float u[32]) {
  for (int i = 0; i < 32; i++) { t[i].re = 3 * i; t[i].im = -i; u[i] = 1.0f / i; }
}
void top(const int a[32], int o[32], float p[32]) {
  pair t[32];
  float u[32];
  fill(t, u);
  for (int i = 0; i < 32; i++) { o[i] = a[i] * t[i].re + t[31 - i].im; p[i] = u[i]; }
}
"""
    kernel = read(tmp_path, text)
    assert {array.name for array in kernel.tables} == {"t.re", "t.im", "u"}
    assert next(words for array, words in kernel.tables.items() if array.name == "u")[0] == math.inf
    assert pipelines(kernel) == 1
    assert check_values(tmp_path / "kernel.cpp", "top").equal


@pytest.mark.parametrize("call", ["ramp(t); if (a[0] > 0) t[3] = 1;", "ramp(t); add(t);"])
def test_what_a_condition_or_a_function_stores_later_counts(tmp_path: Path, call: str) -> None:
    text = filled(call).replace("static void half", "static void add(int t[64]) { t[5] += 2; }\nstatic void half")
    kernel = read(tmp_path, text)
    assert not kernel.tables
    assert check_values(tmp_path / "kernel.cpp", "top").equal


def test_a_function_that_changes_something_else_as_well_is_not_left_out(tmp_path: Path) -> None:
    text = """
int runs;
static void ramp(int t[32], int by) {
  runs += by;
  for (int i = 0; i < 32; i++) t[i] = 3 * i;
}
void top(const int a[32], int o[32]) {
  int t[32];
  runs = 0;
  ramp(t, 5);
  for (int i = 0; i < 32; i++) o[i] = a[i] + t[i] + runs;
}
"""
    assert read(tmp_path, text).notes == ["t is a ROM: what fills it at kernel.cpp:5:3 is known, and takes no time"]
    assert check_values(tmp_path / "kernel.cpp", "top").equal


@pytest.mark.parametrize(
    "body",
    [
        "init(t, 4); init(t, 5); for (int i = 0; i < 32; i++) { o[i] = a[i] + t[i]; p[i] = t[31 - i]; }",
        "use(a, o, 3); use(a, p, 4);",
        "use(a, o, 3); use(a, p, 3);",
    ],
)
def test_calls_with_other_constants_fill_no_table(tmp_path: Path, body: str) -> None:
    text = f"""
static void init(int t[32], int k) {{ for (int i = 0; i < 32; i++) t[i] = i + k; }}
static void use(const int a[32], int o[32], int k) {{
  int t[32];
  init(t, k);
  for (int i = 0; i < 32; i++) o[i] = a[i] + t[i];
}}
void top(const int a[32], int o[32], int p[32]) {{
  int t[32];
  {body}
}}
"""
    assert bool(read(tmp_path, text).tables) is ("p, 3" in body)
    assert check_values(tmp_path / "kernel.cpp", "top").equal


@settings(max_examples=4)
@given(
    st.integers(-9, 9), st.integers(1, 7), st.integers(0, 3), st.sampled_from(["+", "-", "*", "&", "|", "^"]),
    st.sampled_from(["int", "short", "unsigned char", "long", "float", "double"]),
)  # fmt: skip
def test_random_tables_are_what_the_source_computes(
    tmp_path_factory: pytest.TempPathFactory, a: int, b: int, c: int, sign: str, kind: str
) -> None:
    tmp_path = tmp_path_factory.mktemp("table")
    cast = "(int)(8 * t[i])" if kind in ("float", "double") else "(int)t[i]"
    fill = f"({kind})((({a} * i) {sign} (i % {b} + {c})) / {'3.0' if kind in ('float', 'double') else '3'})"
    text = f"""
void top(const int a[40], int o[40]) {{
  {kind} t[40];
  for (int i = 0; i < 40; i++) t[i] = {fill};
  for (int i = 0; i < 40; i++) o[i] = a[i] ^ {cast};
}}
"""
    assert len(read(tmp_path, text).tables) == 1
    assert check_values(tmp_path / "kernel.cpp", "top").equal
