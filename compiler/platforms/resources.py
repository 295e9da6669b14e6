"""The five countable resources of an FPGA, as one value that adds, scales and compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

RESOURCE_LABELS = {"lut": "LUT", "ff": "FF", "dsp": "DSP", "bram18": "BRAM18", "uram": "URAM"}
"""What people read of each."""
RESOURCE_NAMES = tuple(RESOURCE_LABELS)

BRAM18_BITS, URAM_BITS = 18 * 1024, 288 * 1024


@dataclass(frozen=True)
class Resources:
    """LUTs, flip-flops, DSP slices (or multipliers), 18-kbit block RAMs and 288-kbit UltraRAMs."""

    lut: int = 0
    ff: int = 0
    dsp: int = 0
    bram18: int = 0
    uram: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.lut + other.lut, self.ff + other.ff, self.dsp + other.dsp,
            self.bram18 + other.bram18, self.uram + other.uram,
        )  # fmt: skip

    def __sub__(self, other: Resources) -> Resources:
        return self + other * -1

    def __mul__(self, count: int) -> Resources:
        return Resources(self.lut * count, self.ff * count, self.dsp * count, self.bram18 * count, self.uram * count)

    @property
    def memory_bits(self) -> int:
        """What the blocks hold."""
        return self.bram18 * BRAM18_BITS + self.uram * URAM_BITS

    def items(self) -> Iterator[tuple[str, int]]:
        yield from self.as_dict().items()

    def as_dict(self) -> dict[str, int]:
        return dict(vars(self))

    def share_of(self, available: Resources) -> dict[str, float]:
        """Used over available, by resource; an infinite share where the device has none of what is used."""
        have = available.as_dict()
        return {name: _share(used, have[name]) for name, used in self.items()}


def _share(used: int, available: int) -> float:
    if used == 0:
        return 0.0
    return used / available if available else float("inf")


def total(parts: Iterator[Resources] | list[Resources] | tuple[Resources, ...]) -> Resources:
    """The sum of any number of resource counts."""
    lut = ff = dsp = bram18 = uram = 0
    for part in parts:
        lut, ff, dsp = lut + part.lut, ff + part.ff, dsp + part.dsp
        bram18, uram = bram18 + part.bram18, uram + part.uram
    return Resources(lut, ff, dsp, bram18, uram)
