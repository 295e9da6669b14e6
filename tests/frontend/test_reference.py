"""Model references: what is accepted, and what each mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.reference import FileReference, LibraryReference, ZooReference, parse_reference


def test_files_and_zoo_models() -> None:
    reference = parse_reference("examples/digits_mlp.py:model")
    assert reference == FileReference(Path("examples/digits_mlp.py"), "model")
    assert reference.name == "digits_mlp"
    assert parse_reference("a/b.py:small").name == "b.small"
    zoo = parse_reference("zoo:mlp?hidden=64,32&bias=0")
    assert zoo == ZooReference("mlp", (("hidden", "64,32"), ("bias", "0")))
    assert str(zoo) == "zoo:mlp?hidden=64,32&bias=0"
    assert parse_reference("zoo:mlp") == ZooReference("mlp")


def test_models_of_libraries() -> None:
    reference = parse_reference("hf:gpt2?n_layer=2&part=h.0")
    assert reference == LibraryReference("hf", "gpt2", (("n_layer", "2"), ("part", "h.0")))
    assert isinstance(reference, LibraryReference)
    assert (reference.name, str(reference)) == ("gpt2.h.0", "hf:gpt2?n_layer=2&part=h.0")
    assert parse_reference("torch.nn:LSTM") == LibraryReference("torch.nn", "LSTM")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model.txt:model", "not a model reference"),
        ("model.py:", "not a model reference"),
        ("model.py:a b", "not a model reference"),
        ("", "not a model reference"),
        ("net.onnx?batch=many", "'many' is no size for the dim 'batch'"),
        ("net.onnx?batch", "cannot read the options 'batch'"),
        ("hf:", "no name of a model"),
        ("timm:hf-hub:someone/model", "no name of a model"),
        ("hf:../../model", "no name of a model"),
        ("torch.nn:LSTM?input_size", "cannot read the options"),
        ("zoo:mlp?hidden", "cannot read the options 'hidden'"),
        ("zoo:mlp?hidden=1&hidden=2", "option 'hidden' is given twice"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(PenstockError, match=message) as caught:
        parse_reference(text)
    assert caught.value.code == "model-reference"
    assert caught.value.hint
