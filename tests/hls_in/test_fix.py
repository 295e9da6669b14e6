"""A source written back with better pragmas: never slower, fewer bits, and nothing but pragmas changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.hls_in import SAMPLE
from penstock.profiling.kernels.fix import FixedKernel, fix_kernel
from penstock.profiling.kernels.values import check_values

TOPS = {
    "streamhls__polybench__allo__atax": "kernel_atax",
    "streamhls__polybench__heterocl__2mm": "kernel",
    "streamhls__polybench__streamhls__2560_DSPs__opt1__gesummv": "forward",
    "streamhls__polybench__vitis__gemm": "kernel",
}
BANKS = """
void top(float a[64], float b[64]) {
  float held[64];
  #pragma HLS array_partition variable=held cyclic factor=2
  for (int i = 0; i < 64; i++) {
    #pragma HLS pipeline II=8
    held[i] = a[i];
  }
  for (int i = 0; i < 8; i++) { // eight at once
    #pragma HLS pipeline II=1
    for (int j = 0; j < 8; j++) b[8 * i + j] = held[8 * i + j] * 2.0f;
  }
}
"""
ONE_FIFO = """
#include <hls_stream.h>
void out(float a[64], hls::stream<float> &x) {
  for (int i = 0; i < 64; i++) x.write(a[i] < 0 ? -a[i] : a[i]);
}
void in(hls::stream<float> &x, float b[64]) {
  for (int i = 0; i < 64; i++) b[i] = x.read() * 2.0f;
}
void top(float a[64], float b[64]) {
  #pragma HLS dataflow
  hls::stream<float> x;
  out(a, x);
  in(x, b);
}
"""
STOPS = """
#include <hls_stream.h>
void two(float a[64], hls::stream<float> &x, hls::stream<float> &y) {
  for (int i = 0; i < 64; i++) x.write(a[i]);
  for (int i = 0; i < 64; i++) y.write(a[i]);
}
void one(hls::stream<float> &x, hls::stream<float> &y, float b[64]) {
  for (int i = 0; i < 64; i++) b[i] = x.read() + y.read();
}
void top(float a[64], float b[64]) {
  #pragma HLS dataflow
  hls::stream<float> x;
  hls::stream<float> y;
  #pragma HLS stream variable=y depth=200
  two(a, x, y);
  one(x, y, b);
}
"""


def _fixed(text: str, tmp_path: Path, top: str = "top") -> FixedKernel:
    source = tmp_path / "kernel.cpp"
    source.write_bytes(text.encode())
    return fix_kernel(source, top)


def _without_pragmas(text: str) -> list[str]:
    return [line for line in text.splitlines(keepends=True) if "#pragma HLS" not in line]


@pytest.mark.parametrize("name", sorted(TOPS))
def test_a_public_design_is_never_slower_and_only_its_pragmas_change(name: str) -> None:
    source = next((SAMPLE / name).glob("*.cpp"))
    text = source.read_bytes().decode()
    found = fix_kernel(source, TOPS[name])
    assert found.latency is not None
    assert found.latency_before is not None
    assert found.latency <= found.latency_before
    assert found.fifo_bits < found.fifo_bits_before or found.fifo_bits_before == 0
    assert _without_pragmas(found.text) == _without_pragmas(text)
    assert source.read_bytes().decode() == text


def test_banks_and_intervals_that_limit_a_loop_are_found(tmp_path: Path) -> None:
    found = _fixed(BANKS, tmp_path)
    assert found.latency is not None
    assert found.latency_before is not None
    assert found.latency < found.latency_before / 3
    assert any("II=8" in change and "-> II=1" in change for change in found.changes)
    assert "#pragma HLS pipeline II=8" not in found.text
    assert _without_pragmas(found.text) == _without_pragmas(BANKS)


def test_a_second_fix_finds_nothing_more(tmp_path: Path) -> None:
    again = _fixed(_fixed(BANKS, tmp_path).text, tmp_path)
    assert again.changes == ()


def test_a_kernel_that_stops_for_ever_gets_the_depth_that_it_needs(tmp_path: Path) -> None:
    found = _fixed(STOPS.replace("\n", "\r\n"), tmp_path)
    assert found.latency_before is None
    assert found.latency is not None
    assert "#pragma HLS stream variable=x depth=6" in found.text
    assert "depth=200" not in found.text
    assert all(line.endswith("\r\n") for line in found.text.splitlines(keepends=True))


def test_a_fifo_that_is_deep_enough_gets_no_deeper(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(ONE_FIFO)
    found = fix_kernel(path, "top")
    assert found.fifo_bits <= found.fifo_bits_before
    assert not found.changes


def test_a_pragma_whose_line_cannot_be_told_stays(tmp_path: Path) -> None:
    text = STOPS.replace("hls::stream<float> y;", "hls::stream<float> y; float unused[1] = {")
    text = text.replace(
        "  #pragma HLS stream variable=y depth=200", "  0};\n  #pragma HLS stream variable=y \\\n depth=200"
    )
    found = _fixed(text, tmp_path)
    assert "depth=200" in found.text
    assert "#pragma HLS stream variable=x depth=6" in found.text


@pytest.mark.slow
def test_what_is_written_back_computes_the_same(tmp_path: Path) -> None:
    for text in (BANKS, STOPS):
        source = tmp_path / "again.cpp"
        source.write_text(_fixed(text, tmp_path).text)
        assert [level.first for level in check_values(source, "top").levels] == ["", ""]


def test_no_more_sources_are_tried_than_were_asked_for(tmp_path: Path) -> None:
    """The given one counts, and so do other depths."""
    source = tmp_path / "kernel.cpp"
    source.write_text(BANKS)
    for trials in (1, 2):
        told: list[int] = []
        found = fix_kernel(source, "top", trials=trials, watch=lambda one, told=told: told.append(one.number))
        assert told == list(range(trials))
        assert (found.latency == found.latency_before) == (trials == 1)


@pytest.mark.parametrize("said", ["block factor=4", "type=block factor=4"])
def test_banks_that_were_cut_in_blocks_are_cut_in_turns(said: str, tmp_path: Path) -> None:
    """Four words side by side of each of four blocks, as distances to several items at once are computed."""
    path = tmp_path / "kernel.cpp"
    text = f"""
void top(const int a[16], int b[64]) {{
#pragma HLS ARRAY_PARTITION variable = a complete
  static int items[1056];
#pragma HLS ARRAY_PARTITION variable = items {said} dim = 1
  for (int i = 0; i < 1056; i++) items[i] = 3 * i + a[0];
  for (int i = 0; i < 64; i++) {{
#pragma HLS PIPELINE
    int sum = 0;
    for (int j = 0; j < 4; j++)
      for (int w = 0; w < 4; w++) sum += items[(j * 66 + i) * 4 + w] ^ a[4 * j + w];
    b[i] = sum;
  }}
}}
"""
    path.write_text(text)
    found = fix_kernel(path, "top")
    assert found.latency_before is not None
    assert found.latency is not None
    assert found.latency < found.latency_before
    assert "block factor 4 -> cyclic" in found.changes[0]
    assert said.replace("block", "cyclic").split(" ")[0] in found.text
    path.write_text(found.text)
    assert check_values(path, "top").equal
