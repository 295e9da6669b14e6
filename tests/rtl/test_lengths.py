"""Cores whose lengths each call says: at every length the values and the cycles of the design of that length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.parser import Parser

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.backend.rtl.hazards import SharedUse, check_order
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import nest, stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter.stream import run_part
from penstock.compiler.lengths import Length
from penstock.compiler.program import Program
from penstock.compiler.simulator import OPEN_RTL
from penstock.compiler.simulator.call_list import cycles_of_lengths, cycles_of_list
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.compiler.transforms.merge_lengths import at_steps
from penstock.profiling.network import network_of
from penstock.profiling.open_rtl.run import Job, RtlRun, simulate_many
from penstock.profiling.open_rtl.verilate import build_many
from penstock.profiling.open_rtl.words import lanes_of
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.simulated import simulate_design
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.designs import Dense
from tests.goldens import check_golden
from tests.rtl.length_batch import LengthCore, check, dense, product
from tests.rtl.rtl_batch import BOARD, LIBRARY, bits_of, inner_tasks
from tests.schedule.sums import sums, top

Array = NDArray[Any]
GOLDENS = Path(__file__).parent / "goldens"
TWO = (Dense(6, transposed=True, skip=False), Dense(4, transposed=False, skip=False))


def design_of(kernels: dict[str, KernelDesign], groups: dict[str, int] | None = None) -> Design:
    return Design("ecp5-85k", 100.0, kernels, groups=groups or {}, port_bits=64)


def by_rows(program: Program, rows: int = 1, lanes: int = 1, columns: int = 2) -> dict[str, KernelDesign]:
    """Tiles of so many rows, `lanes` of them at once, and so many columns at once."""
    found: dict[str, KernelDesign] = {}
    for op in read_graph(program.module).operations:
        tile = (rows, *op.trips[1:])
        unroll = (lanes, columns, *(1 for _ in op.trips[2:]))
        found[op.layer] = KernelDesign(tile, unroll, tuple(range(len(tile))))
    return found


def test_every_length_in_one_core() -> None:
    """Of steps of one and of four, floats and integers, lanes along the length, kernels in turn, two lengths."""
    cores: list[LengthCore] = []
    for kind in ("int8", "float32"):
        program = dense(kind, Length("rows", 1, 5))
        cores.append(LengthCore(program, design_of(by_rows(program)), kind))
    fours = dense("int8", Length("rows", 4, 12, 4), TWO)
    cores.append(LengthCore(fours, design_of(by_rows(fours, 4, 2)), "steps of four, two rows at once"))
    cores.append(LengthCore(fours, design_of(by_rows(fours, 2, 1)), "steps of four in tiles of two"))
    program = dense("int8", Length("rows", 1, 4), TWO)
    turns = {op.layer: number // 2 for number, op in enumerate(read_graph(program.module).operations)}
    cores.append(LengthCore(program, design_of(by_rows(program), turns), "kernels in turn"))
    turned = dense("int8", Length("rows", 1, 5), (Dense(6, transposed=True, skip=False),))
    kernels = {"fc0": KernelDesign((5, 6, 4), (1, 2, 1), (0, 1, 2)), "fc0.relu": KernelDesign((5, 6), (1, 3), (1, 0))}
    cores.append(LengthCore(turned, design_of(kernels), "rows that the next kernel takes as columns"))
    assert any(isinstance(channel, stream.BlocksOp) for channel in cores[-1].lowered.channels)
    two = product(Length("rows", 1, 3), Length("deep", 2, 6, 2))
    kernel = KernelDesign((1, 3, 2), (1, 3, 1), (0, 2, 1))
    cores.append(LengthCore(two, design_of({"gemm": kernel}), "two lengths, one of them summed over"))
    check(cores)


def columns_of(seed: int, count: int) -> Array:
    return np.random.default_rng(seed).standard_normal((4, count)).astype(np.float32)


def summed(x: Array) -> Array:
    """In the order of the loops."""
    total = np.zeros(x.shape[1], np.float32)
    for row in x:
        total = row + total
    return total


def test_a_pipeline_for_short_lengths_does_long_ones_and_lengths_change_from_start_to_start() -> None:
    """Partial sums come back after two columns at least, so that the interval is that of two. Starts wait in line."""
    library, tools, directives = LIBRARY, ToolRunner(), GenerateDirectives(design_of({}))
    module = directives.apply(sums(2))
    design = emit_rtl(module, library, {}, top="sums")
    listed = emit_rtl(directives.apply(sums(2, calls=True)), library, {}, top="listed", calls=2, slots={"x": 2, "y": 2})
    for name in ("sums.sv", "task_sum.sv"):
        check_golden(GOLDENS / f"lengths_{name}", design.files[name])
    cycles = {
        seq: simulate_design(network_of(top(at_steps(module, {"seq": seq})), library), BOARD, 100.0).latency
        for seq in (2, 3, 5, 16)
    }
    before = cycles_of_lengths(1, 1)
    x, lengths = columns_of(1, 16), np.array([[16], [2], [3]], np.int32)
    calls = np.array([2, 0, 0, 64, 16], np.int32)
    both = np.stack([x, columns_of(2, 16)])
    jobs = [
        Job(design, {"x": x, "lengths": lengths}, frames=3, one_by_one=True),
        Job(design, {"x": x, "lengths": np.array([3], np.int32)}, frames=3),
        Job(listed, {"x": both, "lengths": np.array([5], np.int32), "calls": calls}),
    ]
    built = [one for one in build_many([design, listed], tools) if not isinstance(one, ProfilingError)]
    turns, waiting, list_ = simulate_many(jobs, [built[0], built[0], built[1]], tools)
    assert isinstance(turns, RtlRun)
    assert isinstance(waiting, RtlRun)
    assert isinstance(list_, RtlRun)
    for seq, left in zip((16, 2, 3), turns.outputs["y"].reshape(3, 16), strict=True):
        assert np.array_equal(left[:seq], summed(x)[:seq])
    assert list(np.diff([-1, *turns.done])) == [cycles[seq] + before for seq in (16, 2, 3)]
    assert list(np.diff([-1, *waiting.done])) == [cycles[3] + before] * 3
    for part, left in zip(both, list_.outputs["y"].reshape(2, 16), strict=True):
        assert np.array_equal(left[:5], summed(part)[:5])
    assert list_.done[0] + 1 == cycles_of_list(cycles[5], 2, 2, OPEN_RTL, 1).total + before


def test_stalls_change_no_bit_at_any_length() -> None:
    """The inner tasks, their streams pausing at random."""
    program = dense("int8", Length("rows", 1, 4), TWO)
    core = LengthCore(program, design_of(by_rows(program)), "inner tasks")
    tasks = inner_tasks(core.lowered)
    params = core.lowered.padded.params
    whole = emit_rtl(core.lowered.stream, LIBRARY, params, tasks=tasks, depths=core.depths)
    jobs: list[Job] = []
    wanted: list[dict[str, Array]] = []
    for sizes, one in zip(core.sizes, core.ones, strict=True):
        ports = emit_rtl(one.stream, LIBRARY, params, tasks=tasks).ports  # with the tokens of this length
        (source,) = (port for port in ports if port.kind == "stream_in")
        size = source.words, 1, lanes_of(source)
        x = np.random.default_rng(sizes["rows"]).integers(-128, 127, size, endpoint=True).astype(np.int8)
        assert source.channel is not None
        wanted.append(run_part(one.stream, tasks, {}, {source.channel: x}, params)[1])
        here = replace(whole, ports=(*ports, whole.port("lengths")))
        given = {source.name: x, "lengths": core.steps(sizes)}
        jobs += [Job(here, given, stall_seed=seed, idle_cycles=5000) for seed in range(3)]
    tools = ToolRunner()
    (built,) = build_many([whole], tools)
    assert not isinstance(built, ProfilingError)
    for number, (job, run) in enumerate(zip(jobs, simulate_many(jobs, [built] * len(jobs), tools), strict=True)):
        assert isinstance(run, RtlRun)
        assert not run.deadlocked, run.stuck
        (target,) = (port for port in job.design.ports if port.kind == "stream_out")
        assert target.channel is not None
        got, meant = run.outputs[target.name].reshape(-1), wanted[number // 3][target.channel].reshape(-1)
        assert np.array_equal(bits_of(got), bits_of(meant))


AGAIN = """builtin.module {
  stream.top "again" takes ["y", "lengths"] as ["output", "lengths"] lying [unit, unit]
      attributes {lengths = #nest.lengths<seq: LOW to 16>} {
  ^bb0(%y: memref<16xi32>, %lengths: memref<1xi32>):
    stream.task "again" of "again" group 0 {
      %kept = stream.buffer "kept" : memref<16xi32>
      nest.nest "compute" <r: 4, c: 16 as seq> {
        %new = nest.constant 3 : i32 -> vector<1xi32>
        nest.store %new to %kept at (d0, d1) -> (d1) : vector<1xi32> to memref<16xi32>
        %old = nest.load %kept at (d0, d1) -> (d1) : memref<16xi32> -> vector<1xi32>
        nest.store %old to %y at (d0, d1) -> (d1) : vector<1xi32> to memref<16xi32>
      }
    }
  }
}
"""


def test_an_order_that_only_long_lengths_keep_is_refused_with_the_way_out() -> None:
    """A word is loaded four cycles after its store; two columns later the next row has stored there again."""
    for low, refused in ((4, False), (2, True)):
        module = Parser(make_context(), AGAIN.replace("LOW", str(low))).parse_module()
        (op,) = (op for op in module.walk() if isinstance(op, nest.NestOp))
        _, store, load, _ = op.body.block.ops
        assert isinstance(store, nest.StoreOp)
        assert isinstance(load, nest.LoadOp)
        uses = SharedUse(op, load, 5, 1, 0, "again.compute"), [SharedUse(op, store, 1, 1, 0, "again.compute")]
        if not refused:
            check_order(*uses, "kept")
            continue
        with pytest.raises(PenstockError, match="stored again 2 cycles before its load, at the shortest lengths"):
            check_order(*uses, "kept")
