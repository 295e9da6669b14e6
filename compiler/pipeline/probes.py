"""Inputs that a package's self-test runs: chosen so that a weight that is not what it was shows in some answer.

One example leaves most weights unseen: pixels that are always 0, units whose ReLU never wakes, steps of a quantised
sum that no rounding reaches. So there are many, of different strengths, dense and sparse, and some that look like a
row of weights, which is what the unit behind that row answers most to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.program import Port

PROBES, QUANTISED_PROBES = 256, 2048
"""Enough that of 900 changed weights nearly all are noticed. Rounding hides most of what a quantised weight changes."""
WORK = 300_000_000
"""Scalar operations of all probes together: seconds of the compiled C++."""
BYTES = 300_000
"""Of all probes and their answers together, as they lie in a package before it is compressed."""
LEAST = 2

_STRENGTHS = (1.0, 0.5, 2.0, 0.25, 1.0, 0.1, 4.0)
_QUANTISED_STRENGTHS = (1.0, 4.0, 2.0, 8.0, 1.0, 4.0, 0.3)
"""Of full range; beyond it values stop at its ends, where a weight counts most."""
_SPARSE = (1.0, 1.0, 0.5, 1.0, 0.25, 1.0, 1.0, 0.1, 1.0)
"""The share of values that are not 0."""
_LIKE_WEIGHTS = 2
"""Of so many probes one looks like weights."""
_NOISE = 0.3
"""What such a probe differs from the weights, so that no two make the same sums."""


def gentle(count: int) -> int:
    """How many of so many probes, the first ones, keep to the examples' signs.

    The others do not, which wakes more units; but where a model then divides by nearly nothing, differences of the last
    place become large ones, so that only an executor of the same arithmetic can be held to them.
    """
    return (count + 1) // 2


def make_probes(lowered: Lowered, seed: int = 0) -> list[list[Array]]:
    """The same for the same design. At the ports' dtypes, as they cross the link; the gentle ones first.

    Where layers share the accelerator, the weights are those of one after the other.
    """
    program, generator = lowered.program, np.random.default_rng([seed, 0x9E37])
    held = program.held_inputs(0)
    ports = [*(p for p in program.signature.inputs if p.name not in held), *program.signature.outputs]
    size = sum(math.prod(port.shape) * np.dtype(port.dtype).itemsize for port in ports)
    work = sum(operation.work for operation in lowered.graph.operations)
    wanted = PROBES if lowered.design.quantize is None else QUANTISED_PROBES
    count = max(LEAST, min(wanted, WORK // max(1, work), BYTES // max(1, size)))
    own = program.samples.inputs if program.samples is not None else None
    rows = [_rows(port, [*program.params.values(), *held.values()]) for port in program.signature.inputs]
    found: list[list[Array]] = []
    for number in range(count):
        strengths = _STRENGTHS if lowered.design.quantize is None else _QUANTISED_STRENGTHS
        strength, dense = (each[number % len(each)] for each in (strengths, _SPARSE))
        frame: list[Array] = []
        held = program.held_inputs(number)
        for index, (port, kind) in enumerate(zip(program.signature.inputs, lowered.input_numbers, strict=True)):
            if port.name in held:
                frame.append(held[port.name])
                continue
            values = generator.uniform(-1, 1, port.shape)
            if len(rows[index]) and number % _LIKE_WEIGHTS == 0:
                alike = _like_weights(port, rows[index], number // _LIKE_WEIGHTS)
                values = (1 - _NOISE) * alike + _NOISE * values
                strength, dense = max(strength, 1.0), 1.0
            values = values * strength * (generator.random(port.shape) < dense)
            if np.issubdtype(np.dtype(port.dtype), np.integer):
                low, high = kind.extremes
                values = np.clip(np.rint(values * high), low, high)
            else:
                typical = 2 * float(np.sqrt(np.mean(np.square(own[index])))) if own is not None else 2.0
                values = values * (typical or 1.0)
                if number < gentle(count) and own is not None and np.min(own[index], initial=0.0) >= 0:
                    values = np.abs(values)  # masks and the like stay what they can be
            frame.append(values.astype(port.dtype))
        found.append(frame)
    return found


def _rows(port: Port, params: Sequence[Array]) -> Array:
    """Weights as rows, one for each of the units that could read such a port: along its last dim, or all of it."""
    if not port.shape:
        return np.zeros((0, 1))
    width = port.shape[-1]
    found = [table for param in params if param.ndim == 2 for table in (param, param.T) if table.shape[1] == width > 1]
    rows = np.concatenate(found).astype(np.float64) if found else np.zeros((0, width))
    largest = np.max(np.abs(rows), axis=1, keepdims=True)
    return rows / np.where(largest > 0, largest, 1.0)


def _like_weights(port: Port, rows: Array, turn: int) -> Array:
    """The rows in turn, each of either sign, at as many places as the port has."""
    count = math.prod(port.shape[:-1])
    places = turn * count + np.arange(count)
    signs = np.where(places // len(rows) % 4 == 3, -1.0, 1.0)  # the other way only puts a unit to sleep
    return (signs[:, np.newaxis] * rows[places % len(rows)]).reshape(port.shape)


def stacked(frames: list[list[Array]]) -> tuple[Array, ...]:
    """One array a port, with a leading dim for the frames."""
    return tuple(np.stack(list(each)) for each in _columns(frames))


def _columns(frames: list[list[Array]]) -> Iterator[tuple[Array, ...]]:
    return zip(*frames, strict=True)
