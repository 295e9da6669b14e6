"""Our own emitted C++ read by the front end for other people's: the nests are those that it was written from."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.read_back import MODELS, QUANTISATIONS, own_rows, read_lowered
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.hls_in.delays import delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.pipeline import lower
from penstock.compiler.simulator import VITIS, Network, simulate
from tests.compiler.designs import Dense, build_network

BLOCKS = """#include <hls_stream.h>
#include <hls_streamofblocks.h>
typedef int block_t[8];
void fill(const int in[32], hls::stream_of_blocks<block_t, 3> &blocks) {
  for (int b = 0; b < 4; b++) {
    hls::write_lock<block_t> own(blocks);
    for (int i = 0; i < 8; i++) own[i] = in[b * 8 + i];
  }
}
void turn(hls::stream_of_blocks<block_t, 3> &blocks, int out[32]) {
  for (int b = 0; b < 4; b++) {
    hls::read_lock<block_t> own(blocks);
    for (int i = 0; i < 8; i++) out[b * 8 + i] = own[7 - i];
  }
}
void top(const int in[32], int out[32]) {
#pragma HLS dataflow
  hls::stream_of_blocks<block_t, 3> blocks;
  fill(in, blocks);
  turn(blocks, out);
}
"""


def test_blocks_are_handed_over_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cpp"
    path.write_text(BLOCKS)
    design = time_kernel(read_kernel(path, "top"), delays_for(300)).design
    assert isinstance(design, Network)
    assert [(channel.kind, channel.depth, channel.words) for channel in design.channels] == [("block", 3, 8)]
    assert design.tokens() == {"blocks": 4}
    latency = simulate(design, VITIS).latency
    assert latency is not None
    assert latency < 7 * (8 + 5)  # the second task works while the first one does; in turn it were eight blocks


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_nests_of_a_layer_come_back_as_they_were_written(dtype: str) -> None:
    program = build_network(dtype, 4, 4, (Dense(6, False, False),), seed=3)
    kernels = {
        "fc0": KernelDesign(tile=(2, 6, 4), unroll=(1, 3, 2), order=(0, 1, 2)),
        "fc0.relu": KernelDesign(tile=(2, 6), unroll=(1, 2), order=(1, 0)),
    }
    found = read_lowered(lower(program, Design(platform="u55c", clock_mhz=300.0, kernels=kernels)))
    assert len(found.nests) == 8
    assert found.same
    assert {one.deeper for one in found.nests} <= {-1, 0, 1}
    assert sum(one.deeper == 0 for one in found.nests) >= len(found.nests) - 1


UNREAD = ("lenet5", "resnet8")
"""Whose defaults do more in one iteration than is read: 60,000 operations."""


@pytest.mark.slow
@pytest.mark.parametrize("model", [model for model in MODELS if model not in UNREAD])
def test_nests_of_the_zoo_come_back_as_they_were_written(model: str) -> None:
    rows = list(own_rows(model))
    assert len(rows) >= len(QUANTISATIONS)
    assert not [row for row in rows if not row["better"]]
    for row in rows:
        nests, same, near = (int(str(row[name])) for name in ("nests", "same_depth", "depth_within_1"))
        assert same >= 0.75 * nests, row
        assert near >= 0.9 * nests, row


@pytest.mark.parametrize("unroll", [1, 2, 6])
@pytest.mark.parametrize("innermost", [True, False])
def test_a_float_sum_has_the_interval_and_the_depth_that_its_text_has(unroll: int, innermost: bool) -> None:
    """In a register where the innermost loop adds up, else in a memory."""
    program = build_network("float32", 2, 12, (Dense(6, False, False),), seed=4)
    order = (0, 1, 2) if innermost else (2, 0, 1)
    kernels = {
        "fc0": KernelDesign(tile=(2, 6, 12), unroll=(1, 1, unroll), order=order),
        "fc0.relu": KernelDesign(tile=(2, 6), unroll=(1, 1), order=(0, 1)),
    }
    found = read_lowered(lower(program, Design(platform="u55c", clock_mhz=300.0, kernels=kernels)))
    assert found.same
    assert {one.deeper for one in found.nests} <= {-1, 0, 1}
    assert sum(one.deeper == 0 for one in found.nests) >= len(found.nests) - 1


@pytest.mark.parametrize(
    "text", ["INFINITY", "-INFINITY", "std::exp(2.0f)", "std::ldexp(1.5f, -3)", "INT64_C(1) << 40"]
)
def test_what_emitted_text_takes_from_headers_is_read(text: str, tmp_path: Path) -> None:
    """Beside functions of its own that are called as those of the headers."""
    path = tmp_path / "kernel.cpp"
    path.write_text(f"""#include <cmath>
#include <cstdint>
namespace own {{ template <typename T> T exp(T x) {{ return std::exp(x) + (T)1; }} }}
void top(const float in[8], float out[8]) {{
  for (int i = 0; i < 8; i++) out[i] = own::exp(in[i]) + (float)({text});
}}
""")
    design = time_kernel(read_kernel(path, "top"), delays_for(300))
    assert [one.ii for one in design.schedules.values()] == [1]
