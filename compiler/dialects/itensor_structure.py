"""Kernels, and the tasks in them: what computes, isolated from what moves data."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DictionaryAttr, IntAttr, StringAttr, TensorType, i1
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    Operand,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.dialects.bindings import bindings_of
from penstock.compiler.dialects.formats import Iterators, Maps, NumberFormat, NumbersFormat
from penstock.compiler.dialects.itensor_types import ITensorType, ScheduleAttr, expect_itensor, ints, unpack
from penstock.compiler.dialects.types import tensor_type


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
    custom_directives = (NumberFormat,)
    assembly_format = (
        "$sym_name `group` custom<NumberFormat>($group) `takes` $sources attr-dict-with-keyword "
        "`:` functional-type(operands, results) $body"
    )

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
class WithinOp(IRDLOperation):
    """Whether one of the task's loops is within its first `size` trips: what lies behind them is padding."""

    name = "itensor.within"
    loop = prop_def(IntAttr)
    size = prop_def(IntAttr)
    result = result_def(i1)
    custom_directives = (NumberFormat,)
    assembly_format = "`loop` custom<NumberFormat>($loop) `below` custom<NumberFormat>($size) attr-dict"

    def __init__(self, loop: int, size: int) -> None:
        super().__init__(properties={"loop": IntAttr(loop), "size": IntAttr(size)}, result_types=[i1])

    def verify_(self) -> None:
        task = self.parent_op()
        if isinstance(task, TaskOp):
            trips = unpack(task.trips)
            if not (self.loop.data < len(trips) and 0 < self.size.data <= trips[self.loop.data]):
                raise VerifyException(f"within: {self.size.data} trips of loop {self.loop.data}, the loops are {trips}")


@irdl_op_definition
class TaskOp(IRDLOperation):
    """A scheduled tensor operation on streams: indexing maps and scalar body of the linalg op it came from.

    Operands are itensors (popped at first use and kept while they are needed) or tensors (parameters
    that lie on the chip). A reduction starts from `init` and its body's last argument is the
    accumulator; each result slice is pushed at the last step of its reduction. `bindings` and `interval` go on to
    its nest.
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
    bindings = opt_prop_def(DictionaryAttr)
    interval = prop_def(IntAttr, default_value=IntAttr(1))
    body = region_def("single_block")
    custom_directives = (NumbersFormat, NumberFormat, Maps, Iterators)
    assembly_format = (
        "$sym_name $operands_ `trips` custom<NumbersFormat>($trips) `iterators` custom<Iterators>($iterator_types) "
        "`maps` custom<Maps>($indexing_maps) `schedule` $schedule (`init` $init^)? (`bindings` $bindings^)? "
        "(`interval` custom<NumberFormat>($interval)^)? attr-dict-with-keyword "
        "`:` functional-type(operands, results) $body"
    )

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
        bindings: DictionaryAttr | None = None,
        interval: int = 1,
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
                "bindings": bindings,
                "interval": IntAttr(interval),
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
        bindings_of(self)
        self._verify_body(self.body.block)

    def _verify_body(self, block: Block) -> None:
        name = self.sym_name.data
        reduction = self.init is not None
        wanted = [_scalar(o.type) for o in self.operands_]
        if reduction:
            wanted.append(expect_itensor(self.result).dtype)
        if [a.type for a in block.args] != wanted:
            raise VerifyException(
                f"task {name}: body takes {[str(a.type) for a in block.args]}, not the operands' scalars"
            )
        terminator = block.last_op
        if not isinstance(terminator, YieldOp) or [v.type for v in terminator.values] != [
            expect_itensor(self.result).dtype
        ]:
            raise VerifyException(f"task {name}: body must yield one {expect_itensor(self.result).dtype}")


def _scalar(kind: Attribute) -> Attribute:
    if isinstance(kind, ITensorType):
        return kind.dtype
    return tensor_type(kind).element_type
