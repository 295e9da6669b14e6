"""The parts of kernels that stand as operations: the facts that they were written from."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from penstock.compiler.analysis.tasks import Computation, is_reread, task_plan
from penstock.compiler.design import Design
from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.bindings import bindings_of
from penstock.compiler.dialects.itensor_types import ITensorType, expect_itensor, unpack
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.plan.orders import OrderTable
from penstock.compiler.plan.parts import (
    Chunking,
    Computing,
    Concatenating,
    Converting,
    Does,
    Forking,
    Loading,
    Order,
    Part,
    Reshaping,
    Sliding,
    Storing,
    Stream,
    Transfer,
    label_parts,
)
from penstock.compiler.plan.port_tasks import assign_ports
from penstock.compiler.platforms import Platform


def read_kernels(kernels: Sequence[itensor.KernelOp], design: Design, platform: Platform) -> list[list[Part]]:
    """The parts of every kernel; their tensors are the values of @main."""
    table = OrderTable()
    parts = [_Reader(kernel, table).parts for kernel in kernels]
    label_parts(parts)
    assign_ports(parts, design, platform)
    return parts


class _Reader:
    def __init__(self, kernel: itensor.KernelOp, table: OrderTable) -> None:
        self.table = table
        self.streams: dict[SSAValue, Stream] = {}
        self.tensors: dict[SSAValue, SSAValue] = dict(zip(kernel.body.block.args, kernel.sources, strict=True))
        terminator = kernel.body.block.last_op
        assert isinstance(terminator, itensor.YieldOp)
        self.tensors |= dict(zip(terminator.values, kernel.outputs, strict=True))
        self.parts = [self._part(op) for op in kernel.body.block.ops if not isinstance(op, itensor.YieldOp)]

    def _part(self, op: Operation) -> Part:
        name = op.properties["sym_name"]
        assert isinstance(name, StringAttr)
        streams = [self.streams[v] for v in op.operands if isinstance(v.type, ITensorType)]
        tensors = tuple([self.tensors[v] for v in (*op.operands, *op.results) if v in self.tensors])
        part = Part(name.data, self._does(op), streams, tensors)
        made = [v for v in op.results if isinstance(v.type, ITensorType)]
        self.streams |= dict(zip(made, part.outputs, strict=True))
        return part

    def _does(self, op: Operation) -> Does:
        match op:
            case itensor.LoadOp():
                return Loading(self._transfer(op))
            case itensor.StoreOp():
                return Storing(self._transfer(op))
            case itensor.ConverterOp():
                return Converting(self._order(op.source), self._order(op.result))
            case itensor.ChunkOp():
                return Chunking(op.dim.data, unpack(op.starts), self._order(op.source), self._orders(op.parts))
            case itensor.ConcatOp():
                return Concatenating(op.dim.data, self._orders(op.sources), self._order(op.result))
            case itensor.ForkOp():
                return Forking(self._orders(op.copies))
            case itensor.ReassociateOp():
                return Reshaping(self._order(op.result))
            case SlideOp():
                return Sliding(op.by.data, op.fill, self._order(op.source), self._order(op.result))
            case itensor.TaskOp():
                return self._computing(op)
            case _:
                raise AssertionError(f"{op.name} is no part of a kernel")

    def _computing(self, op: itensor.TaskOp) -> Computing:
        plan = task_plan(op)
        streamed = [not isinstance(v, BlockArgument) for v in op.operands_]
        return Computing(
            plan=plan,
            computation=Computation.of_task(op),
            bindings=tuple(bindings_of(op).items()),
            operands=tuple([self._order(v) if s else None for v, s in zip(op.operands_, streamed, strict=True)]),
            tensors=tuple([tensor_type(v) for v, s in zip(op.operands_, streamed, strict=True) if not s]),
            reread=tuple(
                [
                    s and is_reread(expect_itensor(v), indexing_map, plan)
                    for v, s, indexing_map in zip(op.operands_, streamed, op.maps, strict=False)
                ]
            ),
            result=self._order(op.result),
            interval=op.interval.data,
        )

    def _transfer(self, op: itensor.LoadOp | itensor.StoreOp) -> Transfer:
        through = None if op.through is None else self.table.of(op.through)
        return Transfer(self._order(op.stream), op.layout, through)

    def _order(self, value: SSAValue) -> Order:
        return self.table.of(expect_itensor(value))

    def _orders(self, values: Sequence[SSAValue]) -> tuple[Order, ...]:
        return tuple([self._order(value) for value in values])
