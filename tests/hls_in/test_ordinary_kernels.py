"""Kernels as tutorials and textbooks of Vitis have them: what pragmas compute, pointers, loops that data begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.pragma_values import constant_of, options_of
from penstock.compiler.hls_in.pragmas import pragmas_of
from penstock.compiler.hls_in.records import DataflowRegion, Pipeline, ReadKernel, graphs
from penstock.compiler.hls_in.timed import Timed, time_kernel
from penstock.compiler.simulator import VITIS, Network, Simulator, simulate
from penstock.profiling.kernels.values import check_values


def read(tmp_path: Path, text: str) -> ReadKernel:
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    return read_kernel(path, "top")


def timed(tmp_path: Path, text: str) -> Timed:
    return time_kernel(read(tmp_path, text), delays_for(300))


def loops(kernel: ReadKernel) -> list[Pipeline]:
    return [item for item in graphs(kernel.body) if isinstance(item, Pipeline)]


def test_what_an_option_computes_is_not_cut_off() -> None:
    said = "variable = localA dim = 1 complete min = c_size* c_size max = (c_size + 1) * 2 off"
    assert dict(options_of(said)) == {
        "variable": "localA", "dim": "1", "complete": "", "min": "c_size* c_size", "max": "(c_size + 1) * 2", "off": "",
    }  # fmt: skip
    known = {"c_size": "N - 2", "N": 10}
    values = ("c_size*c_size", "(N+1)/2", "16u", "own::N % 4", "-7 / 2")
    assert [constant_of(text, known) for text in values] == [64, 5, 16, 2, -3]
    assert [constant_of(text, {"loop": "loop"}) for text in ("unknown", "loop", "1 / 0", "f(1)", "", "2 **")] == [
        None
    ] * 6


def test_pragmas_name_macros_constants_of_templates_and_what_macros_write(tmp_path: Path) -> None:
    kernel = read(
        tmp_path,
        """#define N 64
        #define PAR (N / 8)
        #define PRAGMA_SUB(x) _Pragma(#x)
        #define DO_PRAGMA(x) PRAGMA_SUB(x)
        const int ONE = 1;
        template <int K> void part(const float a[N], float b[N]) {
          #pragma HLS ARRAY_PARTITION variable = b cyclic factor = K * 2 / 2 dim = ONE
          for (int i = 0; i < N / K; i++) {
            #pragma HLS PIPELINE II = ONE + 2
            for (int j = 0; j < K; j++) { b[i * K + j] = a[i * K + j] + 1; }
          }
        }
        void top(const float a[N], float b[N], int n) {
          DO_PRAGMA(HLS ARRAY_PARTITION variable=a cyclic factor=PAR)
          part<PAR>(a, b);
          for (int i = 0; i < n; i++) {
            #pragma HLS LOOP_TRIPCOUNT min = 1 max = PAR* PAR avg = 8
            b[i] = a[i];
          }
        }""",
    )
    assert [array.banks for array in kernel.arrays] == [8, 8]
    assert [(item.target, item.iterations) for item in loops(kernel)] == [(3, 8), (1, 64)]


def test_a_macro_that_writes_no_pragma_is_none() -> None:
    text = "#define LOG(x) printf(#x)\n#define AGAIN(x) LOG(x)\nvoid top() { AGAIN(HLS PIPELINE) LOG(HLS UNROLL) }\n"
    assert list(pragmas_of("kernel.cpp", text)) == []


VADD = """#include <hls_stream.h>
static void load(const unsigned *in, hls::stream<unsigned> &s, int size) {
  for (int i = 0; i < size; i++) {
#pragma HLS LOOP_TRIPCOUNT min = 4096 max = 4096
    s << in[i];
  }
}
static void add(hls::stream<unsigned> &a, hls::stream<unsigned> &b, hls::stream<unsigned> &c, int size) {
  for (int i = 0; i < size; i++) {
#pragma HLS LOOP_TRIPCOUNT min = 4096 max = 4096
    c << (a.read() + b.read());
  }
}
static void store(unsigned *out, hls::stream<unsigned> &s, int size) {
  for (int i = 0; i < size; i++) {
#pragma HLS LOOP_TRIPCOUNT min = 4096 max = 4096
    out[i] = s.read();
  }
}
extern "C" void top(const unsigned *in1, const unsigned *in2, unsigned *out, int size) {
#pragma HLS INTERFACE m_axi port = in1 bundle = gmem0
#pragma HLS INTERFACE m_axi port = in2 bundle = gmem1
#pragma HLS INTERFACE m_axi port = out bundle = gmem0
  static hls::stream<unsigned> a("a"), b("b"), c("c");
#pragma HLS dataflow
  load(in1, a, size);
  load(in2, b, size);
  add(a, b, c, size);
  store(out, c, size);
}
"""


def test_pointers_without_a_size_are_as_long_as_loops_reach(tmp_path: Path) -> None:
    kernel = read(tmp_path, VADD)
    assert [(array.name, array.words) for array in kernel.arrays] == [("in1", 4096), ("in2", 4096), ("out", 4096)]
    assert any("LOOP_TRIPCOUNT" in note for note in kernel.notes)
    latency = simulate(time_kernel(kernel, delays_for(300)).design, VITIS).latency
    assert latency is not None
    assert 4096 + 64 < latency < 4096 + 64 + 16  # a load takes m_axi's usual 64 cycles


def test_a_pointer_that_data_move_needs_a_size(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="pointer 'p' without a size"):
        read(tmp_path, "void top(int a[8], int *p) { for (int i = 0; i < 8; i++) p[a[i]] = 1; }")


def test_parts_of_arrays_and_single_words_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""#include <string.h>
    void copy(const int *from, int *to) { for (int i = 0; i < 4; i++) to[i] = from[i]; }
    void swap(int &a, int &b) { if (a > b) { int t = a; a = b; b = t; } }
    void top(const int a[16], int b[16]) {
      int own[2][8];
      memcpy(own[0], a + 2 * 2 + 1, 8 * sizeof(int));
      memcpy(&own[1][1], &a[8], 7 * sizeof(int));
      own[1][0] = 3;
      for (int i = 0; i < 2; i++) copy(own[i] + 2, b + 4 * i);
      copy(a + 12, &b[8]);
      for (int i = 12; i < 16; i++) b[i] = own[1][i - 12];
      swap(b[1], b[6]);
      for (int i = 0; i < 3; i++) swap(b[i], b[i + 1]);
    }""")
    assert check_values(path, "top").equal


