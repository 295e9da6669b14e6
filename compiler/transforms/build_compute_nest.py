"""Builds the one nest of a compute task: read at first use, keep for reuse, accumulate, write at the last step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from compiler.analysis.loops import Access, LoopPlan
from compiler.analysis.tasks import is_reread, lift_bounds, split_reduction, task_plan
from compiler.dialects import itensor, nest, stream
from compiler.dialects.affine import projected_dims
from compiler.dialects.itensor import ITensorType
from compiler.dialects.nest import ALWAYS, GuardAttr
from compiler.dialects.types import tensor_type, vector_type
from compiler.transforms.build_converter_nests import push
from compiler.transforms.names import c_name


def build_compute_nest(
    task: itensor.TaskOp, streams: dict[int, SSAValue], roms: dict[int, str], outputs: Sequence[SSAValue]
) -> tuple[list[Operation], nest.NestOp]:
    """The memories and the nest. `streams` and `roms` say where each operand comes from."""
    builder = _NestBuilder(task, task_plan(task))
    lanes = [builder.operand(i, streams.get(i), roms.get(i)) for i in range(len(task.operands_))]
    result = builder.accumulate(lanes) if task.init is not None else builder.elementwise(lanes)
    builder.finish(result, outputs)
    return builder.memories, nest.NestOp("compute", builder.plan.loops, Region(builder.block), bindings=task.bindings)


@dataclass
class _NestBuilder:
    task: itensor.TaskOp
    plan: LoopPlan

    def __post_init__(self) -> None:
        self.memories: list[Operation] = []
        self.block = Block()
        self.maps = self.task.maps
        self.result_access = self.plan.result(self.maps[-1])
        kind = self.task.result.type
        assert isinstance(kind, ITensorType)
        self.dtype = kind.dtype

    def operand(self, index: int, fifo: SSAValue | None, rom: str | None) -> SSAValue:
        """This iteration's lanes of one operand."""
        if rom is not None:
            return self._rom(index, rom)
        assert fifo is not None
        access = self.plan.operand(self.maps[index], reread=is_reread(self.task, index, self.plan))
        guard = GuardAttr(access.guard)
        token = nest.ReadOp(fifo, guard)
        self.block.add_op(token)
        if not access.reused:
            return token.result
        keep = self._buffer(f"keep_{index}", access, token.result.type)
        kept = self._load(keep, access, token.result.type)
        chosen = nest.SelectOp(token.result, kept, guard)
        self.block.add_ops([chosen, nest.StoreOp(token.result, keep, access.address, guard)])
        return chosen.result

    def _rom(self, index: int, parameter: str) -> SSAValue:
        kind = tensor_type(self.task.operands_[index])
        access = self.plan.operand(self.maps[index])
        dtype = kind.element_type
        rom = stream.RomOp(f"rom_{index}", parameter, MemRefType(dtype, kind.get_shape()))
        rom.result.name_hint = c_name(parameter)
        self.memories.append(rom)
        load = nest.LoadOp(rom.result, access.offset, ALWAYS, VectorType(dtype, access.element))
        self.block.add_op(load)
        return load.result

    def elementwise(self, lanes: list[SSAValue]) -> SSAValue:
        """The body once a lane, in the lane space of the result."""
        place = {d: i for i, d in enumerate(projected_dims(self.maps[-1])) if d is not None}
        space = VectorType(self.dtype, self.result_access.element)
        projections = [_reproject(m, place, len(self.result_access.element)) for m in self.maps[:-1]]
        body = _copy_body(self.task.body.block)
        for one in lift_bounds(body):
            lanes.append(self._within(one))
            dim = place[one.loop.data]
            projections.append(AffineMap(len(self.result_access.element), 0, (AffineDimExpr(dim),)))
        return self._add(nest.MapOp(lanes, projections, space, body))

    def accumulate(self, lanes: list[SSAValue]) -> SSAValue:
        """Body over all lanes, tree over the reduced ones, then onto the partial result."""
        combine, partial = split_reduction(self.task)
        unroll, rank = list(self.plan.unroll), len(self.plan.unroll)
        space = VectorType(self.dtype, unroll)
        projections = list(self.maps[:-1])
        for one in lift_bounds(partial):
            lanes.append(self._within(one))
            projections.append(AffineMap(rank, 0, (AffineDimExpr(one.loop.data),)))
        products = self._add(nest.MapOp(lanes, projections, space, partial))
        reduced = products
        if any(unroll[d] > 1 for d in self.plan.reductions):
            reduced = self._add(nest.ReduceOp(products, sorted(self.plan.reductions), combine.clone()))

        access = self.result_access
        result = VectorType(self.dtype, access.element)
        assert self.task.init is not None
        start = self._add(nest.ConstantOp(self.task.init, result))
        previous, memory = start, None
        if access.reused:
            memory = self._buffer("acc", access, result)
            stored = self._load(memory, access, result)
            previous = self._add(nest.SelectOp(start, stored, GuardAttr(self.plan.reduction_starts)))
        place = {d: i for i, d in enumerate(projected_dims(self.maps[-1])) if d is not None}
        whole = AffineMap.identity(len(access.element))
        spread = AffineMap(len(access.element), 0, tuple(
            AffineDimExpr(place[d]) if d in place else AffineConstantExpr(0) for d in range(rank)
        ))  # fmt: skip
        total = self._add(nest.MapOp([previous, reduced], [whole, spread], result, combine))
        if memory is not None:
            self.block.add_op(nest.StoreOp(total, memory, access.address, ALWAYS))
        return total

    def finish(self, value: SSAValue, outputs: Sequence[SSAValue]) -> None:
        self.block.add_ops(push(value, outputs, GuardAttr(self.result_access.guard)))

    def _within(self, one: itensor.WithinOp) -> SSAValue:
        loop = one.loop.data
        place = AffineMap(len(self.plan.steps), 0, (self.plan.place(loop),))
        return self._add(nest.WithinOp(place, one.size.data, self.plan.unroll[loop]))

    def _buffer(self, name: str, access: Access, lanes: Attribute) -> SSAValue:
        buffer = stream.BufferOp(name, MemRefType(vector_type(lanes).element_type, list(access.kept)))
        buffer.result.name_hint = name
        self.memories.append(buffer)
        return buffer.result

    def _load(self, memory: SSAValue, access: Access, lanes: Attribute) -> SSAValue:
        return self._add(nest.LoadOp(memory, access.address, ALWAYS, vector_type(lanes)))

    def _add(self, op: Operation) -> OpResult:
        self.block.add_op(op)
        return op.results[0]


def _copy_body(source: Block) -> Region:
    block = Block(arg_types=[a.type for a in source.args])
    mapping: dict[SSAValue, SSAValue] = dict(zip(source.args, block.args, strict=True))
    for op in source.ops:
        if isinstance(op, itensor.YieldOp):
            block.add_op(nest.YieldOp(mapping[op.values[0]]))
        else:
            block.add_op(op.clone(mapping))
    return Region(block)


def _reproject(indexing_map: AffineMap, place: dict[int, int], rank: int) -> AffineMap:
    """An operand's map over iteration dims, rewritten over the lanes of the result.

    A dim that the result does not have is a loop of one trip, along which a tensor of one element is read.
    """
    dims = projected_dims(indexing_map)
    results = [AffineConstantExpr(0) if d is None or d not in place else AffineDimExpr(place[d]) for d in dims]
    return AffineMap(rank, 0, tuple(results))
