"""Single rules of the elaboration and the scheduler on kernels of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.area import area_of
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Again, Pipeline
from penstock.compiler.hls_in.schedule import ScheduledPipeline, schedule
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.simulator import VITIS, simulate


def pipelines(tmp_path: Path, text: str) -> list[tuple[Pipeline, ScheduledPipeline]]:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    timed = time_kernel(read_kernel(path, "top"), delays_for(300))
    return [(item, found) for item, found in timed.schedules.items() if isinstance(item, Pipeline)]


def test_a_sum_in_a_register_takes_the_quick_adder_only_where_an_ii_is_asked_for(tmp_path: Path) -> None:
    body = """void top(float a[64], float out[1]) {{
      float s = 0;
      for (int i = 0; i < 64; i++) {{ {} s += a[i]; }}
      out[0] = s; }}"""
    assert pipelines(tmp_path, body.format(""))[0][1].ii == 7
    assert pipelines(tmp_path, body.format("\n#pragma HLS pipeline II=1\n"))[0][1].ii == 4


def test_ports_bound_the_ii_until_the_array_is_cut(tmp_path: Path) -> None:
    body = """void top(float a[64], float b[64]) {{
    {}
    for (int i = 0; i < 16; i++) {{
      #pragma HLS pipeline II=1
      for (int k = 0; k < 4; k++) b[i * 4 + k] = a[i * 4 + k] * 2.0f;
    }} }}"""
    cut = (
        "#pragma HLS array_partition variable=a cyclic factor=4\n#pragma HLS array_partition variable=b cyclic factor=4"
    )
    found = pipelines(tmp_path, body.format(""))[0][1]
    assert found.ii == 2
    assert found.limit is not None
    assert "4 accesses" in found.limit.reason
    assert pipelines(tmp_path, body.format(cut))[0][1].ii == 1


def test_loops_flatten_with_what_stands_beside_them(tmp_path: Path) -> None:
    item = pipelines(
        tmp_path,
        "void top(float a[8][9], float s[8]) { for (int i = 0; i < 8; i++) { float t = 0;\n"
        " for (int k = 0; k < 9; k++) t += a[i][k];\n s[i] = t; } }",
    )[0][0]
    assert [counter.trip for counter in item.counters] == [8, 9]
    stores = [node for node in item.graph.nodes if node.op == "store"]
    assert len(stores) == 1
    assert stores[0].guard is not None


def test_a_factor_that_does_not_divide_keeps_the_loops_apart(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(
        "void top(float a[8][10]) { for (int i = 0; i < 8; i++)\n for (int k = 0; k < 10; k++) {\n"
        "#pragma HLS unroll factor=4\n a[i][k] += 1; } }"
    )
    item = read_kernel(path, "top").body[0]
    assert isinstance(item, Again)


def test_a_fifo_that_is_too_shallow_deadlocks_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include <hls_stream.h>
template <int N> void split(float a[N], hls::stream<float> &x, hls::stream<float> &y) {
  for (int i = 0; i < N; i++) x << a[i];
  for (int i = 0; i < N; i++) y << a[i];
}
void join(hls::stream<float> &x, hls::stream<float> &y, float b[32]) {
  for (int i = 0; i < 32; i++) b[i] = x.read() + y.read();
}
void top(float a[32], float b[32]) {
#pragma HLS dataflow
  hls::stream<float> x, y;
#pragma HLS stream variable=x depth=4
  split<32>(a, x, y);
  join(x, y, b);
}
""")
    result = simulate(time_kernel(read_kernel(path, "top"), delays_for(300)).design, VITIS)
    assert result.deadlock is not None
    assert "x is full" in str(result.deadlock)


def test_a_callees_partition_counts_where_the_caller_used_the_array_before(tmp_path: Path) -> None:
    found = pipelines(
        tmp_path,
        """void use(float t[16], float b[16]) {
  #pragma HLS array_partition variable=t complete
  for (int i = 0; i < 16; i++) b[i] = t[i];
}
void top(float a[16], float b[16]) {
  float t[16];
  for (int i = 0; i < 16; i++) t[i] = a[i];
  use(t, b);
}
""",
    )
    assert not any(
        node.op == "load" and not node.array.registers
        for _, s in found[1:]
        for node in s.starts
        if node.array and not node.array.argument
    )


