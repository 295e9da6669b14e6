"""Measures how large every activation gets, by running the float program on typical inputs.

A model that keeps something between calls is called several times, so that its caches hold numbers; layers that share
the accelerator run in their order, each with its own weights, and the ranges of all are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.calls import run_calls, typical_calls
from penstock.compiler.interpreter.linalg import argument_names, main_function, run_many
from penstock.compiler.program import Program
from penstock.compiler.transforms.channel_sizes import ChannelSizes
from penstock.compiler.transforms.editor import layer_of, shape_of
from penstock.compiler.transforms.resize_dims import at_lengths

_FAR_BELOW = 20.0
_MOST_KEPT = 1 << 16
_UNLIKE = 16.0
_GROWN = 4.0
_FEW_FAR = 13.0
_MOST_AT_ONCE = 1 << 24
"""Elements of the largest tensor, over the calls that are run side by side."""


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
    smallest_row: float = 0.0
    """The largest magnitude of the row (along the last dimension) that has the smallest, rows of zeros apart."""
    squares: float = 0.0
    count: int = 0
    """Of the finite numbers: the sum of their squares, and how many there were."""

    @property
    def uneven(self) -> bool:
        """Whether most numbers are so far below the largest that eight bits leave three or fewer for them."""
        return 0.0 < self.typical * _UNLIKE < self.largest

    @property
    def uneven_rows(self) -> bool:
        """Whether a row is so far below the others, as a class token is, that eight bits leave it seven levels."""
        return 0.0 < self.smallest_row * _UNLIKE < self.largest

    @property
    def grown(self) -> bool:
        """Whether a row is so far below the others that eight bits add three per cent and more to it.

        What layers hand on to each other is added to in each, and what one adds to it too.
        """
        return 0.0 < self.smallest_row * _GROWN < self.largest

    @property
    def has_few_far(self) -> bool:
        """Whether few numbers are so far above most that rounding to one step adds three per cent and more to them all.

        A step of largest / 127 adds 1/sqrt(12) of itself.
        """
        return self.count > 0 and self.largest > _FEW_FAR * float(np.sqrt(self.squares / self.count))

    @property
    def largest(self) -> float:
        return max(self.highest, self.lowest_near, *(-self.below[:1]))

    @staticmethod
    def of(numbers: Array, layer: str) -> Spread:
        values = np.asarray(numbers, np.float64)
        below = np.unique(values[values < -_FAR_BELOW])
        near = values[values >= -_FAR_BELOW]
        some = np.abs(values[values != 0])
        typical = float(np.median(some)) if some.size else 0.0
        rows = np.max(np.abs(values), axis=-1) if values.ndim > 1 and values.size else np.zeros(0)
        finite = values[np.isfinite(values)]
        return Spread(
            layer, float(np.max(near, initial=0.0)), float(-np.min(near, initial=0.0)), _ends(below), typical,
            float(np.min(rows[rows > 0], initial=np.inf)) if np.any(rows > 0) else 0.0,
            float(np.sum(finite**2)), finite.size,
        )  # fmt: skip

    def joined(self, other: Spread) -> Spread:
        """Of the numbers of both; typical is the smaller, so that neither is left too few levels unnoticed."""
        typical = [x for x in (self.typical, other.typical) if x > 0.0]
        rows = [x for x in (self.smallest_row, other.smallest_row) if x > 0.0]
        return Spread(
            self.layer, max(self.highest, other.highest), max(self.lowest_near, other.lowest_near),
            _ends(np.union1d(self.below, other.below)), min(typical, default=0.0), min(rows, default=0.0),
            self.squares + other.squares, self.count + other.count,
        )  # fmt: skip


def _ends(below: Array) -> Array:
    if below.size <= _MOST_KEPT:
        return below
    return np.concatenate((below[: _MOST_KEPT // 2], below[-_MOST_KEPT // 2 :]))


def measure_spreads(
    program: Program, dims: Mapping[SSAValue, int]
) -> tuple[dict[SSAValue, Spread], dict[SSAValue, ChannelSizes]]:
    """How large the numbers get of every input, and of every tensor that an operation of the program computes.

    Of those in `dims` also how large they get of each channel along that dimension.
    """
    spreads: dict[SSAValue, Spread] = {}
    channels: dict[SSAValue, ChannelSizes] = {}
    main = main_function(program)
    arguments = dict(zip((name for name, _ in argument_names(main)), main.body.block.args, strict=True))

    beside: dict[ModuleOp, dict[SSAValue, SSAValue]] = {}
    """By a module of other sizes: the program's own value for each of its."""

    def observer_of(one: Program) -> Callable[[SSAValue, Array], None]:
        if one.module is not program.module and one.module not in beside:
            both = [[op.result for op in read_graph(each.module).operations] for each in (one, program)]
            beside[one.module] = dict(zip(*both, strict=True))

        def observe(value: SSAValue, numbers: Array) -> None:
            own = beside[one.module].get(value) if one.module is not program.module else value
            if own is not None:
                owner = own.owner
                note(own, numbers, layer_of(owner) if isinstance(owner, Operation) else "")

        return observe

    def note(value: SSAValue, numbers: Array, layer: str) -> None:
        if not (np.all(numbers < np.inf)):
            raise not_finite(program.name, layer)
        found = Spread.of(numbers, layer)
        spreads[value] = spreads[value].joined(found) if value in spreads else found
        dim = dims.get(value)
        if dim is not None and numbers.shape[dim - len(shape_of(value))] == shape_of(value)[dim]:
            sizes = ChannelSizes.of(numbers, dim - len(shape_of(value)))
            channels[value] = channels[value].joined(sizes) if value in channels else sizes

    def run_observed(one: Program, inputs: Sequence[Array]) -> list[Array]:
        """With a leading axis of runs."""
        for port, numbers in zip(one.signature.inputs, inputs, strict=True):
            note(arguments[port.name], numbers, port.name)
        return run_many(one, inputs, observer_of(one), quick=True)

    if program.calibration and not program.layers and not program.states:
        for some in _few_at_a_time(program):
            run_observed(program, some)
    elif program.samples is None and not program.calibration:
        raise PenstockError(
            code="no-calibration",
            what="there are no inputs to measure activation ranges on",
            where=program.name,
            hint="import the model with example inputs, or compile without --quantize",
        )
    elif program.layers is None and not program.states:
        assert program.samples is not None
        run_observed(program, [np.asarray(x)[None] for x in program.samples.inputs])
        for sample in program.lengths.samples if program.lengths else ():
            run_observed(at_lengths(program, sample.lengths), [np.asarray(x)[None] for x in sample.inputs])
    else:
        run_calls(program, typical_calls(program), lambda one, given: [  # which see all of a cache, masked
            x[0] for x in run_observed(one, [np.asarray(x)[None] for x in given])
        ], resize=at_lengths)  # fmt: skip
    return spreads, channels


