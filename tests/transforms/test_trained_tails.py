"""What trained models have and random ones have not: few numbers far above most, sharp softmaxes, channels that are
loud in few calls. Eight bits that are measured on typical inputs leave room for these."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from penstock.compiler.frontend.loaded import LoadedEvaluation
from penstock.compiler.interpreter.linalg import run_rows
from penstock.compiler.pipeline.check_quantised import check_quantised
from penstock.compiler.pipeline.prepare import prepare
from penstock.compiler.program import Program
from penstock.compiler.transforms import even_channels
from penstock.compiler.transforms.channel_sizes import FOLDS, ChannelSizes
from tests.frontend.models import import_module, make, seeded
from tests.transforms.test_random_graphs import check_levels


def typical(module: nn.Module, rows: torch.Tensor) -> Program:
    labels = torch.zeros(len(rows), dtype=torch.int64)
    return import_module(module, rows[:1], evaluation=LoadedEvaluation("rows", rows, labels, calibration=rows))


def error(program: Program, module: nn.Module, rows: torch.Tensor) -> float:
    """Of the quantised program, relative to the root mean square of what PyTorch answers."""
    answers = run_rows(prepare(program, "w8a8"), rows.numpy()).reshape(len(rows), -1)
    wanted = module(rows).detach().numpy().reshape(len(rows), -1)
    return float(np.sqrt(np.mean((answers - wanted) ** 2) / np.mean(wanted**2)))


def normed(kind: str) -> nn.Module:
    """A layer of which one channel is far above the others before a norm, and small in the norm's weights."""
    if kind == "rows":
        first, norm, last = nn.Linear(16, 384), nn.LayerNorm(384), nn.Linear(384, 8)
        parts: list[nn.Module] = [first, norm, last]
    else:
        first, norm, last = nn.Conv1d(16, 384, 1), nn.GroupNorm(1, 384), nn.Conv1d(384, 8, 1)
        parts = [first, norm, last]
    with torch.no_grad():
        assert first.bias is not None
        first.bias[5] = 60.0
        norm.weight.fill_(5.0)
        norm.weight[5] = 0.1
    return nn.Sequential(*parts)


@pytest.mark.parametrize("kind", ["rows", "group"])
def test_few_numbers_far_above_most_do_not_spoil_a_norm(kind: str) -> None:
    module, rows = make(lambda: normed(kind)), seeded((32, 4, 16) if kind == "rows" else (32, 16, 4))
    program = typical(module, rows)
    assert error(program, module, rows[:16]) < 0.03
    check_levels(prepare(program, "w8a8"))


def sharp() -> tuple[nn.Module, torch.Tensor]:
    """Whose inputs and weights are eight-bit numbers as they stand: only what the softmax reads can be rounded."""
    generator = torch.Generator().manual_seed(0)
    layer = nn.Linear(16, 48, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.randint(-90, 91, (48, 16), generator=generator) / 500.0)
        layer.weight[:, 0] = 127 / 500.0
    rows = torch.randint(-60, 61, (32, 16), generator=generator).float()
    rows[0, 0] = 127.0
    return nn.Sequential(layer, nn.Softmax(-1)), rows


def test_a_sharp_softmax_decides_as_the_model_does() -> None:
    module, rows = sharp()
    program = typical(module, rows)
    assert error(program, module, rows) < 0.01
    check_levels(prepare(program, "w8a8"))


def loud(calls: int, seed: int) -> torch.Tensor:
    """Calls in which some channels are far louder than in most."""
    generator = torch.Generator().manual_seed(seed)
    loudness = torch.exp(1.2 * torch.randn((calls, 24, 1, 1), generator=generator))
    return loudness * torch.randn((calls, 24, 4, 4), generator=generator)


def test_channels_have_room_for_what_other_calls_show(monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> nn.Module:
        deep = [nn.Conv2d(24, 24, 1, groups=24), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1, groups=24)]
        with torch.no_grad():  # what one layer makes uneven the next makes even again
            for part, sign in ((deep[0], 1), (deep[2], -1)):
                assert isinstance(part, nn.Conv2d)
                part.weight.mul_(torch.logspace(0, 2 * sign, 24).reshape(-1, 1, 1, 1))
        return nn.Sequential(*deep, nn.ReLU(), nn.Conv2d(24, 4, 1))

    module = make(build)
    program, unseen = typical(module, loud(2 * FOLDS, 0)), loud(64, 1)
    roomy = error(program, module, unseen)
    monkeypatch.setattr(even_channels, "_cut", lambda _way, sizes: np.zeros_like(sizes.squares))
    assert roomy < 0.75 * error(program, module, unseen)


def test_folds_say_what_the_others_did_not_have() -> None:
    numbers = np.ones((FOLDS + 1, 3, 2))
    numbers[2, 1, 1] = 5.0
    sizes = ChannelSizes.of(numbers, -1)
    parts = ChannelSizes.of(numbers[:3], -1).joined(ChannelSizes.of(numbers[3:], -1))
    for one in (sizes, parts):
        np.testing.assert_array_equal(one.largest, [1.0, 5.0])
        np.testing.assert_array_equal(one.without(2), [1.0, 1.0])
        np.testing.assert_array_equal(one.without(0), [1.0, 5.0])
    np.testing.assert_array_equal(sizes.tops, parts.tops)


def test_an_answer_that_says_nothing_is_held_against_what_others_say() -> None:
    module = make(lambda: nn.Sequential(nn.Linear(8, 24, bias=False), nn.ReLU(), nn.Linear(24, 6, bias=False)))
    rows = seeded((32, 8))
    rows[0] *= 0.01
    program = typical(module, rows)
    check_quantised(program, prepare(program, "w8a8"))
    most = float(module(rows).detach().abs().max())
    assert prepare(program, "w8a8").signature.outputs[0].largest == pytest.approx(most, 1e-3)
