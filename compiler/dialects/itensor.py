"""The itensor dialect: streams of tensor slices whose order is part of the type, and the kernels that use them.

    !itensor.itensor<4x2xf32, iter_space: [4, 2]*[2, 4], iter_map: (d0, d1) -> (d1, d0)>

reads: slices of 4x2 elements; two loops of 4 and 2 trips with steps 2 and 4; the first loop moves along
columns, the second along rows. Two streams may be connected exactly if their types are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IntAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Dialect, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    Operand,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.affine import evaluate_map
from compiler.dialects.types import tensor_type


def ints(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    return ArrayAttr([IntAttr(v) for v in values])


def unpack(array: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    return tuple(i.data for i in array)


@irdl_attr_definition
class ITensorType(ParametrizedAttribute, TypeAttribute):
    """A stream of slices: `element` is the slice, `trips`*`steps` the iteration space, `iter_map` where it lies.

    A loop that no data dimension uses reads the slices below it again. Steps smaller than the
    element overlap: a sliding window.
    """

    name = "itensor.itensor"
    element: TensorType
    trips: ArrayAttr[IntAttr]
    steps: ArrayAttr[IntAttr]
    iter_map: AffineMapAttr

    @staticmethod
    def of(
        shape: Sequence[int],
        dtype: Attribute,
        trips: Sequence[int],
        steps: Sequence[int],
        iter_map: AffineMap,
    ) -> ITensorType:
        return ITensorType(TensorType(dtype, list(shape)), ints(trips), ints(steps), AffineMapAttr(iter_map))

    @property
    def element_shape(self) -> tuple[int, ...]:
        return tuple(self.element.get_shape())

    @property
    def dtype(self) -> Attribute:
        return self.element.element_type

    @property
    def trip_counts(self) -> tuple[int, ...]:
        return unpack(self.trips)

    @property
    def step_sizes(self) -> tuple[int, ...]:
        return unpack(self.steps)

    @property
    def token_count(self) -> int:
        """How many slices the whole stream carries."""
        count = 1
        for trip in self.trip_counts:
            count *= trip
        return count

    def offsets(self) -> Iterator[tuple[int, ...]]:
        """Where each slice starts in the tensor, in the order of the stream."""
        for index in itertools.product(*(range(t) for t in self.trip_counts)):
            scaled = [i * s for i, s in zip(index, self.step_sizes, strict=True)]
            yield evaluate_map(self.iter_map.data, scaled)

    def data_shape(self) -> tuple[int, ...]:
        """The shape of the tensor that the stream covers."""
        last = [(t - 1) * s for t, s in zip(self.trip_counts, self.step_sizes, strict=True)]
        corner = evaluate_map(self.iter_map.data, last)
        return tuple(c + e for c, e in zip(corner, self.element_shape, strict=True))

    def verify(self) -> None:
        trips, steps, iter_map = self.trip_counts, self.step_sizes, self.iter_map.data
        if len(trips) != len(steps):
            raise VerifyException(f"itensor: {len(trips)} trip counts but {len(steps)} steps; give one step a loop")
        if any(t < 1 for t in trips) or any(s < 1 for s in steps):
            raise VerifyException(f"itensor: trips {list(trips)} and steps {list(steps)} must all be at least 1")
        if iter_map.num_dims != len(trips) or iter_map.num_symbols:
            raise VerifyException(
                f"itensor: iter_map {iter_map} has {iter_map.num_dims} dims, the iteration space {len(trips)}"
            )
        if len(iter_map.results) != len(self.element_shape):
            raise VerifyException(
                f"itensor: iter_map {iter_map} gives {len(iter_map.results)} coordinates for an element of rank "
                f"{len(self.element_shape)}"
            )
        if any(d < 1 for d in self.element_shape):
            raise VerifyException(f"itensor: element shape {list(self.element_shape)} must be static and positive")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            for dim in self.element_shape:
                printer.print_string(f"{dim}x")
            printer.print_attribute(self.dtype)
            trips, steps = list(self.trip_counts), list(self.step_sizes)
            printer.print_string(f", iter_space: {trips}*{steps}, iter_map: {self.iter_map.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            shape, dtype = parser.parse_ranked_shape()
            _expect(parser, "iter_space")
            trips = _numbers(parser)
            parser.parse_punctuation("*")
            steps = _numbers(parser)
            _expect(parser, "iter_map")
            iter_map = parser.parse_affine_map()
        return [TensorType(dtype, shape), ints(trips), ints(steps), AffineMapAttr(iter_map)]


def _numbers(parser: AttrParser) -> list[int]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


def _expect(parser: AttrParser, keyword: str) -> None:
    parser.parse_punctuation(",")
    parser.parse_keyword(keyword)
    parser.parse_punctuation(":")


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """How a task walks its iteration dims: tile and unroll size of each dim, and the order of the tile loops."""

    name = "itensor.schedule"
    tile: ArrayAttr[IntAttr]
    unroll: ArrayAttr[IntAttr]
    order: ArrayAttr[IntAttr]

    @staticmethod
    def of(tile: Sequence[int], unroll: Sequence[int], order: Sequence[int]) -> ScheduleAttr:
        return ScheduleAttr(ints(tile), ints(unroll), ints(order))

    def print_parameters(self, printer: Printer) -> None:
        fields = (("tile", self.tile), ("unroll", self.unroll), ("order", self.order))
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{name}: {list(unpack(values))}" for name, values in fields))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("tile")
            parser.parse_punctuation(":")
            fields = [ints(_numbers(parser))]
            for name in ("unroll", "order"):
                _expect(parser, name)
                fields.append(ints(_numbers(parser)))
        return list(fields)

    def verify(self) -> None:
        tile, unroll, order = unpack(self.tile), unpack(self.unroll), unpack(self.order)
        if not len(tile) == len(unroll) == len(order):
            raise VerifyException(f"schedule: tile {tile}, unroll {unroll} and order {order} differ in length")
        if sorted(order) != list(range(len(order))):
            raise VerifyException(f"schedule: order {order} is not a permutation of the {len(order)} dims")
        for dim, (t, u) in enumerate(zip(tile, unroll, strict=True)):
            if t < 1 or u < 1 or t % u:
                raise VerifyException(f"schedule: cannot unroll tile {t} of dim {dim} by {u}: {t} % {max(u, 1)} != 0")


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A dataflow kernel: an isolated graph of tasks between tensors in external memory."""

    name = "itensor.kernel"
    sym_name = prop_def(StringAttr)
    sources = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())

    def __init__(self, name: str, sources: Sequence[SSAValue], results: Sequence[Attribute], body: Region) -> None:
        super().__init__(
            operands=[list(sources)],
            result_types=[list(results)],
            properties={"sym_name": StringAttr(name)},
            regions=[body],
        )

    def verify_(self) -> None:
        block = self.body.block
        if [a.type for a in block.args] != [s.type for s in self.sources]:
            raise VerifyException(f"kernel {self.sym_name.data}: block arguments differ from the sources")
        terminator = block.last_op
        if not isinstance(terminator, YieldOp):
            raise VerifyException(f"kernel {self.sym_name.data}: must end in itensor.yield")
        if [v.type for v in terminator.values] != [r.type for r in self.outputs]:
            raise VerifyException(f"kernel {self.sym_name.data}: yields other types than its results")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a kernel (with its result tensors) or a task body (with its scalar result)."""

    name = "itensor.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue]) -> None:
        super().__init__(operands=[list(values)])


@irdl_op_definition
class LoadOp(IRDLOperation):
    """DMA from external memory: streams a tensor in the order of the result's type."""

    name = "itensor.load"
    sym_name = prop_def(StringAttr)
    source = operand_def(TensorType)
    result = result_def(ITensorType)
    traits = traits_def(Pure())
    assembly_format = "$sym_name $source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, name: str, source: SSAValue, result: ITensorType) -> None:
        super().__init__(operands=[source], result_types=[result], properties={"sym_name": StringAttr(name)})

    def verify_(self) -> None:
        _check_covers(f"load {self.sym_name.data}", self.source.type, self.result.type)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """DMA to external memory: writes a stream into a tensor."""

    name = "itensor.store"
    sym_name = prop_def(StringAttr)
    source = operand_def(ITensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$sym_name $source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, name: str, source: SSAValue, result: TensorType) -> None:
        super().__init__(operands=[source], result_types=[result], properties={"sym_name": StringAttr(name)})

    def verify_(self) -> None:
        _check_covers(f"store {self.sym_name.data}", self.result.type, self.source.type)


