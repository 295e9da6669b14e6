"""What csynth counts beside operators, as its tables print it (2023.2, 3.33 ns)."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.hls_in.area import Area, area_of, starting
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fabric import fifo_area, multiplexer
from penstock.compiler.hls_in.records import DataflowRegion
from penstock.compiler.hls_in.timed import time_kernel


def _area(tmp_path: Path, text: str) -> Area:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    delays = delays_for(1000 / 3.33)
    return area_of(time_kernel(read_kernel(path, "top"), delays), delays)


@pytest.mark.parametrize(
    ("depth", "bits", "luts", "flip_flops"),
    [(2, 32, 53, 68), (3, 8, 19, 5), (25, 32, 50, 8), (80, 32, 179, 121), (250, 32, 70, 92), (44000, 32, 78, 95)],
)
def test_fifos_are_those_of_the_reports(depth: int, bits: int, luts: int, flip_flops: int) -> None:
    lut, ff = fifo_area(depth, bits)
    assert ff == flip_flops
    assert abs(lut - luts) <= 2


def test_multiplexers_are_those_of_the_reports() -> None:
    assert [multiplexer(inputs) for inputs in (1, 2, 3, 4, 5, 9)] == [0, 9, 14, 20, 26, 49]


def test_a_double_that_was_a_float_again_at_once_is_no_operator(tmp_path: Path) -> None:
    """Times 0.5 is one multiplier of floats, times 0.1 one of doubles: ele_add of 2mm by Allo and by HeteroCL."""
    line = "void top(float a[64], float b[64]) {{ for (int i = 0; i < 64; i++) b[i] = a[i] * {}; }}"
    assert _area(tmp_path, line.format("0.5")).dsp == 3
    assert _area(tmp_path, line.format("0.1")).dsp == 8


def test_a_sum_that_is_used_late_is_a_shift_register(tmp_path: Path) -> None:
    """A loaded word that waits for a product: 32 LUTs and at least as many flip-flops as a shift register has."""
    line = "void top(float a[64], float b[64], float c[64]) {{ for (int i = 0; i < 64; i++) c[i] = {}; }}"
    at_once = _area(tmp_path, line.format("(a[i] + b[i]) * 3.0f"))
    later = _area(tmp_path, line.format("(a[i] + b[i]) * a[i]"))
    assert (later.lut - at_once.lut, later.ff - at_once.ff) == (32, 64)


def test_two_regions_share_an_adder_through_multiplexers(tmp_path: Path) -> None:
    loop = "for (int i = 0; i < 64; i++) b[i] = {} + 1.0f;"
    once = _area(tmp_path, f"void top(float a[64], float b[64]) {{ {loop.format('a[i]')} }}")
    twice = _area(tmp_path, f"void top(float a[64], float b[64]) {{ {loop.format('a[i]')} {loop.format('b[i]')} }}")
    assert twice.dsp == once.dsp == 2
    assert twice.lut > 2 * (once.lut - 198) + 198  # an adder of 198 LUTs, and what chooses its operands


def _products(terms: int, first: str) -> str:
    """A product of matrices in tiles whose sums take the whole interval to come back."""
    return f"""#include <hls_stream.h>
void top(hls::stream<float> &in, float a[64][64], float b[64][64], float c[64][64]) {{
#pragma HLS array_partition variable=a complete dim=0
#pragma HLS array_partition variable=b complete dim=0
#pragma HLS array_partition variable=c cyclic factor=4 dim=1
#pragma HLS array_partition variable=c cyclic factor=4 dim=2
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++)
      for (int k = 0; k < 4; k++) {{
#pragma HLS pipeline II=1
        for (int x = 0; x < 4; x++)
          for (int y = 0; y < 4; y++)
            for (int z = 0; z < {terms}; z++) {{
              float p = a[x][z];
              if ({first}) p = in.read();
              c[4 * i + x][4 * j + y] += p * b[z][y];
            }}
      }}
}}
"""


def _units(tmp_path: Path, text: str) -> tuple[int, dict[str, int]]:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    timed = time_kernel(read_kernel(path, "top"), delays_for(1000 / 3.33))
    found = max(timed.schedules.values(), key=lambda one: one.ii)
    return found.ii, {name.partition(".")[2]: count for name, count in found.units.items()}


def test_adders_are_so_many_that_the_pipeline_has_no_turn_more(tmp_path: Path) -> None:
    """Four terms each: the 16 usual adders of seven loops of k7mmseq by Stream-HLS are four, where two would do."""
    ii, units = _units(tmp_path, _products(4, "false"))
    assert (ii, units["addf:32:fabric"], units["addf:32:dsp"]) == (12, 4, 4)


def test_rings_of_long_sums_in_a_loop_that_reads_tokens_have_adders_of_their_own(tmp_path: Path) -> None:
    """As 20 of 20, 22 of 22 and 10 of 10 sums of three loops of k3mm, k2mm and atax by Stream-HLS nearly do."""
    reading = "k == 0 && x == 0 && y == 0"
    shared = _units(tmp_path, _products(10, "false"))
    apart = _units(tmp_path, _products(10, reading))
    assert (shared[0], shared[1]["addf:32:fabric"]) == (16, 4)
    assert (apart[0], apart[1]["addf:32:fabric"]) == (16, 16)
    assert _units(tmp_path, _products(4, reading))[1]["addf:32:fabric"] == 4


@pytest.mark.parametrize(
    ("calls", "luts", "flip_flops"),
    [
        ("copy(a, x); join(x, x, out);", 0, 0),
        ("copy(a, x); join(x, b, out);", 30, 2),  # atax, gemm and gesummv by Stream-HLS
        ("copy(a, x); copy(b, y); copy(c, z); join(x, y, out); join(z, z, last);", 45, 3),  # mvt
        ("copy(a, x); copy(b, y); copy(c, z); copy(z, w); join(x, y, w2); join(w, w2, out);", 43, 3),  # k2mm
    ],
)
def test_tasks_that_read_arguments_start_together(calls: str, luts: int, flip_flops: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(f"""void copy(float a[64], float b[64]) {{ for (int i = 0; i < 64; i++) b[i] = a[i]; }}
void join(float x[64], float y[64], float z[64]) {{ for (int i = 0; i < 64; i++) z[i] = x[i] + y[i]; }}
void top(float a[64], float b[64], float c[64], float out[64], float last[64]) {{
#pragma HLS dataflow
  float x[64], y[64], z[64], w[64], w2[64];
  {calls}
}}
""")
    (flow,) = read_kernel(path, "top").body
    assert isinstance(flow, DataflowRegion)
    assert starting([task.body for task in flow.tasks]) == (luts, flip_flops)
