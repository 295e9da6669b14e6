"""Kernels with fixed point, structs and addresses that data decide: explored, and their values held by a compiler."""

from __future__ import annotations

import subprocess
from fractions import Fraction
from math import floor
from pathlib import Path

import pytest

from penstock.compiler.hls_in.fence import read_sources
from penstock.compiler.hls_in.parsing import parse
from penstock.profiling.csim import find_compiler
from penstock.profiling.kernels.explore.compare import arguments_of, compare_sources
from penstock.profiling.kernels.explore.moves import nests_of
from penstock.profiling.kernels.explore.search import explore_kernel
from penstock.profiling.kernels.explore.source import read_source
from penstock.profiling.kernels.values import HEADERS

SOURCES = {
    "fixed point": """#include <ap_fixed.h>
#include <ap_int.h>
typedef ap_fixed<12, 5> number;
void top(number a[16][8], ap_ufixed<7, 2> b[8], ap_int<5> c[16], number out[16]) {
  for (int i = 0; i < 16; i++) {
    number sum = c[i];
    for (int j = 0; j < 8; j++) sum += a[i][j] * b[j];
    if (sum < 0) sum = -sum;
    out[i] = sum / 3;
  }
}
""",
    "structs": """#include <cmath>
struct body { float x; short mass; double y; };
void top(body p[12], float far[12]) {
  for (int i = 0; i < 12; i++) {
    float sum = 0;
    for (int j = 0; j < 12; j++) sum += std::sqrt((p[i].x - p[j].x) * (p[i].x - p[j].x) + 1.0f) * p[j].mass;
    far[i] = sum;
    p[i].y = sum;
  }
}
""",
    "addresses of data": """
void top(const int near[64], const float x[16], float y[16]) {
  for (int i = 0; i < 16; i++) {
    float sum = 0;
    for (int j = 0; j < 4; j++) { int at = near[4 * i + j]; sum += x[at]; }
    y[i] = sum;
  }
}
""",
}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_they_become_faster_and_keep_their_values(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOURCES[name])
    found = explore_kernel(path, "top", limits={"dsp": 200}, trials=24)
    assert found.equal
    assert found.compared > 16
    assert found.latency < found.latency_before


def test_loops_that_stay_are_no_reason_to_refuse_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""void top(float c[12][12], float a[12][8]) {
  for (int i = 0; i < 12; i++)
    for (int k = 0; k < 8; k++)
      for (int j = 0; j <= i; j++) c[i][j] += a[j][k] * a[i][k];
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < 12; j++) c[i][j] *= 2;
}
""")
    found = explore_kernel(path, "top", limits={"dsp": 200}, trials=12)
    assert found.equal
    assert found.latency < found.latency_before  # by the loop behind them


GATHERED = {
    "a sum in a variable": """
void top(const float a[16][8], const float b[8][16], float c[16][16]) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      float sum = 0;
      for (int k = 0; k < 8; k++) sum += a[i][k] * b[k][j];
      c[i][j] = sum;
    }
}
""",
    "a window with edges": """