def test_every_mistake_is_said_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""float g(float x, int n) { return n == 0 ? x : g(x, n - 1); }
void top(float a[4], int *p) {
  while (a[0] > 1) a[0] = a[0] / 2;
  a[2] = g(a[1], 4);
  #pragma HLS array_partition variable=zz complete
  #pragma HLS pipelin
}
""")
    with pytest.raises(PenstockError) as raised:
        read_kernel(path, "top")
    said = {error.where for error in (raised.value, *raised.value.others)}
    assert {"kernel.cpp:2:27", "kernel.cpp:3:3", "kernel.cpp:1:47", "kernel.cpp:5:1", "kernel.cpp:6:1"} <= said
    assert all(error.hint for error in (raised.value, *raised.value.others))


def test_schedules_of_the_same_kernel_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("void top(float a[8], float b[8]) { for (int i = 0; i < 8; i++) b[i] = a[i] * 2.5f + 1; }")
    depths = {
        schedule(item, delays_for(300)).depth
        for _ in range(2)
        for item in read_kernel(path, "top").body
        if isinstance(item, Pipeline)
    }
    assert len(depths) == 1


def test_numbers_of_given_widths_are_copied_and_pointers_are_as_long_as_their_interface_says(tmp_path: Path) -> None:
    text = """#include <ap_int.h>
    #include <hls_stream.h>
    typedef ap_uint<8> pixel;
    const int N = 24;
    void top(hls::stream<pixel>& in, int *out) {
    {}
      pixel kept[N];
      for (int i = 0; i < N; i++) { pixel p = in.read(); kept[i] = p; }
      for (int i = 0; i < N; i++) { pixel p = kept[i]; ap_int<12> twice = 2 * p; out[i] = twice; }
    }"""
    found = pipelines(tmp_path, text.replace("{}", "#pragma HLS INTERFACE m_axi port=out depth = N"))
    assert [[counter.trip for counter in item.counters] for item, _ in found] == [[24], [24]]
    with pytest.raises(PenstockError, match="pointer 'out' without a size") as caught:
        pipelines(tmp_path, text.replace("{}", "").replace("out[i]", "out[kept[i]]"))
    assert "m_axi port=out depth=N" in caught.value.hint


@pytest.mark.parametrize(("kind", "dsp"), [("char", 0), ("short", 1), ("int", 3), ("long long", 16)])
def test_products_of_integers_take_what_their_widths_need(tmp_path: Path, kind: str, dsp: int) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(f"""void top({kind} a[64], {kind} b[64], long long c[64], int d[64]) {{
      for (int i = 0; i < 64; i++) {{ c[i] = ({kind})a[i] * b[i]; d[i] = a[i] * 3; }} }}""")
    delays = delays_for(300)
    area = area_of(time_kernel(read_kernel(path, "top"), delays), delays)
    assert area.dsp == dsp
    assert area.lut > 0


def address_dsps(tmp_path: Path, row: str, columns: int) -> int:
    text = f"""void top(float a[40][{columns}], float b[40][{columns}]) {{
      for (int i = 0; i < 40; i++) for (int k = 0; k < {columns}; k++) {{ {row} }} }}"""
    return pipelines(tmp_path, text)[0][1].addresses.dsp


def test_rows_of_a_length_with_few_digits_need_no_multiplier(tmp_path: Path) -> None:
    copy = "b[i][k] = a[i][k] * 2.0f;"
    assert address_dsps(tmp_path, copy, 64) == 0
    assert address_dsps(tmp_path, copy, 56) == 0  # 64 - 8
    assert address_dsps(tmp_path, copy, 58) == 1  # one address for both


def test_a_block_of_a_first_iteration_parts_product_and_addition(tmp_path: Path) -> None:
    parted = "if (k == 0) b[i][0] = 1.0f; b[i][k] = a[i][k] * 2.0f;"
    assert address_dsps(tmp_path, parted, 58) == 0


@pytest.mark.parametrize(
    ("step", "lanes", "banks", "dsp"),
    [
        (2, 2, 10, 0),  # i / 5 for both: 8 bits, as in atax by HIDA, mul_8ns_10ns
        (2, 2, 15, 2),  # 2 i and 2 i + 1 by 15: 9 bits, mul_9ns_11ns
        (13, 3, 15, 3),  # atax by ScaleHLS divides 13 times
        (1, 1, 39, 0),  # atax by Allo
    ],
)
def test_banks_that_are_no_power_of_two_take_a_division_for_each_index(
    tmp_path: Path, step: int, lanes: int, banks: int, dsp: int
) -> None:
    rows = 30 if step == 13 else 195
    nested = step == 2
    meets = " ".join(f"b[i] += a[{step} * i + {lane}];" for lane in range(lanes))
    text = f"""void top(float a[{rows * step}], float b[{rows}]) {{
      #pragma HLS array_partition variable=a cyclic factor={banks}
      for (int i = 0; i < {rows}; i++) {"for (int k = 0; k < 30; k++)" if nested else ""} {{ {meets} }} }}"""
    assert pipelines(tmp_path, text)[0][1].addresses.dsp == dsp


def test_a_loop_that_a_pragma_unrolls_counts_in_steps_that_are_divided(tmp_path: Path) -> None:
    """atax by Allo, unrolled by 39 with 39 banks: mul_9ns_11ns_19, and one DSP for row and column."""
    text = """void top(float a[390][410], float b[390]) {
      #pragma HLS array_partition variable=a cyclic factor=39
      for (int r = 0; r < 410; r++) for (int m = 0; m < 390; m++) {
        #pragma HLS pipeline II=1
        #pragma HLS unroll factor=39
        b[m] = a[m][r]; } }"""
    assert pipelines(tmp_path, text)[0][1].addresses.dsp == 2


def test_a_product_that_needs_a_dsp_takes_its_addition_in_from_another_block(tmp_path: Path) -> None:
    """1,024 rows count in 11 bits. 7 count in 3, and are multiplied in LUTs beside the innermost block."""
    for rows, dsp in ((1024, 1), (7, 0)):
        text = f"""void top(float a[{rows}][58], float b[{rows}]) {{
          for (int i = 0; i < {rows}; i++) for (int k = 0; k < 58; k++) {{
            #pragma HLS pipeline II=1
            if (k == 0) b[i] = 1.0f; a[i][k] = 2.0f; }} }}"""
        assert pipelines(tmp_path, text)[0][1].addresses.dsp == dsp


def test_a_third_dimension_is_multiplied_in_one_dsp_with_the_additions_around_it(tmp_path: Path) -> None:
    """ResidualBlock by Stream-HLS: ama_addmuladd_11ns_6ns_6ns_6ns_16, and ama_addmuladd_9ns_5ns_6ns_6ns in loop12 of
    opt3, where a row of so few bits alone would be LUTs beside the innermost block."""
    body = """void top(float a[16][29][58], float out[16]) {
      for (int i = 0; i < 16; i++) for (int j = 0; j < 28; j++) for (int k = 0; k < 56; k++) {
        #pragma HLS pipeline II=1
        if (a[i][j][k] > 0) out[i] = a[i][j][k + 1]; } }"""
    assert pipelines(tmp_path, body)[0][1].addresses.dsp == 1


def test_filling_a_memory_that_nobody_changes_takes_no_time(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    text = """void top(float out[100]) {{ float zero[100];
      for (int i = 0; i < 100; i++) zero[i] = 0;
      for (int i = 0; i < 100; i++) {{ {} out[i] = zero[i] + 1.0f; }} }}"""
    spans: list[int] = []
    for change in ("", "zero[i] = 2.0f;"):
        path.write_text(text.format(change))
        spans.append(simulate(time_kernel(read_kernel(path, "top"), delays_for(300)).design, VITIS).latency or 0)
    assert 100 <= spans[0] < 120
    assert spans[1] > 200


@pytest.mark.parametrize(
    ("where", "pragma", "ii"),
    [
        ("", "", 2),
        ("", "dependence variable=hist inter false", 1),
        ("", "DEPENDENCE variable=hist type=inter direction=RAW dependent=false", 1),
        ("", "dependence variable=hist inter RAW distance=2 true", 1),
        ("", "dependence variable=hist intra false", 2),
        ("", "dependence variable=hist inter WAW false", 2),
        ("", "dependence variable=data inter false", 2),
        ("top", "dependence variable=hist inter false", 1),
    ],
)
def test_a_word_that_comes_back_through_a_memory_takes_two_cycles_unless_a_pragma_says_it_does_not(
    tmp_path: Path, where: str, pragma: str, ii: int
) -> None:
    line = f"\n#pragma HLS {pragma}\n" if pragma else ""
    at_top, in_loop = (line, "") if where else ("", line)
    text = f"""void top(int data[64], int hist[256]) {{{at_top}
      for (int i = 0; i < 64; i++) {{
        #pragma HLS pipeline II=1
        {in_loop} hist[data[i]] += 1; }} }}"""
    assert pipelines(tmp_path, text)[0][1].ii == ii


def test_what_a_pragma_says_of_one_loop_holds_for_no_other(tmp_path: Path) -> None:
    loop = """for (int i = 0; i < 64; i++) {{
      #pragma HLS pipeline II=1
      {} hist[data[i]] += 1; }}"""
    said = "\n#pragma HLS dependence variable=hist inter false\n"
    text = f"void top(int data[64], int hist[256]) {{ {loop.format(said)} {loop.format('')} }}"
    assert [found.ii for _, found in pipelines(tmp_path, text)] == [1, 2]


def test_integers_that_come_back_in_registers_take_one_cycle(tmp_path: Path) -> None:
    body = """void top(int data[64], int hist[4]) {
      int near[4];
      for (int i = 0; i < 64; i++) {
        #pragma HLS pipeline II=1
        near[data[i]] += 1; }
      for (int i = 0; i < 4; i++) hist[i] = near[i]; }"""
    assert pipelines(tmp_path, body)[0][1].ii == 1


SUM = """
void top(float a[8][{n}], float b[8][{n}], float out[8]) {{
#pragma HLS array_partition variable=a complete dim=2
#pragma HLS array_partition variable=b complete dim=2
  for (int r = 0; r < 1; r++) {{
    for (int k = 0; k < 8; k++) {{
#pragma HLS pipeline II=1
      for (int j = 0; j < {n}; j++) out[r] += a[k][j] * b[k][j];
    }}
  }}
}}"""


@pytest.mark.parametrize(("parts", "ii"), [(1, 4), (2, 7), (4, 12), (8, 12), (10, 16), (16, 16)])
def test_what_comes_back_to_a_balanced_sum_passes_the_levels_of_half_of_it(parts: int, ii: int, tmp_path: Path) -> None:
    found = pipelines(tmp_path, SUM.format(n=parts))[0][1]
    assert found.ii == ii


def test_a_memory_is_cut_only_where_the_ii_needs_it(tmp_path: Path) -> None:
    body = """
    #include <hls_stream.h>
    void top(hls::stream<float> in[{n}], float out[1]) {{
      float kept[4][{n}];
      for (int r = 0; r < 4; r++) {{
        for (int k = 0; k < 64; k++) {{
          #pragma HLS pipeline II=1
          for (int j = 0; j < {n}; j++) kept[r][j] = (k == 0 ? 0.0f : kept[r][j]) + in[j].read();
          if (r == 3 && k == 63) out[0] = kept[3][0];
        }}
      }}
    }}"""
    assert pipelines(tmp_path, body.format(n=6))[0][1].ii == 7  # 13 accesses, two ports
    assert pipelines(tmp_path, body.format(n=24))[0][1].ii == 4


def test_two_tasks_that_read_one_argument_have_one_of_its_ports_each(tmp_path: Path) -> None:
    body = """
    void part(float a[64], float to[32]) {{
      for (int i = 0; i < 32; i++) {{
        #pragma HLS pipeline II=1
        to[i] = a[2 * i] + a[2 * i + 1];
      }}
    }}
    void top(float a[64], float b[64], float x[32], float y[32]) {{
      #pragma HLS dataflow
      part(a, x);
      part({}, y);
    }}"""
    assert [found.ii for _, found in pipelines(tmp_path, body.format("b"))] == [1, 1]
    assert [found.ii for _, found in pipelines(tmp_path, body.format("a"))] == [2, 2]


@pytest.mark.parametrize(
    ("body", "latency"),
    [
        ("a[0] = 1;", 0), ("a[0] = b[1];", 2), ("if (b[0] > 1) a[1] = 2; else a[2] = 3;", 2),
        ("for (int i = 0; i < 1; i++) a[i] = 1;", 0), ("a[0] = b[0] * 3; a[1] = a[0] * 5;", 2),
        ("a[0] = b[0] * 11; a[1] = a[0] * 13;", 5),
    ],
)  # fmt: skip
def test_kernels_without_loops_have_figures_however_short(body: str, latency: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(f"void top(int a[4], int b[4]) {{ {body} }}")
    timed = time_kernel(read_kernel(path, "top"), delays_for(300))
    assert simulate(timed.design, VITIS).latency == latency


@pytest.mark.parametrize("body", ["", "int x = 1; x += 2;", "for (int i = 0; i < 0; i++) a[i]++;"])
def test_a_kernel_that_changes_nothing_is_told_so(body: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(f"void top(int a[4]) {{ {body} }}")
    with pytest.raises(PenstockError, match="changes nothing that is seen outside") as raised:
        time_kernel(read_kernel(path, "top"), delays_for(300))
    assert raised.value.where.startswith("kernel.cpp:1:")


@pytest.mark.parametrize(
    ("kind", "by", "stages"),
    [("int", "b[i]", 35), ("unsigned char", "b[i]", 11), ("int", "7", 35), ("int", "8", 0), ("short", "b[i]", 19)],
)
def test_a_division_of_integers_takes_a_stage_a_bit(tmp_path: Path, kind: str, by: str, stages: int) -> None:
    """Pipelined, so that one begins every cycle; by a power of two it is wires."""
    text = f"void top({kind} a[64], {kind} b[64]) {{ for (int i = 0; i < 64; i++) b[i] = a[i] % ({by}); }}"
    found = pipelines(tmp_path, text)[0][1]
    without = pipelines(tmp_path, text.replace(f"% ({by})", f"+ ({by})"))[0][1]
    assert (found.ii, without.ii) == (1, 1)
    assert found.depth - without.depth == (stages + 1 if stages else 0)
