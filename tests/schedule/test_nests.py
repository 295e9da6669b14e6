"""Schedules of known nests: initiation intervals with their reasons, depth, latency, tokens."""

from __future__ import annotations

import itertools
from itertools import pairwise

import pytest
from xdsl.parser import Parser

from penstock.compiler.dialects import nest
from penstock.compiler.frontend.context import make_context
from penstock.compiler.schedule import NestSchedule, OperatorLibrary, load_library, schedule_nest
from tests.schedule.gemms import OPEN, VITIS_250, VITIS_300, gemm_schedule

SHAPE = (16, 32, 64)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("library", [OPEN, VITIS_300, VITIS_250])
def test_int8_products_start_every_cycle_in_any_order(order: tuple[int, int, int], library: tuple[str, float]):
    for tile in ((1, 1, 1), (1, 1, 64), (4, 8, 16), SHAPE):
        assert gemm_schedule(SHAPE, tile, (1, 1, 1), order, library=library).ii == 1


@pytest.mark.parametrize(("library", "latency"), [(VITIS_300, 7), (VITIS_250, 5), (OPEN, 5)])
def test_a_float_sum_over_the_innermost_loop_takes_the_adders_latency(library: tuple[str, float], latency: int):
    schedule = gemm_schedule(SHAPE, (1, 1, 64), (1, 1, 1), kind="float32", library=library)
    assert schedule.ii == latency
    assert f"II = {latency}: loop-carried arith.addf on acc" in schedule.ii_reason


def test_the_adder_in_fabric_is_another_choice():
    schedule = gemm_schedule(
        SHAPE, (1, 1, 64), (1, 1, 1), kind="float32", library=VITIS_300, bindings={"arith.addf": "fabric"}
    )
    assert schedule.ii == 4
    assert schedule.logic.dsp == 3


@pytest.mark.parametrize("library", [OPEN, VITIS_300, VITIS_250])
def test_reductions_outside_start_every_cycle(library: tuple[str, float]):
    assert gemm_schedule(SHAPE, (1, 32, 64), (1, 1, 1), kind="float32", library=library).ii == 1


def test_the_distance_of_a_carried_sum_is_counted_in_iterations():
    """Four sums in turn: load 1 + add 6 + store 1 stages over 4 iterations."""
    schedule = gemm_schedule(SHAPE, (1, 4, 64), (1, 1, 1), kind="float32", library=VITIS_300)
    assert schedule.ii == 2
    assert "8 stages over 4 iterations" in schedule.ii_reason


@pytest.mark.parametrize(
    ("shape", "unroll", "measured"),
    [
        ((16, 32, 64), 1, 32_774),
        ((16, 32, 64), 4, 8_201),
        ((16, 32, 64), 16, 2_059),
        ((16, 64, 256), 64, 4_109),
    ],
)
def test_latency_of_products_against_measured_rtl(shape: tuple[int, int, int], unroll: int, measured: int):
    """The open route's table; its kernels also requantise and pack, which is worth up to three cycles."""
    schedule = gemm_schedule(shape, (1, 1, shape[2]), (1, 1, unroll))
    assert schedule.iterations == shape[0] * shape[1] * shape[2] // unroll
    assert 0 <= measured - schedule.latency <= 3


@pytest.mark.parametrize(
    ("shape", "unroll", "dsp", "lut", "ff"),
    [
        ((16, 32, 64), 1, 1, 94, 151),
        ((16, 32, 64), 4, 4, 166, 376),
        ((16, 32, 64), 16, 16, 1508, 1386),
        ((16, 64, 256), 64, 64, 1662, 4330),
    ],
)
def test_area_of_products_against_measured_synthesis(
    shape: tuple[int, int, int], unroll: int, dsp: int, lut: int, ff: int
):
    """Multipliers exactly; flip-flops within 15 %; LUTs are an upper bound within a factor of two."""
    area = gemm_schedule(shape, (1, 1, shape[2]), (1, 1, unroll)).area
    assert area.dsp == dsp
    assert area.ff == pytest.approx(ff, rel=0.15)
    assert lut <= area.lut <= 2 * lut


