"""A classifier of handwritten digits (8x8 pixels), trained here and now in a few seconds.

penstock compile examples/digits_mlp.py:model -o out/digits_mlp
"""

from __future__ import annotations

from typing import Any

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HIDDEN = (32, 32)
STEPS = 300


class DigitsMlp(nn.Module):
    """64 pixels to 10 scores, through two hidden layers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(64, HIDDEN[0])
        self.fc2 = nn.Linear(HIDDEN[0], HIDDEN[1])
        self.fc3 = nn.Linear(HIDDEN[1], 10)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.fc1(pixels))
        hidden = torch.relu(self.fc2(hidden))
        return self.fc3(hidden)


def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training and held-out images and labels; one image is a row of 64 numbers from 0 to 1."""
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16.0, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (torch.from_numpy(part) for part in split)
    return train_x.float(), train_y, test_x.float(), test_y


def train(images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """Full-batch Adam from a fixed seed on one thread, so that a machine finds the same weights on every run."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    module = DigitsMlp()
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=1e-4)
    for _ in range(STEPS):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(images), labels).backward()
        optimiser.step()
    return module


def model() -> tuple[nn.Module, tuple[torch.Tensor, ...], dict[str, Any]]:
    """What Penstock asks a model file for: the module, example inputs, and (optional) a held-out set.

    `calibration` are typical inputs on which quantisation measures how large the activations get.
    """
    train_x, train_y, test_x, test_y = digits()
    module = train(train_x, train_y)
    evaluation = {
        "name": "digits (held out)",
        "inputs": test_x,
        "labels": test_y,
        "calibration": train_x[:256],
    }
    return module.eval(), (test_x[:1],), evaluation
