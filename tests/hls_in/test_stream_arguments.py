"""Tops whose arguments are streams: their tokens are values at every level."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.fence import read_sources
from penstock.profiling.kernels.explore.compare import arguments_of, compare_sources
from penstock.profiling.kernels.explore.search import explore_kernel
from penstock.profiling.kernels.values import check_values

TOKENS = """#include <ap_axi_sdata.h>
#include <ap_int.h>
#include <hls_stream.h>
#include <hls_vector.h>
struct point { float x; short y[2]; };
typedef ap_axiu<32, 0, 0, 0> packet;
void top(hls::stream<point> &a, hls::stream<hls::vector<float, 4>> &b, hls::stream<packet> &c, hls::stream<int> d[2],
         hls::stream<packet> &out, hls::stream<float, 8> &sums) {
  for (int i = 0; i < 12; i++) {
    point p = a.read();
    hls::vector<float, 4> v = b.read();
    packet k = c.read();
    if (i % 3 == 0) sums << p.x + p.y[0] * p.y[1] + v[0] + v[3];
    k.data = k.data + d[0].read() * 2 - d[1].read();
    out.write(k);
  }
}
"""

PHASES = """#include <hls_stream.h>
void twice(hls::stream<int> &in, hls::stream<int> &out) {
  for (int i = 0; i < 24; i++) out.write(2 * in.read());
}
void folded(hls::stream<int> &in, int by, hls::stream<int> &out) {
  int sum = 0;
  for (int i = 0; i < 24; i++) {
    sum += in.read() * by;
    if (i % 8 == 7) out.write(sum);
  }
}
void top(hls::stream<int> &in, int by, hls::stream<int> &out) {
#pragma HLS DATAFLOW
  hls::stream<int> between("between");
  twice(in, between);
  folded(between, by, out);
}
"""


@pytest.mark.parametrize(("text", "compared"), [(TOKENS, 12 * 7 + 4), (PHASES, 3)])
def test_tokens_are_the_source_s_at_every_level(text: str, compared: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    found = check_values(path, "top", rtl=True)
    assert [level.compared for level in found.levels] == [compared] * 3
    assert found.equal, found.to_json()


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (("* 2 -", "* 2 +"), 12),  # another value in each token
        (("i % 3 == 0", "i % 3 == 1 && i > 1"), 4),  # one token less: the last place of the stream, and all before
        (("i < 12; i++) {", "i < 11; i++) {"), 16 + 7),  # tokens that nobody takes, and those that do not come
    ],
)
def test_two_sources_differ_in_values_and_in_numbers_of_tokens(
    change: tuple[str, str], by: int, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(TOKENS)
    arguments = tuple(arguments_of(path, "top"))
    compared, different = compare_sources(read_sources(path), "top", TOKENS, arguments)
    assert (compared, different) == (12 * 16 + 12 * 7 + 4, 0)
    other = TOKENS.replace(*change)
    assert other != TOKENS
    assert compare_sources(read_sources(path), "top", other, arguments)[1] == by


def test_loops_with_streams_keep_the_order_of_their_tokens(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include <hls_stream.h>
void top(hls::stream<float> &in, const float w[16][16], hls::stream<float> &out) {
  float kept[16][16], made[16][16];
  for (int j = 0; j < 16; j++)
    for (int i = 0; i < 16; i++) { float x; in >> x; kept[i][j] = x; }
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      made[i][j] = 0;
      for (int k = 0; k < 16; k++) made[i][j] += kept[i][k] * w[k][j];
    }
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) out << made[i][j];
}
""")
    found = explore_kernel(path, "top", limits={"dsp": 200}, trials=24)
    assert found.latency < found.latency_before
    assert (found.compared, found.equal) == (3 * 256, True)


def test_a_stream_with_both_ends_inside_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include <hls_stream.h>
void top(hls::stream<int> &both, int a[8]) {
  for (int i = 0; i < 8; i++) both.write(a[i]);
  for (int i = 0; i < 8; i++) a[i] = both.read() + 1;
}
""")
    with pytest.raises(PenstockError, match="'both' is a stream that is read and written"):
        check_values(path, "top")
