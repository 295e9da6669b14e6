"""SystemVerilog text that knows its indentation, and the small spellings that all emitters share."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.compiler.scalars import index_text


@dataclass
class SvLines:
    indent: int = 0
    text: list[str] = field(default_factory=list[str])

    def add(self, *lines: str) -> None:
        self.text += ["  " * self.indent + line if line else line for line in lines]

    @contextmanager
    def block(self, head: str, tail: str = "end") -> Generator[None]:
        self.add(head)
        self.indent += 1
        yield
        self.indent -= 1
        self.add(tail)

    @contextmanager
    def lanes(self, shape: Sequence[int], label: str, letter: str = "l") -> Generator[list[str]]:
        """A generate block for every lane; yields an index expression for every dim."""
        index = [f"{letter}{dim}" if extent > 1 else "0" for dim, extent in enumerate(shape)]
        turning = [(dim, extent) for dim, extent in enumerate(shape) if extent > 1]
        for position, (dim, extent) in enumerate(turning):
            name = label if position == len(turning) - 1 else f"{label}_{dim}"
            self.add(f"for (genvar {letter}{dim} = 0; {letter}{dim} < {extent}; {letter}{dim}++) begin : {name}")
            self.indent += 1
        if not turning:
            self.add(f"if (1) begin : {label}")
            self.indent += 1
        yield index
        for _ in turning or [0]:
            self.indent -= 1
            self.add("end")


def bits(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def packed(lanes: int, width: int) -> str:
    """The dimensions of a lane vector: a plain number where there is one lane."""
    return f"[{lanes - 1}:0][{width - 1}:0]" if lanes > 1 else f"[{width - 1}:0]"


def flat(shape: Sequence[int], index: Sequence[str]) -> str:
    """The row-major position of a lane, as a number where it is one."""
    return index_text.flat(shape, index, fold=True)


def conjunction(terms: Sequence[str]) -> str:
    return " & ".join(terms) or "1'b1"


def clog2(count: int) -> int:
    """Bits of an address among `count` words; never none."""
    return max(1, (count - 1).bit_length())