#define N 12
static int clipped(int v) { return v > 255 ? 255 : v < 0 ? 0 : v; }
void top(const int in[N][N], const int w[3][3], int out[N][N]) {
  for (int y = 0; y < N; y++)
    for (int x = 0; x < N; x++) {
      int sum = 0;
      for (int u = 0; u < 3; u++)
        for (int v = 0; v < 3; v++) {
          int row = y + u - 1, column = x + v - 1;
          if (row >= 0 && row < N && column >= 0 && column < N) sum += in[row][column] * w[u][v];
        }
      out[y][x] = clipped(sum / 4);
    }
}
""",
}


@pytest.mark.parametrize("name", sorted(GATHERED))
def test_loops_around_a_sum_in_a_variable_are_a_nest(name: str, tmp_path: Path) -> None:
    """Of both, all turns of the inner loops are done at once; so a run takes fewer turns than there are results."""
    path = tmp_path / "kernel.cpp"
    path.write_text(GATHERED[name])
    found = explore_kernel(path, "top", trials=30)
    assert found.equal
    assert found.latency < 130
    kept = explore_kernel(path, "top", limits={"dsp": 12}, trials=30)
    assert kept.equal
    assert kept.area["dsp"] <= 12
    assert found.latency < kept.latency <= kept.latency_before


@pytest.mark.parametrize(
    "helper",
    [
        "int seen; static int next(int v) { return seen = v + seen; }",
        "static int next(int v) { static int seen; seen += v; return seen; }",
        "int seen = 3; static int next(int v) { return v + seen; } void other() { seen = 4; }",
    ],
)
def test_a_function_that_keeps_something_is_not_moved(helper: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(f"{helper}\nvoid top(int a[8][8]) {{ for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) "
                    "a[j][i] = next(a[j][i]); }\n")  # fmt: skip
    source = read_source(parse(path), "top")
    assert nests_of(source.nodes)[0].orders() == [(0, 1)]


def _fitted(x: Fraction, bits: int, below: int, mode: str, over: str) -> Fraction:
    scaled = x * 2**below
    down, rest = floor(scaled), scaled - floor(scaled)
    half = Fraction(1, 2)
    up = {
        "AP_TRN": False, "AP_TRN_ZERO": x < 0 and rest > 0, "AP_RND": rest >= half,
        "AP_RND_ZERO": rest > half or (rest == half and x < 0), "AP_RND_MIN_INF": rest > half,
        "AP_RND_INF": rest > half or (rest == half and x >= 0),
        "AP_RND_CONV": rest > half or (rest == half and down % 2 == 1),
    }[mode]  # fmt: skip
    whole, high = down + up, 2 ** (bits - 1) - 1
    low = -high if over == "AP_SAT_SYM" else -high - 1
    if over == "AP_WRAP":
        return Fraction((whole + high + 1) % 2**bits - high - 1, 2**below)
    if not low <= whole <= high:
        whole = 0 if over == "AP_SAT_ZERO" else max(low, min(high, whole))
    return Fraction(whole, 2**below)


def test_fixed_point_rounds_and_keeps_its_range_as_its_type_says(tmp_path: Path) -> None:
    """All modes, on all quarters around the range of six bits; held against exact fractions."""
    modes = ("AP_TRN", "AP_TRN_ZERO", "AP_RND", "AP_RND_ZERO", "AP_RND_MIN_INF", "AP_RND_INF", "AP_RND_CONV")
    ways = [(mode, over) for mode in modes for over in ("AP_WRAP", "AP_SAT", "AP_SAT_ZERO", "AP_SAT_SYM")]
    lines = [f'std::printf("%.17g\\n", (double)ap_fixed<6, 5, {m}, {o}>(ap_fixed<12, 9>(n * 0.125)));' for m, o in ways]
    exact = ["(a + b)", "(a - b)", "(a * b)", "(a - 3)", "(-a)"]
    lines += [f'std::printf("%.17g\\n", {one}.to_double());' for one in exact]
    lines += ['std::printf("%d %d\\n", (int)a, a < b);']
    program = tmp_path / "fixed.cpp"
    program.write_text(
        "#include <cstdio>\n#include <ap_fixed.h>\nint main() {\n  for (int n = -300; n < 300; n++) {\n"
        "    ap_fixed<12, 9> a = n * 0.125; ap_ufixed<7, 3> b = (n + 300) % 100 * 0.0625;\n"
        + "\n".join(lines) + "\n  }\n}\n"
    )  # fmt: skip
    built = tmp_path / "fixed"
    subprocess.run([find_compiler(), "-std=c++14", "-I", str(HEADERS), str(program), "-o", str(built)], check=True)
    said = iter(subprocess.run([str(built)], check=True, capture_output=True, text=True).stdout.split())
    for n in range(-300, 300):
        a, b = Fraction(n, 8), Fraction((n + 300) % 100, 16)
        for mode, over in ways:
            assert Fraction(next(said)) == _fitted(a, 6, 1, mode, over), (n, mode, over)
        for wanted in (a + b, a - b, a * b, a - 3, -a):
            assert Fraction(next(said)) == wanted
        assert (int(next(said)), int(next(said))) == (int(a), a < b)


def test_a_difference_that_large_numbers_alone_show_is_one(tmp_path: Path) -> None:
    """Where counters alone say where a kernel reads, no numbers lead out of its arrays."""
    path = tmp_path / "kernel.cpp"
    path.write_text("void top(const int a[16], int b[16]) { for (int i = 0; i < 16; i++) b[i] = a[i]; }\n")
    other = path.read_text().replace("b[i] = a[i]", "b[i] = a[i] & 15")
    compared, different = compare_sources(read_sources(path), "top", other, tuple(arguments_of(path, "top")))
    assert compared == 32
    assert different > 0


SOBEL = """
void top(const short in[12][12], short out[12][12]) {
  static const int kx[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
  for (int y = 1; y < 11; y++)
    for (int x = 1; x < 11; x++) {
      int s = 0;
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) s += kx[i][j] * in[y + i - 1][x + j - 1];
      out[y][x] = s < 0 ? -s : s;
    }
}
"""


def test_a_table_of_the_functions_own_hinders_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(SOBEL)
    found = explore_kernel(path, "top", trials=16)
    assert found.equal
    assert found.latency < found.latency_before / 4


def test_what_a_function_remembers_of_its_first_call_stays(tmp_path: Path) -> None:
    """Even if it is constant: what it begins with is an argument of that call."""
    path = tmp_path / "kernel.cpp"
    path.write_text(SOBEL.replace("{{-1,", "{{in[0][0],"))
    found = explore_kernel(path, "top", trials=16)
    assert found.equal
    assert found.latency == found.latency_before
