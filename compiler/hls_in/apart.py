"""Arrays of a dataflow region that a pragma cuts into parts of which no two are met by one index: memories apart.

`float stage[6][64]` with its first dimension cut whole, of which each task names two parts by constants, is six
memories to the tool, each with a task that writes and one that reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.records import (
    Again,
    Called,
    DataflowRegion,
    Either,
    Pipeline,
    ReadKernel,
    Region,
    graphs,
)
from penstock.compiler.hls_in.storage import KernelArray

_ACCESSES = ("load", "store")
PartSaid = TypeVar("PartSaid")


def part_arrays(kernel: ReadKernel) -> None:
    """Put a memory of its own in the place of each such part."""
    for region in _regions(kernel.body):
        tasks = [{node.array for node in _accesses(task.body)} for task in region.tasks]
        for array in [one for one in kernel.arrays if sum(one in met for met in tasks) > 1]:
            if not array.argument and array not in kernel.initial and array not in kernel.tables:
                _part(kernel, array)


def _part(kernel: ReadKernel, array: KernelArray) -> None:
    cut = [d for d, length in enumerate(array.dims) if array.partition.get(d) == ("complete", length)]
    kept = [d for d in range(len(array.dims)) if d not in cut]
    met = [node for node in _accesses(kernel.body) if node.array is array]
    if not cut or not kept or any(not node.index[d].constant for node in met for d in cut):
        return
    made: dict[tuple[int, ...], KernelArray] = {}
    for node in met:
        index = node.index
        part = tuple(int(index[d].value or 0) for d in cut)
        if part not in made:
            made[part] = replace(
                array, name=f"{array.name}_{'_'.join(map(str, part))}", dims=tuple(array.dims[d] for d in kept),
                partition=_of(array.partition, kept), reshape=_of(array.reshape, kept),
                directives=_of(array.directives, kept),
            )  # fmt: skip
        node.array = made[part]
        node.args = (*node.args[: len(node.args) - len(index)], *(index[d] for d in kept))
    for piece in graphs(kernel.body):
        if isinstance(piece, Pipeline) and (apart := piece.apart.pop(array, None)) is not None:
            piece.apart |= dict.fromkeys(made.values(), apart)
    at = kernel.arrays.index(array)
    kernel.arrays[at : at + 1] = [made[part] for part in sorted(made)]


def _of(said: dict[int, PartSaid], kept: list[int]) -> dict[int, PartSaid]:
    """What is said of the dimensions that are kept."""
    return {at: said[d] for at, d in enumerate(kept) if d in said}


def _accesses(items: list[Region]) -> Iterable[KernelValue]:
    return (node for piece in graphs(items) for node in piece.graph.nodes if node.op in _ACCESSES and node.array)


def _regions(items: list[Region]) -> Iterable[DataflowRegion]:
    for item in items:
        if isinstance(item, DataflowRegion):
            yield item
            for task in item.tasks:
                yield from _regions(task.body)
        elif isinstance(item, (Again, Called, Either)):
            yield from _regions(item.body)
