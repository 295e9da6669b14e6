"""The zoo's convolutional networks, made small: imported, they compute what PyTorch computes; bad sizes are named."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.zoo import model_names, yolov5n

SMALL = {
    "resnet8": "side=8&channels=2",
    "resnet18": "side=32&channels=2&outputs=3",
    "resnet20": "side=8&channels=2",
    "resnet50": "side=32&channels=2&outputs=3",
    "vgg16": "side=32&channels=2&dense=6&outputs=3",
    "zfnet": "side=63&channels=3&dense=5&outputs=3",
    "mobilenet_v1": "side=32&channels=2&outputs=3",
    "mobilenet_v2": "side=32&divide=8&outputs=3",
    "tiny_yolo": "side=32&channels=1&boxes=1&classes=1",
    "yolov5n": "side=32&channels=2&boxes=1&classes=1",
    "unet": "side=8&channels=2",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_small_networks_compute_what_pytorch_computes(name: str) -> None:
    program = prepare(import_model(f"zoo:{name}?{SMALL[name]}"))
    assert program.samples is not None
    answers = run(program, program.samples.inputs)
    for found, wanted in zip(answers, program.samples.outputs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_frames_that_hold_no_window_are_refused(name: str) -> None:
    with pytest.raises(PenstockError, match="a size is too small"):
        import_model(f"zoo:{name}?side=2")


def test_yolov5n_has_the_published_parameters() -> None:
    module, _ = yolov5n.build(side=32)
    assert sum(parameter.numel() for parameter in module.parameters()) == 1_872_157


def test_all_names_are_known() -> None:
    assert set(SMALL) <= set(model_names())
