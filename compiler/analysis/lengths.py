"""Which dims of a canonical graph follow from lengths that a call says, from those of its arguments on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp, Windows
from penstock.compiler.dialects.counts import LENGTHS, SIZES, LengthsAttr, SizesAttr
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.lengths import ByLength, Length, SizesByLength

_Known = list[ByLength | int | None]
"""Of each dim what it follows from, its one size, or None while that is not known."""


def lengths_of(graph: Graph) -> tuple[Length, ...]:
    """The lengths that a call says; none for most graphs."""
    found = graph.function.attributes.get(LENGTHS)
    return found.data if isinstance(found, LengthsAttr) else ()


@dataclass(frozen=True)
class SizedGraph:
    """The dims of a graph that follow from lengths. Others have one size."""

    graph: Graph

    @property
    def lengths(self) -> tuple[Length, ...]:
        return lengths_of(self.graph)

    def of_value(self, value: SSAValue) -> SizesByLength:
        known = self._found[0].get(value)
        return tuple(one if isinstance(one, ByLength) else None for one in known or [None] * len(_shape(value)))

    def of_loops(self, operation: TensorOp) -> SizesByLength:
        known = self._found[1][operation.layer]
        return tuple(one if isinstance(one, ByLength) else None for one in known)

    def grains_of(self, operation: TensorOp) -> tuple[int, ...]:
        """Of each loop along a dim that varies, what each call's size is a multiple of; 0 for the others."""
        return self._grains(self.of_loops(operation))

    def parts_of(self, operation: TensorOp, trips: tuple[int, ...]) -> tuple[int, ...]:
        """What lanes divide along each loop: its trips, or what the size of each call is a multiple of."""
        return tuple(grain or trip for grain, trip in zip(self.grains_of(operation), trips, strict=True))

    def grains(self, value: SSAValue) -> tuple[int, ...]:
        """Of each dim that varies what its size is a multiple of; 0 for a dim of one size, () where none varies."""
        sizes = self.of_value(value)
        return self._grains(sizes) if any(sizes) else ()

    def _grains(self, sizes: SizesByLength) -> tuple[int, ...]:
        steps = {length.name: length.step for length in self.lengths}
        return tuple(0 if size is None else grain(size, steps) for size in sizes)

    @cached_property
    def _found(self) -> tuple[dict[SSAValue, _Known], dict[str, _Known]]:
        values: dict[SSAValue, _Known] = {}
        loops: dict[str, _Known] = {one.layer: [None] * len(one.trips) for one in self.graph.operations}
        if not self.lengths:
            return values, loops
        for argument, described in zip(self.graph.arguments, self.graph.function.arg_attrs or (), strict=True):
            given = described.data.get(SIZES)
            sizes = given.data if isinstance(given, SizesAttr) else (None,) * len(_shape(argument))
            values[argument] = [n if size is None else size for n, size in zip(_shape(argument), sizes, strict=True)]
        for node in self.graph.nodes:
            values[node.result] = [None] * len(_shape(node.result))
        walk, news = (*self.graph.nodes, *reversed(self.graph.nodes)), 1
        while news:
            news = sum(self._spread(node, values, loops) for node in walk)
        return values, loops

    def _spread(self, node: Node, values: dict[SSAValue, _Known], loops: dict[str, _Known]) -> bool:
        """What a node says of the dims around it; whether that was news."""
        match node:
            case TensorOp():
                mine = loops[node.layer]
                walked = [*zip(node.inputs, node.operand_dims, strict=True), (node.result, node.result_dims)]
                met = [(value, dim, loop) for value, dims in walked for dim, loop in enumerate(dims)]
                news = [_agree(values[v], d, mine, loop, node.layer) for v, d, loop in met if loop is not None]
                return any(news)
            case Slice():
                along = values[node.source][node.dim]
                if isinstance(along, ByLength) and node.size != _shape(node.source)[node.dim]:
                    raise _refused("a slice", f"it cuts a dim of size {along}")
                return _beside(values[node.source], values[node.result], node.dim, node.size)
            case Concat():
                parts = [values[source][node.dim] for source in node.sources]
                news = [_beside(values[source], values[node.result], node.dim, None) for source in node.sources]
                if all(part is not None for part in parts) and values[node.result][node.dim] is None:
                    values[node.result][node.dim] = _sum([part for part in parts if part is not None])
                    return True
                return any(news)
            case Windows():
                if isinstance(values[node.source][node.by.dim], ByLength):
                    raise _refused("a window", f"it slides along a dim of size {values[node.source][node.by.dim]}")
                own, places = values[node.result], len(values[node.source])
                own[places:] = _shape(node.result)[places:]  # those of a window
                return _beside(values[node.source], own, node.by.dim, _shape(node.result)[node.by.dim])
            case Reshape():
                source, result = values[node.source], values[node.result]
                if all(one is not None for one in source) and any(one is None for one in result):
                    sizes = tuple(one if isinstance(one, ByLength) else None for one in source)
                    found = reshaped(_shape(node.source), sizes, _shape(node.result))
                    if found is None:
                        raise _refused("a reshape", "it takes a dim apart whose size each call says")
                    wanted = zip(_shape(node.result), found, strict=True)
                    result[:] = [n if size is None else size for n, size in wanted]
                    return True
                return False


