"""Whether eight bits suffice for a model, before anything is searched for it: its answers beside the float model's.

What a quantised model computes does not depend on the design, so a design that cannot pass is not looked for. Where
the answers are too far off, the layers are compared one by one, to say where it comes from.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.ir import Operation

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline.layer_numbers import LayerError, errors_by_layer, layer_numbers, layers_read, share_of
from penstock.compiler.pipeline.prepare import QUANTISATIONS
from penstock.compiler.pipeline.verify import TOLERANCES, beside_pytorch
from penstock.compiler.program import Program, Samples
from penstock.compiler.transforms.canonicalise import simplify
from penstock.compiler.transforms.editor import Editor, layer_of
from penstock.compiler.transforms.fold_parameters import FoldParameters
from penstock.compiler.transforms.insert_requantise import InsertRequantise
from penstock.compiler.transforms.quantise import quantise_in
from penstock.compiler.transforms.quantiser import LEVELS, Code

_NAMED = 3


def check_quantised(program: Program, prepared: Program, quantize: str = "w8a8") -> None:
    """`prepared` is `program` so quantised; raises where its answers on the example inputs are too far off."""
    samples = program.samples
    if samples is None or prepared.samples is None:
        return
    tolerance = TOLERANCES[quantize]
    outputs = run(prepared, prepared.quantise_inputs(prepared.samples.inputs))
    found = beside_pytorch(prepared, prepared.samples, outputs, tolerance)
    if found.equal:
        return
    pairs = zip(prepared.samples.outputs, prepared.signature.outputs, strict=True)
    largest = max(float(np.max(np.abs(y[np.isfinite(y)]), initial=port.largest)) for y, port in pairs)
    errors = errors_of(program, quantize)
    worst = max(errors, key=lambda e: e.added)
    listed = "; ".join(str(e) for e in sorted(errors, key=lambda e: -e.share)[:_NAMED])
    raise PenstockError(
        code="eight-bits-too-few",
        what=f"with eight bits the answer is off by {found.max_difference:.3g}; most of it begins here",
        where=f"layer '{worst.layer}' of {program.name}",
        limit=f"{tolerance * (largest or 1.0):.3g}, {tolerance:.0%} of the largest output; {listed}",
        hint="compile without --quantize, import the model with its trained weights and typical inputs, or scale what "
        "this layer reads so that its numbers are of like size",
    )


def errors_of(program: Program, quantize: str) -> list[LayerError]:
    """Of an imported program's layers on its example inputs; of one call of one layer, where layers share."""
    assert program.samples is not None
    alone = replace(program, layers=None, states=())
    return layer_errors(simplify(alone), program.samples, QUANTISATIONS[quantize])


def layer_errors(canonical: Program, samples: Samples, weight_bits: int = 8) -> list[LayerError]:
    """Of every layer that both programs have, in their order."""
    editor = Editor(canonical)
    FoldParameters(integers=True).rewrite(editor)
    InsertRequantise().rewrite(editor)
    editor.remove_dead()
    reference = editor.snapshot()
    floats = layer_numbers(reference, samples.inputs)
    state = quantise_in(editor, weight_bits)
    codes = {layer_of(value.owner): code for value, code in state.codes.items() if isinstance(value.owner, Operation)}
    quantised = editor.finish()
    integers = layer_numbers(quantised, quantised.quantise_inputs(samples.inputs))
    shares = {
        layer: _share(integers[layer], codes.get(layer), wanted)
        for layer, wanted in floats.items()
        if layer in integers
    }
    return errors_by_layer(shares, layers_read(reference))


def _share(numbers: Array, code: Code | None, wanted: Array) -> float:
    """Where a mask leaves numbers out, they are as they should be."""
    ours = numbers if code is None else numbers * np.asarray(code.scale, np.float64)
    left_in = numbers > -LEVELS - 1 if code is not None and code.left_out is not None else None
    return share_of(ours, wanted, left_in)
