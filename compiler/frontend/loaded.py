"""A model as the user gave it: a PyTorch module with example inputs, before anything is compiled."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class LoadedEvaluation:
    """A held-out set for classification, one row an example."""

    name: str
    inputs: torch.Tensor
    labels: torch.Tensor
    calibration: torch.Tensor | None = None
    """Typical inputs, one row an example, that are not in the held-out set."""


@dataclass(frozen=True)
class LoadedText:
    """What a language model brings so that people can write to it; `held_out` and `calibration` are text."""

    name: str
    held_out: str
    calibration: str
    characters: str | None = None
    """Token N is character N of these."""
    tokenizer: bytes | None = None
    """Else a tokenizer.json."""


@dataclass(frozen=True)
class LoadedModel:
    name: str
    reference: str
    module: torch.nn.Module
    example_inputs: tuple[torch.Tensor, ...]
    evaluation: LoadedEvaluation | None = None
    text: LoadedText | None = None
    typical: tuple[torch.Tensor, ...] = ()
    """Typical inputs of so many calls, of each input a tensor with a call a row: the first is the example."""
    has_weights: bool = True
    """Without them parameters have shapes only: the model can be compiled, not run."""
    notes: tuple[str, ...] = ()
    """Sentences about what was changed before anything was compiled."""
    varies: bool = False
    """Whether each call says some of its sizes: what is done once for each of them is then one operation for all."""