def _few_at_a_time(program: Program) -> Iterator[list[Array]]:
    """The typical inputs of as many calls as there is memory for: every tensor of them is there at the same time."""
    given = program.calibration
    ports = program.signature.inputs
    if tuple(x.shape[1:] for x in given) != tuple(port.shape for port in ports):
        shapes = " and ".join(str(x.shape[1:]) for x in given)
        raise PenstockError(
            code="calibration-values", what=f"the typical inputs of a call have shape {shapes}", where=program.name,
            limit=f"the accelerator takes {' and '.join(str(port.shape) for port in ports)}",
            hint="import the model anew",
        )  # fmt: skip
    largest = max(prod(shape_of(op.result)) for op in read_graph(program.module).operations)
    count = max(1, _MOST_AT_ONCE // max(1, largest))
    for first in range(0, len(given[0]), count):
        yield [x[first : first + count].astype(port.dtype) for x, port in zip(given, ports, strict=True)]


def not_finite(model: str, layer: str) -> PenstockError:
    return PenstockError(
        code="not-finite",
        what="the float model computes infinity or not-a-number on its calibration inputs",
        where=f"layer '{layer}' of {model}",
        limit="minus infinity is understood where it only leaves numbers out of a softmax",
        hint="check the weights and the example inputs, or compile without --quantize",
    )
