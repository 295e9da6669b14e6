"""What each layer of a program computes, and how far one way of computing it is from another, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.interpreter.linalg import run_many
from penstock.compiler.program import Program
from penstock.compiler.transforms.editor import layer_of


@dataclass(frozen=True)
class LayerError:
    """How far a layer is from the same layer elsewhere, of its largest number; `added` is what its inputs had not."""

    layer: str
    share: float
    added: float

    def __str__(self) -> str:
        return f"'{self.layer}' is off by {self.share:.2g} of its largest number"


def layer_numbers(program: Program, inputs: Sequence[Array]) -> dict[str, Array]:
    """What each layer computes of one set of inputs, in the layers' order."""
    seen: dict[str, Array] = {}

    def observe(value: SSAValue, numbers: Array) -> None:
        assert isinstance(value.owner, Operation)
        seen[layer_of(value.owner)] = np.array(numbers[0], np.float64)

    run_many(program, [np.asarray(x)[None] for x in inputs], observe)
    return seen


def layers_read(program: Program) -> dict[str, list[str]]:
    """The layers that each layer reads."""
    return {
        layer_of(op): [layer_of(x.owner) for x in op.inputs if isinstance(x.owner, Operation)]
        for op in program.module.walk()
        if isinstance(op, linalg.GenericOp)
    }


def errors_by_layer(shares: Mapping[str, float], reads: Mapping[str, Sequence[str]]) -> list[LayerError]:
    """Of shares by layer: what each adds to the worst of those that it reads."""
    return [
        LayerError(layer, share, share - max([shares.get(source, 0.0) for source in reads.get(layer, ())], default=0.0))
        for layer, share in shares.items()
    ]


def share_of(numbers: Array, wanted: Array, counts: Array | None = None) -> float:
    """The largest difference, of the largest number; only where `counts` says so. Other shapes are not compared."""
    if numbers.shape != wanted.shape:
        return 0.0
    where = np.isfinite(wanted) if counts is None else counts & np.isfinite(wanted)
    largest = float(np.max(np.abs(wanted[where]), initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        differences = np.nan_to_num(np.abs(numbers - wanted)[where], nan=np.inf)
    return float(np.max(differences, initial=0.0)) / largest
