"""When a float model is too far from PyTorch, the report names the layer where it begins."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.pipeline import Lowered, lower, prepare
from penstock.compiler.pipeline.first_difference import first_difference
from penstock.compiler.pipeline.verify import verify_pytorch
from penstock.compiler.program import Program, Samples
from tests.frontend.models import Lambda, import_module, make, seeded


def lowered(program: Program) -> Lowered:
    return lower(program, default_design(read_graph(program.module), "u55c", 250.0))


@pytest.fixture(scope="module")
def steady() -> Lowered:
    layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    return lowered(prepare(import_module(make(lambda: layers), seeded((4, 8)))))


def test_a_layer_that_float32_is_too_coarse_for() -> None:
    module = make(lambda: Lambda(lambda m, x: m.last(torch.sin(m.first(x) * 1e5)), first=nn.Linear(8, 8),
                                 last=nn.Linear(8, 4)))  # fmt: skip
    design = lowered(prepare(import_module(module, seeded((4, 8)))))
    found = verify_pytorch(design)
    assert found is not None
    assert not found.equal
    said = first_difference(design)
    assert said.startswith("The first layer that float32 is too coarse for: 'first.sin' is off by")


def test_a_layer_that_the_design_computes_otherwise(steady: Lowered) -> None:
    params = dict(steady.padded.params)
    changed = params["2.weight"].copy()
    changed.flat[0] += 1.0
    params["2.weight"] = changed
    other = replace(steady, padded=steady.padded.with_module(steady.padded.module, params=params))
    said = first_difference(other)
    assert said.startswith("The first layer that the design computes otherwise than the program: '2'")


def test_neither(steady: Lowered) -> None:
    samples = steady.program.samples
    assert samples is not None
    wrong = Samples(samples.inputs, tuple(y + 1 for y in samples.outputs))
    design = replace(steady, program=replace(steady.program, samples=wrong))
    assert not verify_pytorch(design).equal  # type: ignore[union-attr]
    assert first_difference(design).endswith("the import differs from PyTorch.")
