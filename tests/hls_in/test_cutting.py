"""Memories that the tool cuts on its own account: banks as csynth lists them of public designs (2023.2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.schedule import ScheduledPipeline
from penstock.compiler.hls_in.timed import Timed, time_kernel


def _timed(tmp_path: Path, text: str) -> Timed:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    return time_kernel(read_kernel(path, "top"), delays_for(1000 / 3.33))


def _cut(timed: Timed, name: str) -> list[int]:
    array = next(array for array in timed.kernel.arrays if array.name == name)
    return [array.cut(d)[1] for d in range(len(array.dims))]


def _pipeline(timed: Timed, name: str) -> ScheduledPipeline:
    return next(f for item, f in timed.schedules.items() if isinstance(item, Pipeline) and item.name == name)


_PADDED = """#include <hls_stream.h>
void top(float in[{c}][{n}][{n}], float w[{c}][3][3], float out[{c}][{n}][{n}]) {{
#pragma HLS DATAFLOW
#pragma HLS array_partition variable=in complete dim=0
#pragma HLS array_partition variable=out complete dim=0
  float kept[{c}][{n} + 2][{n} + 2];
  fill: for (int i = 0; i < {c} / {u}; i++) for (int j = 0; j < {n} / 2; j++) for (int k = 0; k < {n}; k++) {{
    #pragma HLS pipeline II=1
    for (int x = 0; x < {u}; x++) for (int y = 0; y < 2; y++)
      kept[{u} * i + x][2 * j + y + 1][k + 1] = in[{u} * i + x][2 * j + y][k];
  }}
  use: for (int i = 0; i < {c} / {u}; i++) for (int j = 0; j < {n} / 2; j++) for (int k = 0; k < {n} / {z}; k++) {{
    #pragma HLS pipeline II=1
    for (int x = 0; x < {u}; x++) for (int y = 0; y < 2; y++) for (int z = 0; z < {z}; z++)
      out[{u} * i + x][2 * j + y][{z} * k + z] = kept[{u} * i + x][2 * j + y][{z} * k + z + 2] * {w};
  }}
}}
"""


@pytest.mark.parametrize(
    ("form", "cut"),
    [
        ({"c": 8, "u": 1, "n": 112, "z": 14, "w": "0.5f"}, [1, 1, 14]),
        ({"c": 16, "u": 2, "n": 56, "z": 1, "w": "0.5f"}, [1, 2, 1]),
        ({"c": 16, "u": 2, "n": 56, "z": 7, "w": "(w[i][0][x] + w[i][1][x] + w[i][2][x])"}, [1, 2, 3]),
    ],
)
def test_a_memory_has_as_many_banks_as_the_ii_needs_that_arguments_leave(
    form: dict[str, object], cut: list[int], tmp_path: Path
) -> None:
    """The last dimension first: 28 words of an iteration in 14 banks of the last one, four in two of the one before
    (v4 of two convolution blocks by Stream-HLS). Where two ports of an argument give an iteration three cycles for its
    six words, 28 words need five banks: two are there already, so three in the last dimension do."""
    timed = _timed(tmp_path, _PADDED.format(**form))
    array = next(array for array in timed.kernel.arrays if array.name == "kept")
    assert [array.cut(d)[1] for d in range(3)] == cut


def test_a_number_of_banks_that_is_no_power_of_two_takes_a_remainder_to_choose_from(tmp_path: Path) -> None:
    """loop6 of DepthwiseSeparableConvBlock, opt3: seven bits are divided by 14, at a depth of 12."""
    timed = _timed(tmp_path, _PADDED.format(c=8, u=1, n=112, z=14, w="0.5f"))
    assert next(iter(timed.schedules.values())).depth == 12


_FILLED = """#include <hls_stream.h>
void top(hls::stream<float> in[4], float a[8][256], float out[8][256]) {
#pragma HLS array_partition variable=a cyclic factor=4 dim=2
#pragma HLS array_partition variable=out cyclic factor=4 dim=2
  float kept[256];
  for (int r = 0; r < 8; r++) for (int k = 0; k < 64; k++) {
    #pragma HLS pipeline II=1
    for (int z = 0; z < 4; z++) {
      if (r == 0) kept[4 * k + z] = in[z].read();
      out[r][4 * k + z] = kept[4 * k + z] * a[r][4 * k + z];
    }
  }
}
"""


def test_a_word_that_a_token_fills_is_chosen_where_the_memory_is_in_pieces(tmp_path: Path) -> None:
    """Loops of two networks by Stream-HLS are as deep as where a pragma cuts the memory."""
    pragma = "float kept[256];\n#pragma HLS array_partition variable=kept cyclic factor=4\n"
    timed, told = (_timed(tmp_path, text) for text in (_FILLED, _FILLED.replace("float kept[256];", pragma)))
    assert next(array for array in timed.kernel.arrays if array.name == "kept").banks == 4
    assert [f.depth for f in timed.schedules.values()] == [f.depth for f in told.schedules.values()]


_TWO_STORES = """void top(float in[64][16], float out[64]) {
  float sums[16];
  for (int r = 0; r < 64; r++) for (int k = 0; k < 16; k++) {
    #pragma HLS pipeline II=1
    if (r % 8 == 0) sums[k] = 1.0f;
    sums[k] = sums[k] * in[r][k];
    if (k == 15) out[r] = sums[k];
  }
}
"""


def test_two_stores_of_one_word_take_one_port(tmp_path: Path) -> None:
    """Two convolution blocks by Stream-HLS, opt2, at II 1 with a memory in one piece."""
    assert [f.ii for f in _timed(tmp_path, _TWO_STORES).schedules.values()] == [1]


_PAIRS = """void top(float a[8][64], float b[64], float out[8]) {
#pragma HLS array_partition variable=a cyclic factor=2 dim=2
#pragma HLS array_partition variable=b cyclic factor=2
  for (int i = 0; i < 8; i++) for (int k = 0; k < 32; k++) {
    #pragma HLS pipeline II=1
    for (int z = 0; z < 2; z++) {
      if (2 * k + z == 0) out[i] = 0;
      out[i] += a[i][2 * k + z] * b[2 * k + z];
    }
  }
}
"""


def test_the_first_of_two_additions_is_without_dsps_where_the_second_comes_back(tmp_path: Path) -> None:
    """Three loops of two networks by Stream-HLS: as many adders of one kind as of the other."""
    units = next(iter(_timed(tmp_path, _PAIRS).schedules.values())).units
    assert (units["arith.addf:32:dsp"], units["arith.addf:32:fabric"]) == (1, 1)
