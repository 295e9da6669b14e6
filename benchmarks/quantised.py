"""A model as `penstock compile --quantize` takes it in: a design is worth nothing whose answers are too far off."""

from __future__ import annotations

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.pipeline.check_quantised import check_quantised
from penstock.compiler.program import Program


def quantised(reference: str, quantize: str = "w8a8") -> Program:
    """The canonical program; refused where its answers are too far from the float model's."""
    imported = import_model(reference)
    program = prepare(imported, quantize)
    check_quantised(imported, program, quantize)
    return program
