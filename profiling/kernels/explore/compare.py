"""Two sources of a kernel held against each other: compiled by the machine's compiler, run on the same numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.arguments import KernelArgument, lanes_of
from penstock.compiler.hls_in.channel_ends import tokens_met
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fence import Sources, lay_out
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.ordering import Lane
from penstock.compiler.hls_in.records import ReadKernel, graphs
from penstock.compiler.hls_in.storage import KernelArray, KernelStream
from penstock.profiling.kernels.lengths import Lengths
from penstock.profiling.kernels.structs import fields_of, struct_dtype
from penstock.profiling.kernels.values import random_memories, source_program, undefined_value, uses_unwritten

_KINDS = {"float": "float32", "double": "float64", "half": "float16", "bool": "bool"}


def compare_sources(
    sources: Sources, top: str, text: str, arguments: tuple[KernelArgument, ...], seed: int = 0
) -> tuple[int, int]:
    """Words that both sources leave in their arguments, and how many differ: compiled by g++, on random numbers.

    Scalars that end loops or move addresses have values that the source has room for, and smaller ones. Other numbers
    may lead out of the arrays. Where the given source does not survive them, or data decide addresses and the two
    differ, both are held against each other on integers that lie in the arrays.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-explore-") as scratch:
        work = Path(scratch)
        old = lay_out(sources, sources.texts[sources.main], work / "old")
        new = lay_out(sources, text, work / "new")
        before = source_program(old, top, arguments, work / "before")
        after = source_program(new, top, arguments, work / "after")
        kernel = read_kernel(old, top)
        least = min((n for one in arguments if not one.scalar for n in one.shape if n > 1), default=1)
        compared = different = 0
        for number, scalars in enumerate(Lengths(kernel).drawn(seed) or [{}]):
            memories = random_memories(arguments, seed + number, scalars=scalars)
            inside = random_memories(arguments, seed + number, below=least, scalars=scalars)
            expected = found = None
            try:
                expected = before.run(memories)
                found = _held(arguments, expected, after.run(memories))
            except PenstockError:
                if expected is not None and not _data_decide(kernel):
                    raise
            if found is None or (found[1] and _data_decide(kernel)):
                memories = inside
                found = _held(arguments, before.run(inside), after.run(inside))
            if found[1] and uses_unwritten(old, top, arguments, memories, work / f"unwritten{number}"):
                if number:
                    continue  # smaller values leave a part of its arrays as they were
                raise undefined_value(" with the largest values that it has room for" if scalars else "", old.name)
            compared, different = compared + found[0], different + found[1]
        return compared, different


def _data_decide(kernel: ReadKernel) -> bool:
    """Whether any address is no sum of counters."""
    nodes = (node for piece in graphs(kernel.body) for node in piece.graph.nodes if node.array)
    return any(at.linear is None for node in nodes if node.op in ("load", "store") for at in node.index)


def _held(
    arguments: tuple[KernelArgument, ...], expected: Mapping[str, Array], found: Mapping[str, Array]
) -> tuple[int, int]:
    compared = different = 0
    for one in arguments:
        for wanted, given in zip(_fields(expected[one.name]), _fields(found[one.name]), strict=True):
            bits = np.dtype(f"u{wanted.dtype.itemsize}")
            apart = np.ascontiguousarray(wanted).view(bits) != np.ascontiguousarray(given).view(bits)
            compared, different = compared + apart.size, different + int(apart.sum())
    return compared, different


def _fields(values: Array) -> Iterator[Array]:
    """Of structs each field; what only fills them up is none."""
    if values.dtype.names is None:
        yield values
        return
    for name in fields_of(values):
        yield values[name]


def arguments_of(path: Path, top: str) -> Iterator[KernelArgument]:
    """The top's arguments as a host gives them; all are compared. A struct's fields are one argument, of a stream each
    number of its tokens is one."""
    kernel = read_kernel(path, top, values=True)
    tokens = tokens_met(kernel.body)
    for name, group in groupby(kernel.arguments, lambda one: one[0].split(".")[0]):
        members = list(group)
        parts: list[KernelArgument] = []
        for member, what in members:
            if isinstance(what, KernelStream):
                yield from _tokens_of(path, member, what, tokens)
            else:
                parts.append(_argument(path, member, what))
        if not parts or (len(members) == 1 and members[0][0] == name):
            yield from parts
            continue
        if len({part.shape for part in parts}) > 1 or any(p.bits or p.name.count(".") > 1 for p in parts):
            raise _unheld(path, f"the struct {name!r}")
        yield KernelArgument(
            name, parts[0].shape, struct_dtype([np.dtype(p.dtype) for p in parts]), parts[0].scalar, True
        )


def _tokens_of(
    path: Path, name: str, streams: KernelStream, tokens: Mapping[tuple[Lane, str], int]
) -> Iterator[KernelArgument]:
    plain = _argument(path, name, streams)
    for lane, part in lanes_of(name, streams):
        read, written = (tokens[(streams, lane), op] for op in ("take", "put"))
        if read and written:
            raise _unheld(path, f"the stream {name!r}, which is read and written,")
        full = "_".join([name, *map(str, lane)])
        yield replace(plain, name=full, shape=(read or written,), written=bool(written), scalar=False, part=part)


def _argument(path: Path, name: str, what: KernelArray | KernelStream | KernelValue) -> KernelArgument:
    kind, bits = _KINDS.get(what.kind), 0
    if kind is None and what.bits <= 64:  # ap_int and ap_fixed lie in the next larger integer
        kept = next(size for size in (8, 16, 32, 64) if what.bits <= size)
        kind, bits = f"int{kept}", what.bits if what.bits < kept else 0
    if kind is None:
        raise _unheld(path, f"the type of {name!r}, {what.kind} of {what.bits} bits,")
    is_array = isinstance(what, KernelArray)
    returned = isinstance(what, KernelArray) and what.returned
    shape = what.dims if is_array else (1,)
    return KernelArgument(name, shape, kind, not is_array, is_array, bits, what.signed, returned=returned)


def _unheld(path: Path, what: str) -> PenstockError:
    return PenstockError(
        code="not-explored", what=f"{what} as an argument", where=f"{path.name}:1:1",
        limit="values are compared in arrays, streams and numbers of float, double, half, bool, integers and fixed "
        "point of up to 64 bits, and structs of these", hint="give the top such arguments, or run "
        "`penstock analyse --fix`",
    )  # fmt: skip
