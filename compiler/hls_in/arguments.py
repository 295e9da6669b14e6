"""Arguments of a top as a host sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.storage import KernelArray, KernelStream


@dataclass(frozen=True)
class StreamPart:
    """A number of each token of a stream, or of a stream of an array."""

    of: str
    """The argument of the source."""
    dims: tuple[int, ...]
    """Of an array of streams."""
    stream: tuple[int, ...]
    """Which of them it is."""
    member: str
    """What is written behind a token to name the number: ".x", "[3]"."""


@dataclass(frozen=True)
class KernelArgument:
    """An argument: of a scalar one word, of a stream a word for each of its tokens."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scalar: bool
    written: bool
    bits: int = 0
    """Of an integer that is narrower than what it is kept in; else 0."""
    signed: bool = True
    part: StreamPart | None = None
    returned: bool = False
    """What the source returns: none of the arguments that it takes."""


def bits_kept(what: KernelArray | KernelStream | KernelValue, dtype: str) -> int:
    """The bits of an integer that is narrower than what it is kept in; else 0."""
    return what.bits if what.kind == "int" and what.bits < 8 * np.dtype(dtype).itemsize else 0


def lanes_of(name: str, streams: KernelStream) -> Iterator[tuple[tuple[int, ...], StreamPart]]:
    """The lanes of a stream, or of an array of them, and what they are of its tokens."""
    of, dot, member = name.partition(".")
    several = len(streams.dims) - streams.of_token
    for lane in product(*map(range, streams.dims)):
        within = "".join(f"[{at}]" for at in lane[several:])
        yield lane, StreamPart(of, streams.dims[:several], lane[:several], dot + member + within)
