"""The correctness chain of one design: every level must compute what the level above it computes.

Integers are compared bit for bit. For floats the itensor, stream and C simulation levels promise one order
of operations and are compared bit for bit too; linalg and PyTorch sum in another order, so there the
difference has a stated tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, VectorType

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.nest import NestOp
from penstock.compiler.dialects.stream import TaskOp
from penstock.compiler.dialects.types import vector_type
from penstock.compiler.interpreter import linalg as linalg_interpreter
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.program import Program, Samples

Executable = Callable[[Sequence[Array]], list[Array]]

FLOAT_TOLERANCE = 1e-4
"""Of the largest output: what reordering fp32 sums may cost."""
TOLERANCES: Mapping[str | None, float] = {None: FLOAT_TOLERANCE, "w8a8": 0.1, "w4a8": 0.4}
"""Of the largest output, on the example or on typical inputs: what eight-bit weights and activations may cost.

A limit on use, not a bound on errors: a tensor is rounded to 0.4 % of its largest number, and small models of many
kinds (attention with all kinds of masks, recurrent layers, norms, MLPs) end within 4 %. An answer that is off by 10 %
says that a scale is wrong for what the model does with its numbers.
"""


@dataclass(frozen=True)
class Comparison:
    """Two levels on the same inputs. `tolerance` is relative to the largest reference value; 0 means every bit."""

    level: str
    reference: str
    values: int
    mismatches: int
    """Values that are farther apart than the tolerance allows."""
    max_difference: float
    tolerance: float
    bits_equal: int

    @property
    def equal(self) -> bool:
        """As equal as the two promise to be; `bits_equal` says how many values are the same."""
        return self.mismatches == 0

    @property
    def within_tolerance(self) -> int:
        return self.values - self.mismatches

    def to_json(self) -> dict[str, Any]:
        return {
            "level": self.level, "reference": self.reference, "values": self.values, "mismatches": self.mismatches,
            "max_difference": self.max_difference, "tolerance": self.tolerance, "equal": self.equal,
            "bits_equal": self.bits_equal,
        }  # fmt: skip


def compare(
    level: str, reference: str, got: Sequence[Array], wanted: Sequence[Array], tolerance: float = 0.0,
    typical: Sequence[float] = (),
) -> Comparison:  # fmt: skip
    """Count where `got` is off; NaN equals NaN.

    `typical` is how large each answer gets elsewhere: a detector that sees nothing answers with small numbers only.
    """
    values = mismatches = alike = 0
    largest = 0.0
    for index, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        a, b = np.asarray(ours), np.asarray(theirs).reshape(np.shape(ours))
        values += a.size
        same = (a == b) | ((a != a) & (b != b))
        alike += int(np.count_nonzero(same))
        if tolerance != 0.0:
            at_least = typical[index] if typical else 0.0
            scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=at_least)) or 1.0
            same = np.isclose(a, b, rtol=0.0, atol=tolerance * scale, equal_nan=True)
        mismatches += int(np.size(same) - np.count_nonzero(same))
        with np.errstate(invalid="ignore"):  # equal infinities have no difference
            difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        largest = max(largest, float(np.max(difference[np.isfinite(difference)], initial=0.0)))
    return Comparison(level, reference, values, mismatches, largest, tolerance, alike)


def stream_work(lowered: Lowered) -> int:
    """Pipeline slots of one run: what the time of the stream interpreter follows where there are few lanes."""
    return sum(nest.iterations for _, nest in lowered.nests)


def stream_values(lowered: Lowered) -> int:
    """Slots times lanes of one run: what its time follows where there are many."""
    return sum(nest.iterations * _lanes(nest) for _, nest in lowered.nests)


def _lanes(nest: NestOp) -> int:
    kinds = [result.type for op in nest.body.block.ops for result in op.results]
    return max((prod(kind.get_shape()) for kind in kinds if isinstance(kind, VectorType)), default=1)


def verify_levels(
    lowered: Lowered, inputs: Sequence[Sequence[Array]], *, streams: bool = True
) -> tuple[Comparison, ...]:
    """linalg = itensor = stream on every set of inputs (at the ports' dtypes); without streams, linalg = itensor."""
    program = lowered.program
    if lowered.is_tasks:
        if not streams or program.samples is None:  # too long to be interpreted as it is written
            return ()
        wanted, got = [lowered.run_itensor(one) for one in inputs], [lowered.run_stream(one) for one in inputs]
        tolerance = FLOAT_TOLERANCE if computes_floats(lowered) else 0.0
        return (compare("stream", "tasks", _flat(got), _flat(wanted), tolerance),)
    linalg = [linalg_interpreter.run(program, one) for one in inputs]
    itensor = [lowered.run_itensor(one) for one in inputs]
    exact = all(np.issubdtype(np.dtype(p.dtype), np.integer) for p in program.signature.outputs)
    chain = (compare("itensor", "linalg", _flat(itensor), _flat(linalg), 0.0 if exact else FLOAT_TOLERANCE),)
    if not streams:
        return chain
    interpreted = [lowered.run_stream(one) for one in inputs]
    return (*chain, compare("stream", "itensor", _flat(interpreted), _flat(itensor)))


def verify_csim(lowered: Lowered, csim: Executable, inputs: Sequence[Sequence[Array]]) -> Comparison:
    """The C simulation equals the interpreter on every set of inputs: bit for bit, but for floats by other hands."""
    got = [csim(one) for one in inputs]
    run = lowered.run_stream if lowered.is_tasks else lowered.run_itensor  # tasks say no order of sums
    wanted = [run(one) for one in inputs]
    other = any(isinstance(op, TaskOp) and op.injected is not None for op in lowered.stream.walk())
    tolerance = FLOAT_TOLERANCE if other and computes_floats(lowered) else 0.0
    return compare("csim", "interpreter", _flat(got), _flat(wanted), tolerance)


def verify_rtl(lowered: Lowered, answers: Sequence[Sequence[Array]], inputs: Sequence[Sequence[Array]]) -> Comparison:
    """The SystemVerilog's answers beside the interpreter's: bit for bit where the design computes in integers only."""
    wanted = [lowered.run_itensor(one) for one in inputs]
    tolerance = FLOAT_TOLERANCE if computes_floats(lowered) else 0.0
    return compare("open-rtl", "interpreter", _flat(answers), _flat(wanted), tolerance)


def computes_floats(lowered: Lowered) -> bool:
    """Whether any nest has floats in it: cores for exp and the like are a few last places off numpy's."""
    return any(
        isinstance(result.type, VectorType) and isinstance(vector_type(result).element_type, AnyFloat)
        for _, nest in lowered.nests
        for op in nest.body.block.ops
        for result in op.results
    )


def verify_pytorch(lowered: Lowered) -> Comparison | None:
    """The interpreter against PyTorch's answers on the model's own example inputs, after the host's conversions."""
    program = lowered.program
    if program.samples is None:
        return None
    outputs = lowered.run_itensor(program.quantise_inputs(program.samples.inputs))
    return beside_pytorch(program, program.samples, outputs, TOLERANCES[lowered.design.quantize])


def beside_pytorch(program: Program, samples: Samples, outputs: Sequence[Array], tolerance: float) -> Comparison:
    """What an accelerator gives on the example inputs, beside PyTorch's answers."""
    ports = program.signature.outputs
    answers = program.dequantise_outputs([o.reshape(p.shape) for o, p in zip(outputs, ports, strict=True)])
    return compare("interpreter", "pytorch", answers, samples.outputs, tolerance, [port.largest for port in ports])


def make_inputs(lowered: Lowered, *, random_sets: int = 2, seed: int = 0) -> list[list[Array]]:
    """The model's example inputs, then random ones over the whole range of each port's numbers.

    Where layers share the accelerator, the weights are those of one after the other.

    Floats that are never negative in the examples, as masks are, stay so: with others a model may divide by nearly
    nothing, and differences of the last place become large ones.
    """
    program, generator = lowered.program, np.random.default_rng(seed)
    sets: list[list[Array]] = []
    if program.samples is not None:
        sets.append(program.quantise_inputs(program.samples.inputs))
    for turn in range(1, random_sets + 1):
        one: list[Array] = []
        held = program.held_inputs(turn)
        for index, (port, number) in enumerate(zip(program.signature.inputs, lowered.input_numbers, strict=True)):
            dtype = np.dtype(port.dtype)
            if port.name in held:
                one.append(held[port.name])
            elif np.issubdtype(dtype, np.integer):
                one.append(generator.integers(*number.extremes, port.shape, endpoint=True).astype(dtype))
            else:
                numbers = generator.standard_normal(port.shape).astype(dtype)
                positive = program.samples is not None and np.min(program.samples.inputs[index], initial=0.0) >= 0
                one.append(np.abs(numbers) if positive else numbers)
        sets.append(one)
    return sets


def _flat(sets: Sequence[Sequence[Array]]) -> list[Array]:
    return [array.reshape(-1) for one in sets for array in one]
