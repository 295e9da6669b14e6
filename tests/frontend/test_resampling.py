"""Interpolations, adaptive poolings and windows that overlap: as sums and products, with PyTorch's numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from tests.frontend.models import Lambda, import_module, make, seeded

FRAME = (1, 2, 5, 7)
CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), FRAME),
    "bilinear, corners aligned": (lambda: nn.Upsample((3, 9), mode="bilinear", align_corners=True), FRAME),
    "bicubic": (lambda: nn.Upsample(scale_factor=1.5, mode="bicubic"), FRAME),
    "nearest": (lambda: nn.Upsample((7, 4)), FRAME),
    "nearest by middles": (lambda: nn.Upsample((3, 11), mode="nearest-exact"), FRAME),
    "linear": (lambda: nn.Upsample(scale_factor=2, mode="linear"), (1, 2, 5)),
    "bilinear of one element": (lambda: nn.Upsample((4, 3), mode="bilinear"), (1, 2, 1, 1)),
    "bicubic of one row": (lambda: nn.Upsample((4, 5), mode="bicubic"), (1, 2, 1, 3)),
    "nearest of one row": (lambda: nn.Upsample(scale_factor=3), (1, 2, 1, 2)),
    "trilinear": (lambda: nn.Upsample(size=(3, 2, 4), mode="trilinear"), (1, 1, 2, 3, 2)),
    **{
        f"{kind.__name__}": (lambda kind=kind: kind(3), FRAME[: 2 + dims])
        for kind, dims in ((nn.AdaptiveAvgPool1d, 1), (nn.AdaptiveMaxPool1d, 1), (nn.AdaptiveMaxPool2d, 2))
    },
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 2)), FRAME),
    "AdaptiveAvgPool2d of all": (lambda: nn.AdaptiveAvgPool2d(1), FRAME),
    "AdaptiveAvgPool3d of rows and columns": (lambda: nn.AdaptiveAvgPool3d((2, 1, 1)), (1, 2, 3, 4, 2)),
    "AdaptiveAvgPool3d": (lambda: nn.AdaptiveAvgPool3d(2), (1, 1, 3, 4, 2)),
    "AdaptiveMaxPool3d": (lambda: nn.AdaptiveMaxPool3d(2), (1, 1, 3, 4, 2)),
    "AvgPool1d over the end": (lambda: nn.AvgPool1d(3, 2, ceil_mode=True), (1, 2, 8)),
    "AvgPool2d, padding does not count": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), FRAME),
    "AvgPool2d by another number": (lambda: nn.AvgPool2d(2, 2, 1, divisor_override=3), FRAME),
    "Unfold": (lambda: nn.Unfold((3, 2), dilation=(1, 2), padding=1, stride=(2, 1)), FRAME),
    "Fold": (lambda: nn.Fold((4, 5), 3, padding=1, stride=(1, 2)), (1, 18, 12)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(2, 3, 4, stride=2, padding=1), (1, 2, 5)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 4, 3, 2, 1, output_padding=1, groups=2), FRAME),
    "ConvTranspose2d, dilated": (lambda: nn.ConvTranspose2d(2, 3, 2, dilation=2), FRAME),
    "a mask of one tensor's shape": (lambda: Lambda(lambda _, x: torch.ones_like(x) - x * torch.zeros_like(x)), (2, 3)),
    "pairs of rows and columns": (lambda: Lambda(lambda _, x: x[:, [0, 2, 1], [1, 1, 0]]), (2, 3, 2)),
    "the triangle of a matrix": (lambda: Lambda(_triangle), (2, 3, 3)),
}  # fmt: skip


def _triangle(_: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """How DLRM takes each pair of features once."""
    rows, columns = torch.tril_indices(3, 3, -1)
    return functional.relu(x)[:, rows, columns]


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_pytorch(name: str) -> None:
    build, shape = CASES[name]
    program = prepare(import_module(make(build), seeded(shape)))
    assert program.host is None, "all of it is on the accelerator"
    assert program.samples is not None
    for ours, theirs in zip(run(program, program.samples.inputs), program.samples.outputs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


class Unpooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv2d(1, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, places = functional.max_pool2d(self.mix(x), 2, return_indices=True)
        return functional.max_unpool2d(y, places, [2, 2])


def test_places_of_maxima_are_found_on_the_host() -> None:
    program = prepare(import_module(make(Unpooled), seeded((1, 1, 4, 4))))
    assert program.host is not None
    assert any(
        "max_pool2d_with_indices" in node["op"] for part in ("before", "after") for node in program.host.graph[part]
    )


def test_weights_that_take_linear_algebra_are_computed_at_import() -> None:
    layer = nn.utils.parametrizations.orthogonal(make(lambda: nn.Linear(4, 4)))
    program = prepare(import_module(layer, seeded((2, 4))))
    assert program.host is None
    assert program.samples is not None
    np.testing.assert_allclose(
        run(program, program.samples.inputs)[0], program.samples.outputs[0], rtol=1e-5, atol=1e-6
    )


def test_the_average_of_a_frame_is_one_sum() -> None:
    """Rows first and then columns, the frame was turned round between the two."""
    program = prepare(import_module(make(lambda: nn.AdaptiveAvgPool2d(1)), seeded(FRAME)))
    assert [op.reductions for op in read_graph(program.module).operations] == [(1, 2), ()]
