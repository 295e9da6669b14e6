"""Pads dims that a design tiles unevenly, so that every tile is whole: 250 by 16 becomes 256.

A dim is shared by all operations and tensors that walk it together, and so is its padded size. Inputs and parameters
are padded with zeros, by the host and here; results are cropped by the host. Where a reduction would see the padding,
it is masked. Where a slice, concatenation or reshape would move it, the design is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import ClassVar

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DenseArrayBase, FunctionType, ModuleOp, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from penstock.compiler.analysis.graph import Concat, Graph, Reshape, Slice, TensorOp, Windows, read_graph
from penstock.compiler.analysis.lengths import SizedGraph
from penstock.compiler.design import Design
from penstock.compiler.dialects.affine import projected_dims
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.layout import pad
from penstock.compiler.program import Program
from penstock.compiler.transforms.pad_masks import write_mask
from penstock.compiler.transforms.pad_values import PaddingMask, find_masks, obstacle
from penstock.compiler.transforms.passes import Level, Pass

PaddedSizes = Mapping[int, int]
"""The padded size of each class of dims that has one."""


@dataclass(frozen=True)
class Dims:
    """The dims of a graph, those that are walked together in one class. A class is named by a small number."""

    graph: Graph

    @cached_property
    def _found(self) -> tuple[dict[Hashable, int], dict[int, tuple[str, str]]]:
        sets, blocked = _Sets(), dict[Hashable, tuple[str, str]]()
        for argument in self.graph.arguments:
            for dim in range(len(tensor_type(argument).get_shape())):
                sets.root((argument, dim))
        for node in self.graph.nodes:
            match node:
                case TensorOp():
                    walked = [*zip(node.op.inputs, node.operand_maps, strict=True), (node.result, node.result_map)]
                    for value, indexing_map in walked:
                        for dim, loop in enumerate(projected_dims(indexing_map)):
                            sets.join((value, dim), (node.layer, loop) if loop is not None else (value, dim))
                case Slice() | Concat():
                    what = "a slice" if isinstance(node, Slice) else "a concatenation"
                    for source in (node.source,) if isinstance(node, Slice) else node.sources:
                        for dim in range(len(tensor_type(source).get_shape())):
                            if dim == node.dim:
                                blocked |= dict.fromkeys([(source, dim), (node.result, dim)], (what, "cuts it"))
                            else:
                                sets.join((source, dim), (node.result, dim))
                case Windows():
                    rank, reason = len(tensor_type(node.source).get_shape()), ("a window", "slides along it")
                    for dim in range(rank):
                        if dim == node.by.dim:
                            blocked |= dict.fromkeys([(node.source, dim), (node.result, dim)], reason)
                        else:
                            sets.join((node.source, dim), (node.result, dim))
                    if node.by.size > 1:
                        blocked[node.result, rank] = ("a window", "has its places")
                case Reshape():
                    for value in (node.source, node.result):
                        for dim in range(len(tensor_type(value).get_shape())):
                            blocked[value, dim] = ("a reshape", "walks it in another shape")
        numbers: dict[Hashable, int] = {}
        for key in [*sets.parent, *blocked]:
            numbers.setdefault(sets.root(key), len(numbers))
        classes = {key: numbers[sets.root(key)] for key in [*sets.parent]}
        return classes, {classes[key]: reason for key, reason in blocked.items()}

    def of_loop(self, operation: TensorOp, loop: int) -> int:
        return self._found[0][operation.layer, loop]

    def of_value(self, value: SSAValue, dim: int) -> int | None:
        """None for what no operation walks: the start of a reduction."""
        return self._found[0].get((value, dim))

    @cached_property
    def sizes(self) -> dict[int, int]:
        return {self.of_loop(op, d): trip for op in self.graph.operations for d, trip in enumerate(op.trips)}

    @cached_property
    def sized(self) -> SizedGraph:
        """Which of them each call says the size of."""
        return SizedGraph(self.graph)

    @cached_property
    def unfit(self) -> Mapping[int, tuple[str, str]]:
        """The classes that cannot be padded: who is to blame, and why."""
        blocked = self._found[1]
        wrong: dict[int, tuple[str, str]] = {}
        for operation in self.graph.operations:
            for loop, size in enumerate(self.sized.of_loops(operation)):
                if size is not None:
                    wrong.setdefault(self.of_loop(operation, loop), (operation.layer, "each call says its size"))
                elif reason := obstacle(operation, loop):
                    wrong.setdefault(self.of_loop(operation, loop), (operation.layer, reason))
        return {**wrong, **blocked}

    @cached_property
    def paddable(self) -> tuple[int, ...]:
        """The classes that can be padded, those first whose padding needs no mask."""
        return tuple(sorted((n for n in self.sizes if n not in self.unfit), key=lambda n: bool(self.masks([n]))))

    def masks(self, padded: Collection[int]) -> tuple[PaddingMask, ...]:
        """What keeps the padding of these classes out of results."""
        key = frozenset(padded)
        if key not in self._masks:
            self._masks[key] = find_masks(self.graph, self.of_loop, key)
        return self._masks[key]

    @cached_property
    def _masks(self) -> dict[frozenset[int], tuple[PaddingMask, ...]]:
        return {}

    def padded_graph(self, sizes: PaddedSizes) -> Graph:
        """The graph with these sizes; of equal ones the same, since many designs pad alike."""
        key = tuple(sorted(sizes.items()))
        if key not in self._graphs:
            self._graphs[key] = read_graph(pad_module(self, sizes)) if sizes else self.graph
        return self._graphs[key]

    @cached_property
    def _graphs(self) -> dict[Hashable, Graph]:
        return {}

    def padded(self, design: Design) -> PaddedSizes:
        """The smallest sizes that every tile of a design divides, for those dims that need another than they have."""
        tiles: dict[int, int] = {}
        uneven: dict[int, tuple[TensorOp, int]] = {}
        for operation in self.graph.operations:
            kernel = design.kernels.get(operation.layer)
            if kernel is None or len(kernel.tile) != len(operation.trips):
                continue  # the pass that tiles names it
            for dim, (trip, tile) in enumerate(zip(operation.trips, kernel.tile, strict=True)):
                number = self.of_loop(operation, dim)
                tiles[number] = lcm(tiles.get(number, 1), tile)
                if trip % tile:
                    uneven.setdefault(number, (operation, dim))
        sizes = {number: -(-self.sizes[number] // tiles[number]) * tiles[number] for number in uneven}
        for number, (operation, dim) in uneven.items():
            self._check(operation, dim, design.kernels[operation.layer].tile[dim], sizes[number])
        return sizes

    def _check(self, operation: TensorOp, dim: int, tile: int, size: int) -> None:
        trip = operation.trips[dim]
        what = f"cannot tile dim {dim} of {trip} by {tile}"
        blamed = self.unfit.get(self.of_loop(operation, dim))
        if blamed is not None:
            raise PenstockError(
                code="tile-does-not-divide", what=f"{what}, and it cannot be padded", where=operation.layer,
                limit=f"{trip} % {tile} = {trip % tile}; {blamed[0]}: {blamed[1]}", hint=f"use a divisor of {trip}",
            )  # fmt: skip
        if size >= 2 * trip:
            raise PenstockError(
                code="tile-does-not-divide", what=f"{what}, with the tiles of its neighbours", where=operation.layer,
                limit=f"{trip} % {tile} = {trip % tile}; it would be padded to {size}; less than {2 * trip} is allowed",
                hint=f"use a divisor of {trip}, or the tile of its neighbours",
            )  # fmt: skip


class _Sets:
    """Disjoint sets of anything, joined one pair at a time."""

    def __init__(self) -> None:
        self.parent: dict[Hashable, Hashable] = {}

    def root(self, key: Hashable) -> Hashable:
        while (above := self.parent.setdefault(key, key)) != key:
            key = above
        return key

    def join(self, one: Hashable, other: Hashable) -> None:
        self.parent[self.root(one)] = self.root(other)


@dataclass(frozen=True)
class PadDims(Pass):
    """The program whose dims the design's tiles divide; the same one where they do already."""

    name: ClassVar[str] = "pad-dims"
    takes: ClassVar[Level] = "linalg"

    design: Design

    def run(self, program: Program) -> Program:
        dims = Dims(read_graph(program.module))
        sizes = dims.padded(self.design)
        if not sizes:
            return program
        shapes = {dims.graph.name(a): _shape(dims, sizes, a) for a in dims.graph.arguments if dims.graph.is_param(a)}
        params = {name: pad(array, shapes.get(name, array.shape)) for name, array in program.params.items()}
        return program.with_module(pad_module(dims, sizes), params=params)


