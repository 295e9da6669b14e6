"""Inputs and outputs as the host sees them: shape and type checks, quantisation, batches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import PackageError

Array = NDArray[Any]


@dataclass(frozen=True)
class Port:
    """One input or output of the model. `dtype` is what crosses the link to the accelerator.

    Where `scale` is set the host quantises: real value = scale * integer, one scale or one a column.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | tuple[float, ...] | None = None

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Port:
        scale = document.get("scale")
        if isinstance(scale, list):
            scale = tuple(float(s) for s in scale)  # type: ignore[reportUnknownVariableType]
        return Port(document["name"], tuple(document["shape"]), document["dtype"], scale)

    def to_accelerator(self, values: Array) -> Array:
        """Convert values of exactly this port's shape to what crosses the link."""
        if self.scale is not None:
            limits = np.iinfo(np.dtype(self.dtype))
            with np.errstate(over="ignore"):  # infinity is clipped as well
                scaled = np.rint(values.astype(np.float32) / self._scales(values))
            return np.clip(scaled, limits.min, limits.max).astype(self.dtype)
        return values.astype(self.dtype)

    def from_accelerator(self, values: Array) -> Array:
        """Convert what came over the link to real numbers."""
        if self.scale is None:
            return values
        return (values.astype(np.float32) * self._scales(values)).astype(np.float32)

    def _scales(self, values: Array) -> Array:
        """One, or one a column; where a call says how many columns there are, those of the first."""
        scales = np.asarray(self.scale, np.float32)
        return scales[: values.shape[-1]] if scales.ndim else scales

    def check_values(self, value: Any) -> Array:
        """The value as an array of numbers that this port can take; refuse what would be silently wrong."""
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise PackageError(
                f"input {self.name!r} has values of type {array.dtype}",
                f"pass real numbers, for example numpy.asarray(x, numpy.{self._wanted()})",
            )
        if array.dtype.kind == "f" and not bool(np.isfinite(array).all()):
            raise PackageError(f"input {self.name!r} contains NaN or infinity", "clean the input first")
        if self.scale is None and np.dtype(self.dtype).kind in "iu":
            limits = np.iinfo(np.dtype(self.dtype))
            whole = array.dtype.kind != "f" or bool((array == np.rint(array)).all())
            if not whole or (array.size and (array.min() < limits.min or array.max() > limits.max)):
                raise PackageError(
                    f"input {self.name!r} has values that {self.dtype} cannot hold",
                    f"this input takes whole numbers from {limits.min} to {limits.max}",
                )
        return array

    def _wanted(self) -> str:
        return "float32" if self.scale is not None else self.dtype


@dataclass(frozen=True)
class Calls:
    """The calls of the accelerator that a user's inputs need, and how its answers become one again.

    `form` is "exact" (the ports' shapes: one call), "single" (one example without the leading 1: one call),
    "rows" (N examples along the leading 1: N calls) or "stack" (whole inputs along a new first dimension).
    """

    inputs: list[list[Array]]
    form: str


def split_into_calls(ports: Sequence[Port], values: Sequence[Any]) -> Calls:
    """Understand what a user passed.

    A leading dimension above 1 might be a sequence instead of a batch, so it is never split in silence.
    """
    if len(values) != len(ports):
        names = ", ".join(p.name for p in ports)
        raise PackageError(f"{len(values)} inputs given, the model takes {len(ports)}", f"pass {names}")
    arrays = [port.check_values(value) for port, value in zip(ports, values)]
    if all(a.shape == p.shape for a, p in zip(arrays, ports)):
        return Calls([arrays], "exact")
    single = all(len(p.shape) > 0 and p.shape[0] == 1 for p in ports)
    if single and all(a.shape == p.shape[1:] for a, p in zip(arrays, ports)):
        return Calls([[a[np.newaxis] for a in arrays]], "single")
    if all(a.shape[1:] == p.shape and a.ndim for a, p in zip(arrays, ports)) and _equal_lengths(arrays):
        return Calls([[a[i] for a in arrays] for i in range(len(arrays[0]))], "stack")
    fits = all(a.ndim == len(p.shape) and a.shape[1:] == p.shape[1:] for a, p in zip(arrays, ports))
    if single and fits and _equal_lengths(arrays):
        return Calls([[a[i : i + 1] for a in arrays] for i in range(len(arrays[0]))], "rows")
    raise _wrong_shape(ports, arrays, single, fits)


def same_bits(ours: Array, theirs: Array) -> Array:
    """Where two arrays of one shape hold the same value; NaN is the same as NaN."""
    return (ours == theirs) | ((ours != ours) & (theirs != theirs))


def same_values(ours: Array, theirs: Array, tolerance: float) -> Array:
    """Where they are the same, or as floats no farther apart than a share of the largest finite value."""
    same = same_bits(ours, theirs)
    if not tolerance or ours.dtype.kind != "f" or same.all():
        return same
    allowed = tolerance * float(np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0))
    with np.errstate(invalid="ignore"):
        return same | (np.abs(ours - theirs) <= allowed)


def largest_difference(ours: Array, theirs: Array) -> tuple[float, int]:
    """How far values are apart at most, and how many are NaN or infinite on one side alone, which no distance tells."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    apart[same_bits(ours, theirs)] = 0.0
    finite = np.isfinite(apart)
    return float(np.max(apart[finite], initial=0.0)), int(apart.size - np.count_nonzero(finite))


def _equal_lengths(arrays: Sequence[Array]) -> bool:
    return len({len(a) for a in arrays}) == 1


def pad_rows(values: Array, size: int) -> list[Array]:
    """Cut rows into calls of `size` rows; the last call is filled with zeros, whose answers are dropped."""
    calls = [values[start : start + size] for start in range(0, len(values), size)]
    if calls and len(calls[-1]) < size:
        missing = size - len(calls[-1])
        calls[-1] = np.concatenate([calls[-1], np.zeros((missing, *values.shape[1:]), values.dtype)])
    return calls


def _wrong_shape(ports: Sequence[Port], arrays: Sequence[Array], single: bool, fits: bool) -> PackageError:
    if single and fits:
        counts = ", ".join(f"{p.name}: {len(a)}" for p, a in zip(ports, arrays))
        return PackageError(f"the inputs have different numbers of rows ({counts})", "pass as many of each")
    port, array = next(
        ((p, a) for p, a in zip(ports, arrays) if a.shape != p.shape and a.shape[1:] != p.shape[1:]),
        next((p, a) for p, a in zip(ports, arrays) if a.shape != p.shape),
    )
    what = f"input {port.name!r} has shape {array.shape}, the accelerator was built for {port.shape}"
    if array.size == math.prod(port.shape):
        return PackageError(what, f"reshape it: x.reshape({port.shape})")
    if single:
        return PackageError(what, f"pass {port.shape[1:]} for one example or (N, *{port.shape[1:]}) for N")
    if array.ndim == len(port.shape) and array.shape[1:] == port.shape[1:]:
        return PackageError(
            what, "if the first dimension is a batch of independent examples, use run_rows(x), which pads"
        )
    return PackageError(what, "pad or cut the input, or compile again with example inputs of that shape")
