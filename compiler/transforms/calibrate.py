"""Measures how large every activation gets, by running the float program on typical inputs."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import run_many
from penstock.compiler.interpreter.rows import split_rows
from penstock.compiler.program import Program


def calibration_inputs(program: Program) -> list[Array]:
    """Each input of the model with a leading axis of runs: the calibration rows, or else the samples."""
    if program.calibration is not None and len(program.signature.inputs) == 1:
        port = program.signature.inputs[0]
        return [split_rows(program.calibration, port.shape, program.name).astype(port.dtype)]
    if program.samples is None:
        raise PenstockError(
            code="no-calibration",
            what="there are no inputs to measure activation ranges on",
            where=program.name,
            hint="import the model with example inputs, or compile without --quantize",
        )
    return [np.asarray(x)[None] for x in program.samples.inputs]


def measure_ranges(program: Program, inputs: list[Array]) -> dict[SSAValue, float]:
    """The largest magnitude of every tensor that an operation of the program computes."""
    ranges: dict[SSAValue, float] = {}

    def observe(value: SSAValue, numbers: Array) -> None:
        largest = float(np.max(np.abs(numbers)))
        if not np.isfinite(largest):
            raise PenstockError(
                code="not-finite",
                what="the float model computes infinity or not-a-number on its calibration inputs",
                where=program.name,
                hint="check the weights and the example inputs",
            )
        ranges[value] = largest

    run_many(program, inputs, observe)
    return ranges
