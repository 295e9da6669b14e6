"""Corners of C++ that kernels of strangers turn: what is read is what the machine's compiler makes of the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.profiling.kernels.values import check_values

KERNELS = {
    "bools are counted with": """
void top(const int a[32], const int b[32], int c[32], int d[32], bool e[32], int f[32]) {
  for (int i = 0; i < 32; i++) {
    bool p = a[i] > 0, q = b[i] > 0;
    c[i] = p + q;
    d[i] = (p << 3) - q;
    bool r = p;
    r += a[i];
    e[i] = r;
    int t = -p;
    t += q * 5;
    f[i] = t + (p & q) + (p | q) * 2 + (p ^ q) * 4 + ~q;
  }
}
""",
    "functions are left early": """
static int clamp(int v) { if (v < -3) return -3; if (v > 3) return 3; return v; }
static int nested(int a, int b) {
  int r = 0;
  if (a > 0) { r = 5; if (b > 0) return r + b; r += 2; } else { return -7; }
  r *= 2;
  return r;
}
static void maybe(int a, int &to) { to = 1; if (a < 0) return; to = a; }
static int first(const int a[4], int k) {
  for (int i = 0; i < 4; i++) {
#pragma HLS unroll
    if (a[i] == k) return i;
  }
  return -1;
}
void top(const int a[16], const int b[16], const int k[4], int o[16], int p[16], int q[16], int r[16]) {
  for (int i = 0; i < 16; i++) {
    o[i] = clamp(a[i]);
    p[i] = nested(a[i], b[i]);
    int m;
    maybe(b[i], m);
    q[i] = m;
    r[i] = first(k, b[i]);
  }
}
""",
    "what a condition leaves out changes nothing": """
void top(const int a[16], int o[16], int p[1]) {
  int n = 0;
  for (int i = 0; i < 16; i++) {
    int x, y;
    x = y = a[i];
    if (a[i] > 0 && (n += 3) > 10) x++;
    if (a[i] > 3 || n-- < 4) y += 2;
    y -= x--;
    o[i] = x * 10 + y + (a[i] > 2 ? n++ : n--);
  }
  p[0] = n;
}
""",
    "the last iterations of an uneven unrolling": """
void top(const int a[30], int o[30]) {
  int s = 0;
  for (int i = 0; i < 30; i++) {
#pragma HLS unroll factor=4
    s += a[i] * (i & 3);
    o[i] = s;
  }
  for (int i = 3; i <= 29; i += 2) {
#pragma HLS unroll factor=3
    o[i] += a[29];
  }
}
""",
    "divisions": """
void top(const int a[32], const int b[32], const unsigned u[32], const short t[32], const unsigned char c[32],
         int q[32], int r[32], unsigned v[32], short s[32]) {
  for (int i = 0; i < 32; i++) {
    int d = b[i];
    if (d != 0) { q[i] = a[i] / d; r[i] = a[i] % d; } else { q[i] = -1; r[i] = a[i]; }
    v[i] = u[i] / 7u + u[i] % (c[i] + 1u);
    s[i] = t[i] / 3 - t[i] % 5 + (i - 8) / 3 + (i - 20) % 7;
  }
}
""",
    "bits that are shifted away": """
#include <ap_int.h>
void top(const ap_uint<1> a[32], const int n[32], const ap_uint<64> w[32], int c[32], int d[32], int f[32],
         ap_uint<64> o[32]) {
  for (int i = 0; i < 32; i++) {
    ap_uint<1> x = a[i];
    ap_uint<64> v = w[i], t = 0;
    c[i] = x << 2;
    d[i] = x << (n[i] & 3);
    f[i] = (ap_uint<8>(x) << 3) | (x >> 1);
    for (int l = 0; l < 4; l++) {
#pragma HLS unroll
      ap_int<16> part = v.range(16 * l + 15, 16 * l);
      t.range(16 * l + 15, 16 * l) = part * 3 - l;
    }
    o[i] = t;
  }
}
""",
    "constants and counters of 64 bits": """
void top(const long long a[8], long long o[8], unsigned long long p[8], unsigned q[8]) {
  unsigned long long s = 5;
  for (int i = 0; i < 8; i++) {
    o[i] = (a[i] & 0x0000FFFFFFFFFFFFLL) + i * 10000000000LL + 0xFFFFFFFFu;
    s += a[i];
    s *= 6364136223846793005ULL;
    p[i] = 0xFFFFFFFFFFFFFFFFULL / 3 - s;
    q[i] = (a[i] > 3000000000LL) + 2 * (a[i] < -3000000000LL) + (0x80000000u >> i);
  }
}
""",
    "counters without a sign wrap": """
