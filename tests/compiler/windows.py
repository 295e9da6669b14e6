"""Windows in drawn graphs: which convolution or pooling two small numbers mean, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.dialects.window import Slide

CONVOLVE, FILTER, POOL = "convolve", "filter", "pool"


@dataclass(frozen=True)
class DrawnWindows:
    """A step on rows and columns. `convolve` slides along the rows and mixes the columns, which are its channels;
    the others slide along both, with one weight a place or to the largest place."""

    kind: str
    slides: tuple[Slide, ...]
    shape: tuple[int, int]

    @staticmethod
    def of(first: int, second: int, rows: int, columns: int, widths: Sequence[int]) -> DrawnWindows:
        kind = (CONVOLVE, FILTER, POOL)[(first + second) % 3]
        down = _slide(0, rows, first, second)
        if kind == CONVOLVE:
            return DrawnWindows(kind, (down,), (down.count, widths[second % len(widths)]))
        right = _slide(1, columns, second, first // 2)
        return DrawnWindows(kind, (down, right), (down.count, right.count))

    def written(self, x: str, out: str, types: Sequence[str], fill: str, heads: int) -> list[str]:
        """The slides, from `x` to `%...w`; `types` are those of all tensors on the way."""
        lines: list[str] = []
        for number, by in enumerate(self.slides):
            made = f"{out}w" if by is self.slides[-1] else f"{out}w{number}"
            by = by.along(by.dim + heads)
            lines.append(f"{made} = window.slide {x} by <{by}> fill {fill} : {types[number]} -> {types[number + 1]}")
            x = made
        return lines

    def shapes(self, given: Sequence[int], heads: int) -> list[tuple[int, ...]]:
        """Of all tensors on the way."""
        found = [tuple(given)]
        for by in self.slides:
            found.append(by.along(by.dim + heads).shape(found[-1]))
        return found

    @property
    def places(self) -> str:
        """The dims of a window, as letters: those of one place have none."""
        return "".join(letter for letter, by in zip("pq", self.slides, strict=False) if by.size > 1)


def _slide(dim: int, extent: int, first: int, second: int) -> Slide:
    """A window that fits: smaller and nearer until it does.

    The first one reaches into the tensor: one of padding alone would leave before its frame has begun.
    """
    size, step, apart = 1 + first % 4, 1 + second % 3, 1 + first // 4 % 2
    while (size - 1) * apart + 1 > extent:
        size, apart = (size, apart - 1) if apart > 1 else (size - 1, apart)
    before = min(second // 3 % 3, (size - 1) * apart)
    after = before if first % 2 else 0
    count = (extent + before + after - (size - 1) * apart - 1) // step + 1
    return Slide(dim, count, size, step, apart, before)
