"""What the parts of quantisation share: how integers stand for real numbers, and the new function beside the old."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.transforms.editor import Editor, shape_of
from penstock.compiler.transforms.find_masks import Mask

LEVELS = 127


@dataclass(frozen=True)
class Code:
    """How the integers of a tensor stand for real numbers.

    `scale` has one entry or more along each dimension, and a leading axis where it differs between layers.
    """

    scale: Array
    bound: int
    """No integer of the tensor is larger in magnitude."""
    width: int
    left_out: float | None = None
    """What the lowest integer stands for, where it is that of a mask (`find_masks`)."""

    @property
    def channel_dim(self) -> int | None:
        """The dimension along which there is a scale a channel, where there is one."""
        return next((dim for dim, size in enumerate(self.scale.shape) if size > 1), None)

    def along_last(self, size: int) -> bool:
        """Whether the host can undo it: one scale, or one a column of rows of this size."""
        return self.scale.size == 1 or self.scale.shape[-1] == self.scale.size == size

    def for_host(self) -> float | tuple[float, ...]:
        numbers = tuple(float(x) for x in self.scale.flat)
        return numbers[0] if len(numbers) == 1 else numbers


@dataclass
class Quantiser:
    """What the parts of the pass share while the new function grows beside the old one."""

    editor: Editor
    ranges: dict[SSAValue, float]
    """The largest magnitude of each old value."""
    masks: dict[SSAValue, Mask] = field(default_factory=dict[SSAValue, "Mask"])
    uneven: set[SSAValue] = field(default_factory=set[SSAValue])
    """Old values that one scale would leave too few levels for most of their numbers."""
    exact: set[SSAValue] = field(default_factory=set[SSAValue])
    """Old values that eight bits would spoil for all that reads them, and what is handed on with them: they stay f32
    (`find_norm_rows`, `find_steep`)."""
    weight_bits: int = 8
    fed: set[SSAValue] = field(default_factory=set[SSAValue])
    """Old values that leave for the next call alone, whose input's integers they have."""
    channel_ranges: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, "Array"])
    """The largest magnitude of each channel of an old value that has a step a channel, along its dimensions."""
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Old value to new value."""
    codes: dict[SSAValue, Code | None] = field(default_factory=dict[SSAValue, "Code | None"])
    """Of new values. None: the value stays f32."""
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    by_layer: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, "Array"])
    """The new parameters that differ between layers, with their rows."""

    def rows(self, param: SSAValue) -> Array:
        """An old parameter's numbers, a row a layer; one row where all layers have the same."""
        name, layers = self.editor.name(param), self.editor.program.layers
        if layers is None or name not in layers.weights[0]:
            return np.asarray(self.editor.data(param))[None]
        return np.stack([weights[name] for weights in layers.weights])

    def param(self, name: str, rows: Array, element: Attribute | None = None) -> BlockArgument:
        """A new parameter of rows as above; its final name is given when the old parameters are gone."""
        argument = self.editor.add_param(f"quantised.{name}", rows[0], element)
        self.names[argument] = name
        if len(rows) > 1:
            self.by_layer[argument] = rows
        return argument

    def define(self, old: SSAValue, new: linalg.GenericOp, code: Code | None) -> None:
        self.values[old] = new.results[0]
        self.codes[new.results[0]] = code

    def left_out(self, value: SSAValue) -> float | None:
        return self.masks[value].left_out if value in self.masks else None

    def step(self, value: SSAValue, levels: int = LEVELS) -> float:
        """The scale with which a tensor's measured range fills so many levels."""
        return float(np.float32((self.ranges[value] or 1.0) / levels))

    def steps(self, value: SSAValue) -> Array:
        """The scales of a tensor that is narrowed to eight bits: one, or one a channel."""
        if (own := self.channel_ranges.get(value)) is not None:
            return (own / LEVELS).astype(np.float32).astype(np.float64)
        return np.full((1,) * len(shape_of(value)), self.step(value))