@irdl_op_definition
class ConverterOp(IRDLOperation):
    """Changes the layout of a stream through a local buffer."""

    name = "itensor.converter"
    sym_name = prop_def(StringAttr)
    source = operand_def(ITensorType)
    result = result_def(ITensorType)
    traits = traits_def(Pure())
    assembly_format = "$sym_name $source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, name: str, source: SSAValue, result: ITensorType) -> None:
        super().__init__(operands=[source], result_types=[result], properties={"sym_name": StringAttr(name)})

    def verify_(self) -> None:
        source, result = _itensor(self.source), _itensor(self.result)
        if source.data_shape() != result.data_shape() or source.dtype != result.dtype:
            raise VerifyException(
                f"converter {self.sym_name.data}: {source.data_shape()} x {source.dtype} cannot become "
                f"{result.data_shape()} x {result.dtype}; a converter changes the order, not the data"
            )


@irdl_op_definition
class ForkOp(IRDLOperation):
    """Copies a stream for several readers."""

    name = "itensor.fork"
    sym_name = prop_def(StringAttr)
    source = operand_def(ITensorType)
    copies = var_result_def(ITensorType)
    traits = traits_def(Pure())
    assembly_format = "$sym_name $source attr-dict `:` type($source) `->` type($copies)"

    def __init__(self, name: str, source: SSAValue, count: int) -> None:
        super().__init__(
            operands=[source], result_types=[[source.type] * count], properties={"sym_name": StringAttr(name)}
        )

    def verify_(self) -> None:
        if len(self.copies) < 2 or any(c.type != self.source.type for c in self.copies):
            raise VerifyException(f"fork {self.sym_name.data}: needs two or more results of its source's type")


