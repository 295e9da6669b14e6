"""Tokens wider than a stream of Vitis may be: sent in pieces, with values, FIFOs and text that belong to it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.backend.hls import token_cpp
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import stream
from penstock.compiler.pieces import WIDEST_STREAM, Pieces, pieces_of
from penstock.compiler.pipeline import Lowered, emit, lower
from penstock.compiler.pipeline.verify import compare, make_inputs
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import fifo_area, library_names, load_library, memory
from penstock.profiling.csim import build_csim
from penstock.profiling.network import network_of
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.designs import Dense, build_network
from tests.compiler.graphs import Case, build_graph, cases, turned
from tests.compiler.test_chain import BUILDS, check_csim
from tests.fixtures.hls_memories import streams_of

PART = "xcu55c-fsvh2892-2L-e"


def wide(kind: str, lanes: int) -> Lowered:
    """A layer of 4 to `lanes` and its relu, all lanes in one token, and a last layer that takes them one at a time."""
    program = build_network(kind, 2, 4, (Dense(lanes, False, False), Dense(2, False, False)), seed=3)
    all_lanes, tile = (1, lanes), (2, lanes)
    kernels = {
        "fc0": KernelDesign(tile=(2, lanes, 4), unroll=(1, lanes, 1), order=(0, 1, 2)),
        "fc0.relu": KernelDesign(tile=tile, unroll=all_lanes, order=(0, 1)),
        "fc1": KernelDesign(tile=(2, 2, lanes), unroll=(1, 2, lanes), order=(0, 1, 2)),
        "fc1.relu": KernelDesign(tile=(2, 2), unroll=(1, 2), order=(0, 1)),
    }
    return lower(program, Design(platform="u55c", clock_mhz=300.0, kernels=kernels))


@pytest.mark.parametrize(("kind", "lanes"), [("float32", 200), ("float32", 131), ("int8", 600)])
def test_values_and_text(kind: str, lanes: int, tmp_path: Path) -> None:
    """131 lanes do not divide: the last piece is not full. All give what the interpreter gives."""
    lowered = wide(kind, lanes)
    emit(lowered, tmp_path, part=PART, clock_mhz=300.0)
    streams = streams_of((tmp_path / "hls/penstock_top.cpp").read_text())
    assert max(bits for bits, _ in streams.values()) <= WIDEST_STREAM
    assert any(count > 1 for _, count in streams.values())
    for op in lowered.top.body.block.ops:
        if isinstance(op, stream.StreamOp):
            bits, count = streams[op.sym_name.data]
            token = op.result.type.token
            least = prod(token.get_shape()) * (8 if "i8" in str(token) else 32)
            assert least <= bits * count < least + bits
    frames = make_inputs(lowered, random_sets=2)
    got = build_csim(tmp_path, ToolRunner()).run_frames(frames)
    wanted = [lowered.run_itensor(frame) for frame in frames]
    result = compare("csim", "interpreter", [a for f in got for a in f], [a for f in wanted for a in f])
    assert result.equal, result


def test_pieces_are_few_and_equal() -> None:
    assert pieces_of(840, 32) == Pieces(7, 120)
    assert pieces_of(128, 32) == Pieces(1, 128)
    assert pieces_of(129, 32) == Pieces(2, 65)
    assert pieces_of(5000, 1) == Pieces(10, 500), "C++ stores a bool in a byte"
    assert pieces_of(5000, 32, 0) == Pieces(1, 5000)
    for lanes in range(1, 700):
        cut = pieces_of(lanes, 32)
        assert cut.lanes * 32 <= WIDEST_STREAM
        assert (cut.count - 1) * cut.lanes < lanes <= cut.count * cut.lanes


def test_every_piece_is_a_fifo_of_its_own() -> None:
    """What is counted is what is declared: so many FIFOs of the pieces' width."""
    library = load_library(load_platform("u55c").operators, 300.0)
    assert fifo_area(library, 512, 200 * 32, 200) == fifo_area(library, 512, 100 * 32, 100) * 2
    network = network_of(wide("float32", 200).top, library)
    channel = max(network.channels.values(), key=lambda c: c.bits)
    assert (channel.bits, channel.lanes) == (6400, 200)
    assert channel.area(library) == fifo_area(library, channel.depth, 3200, 100) * 2


def test_the_libraries_of_vitis_know_the_limit() -> None:
    for name in library_names():
        clock = 100.0
        assert load_library(name, clock).fifo.widest_bits == (WIDEST_STREAM if name.startswith("vitis") else 0)


def check_narrow(batch: list[Case], widest: int, folder: Path) -> None:
    """As if no stream took more than `widest` bits: then tokens of small designs go in pieces too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_cpp, "pieces_of", partial(pieces_of, widest=widest))
        patch.setattr(memory, "pieces_of", lambda lanes, bits, _: pieces_of(lanes, bits, widest))  # what counts FIFOs
        programs = [build_graph(case.graph) for case in batch]
        designs = [turned(program, case.knobs) for program, case in zip(programs, batch, strict=True)]
        plain = [lower(p, replace(d, port_bits=8)) for p, d in zip(programs, designs, strict=True)]
        check_csim(plain, folder, batch)


@settings(BUILDS, max_examples=2)
@given(batch=st.lists(cases(), min_size=4, max_size=8))
def test_random_designs_in_pieces(batch: list[Case], tmp_path_factory: pytest.TempPathFactory) -> None:
    check_narrow(batch, 64, tmp_path_factory.mktemp("pieces"))


@pytest.mark.slow
@settings(BUILDS, max_examples=5)
@given(batch=st.lists(cases(), min_size=8, max_size=16), widest=st.sampled_from([32, 64, 96, 200]))
def test_many_more_random_designs_in_pieces(
    batch: list[Case], widest: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_narrow(batch, widest, tmp_path_factory.mktemp("pieces"))