def grain(size: ByLength, steps: dict[str, int]) -> int:
    """How many places a size is always a multiple of: 1 if it has an odd place."""
    found = size.offset
    for name, factor in size.factors:
        found = gcd(found, factor * steps[name])
    return found


def reshaped(shape: Sequence[int], sizes: SizesByLength, target: Sequence[int]) -> SizesByLength | None:
    """The sizes of the same elements under another shape, in C order; None where a dim that varies is taken apart."""
    found: list[ByLength | None] = [None] * len(target)
    source = [(n, size) for n, size in zip(shape, sizes, strict=True) if n != 1]
    wanted = [d for d, n in enumerate(target) if n != 1]
    while source and wanted:
        (here, size), dims = source.pop(0), [wanted.pop(0)]
        there, count, varying = target[dims[0]], size or ByLength((), here), int(size is not None)
        while here != there:
            if here < there and source:
                n, size = source.pop(0)
                here, varying = here * n, varying + (size is not None)
                count = count.times(n) if size is None else size.times(count.offset)
            elif here > there and wanted:
                dims.append(wanted.pop(0))
                there *= target[dims[-1]]
            else:
                return None
        if varying > 1 or (varying and len(dims) > 1):
            return None
        found[dims[0]] = count if varying else None
    return tuple(found)


def _agree(values: _Known, dim: int, loops: _Known, loop: int, layer: str) -> bool:
    one, other = values[dim], loops[loop]
    if (one is None and other is None) or one == other:
        return False
    if one is None:
        values[dim] = other
    elif other is None:
        loops[loop] = one
    else:
        raise _refused(layer, f"a dim of size {one} meets one of size {other}")
    return True


def _beside(source: _Known, result: _Known, dim: int, size: int | None) -> bool:
    """All dims but one are the same; that one has a size of its own, if it is known."""
    news = False
    for d in range(len(source)):
        if d != dim and source[d] is not None and result[d] is None:
            result[d], news = source[d], True
        elif d != dim and result[d] is not None and source[d] is None:
            source[d], news = result[d], True
    if size is not None and result[dim] is None:
        result[dim], news = size, True
    return news


def _sum(parts: Sequence[ByLength | int]) -> ByLength | int:
    total = ByLength((), 0)
    for part in parts:
        total = total.plus(part) if isinstance(part, int) else total.add(part)
    return total if total.factors else total.offset


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(tensor_type(value).get_shape())


def _refused(where: str, why: str) -> PenstockError:
    return PenstockError(
        code="length-unsupported", what=f"its size cannot be said at each call: {why}", where=where,
        limit="dims that vary are walked, joined, and reshaped as a whole", hint="compile for one size, without --dim",
    )  # fmt: skip
