"""Depths of loops of a few lines, as csynth reports them of the same loops in public designs (2023.2, 3.33 ns)."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline
from penstock.compiler.hls_in.schedule import ScheduledPipeline
from penstock.compiler.hls_in.timed import time_kernel

_PRODUCT = """#include <hls_stream.h>
void top(hls::stream<float> &in, hls::stream<float> &out, float w[{k}][{n}]) {{
  float s[{m}][{n}]; float a[{m}][{k}];
  for (int i = 0; i < {m}; i++) for (int j = 0; j < {n}; j++) for (int k = 0; k < {k}; k++) {{
    #pragma HLS pipeline II=1
    #pragma HLS loop_flatten
    if (j == 0) a[i][k] = in.read();
    if (k == 0) s[i][j] = 0;
    float t = s[i][j] + a[i][k] * w[k][j];
    s[i][j] = t;
    if (k == {k} - 1) out.write(t);
  }} }}"""


def _found(tmp_path: Path, text: str) -> tuple[int, int]:
    """II and depth of a kernel's only pipeline."""
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    timed = time_kernel(read_kernel(path, "top"), delays_for(1000 / 3.33))
    (found,) = [found for item, found in timed.schedules.items() if isinstance(item, Pipeline)]
    return found.ii, found.depth


def _tokens(rows: int, columns: int, body: str, more: str = "") -> str:
    return f"""#include <hls_stream.h>
    void top(hls::stream<float> &in, hls::stream<float> &out, float a[{rows}][{columns}] {more}) {{
      for (int i = 0; i < {rows}; i++) for (int j = 0; j < {columns}; j++) {{
        #pragma HLS pipeline II=1
        {body} }} }}"""


def test_a_sum_of_counters_delays_what_a_token_fills_by_a_cycle(tmp_path: Path) -> None:
    """k7mmseq, loop0_loop1: 3; gemm, loop0_loop1, where a DSP makes the address: 4; one counter (mvt, loop0): 2."""
    line = "#include <hls_stream.h>\nvoid top(hls::stream<float> &in, float a[400]) {\n"
    line += "for (int i = 0; i < 400; i++) {\n#pragma HLS pipeline II=1\na[i] = in.read(); } }"
    assert _found(tmp_path, line) == (1, 2)
    assert _found(tmp_path, _tokens(64, 64, "a[i][j] = in.read();")) == (1, 3)
    assert _found(tmp_path, _tokens(200, 220, "a[i][j] = in.read();")) == (1, 4)


def test_what_is_loaded_is_stored_or_sent_a_cycle_later(tmp_path: Path) -> None:
    """Autoencoder, loop28_loop29 of one version stores what it loads and of another sends it: 4 both."""
    assert _found(tmp_path, _tokens(64, 128, "b[j][i] = a[i][j];", ", float b[128][64]")) == (1, 4)
    assert _found(tmp_path, _tokens(64, 128, "out.write(a[i][j]);")) == (1, 4)


def test_bits_beside_each_other_are_no_addition(tmp_path: Path) -> None:
    """Cut by four, a row of 64 words has four bits in each bank, and the tool knows so: the load is not delayed."""
    cut = "".join(f"\n#pragma HLS array_partition variable=a cyclic dim={d} factor=4\n" for d in (1, 2))
    body = "out.write(a[4 * i][4 * j]);"
    text = _tokens(16, 16, body).replace("a[16][16]", "a[64][64]").replace("{\n", "{" + cut, 1)
    whole = _tokens(16, 16, body).replace("a[16][16]", "a[64][64]")
    assert _found(tmp_path, whole)[1] == _found(tmp_path, text)[1] + 1


@pytest.mark.parametrize(("m", "k", "n", "depth"), [(64, 64, 64, 16), (32, 64, 128, 15)])
def test_a_word_that_a_token_fills_comes_back_later_from_an_ultraram(
    tmp_path: Path, m: int, k: int, n: int, depth: int
) -> None:
    """k7mmseq's products fill 4,096 words (an UltraRAM): 16. Autoencoder's loop18 fills 2,048 (block RAMs): 15."""
    assert _found(tmp_path, _PRODUCT.format(m=m, k=k, n=n)) == (4, depth)


def test_a_word_that_is_filled_first_and_then_used_alone_is_a_register(tmp_path: Path) -> None:
    """Else it would be stored, and loaded in the cycle after that."""
    body = "static float b[64];\nif (j == 0) b[i] = in.read();\nout.write(b[i] * a[i][j]);"
    kept = _found(tmp_path, _tokens(64, 64, body))
    moved = _found(tmp_path, _tokens(64, 64, body.replace("b[i]", "b[j]").replace("j == 0", "i == 0")))
    assert kept[0] == moved[0] == 1
    assert kept[1] < moved[1]


def test_what_one_iteration_loads_under_a_condition_is_read_from_where_it_is_stored(tmp_path: Path) -> None:
    """k3mm, loop2_loop3_loop4: the second factor is copied in while the first row is made."""
    body = "float b[64];\nif (i == 0) b[j] = a[0][j];\nout.write(b[j] * 2.0f);"
    always = body.replace("if (i == 0) ", "")
    assert _found(tmp_path, _tokens(64, 64, body))[1] > _found(tmp_path, _tokens(64, 64, always))[1]


