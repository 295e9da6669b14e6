"""The operations of a canonical linalg function as plain facts: dims, maps, operands, bodies.

Exploration reads these to know what there is to tile; a plan (`compiler/plan`) says what becomes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from penstock.compiler.dialects.affine import projected_dims
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.dialects.window import Slide, SlideOp
from penstock.compiler.errors import PenstockError

FEEDS = "penstock.feeds"
"""On a result of @main: the name of the input that it is in the next of several calls that one start runs."""


@dataclass(frozen=True)
class TensorOp:
    """One linalg.generic: what it reads, along which dims, and whether it reduces."""

    layer: str
    op: linalg.GenericOp
    trips: tuple[int, ...]
    iterators: tuple[IteratorTypeAttr, ...]
    operand_maps: tuple[AffineMap, ...]
    result_map: AffineMap
    init: Attribute | None
    """The constant that its reduction starts from; None for an elementwise operation."""

    @cached_property
    def reductions(self) -> tuple[int, ...]:
        return tuple(d for d, kind in enumerate(self.iterators) if kind == IteratorTypeAttr.reduction())

    @cached_property
    def inputs(self) -> tuple[SSAValue, ...]:
        """The tensors that it reads."""
        return tuple(self.op.inputs)

    @cached_property
    def result(self) -> OpResult:
        return self.op.results[0]

    @cached_property
    def operand_dims(self) -> tuple[tuple[int | None, ...], ...]:
        """Which dim each index of each operand is; None for one that is no plain dim."""
        return tuple(projected_dims(operand_map) for operand_map in self.operand_maps)

    @cached_property
    def result_dims(self) -> tuple[int | None, ...]:
        return projected_dims(self.result_map)

    @cached_property
    def work(self) -> int:
        """How many times its body runs."""
        product = 1
        for trip in self.trips:
            product *= trip
        return product


@dataclass(frozen=True)
class Slice:
    """A contiguous part of a tensor along one dim."""

    source: SSAValue
    result: SSAValue
    dim: int
    start: int
    size: int

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Concat:
    """Tensors one after the other along one dim."""

    sources: tuple[SSAValue, ...]
    result: SSAValue
    dim: int

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        return self.sources

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """Where each source starts, and its size."""
        found: list[tuple[int, int]] = []
        start = 0
        for source in self.sources:
            size = tensor_type(source).get_shape()[self.dim]
            found.append((start, size))
            start += size
        return tuple(found)


@dataclass(frozen=True)
class Reshape:
    """The same elements in the same C order under another shape."""

    source: SSAValue
    result: SSAValue

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Windows:
    """All windows along a dim of a tensor: see `dialects/window.py`."""

    source: SSAValue
    result: SSAValue
    by: Slide
    fill: Attribute
    """What lies outside the tensor."""

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        return (self.source,)


Node = TensorOp | Slice | Concat | Reshape | Windows


@dataclass(frozen=True)
class Graph:
    """The canonical function: nodes in order, arguments with their names and kinds."""

    function: func.FuncOp
    nodes: tuple[Node, ...]

    @cached_property
    def operations(self) -> tuple[TensorOp, ...]:
        """The nodes that compute, and so have a schedule."""
        return tuple(node for node in self.nodes if isinstance(node, TensorOp))

    @cached_property
    def by_layer(self) -> dict[str, TensorOp]:
        return {operation.layer: operation for operation in self.operations}

    @cached_property
    def makers(self) -> dict[SSAValue, TensorOp]:
        """The operation that computes a tensor."""
        return {operation.result: operation for operation in self.operations}

    @cached_property
    def slides(self) -> dict[SSAValue, Windows]:
        """What makes windows of a tensor, by these."""
        return {node.result: node for node in self.nodes if isinstance(node, Windows)}

    @cached_property
    def readers(self) -> dict[SSAValue, list[Node]]:
        """The nodes that read each value that any reads, in order."""
        found: dict[SSAValue, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.inputs):
                found.setdefault(value, []).append(node)
        return found

    @property
    def arguments(self) -> tuple[BlockArgument, ...]:
        return self.function.body.block.args

    @property
    def returned(self) -> tuple[SSAValue, ...]:
        terminator = self.function.body.block.last_op
        assert isinstance(terminator, func.ReturnOp)
        return tuple(terminator.arguments)

    @cached_property
    def fed(self) -> dict[SSAValue, BlockArgument]:
        """By a returned value, the argument that it is in the next of several calls that one start runs."""
        by_name = {self.name(argument): argument for argument in self.arguments}
        found: dict[SSAValue, BlockArgument] = {}
        for value, described in zip(self.returned, self.function.res_attrs or (), strict=False):
            if isinstance(given := described.data.get(FEEDS), StringAttr):
                found[value] = by_name[given.data]
        return found

    def name(self, argument: BlockArgument) -> str:
        return self._attribute(argument, "penstock.name")

    def is_param(self, value: SSAValue) -> bool:
        return isinstance(value, BlockArgument) and self._attribute(value, "penstock.kind") == "param"

    def _attribute(self, argument: BlockArgument, key: str) -> str:
        attributes = self.function.arg_attrs
        value = attributes.data[argument.index].data.get(key) if attributes else None
        if not isinstance(value, StringAttr):
            raise PenstockError(
                code="not-canonical", what=f"argument {argument.index} of @main has no {key}", where="@main",
                hint="import the model through penstock.compiler.frontend, which names every argument",
            )  # fmt: skip
        return value.data


def read_graph(module: ModuleOp) -> Graph:
    """Collect the facts; whatever is not in the canonical form is named."""
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    if len(functions) != 1:
        raise PenstockError(
            code="not-canonical", what=f"the module holds {len(functions)} functions, not one", where="module"
        )
    nodes: list[Node] = []
    for op in functions[0].body.block.ops:
        match op:
            case linalg.GenericOp():
                nodes.append(_tensor_op(op))
            case tensor.ExtractSliceOp():
                nodes.append(_slice(op))
            case tensor.ConcatOp():
                nodes.append(Concat(tuple(op.inputs), op.result, op.dim.value.data))
            case SlideOp():
                nodes.append(Windows(op.source, op.result, op.by.data, op.fill))
            case tensor.CollapseShapeOp() | tensor.ExpandShapeOp():
                nodes.append(Reshape(op.operands[0], op.results[0]))
            case _:
                pass
    layers = [node.layer for node in nodes if isinstance(node, TensorOp)]
    if repeated := sorted({name for name in layers if layers.count(name) > 1}):
        raise PenstockError(code="not-canonical", what="two operations share this layer name", where=repeated[0])
    return Graph(functions[0], tuple(nodes))


def _tensor_op(op: linalg.GenericOp) -> TensorOp:
    label = op.attributes.get("penstock.layer")
    if not isinstance(label, StringAttr):
        raise PenstockError(code="not-canonical", what="an operation carries no layer name", where=op.name)
    layer = label.data
    if len(op.results) != 1 or len(op.outputs) != 1:
        raise PenstockError(code="unsupported-op", what=f"an operation with {len(op.results)} results", where=layer)
    maps = [m.data for m in op.indexing_maps.data]
    iterators = tuple(op.iterator_types.data)
    reduces = IteratorTypeAttr.reduction() in iterators
    return TensorOp(
        layer=layer,
        op=op,
        trips=_trips(layer, op),
        iterators=iterators,
        operand_maps=tuple(maps[:-1]),
        result_map=maps[-1],
        init=_constant_init(layer, op.outputs[0]) if reduces else None,
    )


def _slice(op: tensor.ExtractSliceOp) -> Slice:
    """A static slice with stride 1 that cuts one dim."""
    whole = tensor_type(op.source).get_shape()
    offsets, sizes = op.static_offsets.get_values(), op.static_sizes.get_values()
    cut = [d for d, (extent, size) in enumerate(zip(whole, sizes, strict=False)) if size != extent]
    if op.offsets or op.sizes or op.strides or any(s != 1 for s in op.static_strides.get_values()) or len(cut) > 1:
        raise PenstockError(
            code="unsupported-op", what=f"a slice of {tuple(whole)} at {offsets} of size {sizes}", where="slice",
            limit="slices are static, contiguous, and cut one dim at a time",
        )  # fmt: skip
    dim = cut[0] if cut else 0
    return Slice(op.source, op.result, dim, offsets[dim], sizes[dim])


def _trips(layer: str, op: linalg.GenericOp) -> tuple[int, ...]:
    """The extent of every iteration dim, from the shapes of the operands that it indexes."""
    maps: list[AffineMapAttr] = list(op.indexing_maps.data)
    trips: list[int | None] = [None] * maps[0].data.num_dims
    for value, indexing_map in zip(op.operands, maps, strict=True):
        if not isinstance(value.type, TensorType):
            raise PenstockError(code="unsupported-op", what=f"a scalar operand of type {value.type}", where=layer)
        shape = tensor_type(value).get_shape()
        for extent, expression in zip(shape, indexing_map.data.results, strict=True):
            if isinstance(expression, AffineDimExpr):
                trips[expression.position] = extent
    known = [t for t in trips if t is not None]
    if len(known) != len(trips) or any(t < 1 for t in known):
        raise PenstockError(
            code="unsupported-shape", what=f"iteration space {trips} is not static and positive", where=layer,
            hint="compile with example inputs of a fixed, non-empty shape",
        )  # fmt: skip
    return tuple(known)


def _constant_init(layer: str, value: SSAValue) -> Attribute:
    """The constant that fills a reduction's initial value."""
    if isinstance(value, OpResult) and isinstance(value.op, linalg.FillOp):
        scalar = value.op.inputs[0]
        if isinstance(scalar, OpResult) and isinstance(scalar.op, arith.ConstantOp):
            return scalar.op.value
    raise PenstockError(
        code="unsupported-op", what="a reduction that does not start from a constant", where=layer,
        hint="add the starting tensor in an operation of its own",
    )  # fmt: skip
