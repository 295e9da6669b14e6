"""A multi-layer perceptron with random (seeded) weights, for trying shapes and designs."""

from __future__ import annotations

from itertools import pairwise

import torch

from penstock.compiler.errors import PenstockError
from penstock.compiler.zoo import LARGEST

_MOST_LAYERS = 1000


def build(
    inputs: int = 64,
    hidden: str = "32",
    outputs: int = 10,
    batch: int = 1,
    bias: bool = True,
    residual: bool = False,
    seed: int = 0,
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """`hidden` lists the widths of the hidden layers, joined by commas: zoo:mlp?hidden=128,64."""
    try:
        widths = [int(width) for width in hidden.split(",") if width]
    except ValueError:
        widths = [0]
    if min([inputs, outputs, batch, *widths]) < 1 or max(widths, default=1) > LARGEST or len(widths) > _MOST_LAYERS:
        raise PenstockError(
            code="bad-option",
            what=f"inputs={inputs}, hidden={hidden[:60]}, outputs={outputs}, batch={batch}",
            where="zoo:mlp",
            limit=f"every size is a whole number of at least 1 and at most {LARGEST:,}; at most {_MOST_LAYERS} layers",
            hint="for example zoo:mlp?inputs=64&hidden=128,64&outputs=10",
        )
    generator = torch.Generator().manual_seed(seed)
    module = Mlp([inputs, *widths, outputs], bias=bias, residual=residual)
    with torch.no_grad():
        for parameter in module.parameters():
            bound = parameter.shape[-1] ** -0.5
            parameter.uniform_(-bound, bound, generator=generator)
    return module.eval(), (torch.randn(batch, inputs, generator=generator),)


class Mlp(torch.nn.Module):
    """Linear layers with ReLU between them; `residual` adds a skip around every hidden layer of equal widths."""

    def __init__(self, widths: list[int], *, bias: bool, residual: bool) -> None:
        super().__init__()
        pairs = list(pairwise(widths))
        self.residual = residual
        self.hidden = torch.nn.ModuleList(torch.nn.Linear(m, n, bias=bias) for m, n in pairs[:-1])
        self.head = torch.nn.Linear(*pairs[-1], bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.hidden:
            y = layer(x)
            x = torch.relu(y + x if self.residual and y.shape == x.shape else y)
        return self.head(x)
