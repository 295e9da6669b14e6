"""Structs among the arguments of a source: one array to the C++ that takes them, an array a field to everybody else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.arguments import KernelArgument
from penstock.profiling.kernels.program import KernelProgram


@dataclass(frozen=True)
class FieldProgram:
    """A compiled source that is given the fields of its structs, and gives them back."""

    program: KernelProgram
    structs: Mapping[str, tuple[KernelArgument, ...]]

    def run(self, memories: Mapping[str, Array]) -> dict[str, Array]:
        given = dict(memories)
        for one in self.program.arguments:
            if one.name in self.structs:
                whole: Any = np.zeros(one.shape, one.dtype)
                for field, part in zip(fields_of(whole), self.structs[one.name], strict=True):
                    whole[field] = memories[part.name]
                given[one.name] = whole
        found = self.program.run(given)
        for name, parts in self.structs.items():
            whole = found.pop(name)
            found |= {part.name: whole[field] for field, part in zip(fields_of(whole), parts, strict=True)}
        return found


def joined(arguments: Sequence[KernelArgument], where: str) -> Iterator[tuple[KernelArgument, list[KernelArgument]]]:
    """The arguments as a source takes them, each with the fields that it has: none but for structs."""
    for name, group in groupby(arguments, lambda one: one.name if one.part is not None else one.name.split(".")[0]):
        parts = list(group)
        if parts[0].part is not None or parts[0].name == name:
            yield from ((part, []) for part in parts)
            continue
        if len({part.shape for part in parts}) > 1 or any(part.bits or part.name.count(".") > 1 for part in parts):
            raise PenstockError(
                code="no-nests", what=f"the struct {name!r} as an argument", where=where,
                limit="structs of numbers that C++ has itself, without arrays and structs in them",
                hint="give the top an array a field, or analyse it for its cycles alone",
            )  # fmt: skip
        written = any(part.written for part in parts)
        dtype = struct_dtype([np.dtype(part.dtype) for part in parts])
        yield KernelArgument(name, parts[0].shape, dtype, parts[0].scalar, written), parts


def fields_of(values: Array) -> list[str]:
    """Of an array of structs: what is no filling."""
    return [name for name in values.dtype.names or () if values.dtype[name].kind != "V"]


def struct_dtype(fields: list[np.dtype[np.generic]]) -> str:
    """The layout that a C++ compiler gives a struct of such fields."""
    words: list[str] = []
    at, widest = 0, max(one.itemsize for one in fields)
    for one, unit in [*((one, one.itemsize) for one in fields), (None, widest)]:
        words += [f"V{gap}"] if (gap := -at % unit) else []
        words += [one.str] if one is not None else []
        at += gap + (one.itemsize if one is not None else 0)
    return ",".join(words)
