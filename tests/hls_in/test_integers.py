"""Integers without signs, of any width, bit by bit: source, nests and emitted C++ give the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.profiling.kernels.values import check_values

UNSIGNED = """
#include <stdint.h>
void top(uint32_t a[16], uint8_t b[16], uint32_t r[16], int32_t q[16], uint8_t s[16], float f[16]) {
  for (int i = 0; i < 16; i++) {
    uint32_t x = a[i];
    uint8_t y = b[i];
    unsigned short z = (unsigned short)(x >> 3);
    int d = y - 100;
    uint32_t m = x * 2654435761u;
    m ^= m >> 15;
    m += (uint32_t)d;
    bool big = x > 0x80000000u;
    bool less = (int)x < d;
    r[i] = big ? m >> (y & 7) : m << 3;
    q[i] = less ? (int)(z - y) : -(int)y;
    s[i] = (uint8_t)(~y + (x & 0xf0) - z);
    f[i] = (float)x * 0.5f + (float)y;
  }
}
"""
HASH = """
typedef unsigned int u32;
static const u32 K[4] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5};
#define ROTATE(x, n) (((x) >> (n)) | ((x) << (32 - (n))))
void top(const u32 message[4], u32 hash[4]) {
  u32 a = hash[0], b = hash[1], c = hash[2], d = hash[3];
  for (int i = 0; i < 4; i++) {
    u32 t = d + (ROTATE(a, 6) ^ ROTATE(a, 11)) + ((a & b) ^ (~a & c)) + K[i] + message[i];
    d = c; c = b; b = a; a = t;
  }
  hash[0] += a; hash[1] += b; hash[2] += c; hash[3] += d;
}
"""
ANY_WIDTH = """
#include <ap_int.h>
void top(unsigned a[16], short b[16], int r[16], unsigned long long w[16]) {
  for (int i = 0; i < 16; i++) {
    ap_uint<10> x = a[i];
    ap_int<7> y = b[i];
    ap_uint<5> z = x >> 2;
    int d = x - z;
    ap_int<12> e = y - x;
    ap_uint<24> m = x * z + 7;
    ap_uint<33> big = m;
    big = big * 1000;
    z += y;
    r[i] = d + e + (x > 500 ? 1 : 0) + (y < z ? 2 : 0);
    w[i] = big + (unsigned long long)z;
  }
}
"""
BITS = """
#include <ap_int.h>
template <int N> ap_uint<8> ones(ap_uint<N> v) {
#pragma HLS INLINE
  ap_uint<8> count = 0;
  for (int i = 0; i < N; i++) {
#pragma HLS UNROLL
    count += v[i];
  }
  return count;
}
void top(unsigned in[12], unsigned w[4], unsigned char out[12], unsigned r[12]) {
  for (int p = 0; p < 12; p++) {
#pragma HLS pipeline II=1
    ap_uint<32> x = in[p];
    ap_uint<4> q = 0;
    for (int k = 0; k < 4; k++) {
      ap_uint<32> m = ~(x ^ ap_uint<32>(w[k]));
      q[k] = ones<32>(m) > 14;
    }
    out[p] = q;
    ap_uint<16> low = x.range(15, 0);
    ap_uint<16> high = x(31, 16);
    ap_uint<32> y = (low, high);
    y.range(11, 8) = q;
    y[3] = x[7];
    y <<= 3;
    ap_int<9> s = x.range(8, 0);
    r[p] = y + s;
  }
}
"""
ARGUMENTS = """
#include <ap_int.h>
#include <algorithm>
#include <iostream>
typedef ap_int<8> i8;
typedef ap_int<32> i32;
extern "C" {
void top(i8 a[8][8], i8 b[8][8], i32 c[8][8]) {
#pragma HLS INTERFACE m_axi port=a offset=slave bundle=gmem0 depth=64
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 8; j++) {
#pragma HLS PIPELINE II=8
      i32 s = 0;
      for (int k = 0; k < 8; k++) {
        ap_int<16> p = a[i][k] * b[k][j];
        s += p;
      }
      c[i][j] = s > 127 ? i32(127) : std::max(s, i32(-128));
    }
  }
}
}
"""


@pytest.mark.parametrize(
    "text",
    [UNSIGNED, HASH, ANY_WIDTH, BITS, ARGUMENTS],
    ids=["unsigned", "hash", "of any width", "bit by bit", "arguments"],
)
def test_integers_mean_what_the_source_says(text: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(text)
    found = check_values(source, "top")
    assert [(level.level, level.first) for level in found.levels] == [("interpreter", ""), ("emitted C++", "")]


def test_a_range_of_changing_width_is_refused_with_its_place(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text(
        "#include <ap_int.h>\nvoid top(unsigned a[8]) {\n"
        "  for (int i = 0; i < 8; i++) { ap_uint<32> x = a[i]; a[i] = x.range(i, 0); } }\n"
    )
    with pytest.raises(PenstockError, match="a range of bits that is not always as wide") as caught:
        read_kernel(source, "top")
    assert caught.value.where == "kernel.cpp:3:62"


CARRIED = """
#include <ap_int.h>
void top(const TYPE in[32], TYPE out[32]) {
  TYPE acc = 0;
  for (int i = 0; i < 32; i++) {
#pragma HLS pipeline II=1
    BODY
    out[i] = acc;
  }
}
"""


def test_one_bit_with_a_sign_is_refused(tmp_path: Path) -> None:
    """It holds 0 and -1, not 0 and 1."""
    source = tmp_path / "k.cpp"
    source.write_text(
        '#include "ap_int.h"\nvoid top(ap_int<1> a[4], int b[4]) {\n  for (int i = 0; i < 4; i++) b[i] = a[i];\n}\n'
    )
    with pytest.raises(PenstockError, match=r"k\.cpp:2:20: 'a' of type ap_int<1>.*write ap_uint<1>"):
        check_values(source, "top")


@pytest.mark.parametrize("body", ["acc = acc ^ in[i];", "acc += in[i];", "acc++; acc -= in[i] >> 1;"])
@pytest.mark.parametrize("of", ["int", "ap_int<7>", "ap_uint<5>", "ap_uint<32>"])
def test_what_a_loop_assigns_goes_on_from_iteration_to_iteration(tmp_path: Path, of: str, body: str) -> None:
    """An assignment to a number of any width is a call of an operator, and its arrays lie in the fewest bytes."""
    source = tmp_path / "k.cpp"
    source.write_text(CARRIED.replace("TYPE", of).replace("BODY", body))
    assert check_values(source, "top").equal


NARROW = {
    "a counter that wraps": "ap_uint<5> a = in[i]; ap_uint<4> b = i; out[i] = a - b;",
    "a counter in a byte": "unsigned char c = i * 24; out[i] = c;",
    "beside each other": "ap_uint<4> a = in[i], b = i; out[i] = (a, b);",
    "one bit": "ap_uint<1> b = in[i]; b += in[i] >> 1; b ^= i; out[i] = b;",
    "a bool": "bool b = in[i]; out[i] = b;",
    "after and before": "ap_uint<6> a = in[i]; out[i] = a++; ++a; out[i] += 64 * a;",
}


@pytest.mark.parametrize("body", NARROW.values(), ids=NARROW)
def test_what_is_narrower_than_what_it_is_given_wraps(tmp_path: Path, body: str) -> None:
    source = tmp_path / "k.cpp"
    head = "#include <ap_int.h>\nvoid top(const int in[32], int out[32]) "
    source.write_text(f"{head}{{ for (int i = 0; i < 32; i++) {{ {body} }} }}\n")
    assert check_values(source, "top").equal


def test_what_is_asked_of_all_bits_and_done_to_one(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include <inttypes.h>
    #include "ap_int.h"
    void top(const int32_t a[64], int32_t o[64]) {
      for (int i = 0; i < 64; i++) {
        ap_uint<7> u = a[i];
        ap_int<5> s = a[i] >> 3;
        ap_uint<7> back = u;
        back.reverse();
        ap_uint<7> one = u;
        one.set(2);
        one.clear(i % 3 + 3);
        one.invert(6);
        o[i] = back | u.and_reduce() << 8 | u.or_reduce() << 9 | u.xor_reduce() << 10 | s.sign() << 11
             | s.and_reduce() << 12 | s.iszero() << 13 | one.to_bool() << 14 | one.to_long() << 15;
      }
    }""")
    check = check_values(path, "top", sets=3)
    assert check.equal, check.levels
