"""A step a channel: of trained networks' channels some are far larger than others, and all levels theirs otherwise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from xdsl.ir import Operation

from penstock.compiler.frontend.loaded import LoadedEvaluation
from penstock.compiler.interpreter.linalg import run_rows
from penstock.compiler.pipeline.prepare import prepare
from penstock.compiler.program import Program
from penstock.compiler.transforms.canonicalise import simplify
from penstock.compiler.transforms.channel_sizes import ChannelSizes
from penstock.compiler.transforms.editor import Editor, layer_of
from penstock.compiler.transforms.even_channels import find_channels
from penstock.compiler.transforms.fold_parameters import FoldParameters
from penstock.compiler.transforms.insert_requantise import InsertRequantise
from penstock.compiler.transforms.quantise import quantise_in
from tests.frontend.models import import_module, make, seeded
from tests.transforms.test_random_graphs import check_levels


def spread(first: nn.Module, second: nn.Module, largest: float) -> None:
    """Make channels between two layers uneven, and the second layer's weights so that nothing else changes."""
    assert isinstance(first, nn.Conv2d | nn.Linear)
    assert isinstance(second, nn.Conv2d | nn.Linear)
    with torch.no_grad():
        count = first.weight.shape[0]
        factors = torch.logspace(0, float(np.log10(largest)), count)[torch.randperm(count, generator=_seed())]
        rest = [1] * (first.weight.ndim - 1)
        first.weight.mul_(factors.reshape(-1, *rest))
        if first.bias is not None:
            first.bias.mul_(factors)
        depthwise = isinstance(second, nn.Conv2d) and second.groups > 1
        shape = (-1, *rest) if depthwise else (1, -1, *rest[1:])
        second.weight.div_(factors.reshape(shape))


def _seed() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def net(kind: str, largest: float) -> nn.Module:
    torch.manual_seed(1)
    match kind:
        case "linear":
            first, last = nn.Linear(8, 24), nn.Linear(24, 6)
            parts: list[nn.Module] = [first, nn.ReLU(), last]
        case "conv":
            first, last = nn.Conv2d(2, 12, 1), nn.Conv2d(12, 4, 3, padding=1)
            parts = [first, nn.ReLU(), last]
        case "depthwise":
            first, last = nn.Conv2d(2, 12, 1), nn.Conv2d(12, 12, 3, stride=2, padding=1, groups=12)
            parts = [first, nn.ReLU(), last, nn.ReLU(), nn.Conv2d(12, 4, 1)]
        case "pooled":
            first, last = nn.Conv2d(2, 12, 1), nn.Conv2d(12, 4, 1)
            parts = [first, nn.ReLU(), nn.MaxPool2d(2), last]
        case "curved":
            first, last = nn.Conv2d(2, 12, 1), nn.Conv2d(12, 12, 3, padding=1, groups=12)
            parts = [first, nn.Hardswish(), last, nn.Conv2d(12, 4, 1)]
        case _:
            raise ValueError(kind)
    if kind != "curved":
        spread(first, last, largest)
    else:  # a function keeps no factor: its small channels are as they are, and are asked for all the more
        with torch.no_grad():
            factors = torch.logspace(0, float(np.log10(largest)), 12)
            first.weight.mul_(factors.reshape(-1, 1, 1, 1))
            last.weight.div_(factors.reshape(-1, 1, 1, 1))
    return make(lambda: nn.Sequential(*parts))


def given_rows(kind: str, count: int = 8) -> torch.Tensor:
    return seeded((count, 8) if kind == "linear" else (count, 2, 8, 8))


def program_of(kind: str, largest: float, *, typical: bool = True) -> tuple[Program, nn.Module]:
    module, rows = net(kind, largest), given_rows(kind, 64 if kind == "linear" else 8)
    labels = torch.zeros(len(rows), dtype=torch.int64)
    evaluation = LoadedEvaluation("rows", rows, labels, calibration=rows) if typical else None
    return import_module(module, rows[:1], evaluation=evaluation), module


