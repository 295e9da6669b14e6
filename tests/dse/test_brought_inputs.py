"""What many kernels read from outside, one after the other, may come through several banks."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.space.external import STRIPES

REMEMBERS = """
import torch
from torch import nn

class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range({kernels}))

    def forward(self, x, keys):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x @ keys

def model():
    return Remembers().eval(), (torch.zeros(1, 16), torch.zeros(16, {columns}))
"""


@pytest.mark.parametrize(("kernels", "words", "several"), [(1, 6000, False), (8, 6000, True), (8, 2000, False)])
def test_inputs_of_many_kernels_may_come_through_several_banks(
    kernels: int, words: int, several: bool, tmp_path: Path
) -> None:
    """Words of 512 bits, 16 numbers each."""
    (tmp_path / "remembers.py").write_text(REMEMBERS.format(kernels=kernels, columns=words))
    program = prepare(import_model(f"{tmp_path / 'remembers.py'}:model"))
    assert (STRIPES in Evaluator.create(program, "u55c").space.choices) == several
