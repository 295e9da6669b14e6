"""Where a float model's answers part from PyTorch's: the sentence of the report when they are too far off."""

from __future__ import annotations

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.pipeline.layer_numbers import LayerError, errors_by_layer, layer_numbers, layers_read, share_of
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.pipeline.verify import FLOAT_TOLERANCE
from penstock.compiler.program import Program

_LAST_PLACE = 2.0**-23


def first_difference(lowered: Lowered) -> str:
    """On the example inputs: the first layer that float32 is too coarse for, or that the design computes otherwise than
    the program; if it is neither, the import is at fault."""
    program = lowered.program
    if program.samples is None:
        return ""
    inputs = program.quantise_inputs(program.samples.inputs)
    wanted, reads = layer_numbers(program, inputs), layers_read(program)
    nudged = [_nudge(np.asarray(x), seed) for seed, x in enumerate(inputs)]
    moved = layer_numbers(_nudged(program), nudged)
    coarse = _first({layer: share_of(moved[layer], wanted[layer]) for layer in wanted}, reads)
    other = _first(_of_the_design(lowered, inputs, wanted), reads)
    order = list(wanted)
    if coarse is not None and (other is None or order.index(coarse.layer) <= order.index(other.layer)):
        return (
            f"The first layer that float32 is too coarse for: {coarse} when inputs and weights change in their last "
            "place. Where it divides by nearly nothing or takes small differences of large numbers, scale or add an "
            "epsilon."
        )
    if other is not None:
        return f"The first layer that the design computes otherwise than the program: {other}."
    return "Every layer of the design is as in the imported program, and steady: the import differs from PyTorch."


def _of_the_design(lowered: Lowered, inputs: list[Array], wanted: dict[str, Array]) -> dict[str, float]:
    computed: dict[str, Array] = {}

    def observe(task: str, numbers: Array) -> None:
        computed[task] = np.asarray(numbers, np.float64)

    lowered.run_itensor(inputs, observe)
    return {layer: share_of(computed[layer], wanted[layer]) for layer in wanted if layer in computed}


def _first(shares: dict[str, float], reads: dict[str, list[str]]) -> LayerError | None:
    """In the order of the layers."""
    return next((e for e in errors_by_layer(shares, reads) if e.share > FLOAT_TOLERANCE), None)


def _nudged(program: Program) -> Program:
    params = {name: _nudge(value, seed) for seed, (name, value) in enumerate(program.params.items(), start=1000)}
    return program.with_module(program.module, params=params)


def _nudge(values: Array, seed: int) -> Array:
    """Floats, each changed by up to one in its last place."""
    if not np.issubdtype(values.dtype, np.floating):
        return values
    noise = np.random.default_rng(seed).uniform(-_LAST_PLACE, _LAST_PLACE, values.shape)
    return (values * (1.0 + noise)).astype(values.dtype)
