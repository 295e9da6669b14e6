"""Small models and an import in one call, shared by the tests of the front end and the passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loaded import LoadedEvaluation, LoadedModel
from penstock.compiler.program import Program


class Lambda(nn.Module):
    """A module from a function of (self, inputs) and named parts."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self, *inputs)


def make(build: Callable[[], nn.Module]) -> nn.Module:
    """The module with the same random weights on every run."""
    torch.manual_seed(0)
    return build()


def seeded(shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def import_module(
    module: nn.Module, *inputs: torch.Tensor, name: str = "net", evaluation: LoadedEvaluation | None = None
) -> Program:
    return import_loaded(LoadedModel(name, f"{name}.py:model", module.eval(), inputs, evaluation))
