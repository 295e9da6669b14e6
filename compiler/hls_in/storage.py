"""Loop counters, memories and streams of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import Literal

NumberKind = Literal["int", "bool", "half", "float", "double", "fixed"]
_numbers = count()
_ULTRARAM_WORDS = 4096
_ULTRARAM_BITS = 72


@dataclass(eq=False)
class Counter:
    """A loop's iterations, from 0."""

    name: str
    trip: int
    number: int = field(default_factory=lambda: next(_numbers))
    unrolled: int = 1
    """How many of the source's iterations a pragma makes one of: the tool counts in steps of them."""


@dataclass(eq=False)
class KernelArray:
    """`partition` says of a dimension (from 0) how it is cut: ("cyclic" | "block", factor), or ("complete", length)."""

    name: str
    dims: tuple[int, ...]
    kind: NumberKind
    bits: int
    signed: bool = True
    where: str = ""
    argument: bool = False
    constant: bool = False
    partition: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    reshape: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    own_cut: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """How the tool cuts it on its own account, of which no pragma speaks."""
    unsized: str = ""
    """Of a pointer of which one word is met alone: how to say that there are more."""
    storage: str = ""
    """What a pragma calls its kind and number of ports."""
    built_of: str = ""
    """What a pragma says that it is built of."""
    directives: dict[int, str] = field(default_factory=dict[int, str])
    """Where the partition of a dimension is said."""
    apart: int | None = None
    """A pragma's word: after how many iterations at the least a written word is read again; 0 is never."""

    number: bool = False
    """One word that is named as a variable is."""
    blocks: int = 0
    """Of an hls::stream_of_blocks: how many of such arrays lie between its two tasks."""
    returned: bool = False
    """What the top returns, for those who ask for values: a host sees it as one more argument."""
    external: bool = False
    """An argument behind an m_axi interface."""
    channel: str = ""
    """Of what tasks of a dataflow region hand over: what the channel is called, as no other one is."""
    shared: bool = False
    """An argument that several tasks of a dataflow region meet: each has one of its ports."""

    @property
    def words(self) -> int:
        return prod(self.dims)

    @property
    def registers(self) -> bool:
        """Cut into single words: no memory at all."""
        if self.external:
            return False
        ways = self.partition or self.own_cut
        cut = [d in ways and ways[d][1] >= n for d, n in enumerate(self.dims)]
        whole = any(cut) and all(one or n == 1 for one, n in zip(cut, self.dims, strict=True))
        return whole or (not self.argument and not self.constant and self.words <= 4)

    @property
    def read_by_all(self) -> bool:
        """A ROM that has as many ports as are read at once: what no pragma says otherwise of."""
        return self.storage == "rom_np" or (self.constant and not self.storage)

    @property
    def in_ultraram(self) -> bool:
        """Where the tool puts a memory of the design's own that fills one UltraRAM by more than half."""
        if self.argument or self.constant or self.storage or self.reshape:
            return False
        return _ULTRARAM_WORDS // 2 < -(-self.words // self.banks) <= _ULTRARAM_WORDS and self.bits <= _ULTRARAM_BITS

    def cut(self, dimension: int) -> tuple[str, int]:
        """Into which banks a dimension is cut, ("none", 1) if it is not."""
        return self.partition.get(dimension) or self.own_cut.get(dimension, ("none", 1))

    def factors(self) -> list[tuple[str, int]]:
        """How pragmas cut each dimension, ("none", 1) where none does."""
        return [self.partition.get(d, ("none", 1)) for d in range(len(self.dims))]

    @property
    def banks(self) -> int:
        return prod(self.cut(d)[1] for d in range(len(self.dims)))


@dataclass(eq=False)
class KernelStream:
    """One hls::stream, or an array of them."""

    name: str
    dims: tuple[int, ...]
    bits: int
    depth: int = 2
    argument: bool = False
    where: str = ""
    kind: NumberKind = "float"
    signed: bool = True
    directive: str = ""
    """Where its depth is said."""
    of_token: int = 0
    """How many of the last `dims` are those of its token, an hls::vector, say; the others are an array of streams."""