def test_block_ram_of_the_large_product():
    assert gemm_schedule((16, 64, 256), (1, 1, 256), (1, 1, 64)).area.bram18 == 15


def test_depth_latency_and_initial_delay_belong_together():
    schedule = gemm_schedule(SHAPE, (1, 1, 64), (1, 1, 4), kind="float32", library=VITIS_300)
    assert schedule.latency == schedule.ii * (schedule.iterations - 1) + schedule.depth
    write = next(p for p in schedule.ports if p.direction == "write")
    assert write.stage == schedule.depth - 1
    assert schedule.initial_delay == schedule.ii * (64 // 4 - 1) + write.stage
    assert max(s.end for s in schedule.stages) < schedule.depth


def test_reads_follow_the_loop_control_and_writes_come_last_on_vitis():
    schedule = gemm_schedule(SHAPE, (1, 1, 64), (1, 1, 1), library=VITIS_300)
    assert {p.direction: p.stage for p in schedule.ports} == {"read": 1, "write": schedule.depth - 1}


def test_tokens_and_their_pattern():
    """A row of 64 is read at the first of 32 columns, and kept: a burst, then a pause."""
    schedule = gemm_schedule(SHAPE, (1, 1, 64), (1, 1, 1))
    read = next(p for p in schedule.ports if p.direction == "read")
    write = next(p for p in schedule.ports if p.direction == "write")
    assert (read.tokens, write.tokens) == (16 * 64, 16 * 32)
    assert [read.pattern.iteration(t) for t in (0, 63, 64)] == [0, 63, 32 * 64]
    assert [write.pattern.iteration(t) for t in (0, 1, 511)] == [63, 127, 512 * 64 - 1]
    assert (write.pattern.first, write.pattern.last) == (63, 16 * 32 * 64 - 1)


BLOCKS = """
"nest.nest"() <{sym_name = "read", loops = #nest.loops<s0: 8, w0: 32, w1: 8>, block_loops = #builtin.int<1>}> ({
  %v = "nest.load"(%b) <{address = affine_map<(d0, d1, d2) -> (d1, d2)>, when = #nest.when<>}>
    : (!stream.blocks<memref<32x8xi8>, count: 2>) -> vector<1x1xi8>
  "nest.write"(%v, %c) <{when = #nest.when<>}> : (vector<1x1xi8>, !stream.stream<vector<1x1xi8>, depth: 2>) -> ()
}) : () -> ()
"""


def test_a_block_is_a_run_of_the_pipeline_on_vitis_and_not_on_the_open_route():
    """The loop that holds a block's lock is not flattened: 8 x (256 + fill + entry), not 2,048."""
    on_vitis, open_route = (block_schedule(load_library(*library)) for library in (VITIS_300, OPEN))
    assert (open_route.idle, open_route.slots) == (0, 2048)
    assert open_route.latency == 2047 + open_route.depth
    library = load_library(*VITIS_300)
    assert on_vitis.run_iterations == 256
    run = 255 + on_vitis.depth
    assert on_vitis.latency == 8 * run + 7 * (library.block_entry or 0)
    write = next(p for p in on_vitis.ports if p.direction == "write")
    firsts = [on_vitis.cycle(write, 256 * block) for block in range(8)]
    assert {later - sooner for sooner, later in pairwise(firsts)} == {run + (library.block_entry or 0)}
    assert on_vitis.cycle(write, 2047) == on_vitis.latency - 1


def block_schedule(library: OperatorLibrary) -> NestSchedule:
    text = f"""
"stream.top"() <{{sym_name = "top", argument_names = [], argument_kinds = [], layouts = []}}> ({{
  %b = stream.blocks "b" : !stream.blocks<memref<32x8xi8>, count: 2>
  %c = stream.stream "c" : !stream.stream<vector<1x1xi8>, depth: 2>
  "stream.task"() <{{sym_name = "t", layer = "t", group = #builtin.int<0>}}> ({{ {BLOCKS} }}) : () -> ()
}}) : () -> ()
"""
    top = Parser(make_context(), text).parse_op()
    return schedule_nest(next(op for op in top.walk() if isinstance(op, nest.NestOp)), library)
