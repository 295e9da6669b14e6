"""Types of the language: numbers, tiles of them, and where a tensor's parts lie."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

WIDEST_TOKEN = 4096
"""Bits of a token, which is as wide as channels of the tools can be."""

BFLOAT16 = "bf16"
"""The upper half of a float32: kept and sent so, computed as float32. On the chip it is 16 bits like others."""
FLOAT16 = "f16"
"""Half precision of IEEE 754: kept and sent so, computed as float32. On the chip it is 16 bits like others."""
DTYPES: dict[str, str] = {f"int{bits}": f"i{bits}" for bits in range(2, 33)} | {
    "bool": "i1", "float32": "f32", "bfloat16": BFLOAT16, "float16": FLOAT16,
}  # fmt: skip
"""What a program calls a number, and what stands for it inside."""
NAMES = {ir: name for name, ir in DTYPES.items()}
MOST_FRACTION = 31
"""Bits behind the point, of 32."""


def fixed(bits: int, fraction: int) -> str:
    """A whole number that counts steps of 2 ** -fraction."""
    return f"q{bits}.{fraction}"


def bits_of(dtype: str) -> int:
    return int(dtype.lstrip("bfiq").partition(".")[0])


def fraction_of(dtype: str) -> int:
    """Bits behind the point; none of whole numbers."""
    return int(dtype.partition(".")[2] or 0)


def is_fixed(dtype: str) -> bool:
    return dtype.startswith("q")


def is_float(dtype: str) -> bool:
    return dtype.lstrip("b").startswith("f")


def name_of(dtype: str) -> str:
    """As a program calls it."""
    if is_fixed(dtype):
        return f"fixed({bits_of(dtype)}, {bits_of(dtype) - fraction_of(dtype)})"
    return NAMES[dtype]


@dataclass(frozen=True)
class TileKind:
    """A number, or a tile of numbers."""

    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def lanes(self) -> int:
        return prod(self.shape)

    @property
    def bits(self) -> int:
        return bits_of(self.dtype) * self.lanes

    def of(self, dtype: str) -> TileKind:
        return TileKind(dtype, self.shape)

    def __str__(self) -> str:
        shape = f"[{', '.join(map(str, self.shape))}]" if self.shape else ""
        return name_of(self.dtype) + shape


def joined(left: str, right: str) -> str:
    """What two numbers are computed as: floats win, then the longer fraction; others are at least 32 bits wide."""
    if is_float(left) or is_float(right):
        return "f32"
    if is_fixed(left) or is_fixed(right):
        return fixed(32, max(fraction_of(left), fraction_of(right)))
    return f"i{max(32, bits_of(left), bits_of(right))}"


@dataclass(frozen=True)
class GridLayout:
    """How a tensor's dims lie over a grid: each replicated (None), or cut along a grid axis."""

    axes: tuple[int | None, ...]

    def __str__(self) -> str:
        return "".join("R" if axis is None else f"S{axis}" for axis in self.axes)
