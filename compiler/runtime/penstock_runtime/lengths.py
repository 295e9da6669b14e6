"""Sizes that each call says: an accelerator for `seq` up to 64 is given inputs of 5 rows, and told so.

Its memories are as large as at the largest length. What an input has less is zeros, which it does not read; of a result
only the beginning means something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .errors import PackageError
from .layout import Packed
from .ports import Array, Port

Size = Mapping[str, Any]
"""Of one dim: `factors` by the names of lengths, and an `offset`."""


def at_sizes(document: Any, said: Mapping[str, int]) -> Any:
    """The host's part as it is at these lengths: each {"size": ...} in it is a number then."""
    if isinstance(document, list):
        return [at_sizes(one, said) for one in cast("list[Any]", document)]
    if not isinstance(document, dict):
        return document
    found = cast("dict[str, Any]", document)
    if (size := size_of(found)) is not None:
        return _at(size, said)
    return {key: at_sizes(one, said) for key, one in found.items()}


def size_of(number: Any) -> Size | None:
    """What a number of the host's part follows from; None if it is one number, or no number."""
    said = cast("dict[str, Any]", number) if isinstance(number, dict) else {}
    found = said.get("size") if len(said) == 1 else None
    is_size = isinstance(found, dict) and cast("dict[str, Any]", found).keys() == {"factors", "offset"}
    return cast("Size", found) if is_size else None


@dataclass(frozen=True)
class Lengths:
    """What may be said, and which dims of inputs and outputs follow from it (None for a dim of one size).

    Inputs are those that are passed to the accelerator, without what is held for it. `model` has the dims of the
    model's own inputs; `places` how many rows of what is kept a call sees.
    """

    of: Sequence[Mapping[str, Any]]
    inputs: Sequence[Sequence[Size | None]]
    outputs: Sequence[Sequence[Size | None]]
    model: Sequence[Sequence[Size | None]]
    places: Sequence[Size] = ()

    def enter(self, ports: Sequence[Port], values: Sequence[Any]) -> tuple[list[Array], dict[str, int]]:
        """Inputs as large as the accelerator's memories, with the lengths behind them, in steps."""
        arrays = [port.check_values(value) for port, value in zip(ports, values)]
        said = self._said_by(ports, arrays, self.inputs, {})
        return self.fill_up(ports, arrays, said), said

    def fill_up(self, ports: Sequence[Port], values: Sequence[Any], said: Mapping[str, int]) -> list[Any]:
        """The same of inputs in the accelerator's own numbers; what stays packed is as large already."""
        whole = [
            value if isinstance(value, Packed)
            else np.pad(value, [(0, size - own) for size, own in zip(port.shape, value.shape)])
            for port, value in zip(ports, values)
        ]  # fmt: skip
        return [*whole, np.array([said[one["name"]] // one["step"] for one in self.of], np.int32)]

    def of_call(self, ports: Sequence[Port], arrays: Sequence[Array], rows: int | None = None) -> dict[str, int]:
        """The lengths of a call of the model: what its inputs' shapes say, and for what the model keeps the least
        that has so many rows, or the largest."""
        shown = {name for own in self.model for size in own if size for name in size["factors"]}
        kept = {one["name"]: self._for_rows(one, rows) for one in self.of if one["name"] not in shown}
        return self._said_by(ports, arrays, self.model, kept)

    def model_shape(self, number: int, shape: Sequence[int], said: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of an input of the model at these lengths."""
        return tuple(n if size is None else _at(size, said) for n, size in zip(shape, self.model[number]))

    def least_of(self, number: int, elements: int) -> int | None:
        """How many elements an input of the model has at least where it has room for that many; None if it is one size.

        Of one that has one dim but for those of size 1.
        """
        sizes = [size for size in self.model[number] if size is not None]
        if len(sizes) != 1 or len(sizes[0]["factors"]) != 1:
            return None
        (name,) = sizes[0]["factors"]
        one = next(one for one in self.of if one["name"] == name)
        found = range(one["low"], one["high"] + 1, one["step"])
        return next((_at(sizes[0], {name: n}) for n in found if _at(sizes[0], {name: n}) >= elements), None)

    def _for_rows(self, one: Mapping[str, Any], rows: int | None) -> int:
        """The least of a length at which that many places are there."""
        if rows is None:
            return int(one["high"])
        wanted = [int(one["low"])]
        for size in self.places:
            if size["factors"].keys() != {one["name"]}:
                return int(one["high"])
            factor = size["factors"][one["name"]]
            wanted.append(-((size["offset"] - rows) // factor) if factor > 0 else int(one["high"]))
        least = -(-max(wanted) // one["step"]) * one["step"]
        return int(min(one["high"], least)) if self.places else int(one["high"])

    def leave(
        self, results: Sequence[Array], said: Mapping[str, int], whole: frozenset[int] = frozenset()
    ) -> list[Array]:
        """Of each result what was computed; those in `whole` stay as they lie in memory."""
        return [
            result if number in whole
            else np.ascontiguousarray(result[tuple(slice(None if one is None else _at(one, said)) for one in sizes)])
            for number, (result, sizes) in enumerate(zip(results, self.outputs))
        ]  # fmt: skip

    def _said_by(
        self,
        ports: Sequence[Port],
        arrays: Sequence[Array],
        dims: Sequence[Sequence[Size | None]],
        kept: Mapping[str, int],
    ) -> dict[str, int]:
        """The lengths that the inputs' shapes say, beside those that nobody says."""
        said: dict[str, tuple[int, Port]] = {}
        for port, array, sizes in zip(ports, arrays, dims):
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
        found = {**kept, **{name: length for name, (length, _) in said.items()}}
        for one in self.of:
            _check(one, found)
        for port, array, sizes in zip(ports, arrays, dims):
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
