"""From an imported program to the canonical one that designs are for: simplified, and quantised where asked."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline.share_layers import share_layers
from penstock.compiler.program import Program
from penstock.compiler.transforms.canonicalise import quantise, simplify, sums_integers, use_integers
from penstock.compiler.transforms.resize_dims import mark_sizes

QUANTISATIONS: Mapping[str, int] = {"w8a8": 8, "w4a8": 4}
"""The bits of weights by the names of what can be asked for; activations have eight."""


def prepare(program: Program, quantize: str | None = None) -> Program:
    """The canonical program. The same program and option always give the same result.

    Of a model whose sizes each call says, the graph knows which dims these are.
    """
    return mark_sizes(_prepared(program, quantize))


def _prepared(program: Program, quantize: str | None) -> Program:
    if quantize is not None and quantize not in QUANTISATIONS:
        raise PenstockError(
            code="unknown-quantisation", what=f"{quantize!r} is not a quantisation", where="quantize",
            limit="known: " + ", ".join(QUANTISATIONS), hint="leave it out to keep float32",
        )  # fmt: skip
    bits = QUANTISATIONS[quantize] if quantize else None
    if program.layers is not None:
        return share_layers(program, bits)
    canonical = simplify(program)
    whole = use_integers(canonical)
    if bits is None:
        return whole
    if sums_integers(whole):
        raise PenstockError(
            code="unsupported-quantisation", what="the model is quantised already", where=program.name,
            hint="leave quantize out: its own integers and scales are used as they are",
        )  # fmt: skip
    return quantise(canonical, bits)