void top(const int a[16], int o[16], int p[16], int q[16], float r[16]) {
  for (unsigned i = 0; i < 16; i++) {
    unsigned before = i - 1;
    o[i] = (i - 3 < 5) ? a[i] : -a[i];
    p[i] = (before > 100) + (i - 20 > 100);
    q[i] = (i - 8) / 2 + (int)(i - 5) % 3;
    r[i] = i - 2;
  }
}
""",
    "pointers to numbers, several variables in a head, enumerations": """
enum Mode { PLAIN, TWICE = 5 };
static void both(int x, int *low, int &high) { *low = x & 0xff; high = x >> 8; }
void top(const int a[8], int l[8], int h[8], int o[8]) {
  int k = 0;
  for (int i = 0, j = 7; i < 8; i++, j--) {
    int p, q;
    Mode m = i & 1 ? TWICE : PLAIN;
    both(a[i], &p, q);
    l[i] = p + j;
    h[i] = q + m;
    o[i] = a[i] + k++;
    k += i % 3 == 0 ? 2 : 1;
  }
}
""",
    "what lies in memories at first, in every call and on and on": """
int shared[4] = {1, 2, 3};
static int tick(int x) { static int n = 3; static short last[4]; n += x; last[1] = n; return n + last[1] * 2; }
static int scaled(int x) { static const int k[3] = {1, 2, 3}; return k[0] * x + k[2]; }
static int moved(int x) { static const int k[3] = {7, 8, 9}; return k[0] + x * k[2]; }
void top(const int a[8], int o[8], int p[2], int q[8], float w[6]) {
  const float part[2][3] = {{1.5f}, {2.5f, 3}};
  int sums[8] = {5};
  for (int i = 0; i < 8; i++) {
    o[i] = tick(a[i]);
    int taps[3] = {i, 1};
    if (i < 4) shared[i] += a[i];
    sums[i] += scaled(a[i]) + moved(a[i]) + taps[0] + taps[1] + taps[2];
  }
  p[0] = tick(1);
  p[1] = tick(shared[3]);
  for (int i = 0; i < 8; i++) q[i] = sums[i];
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++) w[i * 3 + j] = part[i][j];
}
""",
    "names that a driver may have": """
#define T 2
#define A 3
#define R 1
#define I 4
void top(const int x[T * I], int y[T * I]) { for (int i = 0; i < T * I; i++) y[i] = x[i] * A + R; }
""",
}  # fmt: skip


@pytest.mark.parametrize("source", KERNELS.values(), ids=KERNELS.keys())
def test_it_means_what_the_compiler_makes_of_it(tmp_path: Path, source: str) -> None:
    path = tmp_path / "k.cpp"
    path.write_text(source)
    found = check_values(path, "top", sets=2)
    assert found.equal, [(level.level, level.first) for level in found.levels]
    assert all(level.compared for level in found.levels)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("for (int i = 0; i < 8; i++) { b[i] = a[i]; if (i == 4) i += 2; }", "changes its own variable 'i'"),
        ("for (int i = 0; i < 8; i++) { if (a[i] < 0) return; b[i] = a[i]; }", "a return in a loop"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, body: str, says: str) -> None:
    path = tmp_path / "k.cpp"
    path.write_text(f"void top(const int a[8], int b[8]) {{\n  {body}\n}}\n")
    with pytest.raises(PenstockError, match=says) as refused:
        read_kernel(path, "top")
    assert (refused.value.where or "").startswith("k.cpp:2:")
    assert refused.value.hint


def test_cycles_are_those_of_a_run_that_is_not_left_at_its_start(tmp_path: Path) -> None:
    path = tmp_path / "k.cpp"
    path.write_text(
        "void top(int n, const int a[8], int b[8]) { if (n < 0) return; for (int i = 0; i < 8; i++) b[i] = a[i]; }"
    )
    kernel = read_kernel(path, "top")
    assert kernel.body
    with pytest.raises(PenstockError, match="what follows a return that data decide"):
        check_values(path, "top")


@pytest.mark.slow
def test_memories_that_live_on_and_divisions_are_hardware_too(tmp_path: Path) -> None:
    path = tmp_path / "k.cpp"
    path.write_text("""
static int tick(int x) { static int n = 3; n += x; return n; }
void top(const int a[8], const int b[8], int o[8], int p[8]) {
  for (int i = 0; i < 8; i++) {
    o[i] = tick(a[i]);
    p[i] = b[i] == 0 ? a[i] % 7 : a[i] / b[i];
  }
}
""")
    found = check_values(path, "top", rtl=True)
    assert found.equal, [(level.level, level.first, level.cycles, level.simulated_cycles) for level in found.levels]
    assert [level.level for level in found.levels] == ["interpreter", "emitted C++", "SystemVerilog"]
