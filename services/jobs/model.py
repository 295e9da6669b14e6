"""From a model reference to the program that designs are made of."""

from __future__ import annotations

from penstock.compiler.frontend import import_model, parse_reference
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program


def load_program(reference: str, quantize: str | None) -> Program:
    """Import a model, which runs the user's code in this process, and bring it into canonical form."""
    parse_reference(reference)  # says what is wrong with the text before PyTorch is loaded
    return prepare(import_model(reference), quantize)
