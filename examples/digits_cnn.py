"""A small convolutional classifier of handwritten digits (8x8 pixels), trained here and now in half a minute.

penstock compile examples/digits_cnn.py:model --quantize w8a8 -o out/digits_cnn
"""

from __future__ import annotations

from typing import Any

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

STEPS = 150


class DigitsCnn(nn.Module):
    """One frame of 8 x 8 pixels to 10 scores: two convolutions, a pooling after each, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16 * 2 * 2, 10)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        features = self.pool(torch.relu(self.conv1(frames)))
        features = self.pool(torch.relu(self.conv2(features)))
        return self.head(torch.flatten(features, 1))


def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training and held-out frames and labels; a pixel is a number from 0 to 1."""
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16.0, labels, test_size=0.2, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = (torch.from_numpy(part) for part in split)
    return train_x.float().reshape(-1, 1, 8, 8), train_y, test_x.float().reshape(-1, 1, 8, 8), test_y


def train(frames: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """Full-batch Adam from a fixed seed on one thread, so that a machine finds the same weights on every run."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    module = DigitsCnn()
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=1e-4)
    for _ in range(STEPS):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(frames), labels).backward()
        optimiser.step()
    return module


def model() -> tuple[nn.Module, tuple[torch.Tensor, ...], dict[str, Any]]:
    """What Penstock asks a model file for: the module, example inputs, and (optional) a held-out set."""
    train_x, train_y, test_x, test_y = digits()
    module = train(train_x, train_y)
    evaluation = {
        "name": "digits (held out)",
        "inputs": test_x,
        "labels": test_y,
        "calibration": train_x[:256],
    }
    return module.eval(), (test_x[:1],), evaluation
