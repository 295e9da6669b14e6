"""The report's records about how well the model still does what it is for: classes, text."""

from __future__ import annotations

from pydantic import Field

from penstock.compiler.evidence import Evidence
from penstock.compiler.package.record import Ratio, Record


class Accuracy(Record):
    """Classification of a held-out set: PyTorch's float model beside the accelerator."""

    dataset: str
    examples: int = Field(gt=0)
    float_accuracy: Ratio
    accelerator_accuracy: Ratio
    agreement: Ratio = Field(description="share of examples to which both give the same class")
    evidence: Evidence


class Language(Record):
    """How well a held-out text is foretold, token by token: PyTorch's float model beside the accelerator's integers."""

    dataset: str
    tokens: int = Field(gt=0, description="that were foretold, each from those before it in its window")
    float_perplexity: float
    accelerator_perplexity: float
    loss: float = Field(description="accelerator's perplexity over the float model's, less 1")
    evidence: Evidence
