"""Measures how large every activation gets, by running the float program on typical inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import run_many
from penstock.compiler.interpreter.rows import split_rows
from penstock.compiler.program import Program
from penstock.compiler.transforms.editor import layer_of


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


_FAR_BELOW = 20.0
_MOST_KEPT = 1 << 16
_UNLIKE = 16.0


@dataclass(frozen=True)
class Spread:
    """What a tensor's numbers were: `highest` and `lowest_near` are magnitudes, `below` are those under -20, once each.

    Of very many different numbers only the ends are kept.
    """

    layer: str
    highest: float
    lowest_near: float
    below: Array
    typical: float = 0.0
    """The median magnitude of those that are not zero."""

    @property
    def uneven(self) -> bool:
        """Whether most numbers are so far below the largest that eight bits leave three or fewer for them."""
        return 0.0 < self.typical * _UNLIKE < self.largest

    @property
    def largest(self) -> float:
        return max(self.highest, self.lowest_near, *(-self.below[:1]))

    @staticmethod
    def of(numbers: Array, layer: str) -> Spread:
        values = np.asarray(numbers, np.float64)
        below = np.unique(values[values < -_FAR_BELOW])
        near = values[values >= -_FAR_BELOW]
        if below.size > _MOST_KEPT:
            below = np.concatenate((below[: _MOST_KEPT // 2], below[-_MOST_KEPT // 2 :]))
        some = np.abs(values[values != 0])
        typical = float(np.median(some)) if some.size else 0.0
        return Spread(layer, float(np.max(near, initial=0.0)), float(-np.min(near, initial=0.0)), below, typical)


def measure_spreads(program: Program, inputs: list[Array]) -> dict[SSAValue, Spread]:
    """How large the numbers of every tensor get that an operation of the program computes."""
    spreads: dict[SSAValue, Spread] = {}

    def observe(value: SSAValue, numbers: Array) -> None:
        owner = value.owner
        layer = layer_of(owner) if isinstance(owner, Operation) else ""
        if not (np.all(numbers < np.inf)):
            raise not_finite(program.name, layer)
        spreads[value] = Spread.of(numbers, layer)

    run_many(program, inputs, observe)
    return spreads


def not_finite(model: str, layer: str) -> PenstockError:
    return PenstockError(
        code="not-finite",
        what="the float model computes infinity or not-a-number on its calibration inputs",
        where=f"layer '{layer}' of {model}",
        limit="minus infinity is understood where it only leaves numbers out of a softmax",
        hint="check the weights and the example inputs, or compile without --quantize",
    )
