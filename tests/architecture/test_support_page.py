"""docs/support.md says what really happens: a few operations are tried by the fast tests, all of them by a slow one."""

from __future__ import annotations

import warnings

import pytest

from benchmarks.support.page import PAGE, expected, read, render, try_one
from benchmarks.support.trial import ACCELERATOR, HOST, REFUSED

ALL = [(section, operation) for section, operations in expected().items() for operation in operations]
SAMPLE = [
    ("PyTorch: Elementwise", "abs"),
    ("PyTorch: Activations", "gelu"),
    ("PyTorch: Reductions, scans and selections", "topk"),
    ("PyTorch: Look-ups and writes", "embedding"),
    ("PyTorch: Products and convolutions", "einsum"),
    ("PyTorch: Shapes", "cat"),
    ("ONNX", "Gemm"),
    ("ONNX", "NonZero"),
    ("ONNX", "Loop"),
    ("ONNX", "RMSNormalization"),  # of a newer opset than the others
]


def test_the_page_has_every_operation_and_is_what_the_generator_writes() -> None:
    text = PAGE.read_text()
    outcomes = read(text)
    assert {section: list(rows) for section, rows in outcomes.items()} == expected()
    assert render(outcomes) == text
    where = {outcome.where for rows in outcomes.values() for outcome in rows.values()}
    assert where == {ACCELERATOR, HOST, REFUSED}
    faults = [name for rows in outcomes.values() for name, outcome in rows.items() if "fault" in outcome.why]
    assert not faults, f"these end in a fault of our own: {faults}"


@pytest.mark.parametrize(("section", "operation"), SAMPLE)
def test_a_few_operations_do_what_the_page_says(section: str, operation: str) -> None:
    assert try_one(section, operation) == read(PAGE.read_text())[section][operation]


@pytest.mark.slow
@pytest.mark.parametrize(("section", "operation"), ALL)
def test_every_operation_does_what_the_page_says(section: str, operation: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, of operations that are on their way out
        assert try_one(section, operation) == read(PAGE.read_text())[section][operation]
