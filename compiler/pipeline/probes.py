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

PROBES = 256
"""Enough that of 900 changed weights nearly all are noticed, quantised ones too."""
WORK = 300_000_000
"""Scalar operations of all probes together: seconds of the compiled C++."""
BYTES = 1_000_000
"""Of all probes and their answers together, as they lie in a package before it is compressed."""
LEAST = 2

_STRENGTHS = (1.0, 0.5, 2.0, 0.25, 1.0, 0.1, 4.0)
_SPARSE = (1.0, 1.0, 0.5, 1.0, 0.25, 1.0, 1.0, 0.1, 1.0)
"""The share of values that are not 0."""
_LIKE_WEIGHTS = 3
"""Of so many probes one looks like weights."""


def gentle(count: int) -> int:
    """How many of so many probes, the first ones, keep to the examples' signs.

    The others do not, which wakes more units; but where a model then divides by nearly nothing, differences of the last
    place become large ones, so that only an executor of the same arithmetic can be held to them.
    """
    return (count + 1) // 2


def make_probes(lowered: Lowered, seed: int = 0) -> list[list[Array]]:
    """The same for the same design. At the ports' dtypes, as they cross the link; the gentle ones first."""
    program, generator = lowered.program, np.random.default_rng([seed, 0x9E37])
    ports = [*program.signature.inputs, *program.signature.outputs]
    size = sum(math.prod(port.shape) * np.dtype(port.dtype).itemsize for port in ports)
    work = sum(operation.work for operation in lowered.graph.operations)
    count = max(LEAST, min(PROBES, WORK // max(1, work), BYTES // max(1, size)))
    own = program.samples.inputs if program.samples is not None else None
    rows = [_rows(port, list(program.params.values())) for port in program.signature.inputs]
    found: list[list[Array]] = []
    for number in range(count):
        strength, dense = (each[number % len(each)] for each in (_STRENGTHS, _SPARSE))
        frame: list[Array] = []
        for index, (port, kind) in enumerate(zip(program.signature.inputs, lowered.input_numbers, strict=True)):
            if rows[index] and number % _LIKE_WEIGHTS == 0:
                values = _like_weights(port, rows[index], generator)
            else:
                values = generator.uniform(-1, 1, port.shape)
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


def _rows(port: Port, params: Sequence[Array]) -> list[Array]:
    """Tables of weights, a row for each of their units, whose rows fit along the last dim of a port, or along all."""
    widths = {port.shape[-1], math.prod(port.shape)} if port.shape else set[int]()
    tables = [table for param in params if param.ndim == 2 for table in (param, param.T)]
    return [table for table in tables if table.shape[1] in widths and table.shape[1] > 1]


def _like_weights(port: Port, tables: Sequence[Array], generator: np.random.Generator) -> Array:
    """Each place of a port filled with some row of weights, of either sign, at most 1."""
    table = tables[int(generator.integers(len(tables)))]
    count = math.prod(port.shape) // table.shape[1]
    picked = table[generator.integers(len(table), size=count)].astype(np.float64)
    largest = np.max(np.abs(picked), axis=1, keepdims=True)
    signs = generator.choice((-1.0, 1.0), (count, 1))
    return (signs * picked / np.where(largest > 0, largest, 1.0)).reshape(port.shape)


def stacked(frames: list[list[Array]]) -> tuple[Array, ...]:
    """One array a port, with a leading dim for the frames."""
    return tuple(np.stack(list(each)) for each in _columns(frames))


def _columns(frames: list[list[Array]]) -> Iterator[tuple[Array, ...]]:
    return zip(*frames, strict=True)
