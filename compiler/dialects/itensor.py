"""The itensor dialect: streams of tensor slices whose order is part of the type, and the kernels that use them.

    !itensor.itensor<4x2xf32, iter_space: [4, 2]*[2, 4], iter_map: (d0, d1) -> (d1, d0)>

reads: slices of 4x2 elements; two loops of 4 and 2 trips with steps 2 and 4; the first loop moves along
columns, the second along rows. Two streams may be connected exactly if their types are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IntAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Dialect, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    Operand,
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
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.itensor_types import ITensorType, ScheduleAttr, ints, unpack
from compiler.dialects.types import tensor_type


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A dataflow kernel: an isolated graph of tasks between tensors in external memory.

    Kernels of one `group` are to be fused into one; groups run one after the other.
    """

    name = "itensor.kernel"
    sym_name = prop_def(StringAttr)
    group = prop_def(IntAttr)
    sources = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())

    def __init__(
        self, name: str, sources: Sequence[SSAValue], results: Sequence[Attribute], body: Region, group: int = 0
    ) -> None:
        super().__init__(
            operands=[list(sources)],
            result_types=[list(results)],
            properties={"sym_name": StringAttr(name), "group": IntAttr(group)},
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
