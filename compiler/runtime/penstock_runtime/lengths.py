"""Sizes that each call says: an accelerator for `seq` up to 64 is given inputs of 5 rows, and told so.

Its memories are as large as at the largest length. What an input has less is zeros, which it does not read; of a result
only the beginning means something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import PackageError
from .ports import Array, Port

Size = Mapping[str, Any]
"""Of one dim: `factors` by the names of lengths, and an `offset`."""


@dataclass(frozen=True)
class Lengths:
    """What may be said, and which dims of inputs and outputs follow from it (None for a dim of one size)."""

    of: Sequence[Mapping[str, Any]]
    inputs: Sequence[Sequence[Size | None]]
    outputs: Sequence[Sequence[Size | None]]

    def enter(self, ports: Sequence[Port], values: Sequence[Any]) -> tuple[list[Array], dict[str, int]]:
        """Inputs as large as the accelerator's memories, with the lengths behind them, in steps."""
        arrays = [port.check_values(value) for port, value in zip(ports, values)]
        said = self.said_by(ports, arrays)
        whole = [
            np.pad(array, [(0, size - own) for size, own in zip(port.shape, array.shape)])
            for port, array in zip(ports, arrays)
        ]
        steps = [said[one["name"]] // one["step"] for one in self.of]
        return [*whole, np.array(steps, np.int32)], said

    def leave(self, results: Sequence[Array], said: Mapping[str, int]) -> list[Array]:
        """Of each result what was computed."""
        return [
            np.ascontiguousarray(result[tuple(slice(None if one is None else _at(one, said)) for one in sizes)])
            for result, sizes in zip(results, self.outputs)
        ]

    def said_by(self, ports: Sequence[Port], arrays: Sequence[Array]) -> dict[str, int]:
        """The lengths that the inputs' shapes say."""
        said: dict[str, tuple[int, Port]] = {}
        for port, array, sizes in zip(ports, arrays, self.inputs):
            if array.ndim != len(sizes):
                raise PackageError(f"input {port.name!r} has shape {array.shape}", f"pass {self._shape(port, sizes)}")
            for n, size in zip(array.shape, sizes):
                if size is None or len(size["factors"]) != 1:
                    continue
                name, factor = next(iter(size["factors"].items()))
                length, rest = divmod(n - size["offset"], factor)
                if rest:
                    what = f"input {port.name!r} has shape {array.shape}"
                    raise PackageError(what, f"pass {self._shape(port, sizes)}")
                before = said.setdefault(name, (length, port))
                if before[0] != length:
                    raise PackageError(
                        f"{name} is {before[0]} in input {before[1].name!r} and {length} in {port.name!r}",
                        "pass inputs of one length",
                    )
        found = {name: length for name, (length, _) in said.items()}
        for one in self.of:
            _check(one, found)
        for port, array, sizes in zip(ports, arrays, self.inputs):
            wanted = tuple(n if size is None else _at(size, found) for n, size in zip(port.shape, sizes))
            if array.shape != wanted:
                raise PackageError(f"input {port.name!r} has shape {array.shape}", f"pass {wanted} here")
        return found

    def _shape(self, port: Port, sizes: Sequence[Size | None]) -> str:
        return "(" + ", ".join(str(n) if size is None else _text(size) for n, size in zip(port.shape, sizes)) + ")"


def _check(one: Mapping[str, Any], found: Mapping[str, int]) -> None:
    name, low, high, step = one["name"], one["low"], one["high"], one["step"]
    if name not in found:
        raise PackageError(f"no input's shape says {name}", "this package was not made by Penstock as it stands")
    length = found[name]
    if not low <= length <= high:
        raise PackageError(
            f"{name} is {length}", f"this accelerator takes {low} to {high}" + (f", by {step}" if step > 1 else "")
        )
    if length % step:
        below = length // step * step
        near = " or ".join(str(n) for n in (below, below + step) if low <= n <= high)
        raise PackageError(f"{name} is {length}", f"this accelerator takes multiples of {step}: pass {near}")


def _at(size: Size, said: Mapping[str, int]) -> int:
    return int(size["offset"] + sum(factor * said[name] for name, factor in size["factors"].items()))


def _text(size: Size) -> str:
    terms = [name if factor == 1 else f"{factor} * {name}" for name, factor in size["factors"].items()]
    return " + ".join([*terms, *([str(size["offset"])] if size["offset"] else [])])
