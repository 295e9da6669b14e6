"""The report's records about how well the model still does what it is for: classes, text."""

from __future__ import annotations

from pydantic import Field

from penstock.compiler.evidence import Evidence
from penstock.compiler.package.record import Count, Ratio, Record


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
    cosine_mean: float | None = Field(
        default=None, description="of the accelerator's scores with PyTorch's, over the tokens of the first window"
    )
    cosine_least: float | None = Field(default=None, description="of the token where they differ most")
    evidence: Evidence


class WholeCheck(Record):
    """Host parts and emitted C++ together against PyTorch's whole model, on its example inputs."""

    max_abs_error: float | None = Field(description="of float results; null: there are none")
    tolerance: float | None
    undefined: int = Field(default=0, description="float results that are NaN or infinite on one side alone")
    indices: Count = Field(description="whole numbers among the results, such as the places of largest values")
    indices_equal: Count
    indices_must_equal: bool = Field(description="false for quantised designs: near ties may fall the other way")
    choices: Count = Field(
        default=None,
        description="whole numbers that the host computes between calls of the accelerator; where one of a quantised "
        "design is not PyTorch's, what follows from it is not held against PyTorch, and the tolerance is null",
    )
    choices_equal: Count = None
    ok: bool
    evidence: Evidence = "simulated"
