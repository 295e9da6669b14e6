"""Two sources of a kernel held against each other: compiled by the machine's compiler, run on the same numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fence import Sources, lay_out
from penstock.compiler.hls_in.storage import KernelArray, KernelStream
from penstock.compiler.hls_in.to_nests import KernelArgument
from penstock.profiling.kernels.values import random_memories, source_program


def compare_sources(
    sources: Sources, top: str, text: str, arguments: tuple[KernelArgument, ...], seed: int = 0
) -> tuple[int, int]:
    """Words that both sources leave in their arguments, and how many differ: compiled by g++, on random numbers."""
    memories = random_memories(arguments, seed)
    with tempfile.TemporaryDirectory(prefix="penstock-explore-") as scratch:
        work = Path(scratch)
        old = lay_out(sources, sources.texts[sources.main], work / "old")
        new = lay_out(sources, text, work / "new")
        expected = source_program(old, top, arguments, work / "before").run(memories)
        found = source_program(new, top, arguments, work / "after").run(memories)
    compared = different = 0
    for one in arguments:
        bits = np.dtype(f"u{np.dtype(one.dtype).itemsize}")
        apart = np.ascontiguousarray(expected[one.name]).view(bits) != np.ascontiguousarray(found[one.name]).view(bits)
        compared, different = compared + apart.size, different + int(apart.sum())
    return compared, different


def arguments_of(path: Path, top: str) -> Iterator[KernelArgument]:
    """The top's arguments as a host gives them; all are compared."""
    for name, what in read_kernel(path, top).arguments:
        if isinstance(what, KernelStream):
            raise _unheld(path, f"the stream {name!r}")
        kind = {"float": "float32", "double": "float64", "half": "float16", "bool": "bool"}.get(what.kind)
        if kind is None and what.kind == "int" and what.bits in (8, 16, 32, 64):
            kind = f"int{what.bits}"
        if kind is None:
            raise _unheld(path, f"the type of {name!r}, {what.kind} of {what.bits} bits,")
        is_array = isinstance(what, KernelArray)
        yield KernelArgument(name, what.dims if is_array else (1,), kind, not is_array, is_array)


def _unheld(path: Path, what: str) -> PenstockError:
    return PenstockError(
        code="not-explored", what=f"{what} as an argument", where=f"{path.name}:1:1",
        limit="values are compared in arrays and numbers of float, double, half, bool and int of 8, 16, 32 or 64 bits",
        hint="give the top such arguments",
    )  # fmt: skip
