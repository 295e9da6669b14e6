"""What csynth counts beside operators, as its tables print it (2023.2, 3.33 ns)."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.hls_in.area import Area, area_of
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fabric import fifo_area, multiplexer
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
