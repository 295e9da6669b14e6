"""Activations of one int8 as tables: the same bits at every level, in C++ and SystemVerilog, and what the C++ says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.read_back import read_lowered
from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.interpreter import linalg as linalg_interpreter
from penstock.compiler.pipeline import Lowered, lower, prepare
from penstock.compiler.pipeline.emit import emit
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.program import Program
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.transforms import canonicalise
from penstock.compiler.transforms.canonicalise import QUANTISE, simplify
from penstock.compiler.transforms.rewrite import run_rewrites
from penstock.compiler.transforms.tabulate_functions import TabulateFunctions
from tests.compiler.frames import imported
from tests.compiler.test_chain import PART, check_csim
from tests.rtl.rtl_batch import Core, build, check_whole

ACTIVATIONS: dict[str, nn.Module] = {
    "silu": nn.SiLU(), "gelu": nn.GELU(approximate="tanh"), "erf": nn.GELU(), "tanh": nn.Tanh(),
    "hardswish": nn.Hardswish(), "sigmoid": nn.Sigmoid(),
}  # fmt: skip


def model(name: str) -> nn.Module:
    return nn.Sequential(ACTIVATIONS[name], nn.Linear(6, 4))


def quantised(name: str) -> Program:
    return prepare(imported(model(name), (3, 6)), "w8a8")


def lowered(name: str, lanes: int = 1) -> Lowered:
    program = quantised(name)
    graph = read_graph(program.module)
    design = default_design(graph, "u55c", 300.0, "w8a8")
    first = graph.operations[0]
    unroll = tuple(lanes if trip == 6 else 1 for trip in first.trips)
    kernels = {**design.kernels, first.layer: replace(design.kernels[first.layer], unroll=unroll)}
    return lower(program, replace(design, kernels=kernels))


def look_ups(lowered: Lowered) -> list[LookUpOp]:
    return [op for op in lowered.stream.walk() if isinstance(op, LookUpOp)]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_no_bit_changes(name: str) -> None:
    """Without the pass the same numbers come out, by operators of f32."""
    program = simplify(imported(model(name), (3, 6)))
    before = run_rewrites([one for one in QUANTISE if not isinstance(one, TabulateFunctions)], program)
    after = canonicalise.quantise(program)
    text = str(after.module)
    assert "table.look_up" in text
    assert "sitofp" in str(before.module)
    assert "sitofp" not in text
    numbers = np.arange(-128, 128, dtype=np.int8)[:252].reshape(14, 3, 6)
    for frame in (*numbers, np.full((3, 6), 127, np.int8)):
        for ours, theirs in zip(*(linalg_interpreter.run(one, [frame]) for one in (after, before)), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_every_level_and_simulation_agree(tmp_path: Path) -> None:
    designs = [lowered(name) for name in ("silu", "gelu")]
    for one in designs:
        assert len(look_ups(one)) == 1
        for comparison in verify_levels(one, make_inputs(one)):
            assert comparison.equal, comparison
    check_csim(designs, tmp_path)
    cores = [Core(one, name) for one, name in zip(designs, ("silu", "gelu"), strict=True)]
    for core, program in zip(cores, build(cores), strict=True):
        check_whole(core, program)


class Residual(nn.Module):
    """An activation behind a layer, and one that goes on into a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 4)
        self.silu, self.gelu = nn.SiLU(), nn.GELU(approximate="tanh")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.silu(self.first(x))
        return self.last(y + self.gelu(self.second(y)))


def test_activations_behind_layers_agree_at_every_level(tmp_path: Path) -> None:
    program = prepare(imported(Residual(), (3, 6)), "w8a8")
    one = lower(program, default_design(read_graph(program.module), "u55c", 300.0, "w8a8"))
    assert [str(op.result.type) for op in look_ups(one)] == ["i8", "i16"]
    for comparison in verify_levels(one, make_inputs(one)):
        assert comparison.equal, comparison
    check_csim([one], tmp_path)
    core = Core(one, "residual")
    (built,) = build([core])
    check_whole(core, built)
    assert read_lowered(one).same


def test_a_table_stands_once_in_a_task_and_is_read_by_all_lanes(tmp_path: Path) -> None:
    one = lowered("silu", lanes=6)
    emit(one, tmp_path, part=PART, clock_mhz=300.0)
    text = (tmp_path / "hls/penstock_top.cpp").read_text()
    assert text.count("static const int8_t entries[256]") == 1
    assert text.count("#pragma HLS BIND_STORAGE variable=entries type=rom_np impl=lutram") == 1
    assert "pk::exp" not in text


@pytest.mark.parametrize("lanes", [1, 2, 6])
def test_the_text_is_read_back_as_it_was_written(lanes: int) -> None:
    """Also where more lanes than a memory has ports read one table."""
    found = read_lowered(lowered("silu", lanes))
    assert found.same
    (nest,) = [one for one in found.nests if one.task == "_0_div"]
    assert nest.deeper == 0