@irdl_op_definition
class ChunkOp(IRDLOperation):
    """Parts of a stream along one dim, each in the order of the whole; `starts` says where each begins."""

    name = "itensor.chunk"
    sym_name = prop_def(StringAttr)
    dim = prop_def(IntAttr)
    starts = prop_def(ArrayAttr[IntAttr])
    source = operand_def(ITensorType)
    parts = var_result_def(ITensorType)
    traits = traits_def(Pure())

    def __init__(
        self, name: str, source: SSAValue, dim: int, starts: Sequence[int], parts: Sequence[ITensorType]
    ) -> None:
        super().__init__(
            operands=[source],
            result_types=[list(parts)],
            properties={"sym_name": StringAttr(name), "dim": IntAttr(dim), "starts": ints(starts)},
        )

    def verify_(self) -> None:
        name, whole = self.sym_name.data, _itensor(self.source)
        if len(self.starts) != len(self.parts) or not self.parts:
            raise VerifyException(f"chunk {name}: needs one start a part, and a part at least")
        for start, part in zip(unpack(self.starts), self.parts, strict=True):
            _check_part(f"chunk {name}", whole, _itensor(part), self.dim.data, start)


@irdl_op_definition
class ConcatOp(IRDLOperation):
    """Streams one after the other along one dim, in the order of the whole."""

    name = "itensor.concat"
    sym_name = prop_def(StringAttr)
    dim = prop_def(IntAttr)
    sources = var_operand_def(ITensorType)
    result = result_def(ITensorType)
    traits = traits_def(Pure())

    def __init__(self, name: str, sources: Sequence[SSAValue], dim: int, result: ITensorType) -> None:
        super().__init__(
            operands=[list(sources)],
            result_types=[result],
            properties={"sym_name": StringAttr(name), "dim": IntAttr(dim)},
        )

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each source begins in the result."""
        sizes = [_itensor(s).data_shape()[self.dim.data] for s in self.sources]
        return tuple(sum(sizes[:i]) for i in range(len(sizes)))

    def verify_(self) -> None:
        name, whole = self.sym_name.data, _itensor(self.result)
        for start, source in zip(self.starts, self.sources, strict=True):
            _check_part(f"concat {name}", whole, _itensor(source), self.dim.data, start)
        total = sum(_itensor(s).data_shape()[self.dim.data] for s in self.sources)
        if total != whole.data_shape()[self.dim.data]:
            raise VerifyException(f"concat {name}: parts of {total} do not fill {whole.data_shape()}")


@irdl_op_definition
class TaskOp(IRDLOperation):
    """A scheduled tensor operation on streams: indexing maps and scalar body of the linalg op it came from.

    Operands are itensors (popped at first use and kept while they are needed) or tensors (parameters
    that lie on the chip). A reduction starts from `init` and its body's last argument is the
    accumulator; each result slice is pushed at the last step of its reduction.
    """

    name = "itensor.task"
    sym_name = prop_def(StringAttr)
    operands_ = var_operand_def()
    result = result_def(ITensorType)
    schedule = prop_def(ScheduleAttr)
    trips = prop_def(ArrayAttr[IntAttr])
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    init = opt_prop_def(Attribute)
    body = region_def("single_block")

    def __init__(
        self,
        name: str,
        operands: Sequence[Operand],
        result: ITensorType,
        *,
        schedule: ScheduleAttr,
        trips: Sequence[int],
        indexing_maps: Sequence[AffineMap],
        iterator_types: Sequence[IteratorTypeAttr],
        init: Attribute | None,
        body: Region,
    ) -> None:
        super().__init__(
            operands=[list(operands)],
            result_types=[result],
            properties={
                "sym_name": StringAttr(name),
                "schedule": schedule,
                "trips": ints(trips),
                "indexing_maps": ArrayAttr([AffineMapAttr(m) for m in indexing_maps]),
                "iterator_types": ArrayAttr(iterator_types),
                "init": init,
            },
            regions=[body],
        )

    @property
    def maps(self) -> tuple[AffineMap, ...]:
        """The indexing maps of the operands, then of the result."""
        return tuple(m.data for m in self.indexing_maps)

    def verify_(self) -> None:
        name, trips = self.sym_name.data, unpack(self.trips)
        if len(self.indexing_maps) != len(self.operands_) + 1:
            raise VerifyException(f"task {name}: needs one indexing map an operand and one for the result")
        if len(self.iterator_types) != len(trips):
            raise VerifyException(f"task {name}: {len(self.iterator_types)} iterator types for {len(trips)} dims")
        for dim, (trip, tile) in enumerate(zip(trips, unpack(self.schedule.tile), strict=True)):
            if trip % tile:
                raise VerifyException(
                    f"task {name}: cannot tile dim {dim} of {trip} by {tile}: {trip % tile} left over"
                )
        self._verify_body(self.body.block)

    def _verify_body(self, block: Block) -> None:
        name = self.sym_name.data
        reduction = self.init is not None
        wanted = [_scalar(o.type) for o in self.operands_]
        if reduction:
            wanted.append(_itensor(self.result).dtype)
        if [a.type for a in block.args] != wanted:
            raise VerifyException(
                f"task {name}: body takes {[str(a.type) for a in block.args]}, not the operands' scalars"
            )
        terminator = block.last_op
        if not isinstance(terminator, YieldOp) or [v.type for v in terminator.values] != [_itensor(self.result).dtype]:
            raise VerifyException(f"task {name}: body must yield one {_itensor(self.result).dtype}")


def _scalar(kind: Attribute) -> Attribute:
    if isinstance(kind, ITensorType):
        return kind.dtype
    return tensor_type(kind).element_type


def _check_part(what: str, whole: ITensorType, part: ITensorType, dim: int, start: int) -> None:
    """A part has the whole's slices and extents, but for its own range along `dim`."""
    wanted, given = list(whole.data_shape()), list(part.data_shape())
    size = given[dim]
    if part.element != whole.element:
        raise VerifyException(f"{what}: slices of {part.element_shape} out of {whole.element_shape}")
    if start % whole.element_shape[dim] or size % whole.element_shape[dim] or start + size > wanted[dim]:
        raise VerifyException(
            f"{what}: {start} to {start + size} of dim {dim} is no whole number of slices of {whole.element_shape}"
        )
    wanted[dim] = given[dim]
    if wanted != given:
        raise VerifyException(f"{what}: a part of {tuple(given)} along dim {dim} of {whole.data_shape()}")


def _itensor(value: SSAValue) -> ITensorType:
    if not isinstance(value.type, ITensorType):
        raise VerifyException(f"{value.type} is not an itensor")
    return value.type


def _check_covers(what: str, tensor: Attribute, stream: Attribute) -> None:
    if not isinstance(stream, ITensorType):
        raise VerifyException(f"{what}: {stream} is not an itensor")
    kind = tensor_type(tensor)
    if tuple(kind.get_shape()) != stream.data_shape() or kind.element_type != stream.dtype:
        raise VerifyException(f"{what}: {stream} covers {stream.data_shape()}, the tensor is {tensor}")


ITensor = Dialect(
    "itensor",
    [KernelOp, YieldOp, LoadOp, StoreOp, ConverterOp, ForkOp, ChunkOp, ConcatOp, TaskOp],
    [ITensorType, ScheduleAttr],
)
