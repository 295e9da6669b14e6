"""Packages of models with the host in their middle: the runtime calls the accelerator several times for one answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from penstock.compiler.runtime import penstock_runtime
from tests.frontend import turn_models
from tests.frontend.models import seeded
from tests.package.test_held import packaged

MODELS = Path(turn_models.__file__)


def test_a_choice_that_falls_otherwise_is_told_and_what_follows_is_not_judged(tmp_path: Path) -> None:
    """Of a quantised design; without quantisation every choice is PyTorch's, and all numbers are held against it."""
    _, checked = packaged("near_tie", tmp_path, "w8a8", MODELS)
    whole = checked.verify.whole
    assert whole is not None
    assert whole.choices == 4
    assert whole.choices_equal is not None
    assert whole.choices_equal < whole.choices
    assert whole.max_abs_error is not None
    assert whole.max_abs_error > 0.3, "it is another expert"
    assert whole.tolerance is None
    assert whole.ok
    assert checked.passed


@pytest.mark.parametrize(
    ("reference", "make", "quantize"),
    [
        ("routed_rows", turn_models.routed_rows, None),
        pytest.param("two_turns", turn_models.two_turns, None, marks=pytest.mark.slow),
        pytest.param("routed_rows", turn_models.routed_rows, "w8a8", marks=pytest.mark.slow),
    ],
)
def test_a_package_answers_as_pytorch_does(
    reference: str, make: Callable[[], tuple[nn.Module, torch.Tensor]], quantize: str | None, tmp_path: Path
) -> None:
    _, checked = packaged(reference, tmp_path, quantize, MODELS)
    whole = checked.verify.whole
    assert whole is not None
    assert whole.ok
    assert whole.choices == whole.choices_equal or quantize is not None
    assert checked.verify.csim.equal
    module, _ = make()
    with penstock_runtime.load(tmp_path / "package") as accelerator:
        assert [port.shape for port in accelerator.inputs] == [(4, 8)]
        frames = [seeded((4, 8), seed) for seed in range(3)]
        answers = accelerator.run_calls([[x.numpy()] for x in frames])
        for x, (_, found) in zip(frames, answers, strict=True):
            with torch.no_grad():
                wanted = module(x)
            floats = [w.numpy() for w in (wanted if isinstance(wanted, tuple) else (wanted,)) if w.is_floating_point()]
            ours = [f for f in found if f.dtype.kind == "f"]
            if quantize is None:
                np.testing.assert_allclose(ours[0], floats[0], rtol=1e-3, atol=1e-3)
            else:  # a near tie of the router may fall otherwise
                assert np.median(np.abs(ours[0] - floats[0])) < 0.1 * np.abs(floats[0]).max()
