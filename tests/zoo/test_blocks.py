"""Every block of the zoo through every level: PyTorch = linalg = itensor = stream = C simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import Float64Type

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.pipeline.verify import (
    FLOAT_TOLERANCE,
    compare,
    make_inputs,
    verify_csim,
    verify_levels,
    verify_pytorch,
)
from penstock.compiler.program import Program
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.test_chain import check_csim as check_csim_of_batch

BLOCKS = [
    f"zoo:{family}?mode={mode}" for family in ("gpt2", "llama", "qwen", "gemma") for mode in ("prefill", "decode")
]
PART = "xcu55c-fsvh2892-2L-e"


def lowered_of(program: Program, quantize: str | None) -> Lowered:
    canonical = prepare(program, quantize)
    return lower(canonical, default_design(read_graph(canonical.module), "u55c", 300.0, quantize))


FORMS = [
    *(b for b in BLOCKS if "decode" in b),
    "zoo:gpt2",
    "zoo:gemma?seq=3",
    "zoo:attention",
    "zoo:ffn?activation=gelu",
]


@pytest.mark.parametrize("model", FORMS)
def test_canonical_form_computes_what_pytorch_does(model: str) -> None:
    canonical = prepare(import_model(model))
    assert canonical.samples is not None
    outputs = run(canonical, canonical.samples.inputs)
    result = compare("linalg", "pytorch", outputs, canonical.samples.outputs, FLOAT_TOLERANCE)
    assert result.equal, result
    for op in canonical.module.walk():
        assert not isinstance(op, math.PowFOp | math.FPowIOp | tensor.CollapseShapeOp | tensor.ExpandShapeOp), op
        assert not isinstance(op, arith.TruncFOp | arith.ExtFOp), op
        assert not any(isinstance(value.type, Float64Type) for value in op.results), op


def test_random_masks_are_never_negative() -> None:
    """A sum of weights of either sign may come to nearly nothing, and what is divided by it to anything."""
    lowered = lowered_of(import_model("zoo:gpt2?d=8&heads=2&ffn=8&seq=2"), None)
    for x, mask in make_inputs(lowered)[1:]:
        assert x.min() < 0 <= mask.min()


def check_chain(model: str, quantize: str | None, folder: Path, random_sets: int = 1) -> None:
    lowered = lowered_of(import_model(model), quantize)
    frames = make_inputs(lowered, random_sets=random_sets)
    check_above_cpp(lowered, frames)
    check_csim(lowered, frames, folder)


def check_above_cpp(lowered: Lowered, frames: list[list[np.ndarray]]) -> None:
    for comparison in verify_levels(lowered, frames):
        assert comparison.equal, comparison
    pytorch = verify_pytorch(lowered)
    assert pytorch is not None
    assert pytorch.equal, pytorch


def check_csim(lowered: Lowered, frames: list[list[np.ndarray]], folder: Path) -> None:
    emit(lowered, folder, part=PART, clock_mhz=300.0)
    result = verify_csim(lowered, build_csim(folder, ToolRunner()), frames)
    assert result.equal, result


def test_small_blocks_agree_at_every_level(tmp_path: Path) -> None:
    models = ["zoo:gpt2?d=8&heads=2&ffn=8&seq=2", "zoo:llama?mode=decode&cache=3"]
    batch = [lowered_of(import_model(model), "w8a8") for model in models]
    for lowered in batch:
        check_above_cpp(lowered, make_inputs(lowered, random_sets=1))
    check_csim_of_batch(batch, tmp_path, models)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"])
@pytest.mark.parametrize("model", [*BLOCKS, "zoo:attention", "zoo:ffn"])
def test_all_blocks_agree_at_every_level(model: str, quantize: str | None, tmp_path: Path) -> None:
    check_chain(model, quantize, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_blocks_of_256_by_32_agree_at_every_level(family: str, tmp_path: Path) -> None:
    """Eighteen million pipeline slots each. In floats they are among the models of tests/compiler/test_models.py."""
    lowered = lowered_of(import_model(f"zoo:{family}?size=small"), "w8a8")
    frames = make_inputs(lowered, random_sets=0)
    check_above_cpp(lowered, frames)
    check_csim(lowered, frames, tmp_path)