def pad_module(dims: Dims, sizes: PaddedSizes) -> ModuleOp:
    """A copy of the graph's module with the sizes in all its types."""
    graph = dims.graph
    values = [*graph.arguments, *(node.result for node in graph.nodes)]
    return retyped(graph, {value: _shape(dims, sizes, value) for value in values}, dims.masks(sizes))


def retyped(old: Graph, shapes: Mapping[SSAValue, tuple[int, ...]], masks: Sequence[PaddingMask] = ()) -> ModuleOp:
    """A copy of the graph's module whose arguments and results have these shapes."""
    above = old.function.parent_op()
    assert isinstance(above, ModuleOp)
    module = above.clone()
    graph = read_graph(module)
    function = graph.function
    mine, theirs = ([*one.arguments, *(node.result for node in one.nodes)] for one in (graph, old))
    wanted = {copy: shapes[value] for copy, value in zip(mine, theirs, strict=True)}
    for mask in masks:
        write_mask(graph.by_layer[mask.layer], mask)
    for operation in graph.operations:
        _give_start(operation, wanted[operation.result])
    for value, shape in wanted.items():
        if isinstance(value.owner, tensor.ExtractSliceOp):
            value.owner.static_sizes = DenseArrayBase.from_list(i64, shape)
        Rewriter.replace_value_with_new_type(value, _typed(value, shape))
    terminator = function.body.block.last_op
    assert terminator is not None
    function.properties["function_type"] = FunctionType.from_lists(
        [a.type for a in function.body.block.args], [v.type for v in terminator.operands]
    )
    module.verify()
    return module


