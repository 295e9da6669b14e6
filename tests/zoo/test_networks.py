"""The zoo's convolutional networks through every level: PyTorch = linalg = itensor = stream = C++ = SystemVerilog.

All of them made small, three at full size: LeNet-5, ResNet-8, and the second stage of ResNet-18 (two residual blocks on
28 x 28). As SystemVerilog LeNet-5 and a residual block of ResNet-8 take the cycles of the simulator.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.zoo._residual import block
from tests.compiler.frames import imported
from tests.frontend.test_zoo_frames import SMALL
from tests.rtl.rtl_batch import Core, build, check_whole
from tests.zoo.test_blocks import check_above_cpp, check_chain, check_csim, lowered_of


def _stage() -> nn.Module:
    return nn.Sequential(block(64, 128, 2), block(128, 128, 1))


def _block() -> nn.Module:
    return block(16, 16, 1)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"])
@pytest.mark.parametrize("name", SMALL)
def test_small_networks_agree_at_every_level(name: str, quantize: str | None, tmp_path: Path) -> None:
    check_chain(f"zoo:{name}?{SMALL[name]}", quantize, tmp_path, random_sets=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lenet5", "resnet8"])
def test_networks_of_full_size_agree_at_every_level(name: str, tmp_path: Path) -> None:
    check_chain(f"zoo:{name}", "w8a8", tmp_path, random_sets=0)


@pytest.mark.slow
def test_a_stage_of_resnet18_of_full_size_agrees_at_every_level(tmp_path: Path) -> None:
    lowered = lowered_of(imported(_stage(), (1, 64, 56, 56), "stage"), "w8a8")
    frames = make_inputs(lowered, random_sets=0)
    check_above_cpp(lowered, frames)
    check_csim(lowered, frames, tmp_path)


@pytest.mark.slow
def test_lenet5_and_a_residual_block_are_systemverilog_in_the_simulators_cycles() -> None:
    """Two frames of each, one after the other: the interpreter's bits, and `done` in the cycle that was simulated."""
    programs = {"lenet5": import_model("zoo:lenet5"), "residual": imported(_block(), (1, 16, 8, 8), "residual")}
    cores = [Core(lowered_of(program, "w8a8"), name) for name, program in programs.items()]
    for core, program in zip(cores, build(cores), strict=True):
        check_whole(core, program, frames=2)
