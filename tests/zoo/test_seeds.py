"""The same seed is the same model, whatever a process drew before: weights, biases and inputs."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import torch

from penstock.compiler import zoo

NAMES = [m.name for m in pkgutil.iter_modules(zoo.__path__) if not m.name.startswith("_")]
SMALL = {
    "vgg16": {"side": 32}, "resnet50": {"side": 32}, "zfnet": {"side": 64}, "tiny_yolo": {"side": 64},
    "yolov5n": {"side": 32},
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("resnet50", "zfnet")])
def test_a_seed_is_one_model(name: str) -> None:
    build = importlib.import_module(f"penstock.compiler.zoo.{name}").build
    found = []
    for before in (1, 2):
        torch.manual_seed(before)
        module, inputs = build(**SMALL.get(name, {}))
        found.append({**module.state_dict(), **{f"input {i}": x for i, x in enumerate(inputs)}})
    assert all(torch.equal(found[0][key], found[1][key]) for key in found[0]), name