def _give_start(operation: TensorOp, shape: tuple[int, ...]) -> None:
    """What an operation writes into becomes an empty tensor of its own, filled where it reduces."""
    old = operation.op.outputs[0]
    empty = tensor.EmptyOp([], _typed(old, shape))
    added: list[Operation] = [empty]
    if isinstance(old.owner, linalg.FillOp):
        added.append(linalg.FillOp(old.owner.inputs, empty.results, [_typed(old, shape)]))
    block = operation.op.parent
    assert block is not None
    block.insert_ops_before(added, operation.op)
    operation.op.operands[len(operation.op.operands) - 1] = added[-1].results[0]
    unused: SSAValue | None = old
    while unused is not None and isinstance(unused.owner, linalg.FillOp | tensor.EmptyOp) and unused.first_use is None:
        owner = unused.owner
        unused = owner.outputs[0] if isinstance(owner, linalg.FillOp) else None
        Rewriter.erase_op(owner)


def _typed(value: SSAValue, shape: tuple[int, ...]) -> TensorType[Attribute]:
    return TensorType(tensor_type(value).element_type, shape)


def _shape(dims: Dims, sizes: PaddedSizes, value: SSAValue) -> tuple[int, ...]:
    shape = tensor_type(value).get_shape()
    numbers = [dims.of_value(value, d) for d in range(len(shape))]
    return tuple(size if n is None else sizes.get(n, size) for n, size in zip(numbers, shape, strict=True))