@pytest.mark.parametrize(("rows", "step", "cut", "depth"), [(205, 2, 10, 17), (200, 2, 16, 7)])
def test_a_number_of_banks_that_is_no_power_of_two_is_divided_by(
    tmp_path: Path, rows: int, step: int, cut: int, depth: int
) -> None:
    """atax by HIDA meets bank 2 i % 10 for 205 turns of i: 8 bits, 11 cycles (urem_8ns_4ns_3_12), which
    its loops wait for; mvt, cut in 16, does not."""
    text = f"""void top(float a[{rows * step}], float b[{rows}][30]) {{
      #pragma HLS array_partition variable=a cyclic factor={cut}
      for (int i = 0; i < {rows}; i++) for (int k = 0; k < 30; k++) {{
        #pragma HLS pipeline II=1
        b[i][k] = a[{step} * i] * 3.0f; }} }}"""
    assert _found(tmp_path, text) == (1, depth)


def test_a_loop_of_one_counter_keeps_its_remainder(tmp_path: Path) -> None:
    """atax by Allo fills a memory in 39 banks: one cycle."""
    text = """void top(float a[390]) {
      #pragma HLS array_partition variable=a cyclic factor=39
      for (int i = 0; i < 390; i++) a[i] = 0; }"""
    assert _found(tmp_path, text) == (1, 1)


def test_a_memory_that_the_tool_cuts_has_the_addresses_of_one_that_a_pragma_cuts(tmp_path: Path) -> None:
    """2mm by Allo, l_S_k0_0_k0: rows of 190 words are no factor of an address, since each column is a piece."""
    text = """void top(float in[210], float out[19]) {
      float b[210][19]; float s[19];
      for (int k = 0; k < 210; k++) for (int j = 0; j < 19; j++) b[k][j] = in[k] + j;
      for (int k = 0; k < 210; k++) {
        #pragma HLS pipeline II=1
        for (int j = 0; j < 19; j++) s[j] = s[j] + in[k] * b[k][j]; }
      for (int j = 0; j < 19; j++) out[j] = s[j]; }"""
    cut = text.replace("float s[19];", "float s[19];\n#pragma HLS array_partition variable=b complete dim=2\n")
    assert _last_product(tmp_path, text).depth == _last_product(tmp_path, cut).depth


def test_rings_share_the_least_adders_and_no_turn_is_lost_for_the_least_multipliers(tmp_path: Path) -> None:
    """k7mmseq, opt3, node7: sixteen sums of four products, at II 12. csynth binds 4 adders without DSPs, as many as 48
    additions need, and 11 multipliers, where 64 products need 6."""
    text = """void top(float a[64][64], float b[64][64], float c[64][64]) {
      #pragma HLS array_partition variable=a cyclic dim=1 factor=4
      #pragma HLS array_partition variable=a cyclic dim=2 factor=4
      #pragma HLS array_partition variable=b cyclic dim=1 factor=4
      #pragma HLS array_partition variable=b cyclic dim=2 factor=4
      #pragma HLS array_partition variable=c cyclic dim=1 factor=4
      #pragma HLS array_partition variable=c cyclic dim=2 factor=4
      for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) for (int k = 0; k < 16; k++) {
        #pragma HLS pipeline II=1
        for (int x = 0; x < 4; x++) for (int y = 0; y < 4; y++) for (int z = 0; z < 4; z++) {
          if (4 * k + z == 0) c[4 * i + x][4 * j + y] = 0;
          c[4 * i + x][4 * j + y] += a[4 * i + x][4 * k + z] * b[4 * k + z][4 * j + y]; } } }"""
    found = _last_product(tmp_path, text)
    assert found.ii == 12
    assert found.units["arith.addf:32:fabric"] == 4
    assert found.units["arith.mulf:32:dsp"] == 11
    assert -(-found.depth // 12) == 2


def _last_product(tmp_path: Path, text: str) -> ScheduledPipeline:
    """The pipeline that multiplies."""
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    timed = time_kernel(read_kernel(path, "top"), delays_for(1000 / 3.33))
    return next(found for found in timed.schedules.values() if "arith.mulf:32:dsp" in found.units)


def test_a_ring_begins_when_its_first_operands_are_there_although_later_ones_need_them_too(tmp_path: Path) -> None:
    """v is taken off twice, in a cycle of dependences that fills the II of 8."""
    path = tmp_path / "kernel.cpp"
    path.write_text("""void top(const float x[64], const float y[64], float o[1]) {
      float s = 0;
      for (int i = 0; i < 64; i++) {
        #pragma HLS pipeline II=8
        float v = x[i] * y[i];
        s = (s - v) - v;
      }
      o[0] = s; }""")
    timed = time_kernel(read_kernel(path, "top"), delays_for(1000 / 3.33))
    (found,) = [found for item, found in timed.schedules.items() if isinstance(item, Pipeline)]
    first, then = sorted((node for node in found.starts if node.op == "sub"), key=found.starts.__getitem__)
    (product,) = [node for node in found.starts if node.op == "mul"]
    assert found.ii == 8
    assert found.starts[then] - found.starts[first] == 4
    assert found.starts[first] >= found.starts[product] + 4


def test_words_outside_of_loops_come_through_two_ports(tmp_path: Path) -> None:
    text = "void top(const int a[16], int b[1]) { int s = 0;\nfor (int i = 0; i < 16; i++) {\n#pragma HLS unroll\n"
    path = tmp_path / "kernel.cpp"
    path.write_text(text + "s += a[i]; }\nb[0] = s; }")
    (found,) = time_kernel(read_kernel(path, "top"), delays_for(1000 / 3.33)).schedules.values()
    at = [found.starts[node] for node in found.starts if node.op == "load"]
    assert [at.count(cycle) for cycle in range(8)] == [2] * 8
