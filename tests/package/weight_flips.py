"""Changes single weights of a package where its emulation holds them, and asks its own self-test each time."""

from __future__ import annotations

import contextlib
import ctypes
import io
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.runtime.penstock_runtime import Accelerator, load
from penstock.compiler.runtime.penstock_runtime.command import self_test

_ARRAY = re.compile(r"^static const (\S+) (\w+)((?:\[\d+\])*) = *$", re.MULTILINE)
_TYPES = {
    "float": np.float32, "double": np.float64, "int8_t": np.int8, "uint8_t": np.uint8, "int16_t": np.int16,
    "int32_t": np.int32, "int64_t": np.int64, "ap_int<4>": np.int8,
}  # fmt: skip
STEP = 0.1


@dataclass
class Flips:
    """How many single changes were tried in each array of weights, and which of them the self-test passed."""

    tried: Counter[str] = field(default_factory=Counter[str])
    missed: Counter[str] = field(default_factory=Counter[str])
    places: list[tuple[str, int, float, float]] = field(default_factory=list[tuple[str, int, float, float]])
    """What was missed: array, flat place, the number before and after."""

    @property
    def noticed(self) -> float:
        return 1 - self.missed.total() / self.tried.total()


def flip(folder: Path, count: int, seed: int = 0) -> Flips:
    """`folder` is an unpacked package, whose constant weights are made variable: same names, same numbers."""
    weights = folder / "hls" / "weights.h"
    text = weights.read_text()
    shapes = {name: (kind, _shape(dims)) for kind, name, dims in _ARRAY.findall(text)}
    weights.write_text(_ARRAY.sub(r'extern "C" { extern \1 \2\3; }\n\1 \2\3 =', text))
    found, generator = Flips(), random.Random(seed)
    with load(folder, backend="emulation", check=False) as accelerator:
        assert passes(accelerator)
        library = _library(folder)
        arrays = {name: _array(library, name, kind, shape) for name, (kind, shape) in shapes.items()}
        backend: Any = accelerator.backend
        arrays |= {f"streamed {i}": array for i, array in enumerate(backend._parameters)}
        names = sorted(name for name, array in arrays.items() if array.size)
        for number in range(count):
            name = names[number % len(names)]
            flat = arrays[name].reshape(-1)
            place = generator.randrange(flat.size)
            before = flat[place].copy()
            flat[place] = _changed(before, flat, generator)
            found.tried[name] += 1
            if passes(accelerator):
                found.missed[name] += 1
                found.places.append((name, place, before.item(), flat[place].item()))
            flat[place] = before
        assert passes(accelerator), "every weight is as it was"
    return found


def passes(accelerator: Accelerator) -> bool:
    with contextlib.redirect_stdout(io.StringIO()):
        return self_test(accelerator, as_json=True) == 0


def _changed(value: Any, array: np.ndarray, generator: random.Random) -> Any:
    """A float by a tenth, a whole number by a tenth of the array's largest, within its range."""
    sign = generator.choice((-1, 1))
    if isinstance(value, np.floating):
        return value + type(value)(sign * STEP)
    limits = np.iinfo(type(value))
    step = sign * max(1, round(STEP * max(abs(int(array.min())), abs(int(array.max())))))
    return type(value)(int(value) + (step if limits.min <= int(value) + step <= limits.max else -step))


def _shape(dims: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d+", dims)) or (1,)


def _library(folder: Path) -> ctypes.CDLL:
    """The library that the runtime has just built and loaded; the same handle, and so the same memory."""
    (path,) = (folder / ".cache").glob("csim-*.so")
    return ctypes.CDLL(str(path))


def _array(library: ctypes.CDLL, name: str, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype(_TYPES[kind])
    memory = (ctypes.c_char * (int(np.prod(shape)) * dtype.itemsize)).in_dll(library, name)
    return np.ndarray(shape, dtype, memory)  # pyright: ignore[reportArgumentType]