def test_a_loop_that_doubles_its_variable_is_one(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""void top(int in[8], int out[8]) {
      #pragma HLS PIPELINE II=1
      int work[8];
      for (int i = 0; i < 8; i++) work[i] = in[i];
      for (int k = 2; k <= 8; k <<= 1)
        for (int j = k >> 1; j > 0; j = j / 2)
          for (int i = 0; i < 8; i++) {
            int l = i ^ j;
            if (l > i && (work[i] > work[l]) == ((i & k) == 0)) { int t = work[i]; work[i] = work[l]; work[l] = t; }
          }
      for (int i = 0; i < 8; i++) out[i] = work[i];
    }""")
    assert check_values(path, "top").equal
    kernel = read(tmp_path, "void top(int a[8]) { for (int k = 1; k < 200; k *= 4) a[0] += k; }")
    assert [item.iterations for item in loops(kernel)] == [4]
    with pytest.raises(PenstockError, match="no constant"):
        read(tmp_path, "void top(int a[8]) { for (int k = 0; k < 9; k *= 2) a[0] += k; }")


def test_a_loop_that_begins_where_data_say_goes_round_as_often_as_a_pragma_says(tmp_path: Path) -> None:
    found = timed(
        tmp_path,
        """void top(int rows[9], int columns[64], float values[64], float x[8], float y[8]) {
          for (int i = 0; i < 8; i++) {
            float sum = 0;
            for (int k = rows[i]; k < rows[i + 1]; k++) {
              #pragma HLS LOOP_TRIPCOUNT min=0 max=16 avg=8
              sum += values[k] * x[columns[k]];
            }
            y[i] = sum;
          }
        }""",
    )
    inner = next(item for item in loops(found.kernel) if item.counters)
    assert inner.iterations == 16
    loaded = [node.array.name for node in inner.graph.nodes if node.op == "load" and node.array is not None]
    assert sorted(loaded) == ["columns", "values", "x"]  # where it begins is read before it


def test_streams_as_arguments_of_a_dataflow_region_and_depths_of_their_types(tmp_path: Path) -> None:
    kernel = read(
        tmp_path,
        """#include <ap_axi_sdata.h>
        #include <hls_stream.h>
        typedef hls::axis<ap_int<32>, 0, 0, 0> packet;
        struct pair_t { ap_int<16> re; ap_int<16> im; };
        void split(hls::stream<packet> &in, hls::stream<pair_t> &out) {
          for (int i = 0; i < 64; i++) {
            packet p = in.read();
            pair_t q;
            q.re = p.data.range(15, 0);
            q.im = p.data(31, 16);
            out.write(q);
          }
        }
        void join(hls::stream<pair_t> &in, hls::stream<packet> &out) {
          for (int i = 0; i < 64; i++) {
            pair_t q;
            in >> q;
            packet p;
            p.data = (q.im, q.re);
            p.keep = -1;
            p.last = (i == 63);
            out.write(p);
          }
        }
        void top(hls::stream<packet> &in, hls::stream<packet> &out) {
          #pragma HLS INTERFACE mode=axis port=in
          #pragma HLS DATAFLOW
          hls::stream<pair_t, 16> a("a");
          split(in, a);
          join(a, out);
        }""",
    )
    design = time_kernel(kernel, delays_for(300)).design
    assert isinstance(design, Network)
    assert [(channel.name, channel.depth) for channel in design.channels] == [("a.re", 16), ("a.im", 16)]
    assert simulate(design, VITIS).deadlock is None


def test_parts_of_an_array_that_constants_choose_are_memories_of_their_own(tmp_path: Path) -> None:
    """The stages of a textbook's Fourier transform: one array, cut by its stage."""
    kernel = read(
        tmp_path,
        """void stage(float a[64], float b[64], int k) { for (int i = 0; i < 64; i++) b[i] = a[i ^ 1] * k; }
        void top(float in[64], float out[64]) {
          #pragma HLS dataflow
          float held[3][64];
          #pragma HLS array_partition variable=held dim=1 complete
          stage(in, held[0], 1);
          for (int k = 0; k < 2; k++) {
            #pragma HLS unroll
            stage(held[k], held[k + 1], k);
          }
          stage(held[2], out, 3);
        }""",
    )
    region = kernel.body[0]
    assert isinstance(region, DataflowRegion)
    design = time_kernel(kernel, delays_for(300)).design
    assert isinstance(design, Network)
    assert [channel.name for channel in design.channels] == ["held_0", "held_1", "held_2"]
    found = simulate(design, VITIS, frames=2)
    assert found.interval is not None
    assert found.interval < 64 + 32  # four tasks work on four frames


def test_what_follows_a_continue_happens_in_the_other_cases(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text("""void top(const int a[24], int b[24]) {
      for (int i = 0; i < 24; i++) {
        #pragma HLS PIPELINE
        if (i < 2 || i > 20) {
          b[i] = 0;
          continue;
        }
        int s = a[i - 1] + a[i + 1];
        if (s < 0) continue;
        else if (s > 9) { if (a[i] > 0) { b[i] = 9; continue; } else { b[i] = 8; continue; } }
        for (int k = 0; k < 3; k++) { if (k == 1) continue; s += a[k]; }
        b[i] = s;
      }
    }""")
    assert check_values(path, "top").equal
    with pytest.raises(PenstockError, match="both go on"):
        read(
            tmp_path,
            """void top(int a[8]) { for (int i = 0; i < 8; i++) {
              if (a[i] > 3) { if (a[i] > 5) continue; a[i] += 1; }
              a[i] += 2; } }""",
        )


_SLOW_THEN_DEEP = """
#include "hls_stream.h"
static void slow(const float a[8], hls::stream<float> &s) {
  for (int i = 0; i < 8; i++) {
    float sum = 0;
    for (int j = 0; j < 64; j++) {
#pragma HLS PIPELINE II=1
      sum += a[i];
      if (j == 63) s.write(sum);
    }
  }
}
static void deep(hls::stream<float> &s, hls::stream<float> &t) {
  for (int i = 0; i < 8; i++) {
#pragma HLS PIPELINE II=1 STYLE
    t.write(s.read() * 3.0f + 1.0f);
  }
}
static void last(hls::stream<float> &t, float b[8]) {
  for (int i = 0; i < 8; i++)
    b[i] = t.read() / 7.0f;
}
void top(const float a[8], float b[8]) {
#pragma HLS DATAFLOW
  hls::stream<float> s, t;
  slow(a, s);
  deep(s, t);
  last(t, b);
}
"""


def test_a_pipeline_that_is_asked_to_flush_gives_away_what_it_has(tmp_path: Path) -> None:
    """Numbers come hundreds of cycles apart: one that stops keeps its first until others have come."""
    first: dict[str, int] = {}
    for style in ("", "style=flp", "style=frp", "enable_flush", "style=stp"):
        network = timed(tmp_path, _SLOW_THEN_DEEP.replace("STYLE", style)).design
        assert isinstance(network, Network)
        (stream,) = (one for one in Simulator(network).free_run().tokens if one.channel.name == "t")
        first[style] = int(stream.filled[0])
    with pytest.raises(PenstockError, match=r"style=fast .*known are stp, flp, frp"):
        timed(tmp_path, _SLOW_THEN_DEEP.replace("STYLE", "style=fast"))
    assert first["style=flp"] == first["style=frp"] == first["enable_flush"] < first[""] == first["style=stp"]


def test_a_pragma_between_a_loops_head_and_its_only_statement_is_the_loops(tmp_path: Path) -> None:
    """As AMD's own examples have it."""
    text = """
void top(const int a[8], int b[8]) {
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++)
#pragma HLS PIPELINE II=3
      b[4 * i + j] = 2 * a[4 * i + j];
}
"""
    (loop,) = loops(read(tmp_path, text))
    assert (loop.iterations, loop.target, loop.explicit) == (8, 3, True)