def error(program: Program, module: nn.Module, kind: str) -> float:
    """Of the quantised program, relative to the root mean square of what PyTorch answers."""
    rows = given_rows(kind)
    answers = run_rows(program, rows.numpy()).reshape(len(rows), -1)
    wanted = module(rows).detach().numpy().reshape(len(rows), -1)
    return float(np.sqrt(np.mean((answers - wanted) ** 2) / np.mean(wanted**2)))


@pytest.mark.parametrize("kind", ["linear", "conv", "depthwise", "pooled", "curved"])
def test_uneven_channels_cost_no_more_than_even_ones(kind: str) -> None:
    program, module = program_of(kind, 200.0)
    one_step, _ = program_of(kind, 200.0, typical=False)
    even, plain = program_of(kind, 1.0)
    own, common = error(prepare(program, "w8a8"), module, kind), error(prepare(one_step, "w8a8"), module, kind)
    assert own < 0.4 * common
    assert own < max(2.5 * error(prepare(even, "w8a8"), plain, kind), 0.03)


@pytest.mark.parametrize("kind", ["linear", "depthwise", "pooled", "curved"])
@pytest.mark.parametrize("quantize", ["w8a8", "w4a8"])
def test_every_level_computes_the_same(kind: str, quantize: str) -> None:
    program, _ = program_of(kind, 100.0)
    check_levels(prepare(program, quantize))


@settings(max_examples=15, deadline=None)
@given(kind=st.sampled_from(["linear", "conv", "depthwise", "pooled"]), largest=st.floats(1.0, 1e4))
def test_no_unevenness_is_worse_than_one_step_for_all(kind: str, largest: float) -> None:
    program, module = program_of(kind, largest)
    one_step, _ = program_of(kind, largest, typical=False)
    own, common = error(prepare(program, "w8a8"), module, kind), error(prepare(one_step, "w8a8"), module, kind)
    assert own < 1.3 * common + 0.005


def test_even_channels_and_unknown_inputs_have_one_step() -> None:
    assert _steps(program_of("conv", 200.0)[0]) == 1
    assert _steps(program_of("conv", 200.0, typical=False)[0]) == 0, "nobody calls the example inputs typical"
    module, rows = net("conv", 1.0), given_rows("conv")
    with torch.no_grad():
        first = next(m for m in module.modules() if isinstance(m, nn.Conv2d))
        assert first.bias is not None
        first.bias.zero_()
        first.weight.fill_(0.5)
    evaluation = LoadedEvaluation("rows", rows, torch.zeros(len(rows), dtype=torch.int64), calibration=rows)
    assert _steps(import_module(module, rows[:1], evaluation=evaluation)) == 0


def _steps(program: Program) -> int:
    """How many tensors of a program have a step a channel once it is quantised."""
    return len(quantise_in(_before(program)).channel_ranges)


def _before(program: Program) -> Editor:
    editor = Editor(simplify(program))
    FoldParameters(integers=True).rewrite(editor)
    InsertRequantise().rewrite(editor)
    return editor


def test_what_reads_a_tensor_decides_about_its_channels() -> None:
    """Rows that a softmax compares and what leaves the model have one step; what a layer sums may have many."""
    module = make(lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Softmax(-1)))
    found = find_channels(_before(import_module(module, seeded((4, 8)))))
    layers = {layer_of(value.owner) for value in found if isinstance(value.owner, Operation)}
    assert layers == {"0.relu"}
    assert list(found.values()) == [1]


def test_channel_sizes_join() -> None:
    numbers = np.arange(24.0).reshape(2, 3, 4) - 11
    whole = ChannelSizes.of(numbers, -2)
    joined = ChannelSizes.of(numbers[:1], -2).joined(ChannelSizes.of(numbers[1:], -2))
    assert whole.count == joined.count == 8
    np.testing.assert_array_equal(whole.largest, joined.largest)
    np.testing.assert_allclose(whole.power, joined.power)
