"""Builds the one nest of a compute task: read at first use, keep for reuse, accumulate, write at the last step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Block, Region
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from penstock.compiler.analysis.loops import LoopPlan, OperandAccess
from penstock.compiler.analysis.nests import (
    Constant,
    Load,
    Map,
    NestFacts,
    NestValue,
    Other,
    Place,
    Read,
    Reduce,
    Select,
    Statement,
    StoreFact,
)
from penstock.compiler.analysis.tasks import Computation, starts_neutral
from penstock.compiler.dialects import itensor, nest
from penstock.compiler.dialects.affine import projected_dims
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr
from penstock.compiler.plan.converter_nests import push


@dataclass(frozen=True)
class Source:
    """Where an operand comes from: a ROM, or a FIFO that sends it once or, `reread`, for every tile."""

    place: Place
    reread: bool = False


def build_compute_nest(
    computation: Computation,
    plan: LoopPlan,
    sources: Sequence[Source],
    outputs: Sequence[Place],
    bindings: Mapping[str, str],
    interval: int = 1,
) -> NestFacts:
    """The nest of a computation under a schedule."""
    builder = _NestBuilder(computation, plan)
    lanes = [builder.operand(i, source) for i, source in enumerate(sources)]
    result = builder.elementwise(lanes) if computation.init is None else builder.accumulate(lanes, computation.init)
    builder.finish(result, outputs)
    return NestFacts("compute", plan.loops, builder.statements, bindings=bindings, interval=interval)


@dataclass
class _NestBuilder:
    computation: Computation
    plan: LoopPlan
    statements: list[Statement] = field(default_factory=list[Statement])

    def __post_init__(self) -> None:
        self.maps, self.dtype = self.computation.maps, self.computation.dtype
        self.result_access = self.plan.result(self.maps[-1])

    def operand(self, index: int, source: Source) -> NestValue:
        """This iteration's lanes of one operand."""
        place = source.place
        access = self.plan.operand(self.maps[index], reread=source.reread)
        if place.kind == "rom":
            lanes = NestValue(access.element, place.dtype)
            self.statements.append(Load(place, access.offset, ALWAYS, lanes))
            return lanes
        guard = GuardAttr(access.guard)
        token = NestValue(place.shape, place.dtype)
        self.statements.append(Read(place, guard, token))
        if not access.reused:
            return token
        keep = Place(f"keep_{index}", "buffer", access.kept, place.dtype)
        kept, chosen = NestValue(place.shape, place.dtype), NestValue(place.shape, place.dtype)
        self.statements += [
            Load(keep, access.address, ALWAYS, kept),
            Select(token, kept, guard, chosen),
            StoreFact(token, keep, access.address, guard),
        ]
        return chosen

    def elementwise(self, lanes: list[NestValue]) -> NestValue:
        """The body once a lane, in the lane space of the result."""
        place = {d: i for i, d in enumerate(projected_dims(self.maps[-1])) if d is not None}
        rank = len(self.result_access.element)
        projections = [_reproject(m, place, rank) for m in self.maps[:-1]]
        for one in self.computation.bounds:
            lanes.append(self._within(one))
            projections.append(AffineMap(rank, 0, (AffineDimExpr(place[one.loop.data]),)))
        result = NestValue(self.result_access.element, self.dtype)
        self.statements.append(Map(tuple(lanes), tuple(projections), result, self.computation.body))
        return result

    def accumulate(self, lanes: list[NestValue], init: Attribute) -> NestValue:
        """Body over all lanes, tree over the reduced ones, then onto the partial result."""
        combine, unroll = self.computation.combine, self.plan.unroll
        assert combine is not None
        projections, rank = list(self.maps[:-1]), len(unroll)
        for one in self.computation.bounds:
            lanes.append(self._within(one))
            projections.append(AffineMap(rank, 0, (AffineDimExpr(one.loop.data),)))
        products = reduced = NestValue(unroll, self.dtype)
        self.statements.append(Map(tuple(lanes), tuple(projections), products, self.computation.body))
        reductions = self.plan.reductions
        if any(unroll[d] > 1 for d in reductions):
            reduced = NestValue(tuple([1 if d in reductions else s for d, s in enumerate(unroll)]), self.dtype)
            self.statements.append(Reduce(products, tuple(sorted(reductions)), reduced, combine))

        access = self.result_access
        if not access.reused and starts_neutral(combine.block, init):
            return self._reshaped(reduced, access, rank)
        previous = start = NestValue(access.element, self.dtype)
        self.statements.append(Constant(init, start))
        acc = Place("acc", "buffer", access.kept, self.dtype) if access.reused else None
        if acc is not None:
            stored, previous = NestValue(access.element, self.dtype), NestValue(access.element, self.dtype)
            self.statements.append(Load(acc, access.address, ALWAYS, stored))
            self.statements.append(Select(start, stored, GuardAttr(self.plan.reduction_starts), previous))
        total = NestValue(access.element, self.dtype)
        self.statements.append(Map((previous, reduced), self._onto(access, rank), total, combine))
        if acc is not None:
            self.statements.append(StoreFact(total, acc, access.address, ALWAYS))
        return total

    def _reshaped(self, reduced: NestValue, access: OperandAccess, rank: int) -> NestValue:
        """All terms at once are the result: nothing is added to a start."""
        block = Block(arg_types=[self.dtype])
        block.add_op(nest.YieldOp(block.args[0]))
        result = NestValue(access.element, self.dtype)
        self.statements.append(Map((reduced,), self._onto(access, rank)[1:], result, Region(block)))
        return result

    def finish(self, value: NestValue, outputs: Sequence[Place]) -> None:
        self.statements += push(value, outputs, GuardAttr(self.result_access.guard))

    def _onto(self, access: OperandAccess, rank: int) -> tuple[AffineMap, AffineMap]:
        """The lanes of the partial result, and of what is added to it, in the lane space of the result."""
        lanes = len(access.element)
        place = {d: i for i, d in enumerate(projected_dims(self.maps[-1])) if d is not None}
        spread = [AffineDimExpr(place[d]) if d in place else AffineConstantExpr(0) for d in range(rank)]
        return AffineMap.identity(lanes), AffineMap(lanes, 0, tuple(spread))

    def _within(self, one: itensor.WithinOp) -> NestValue:
        loop = one.loop.data
        place = AffineMap(len(self.plan.steps), 0, (self.plan.place(loop),))
        op = nest.WithinOp(place, one.size.data, self.plan.unroll[loop])
        answers = NestValue((self.plan.unroll[loop],), op.result.type.element_type)
        self.statements.append(Other(op, (), answers))
        return answers


def _reproject(indexing_map: AffineMap, place: dict[int, int], rank: int) -> AffineMap:
    """An operand's map over iteration dims, rewritten over the lanes of the result.

    A dim that the result does not have is a loop of one trip, along which a tensor of one element is read.
    """
    dims = projected_dims(indexing_map)
    results = [AffineConstantExpr(0) if d is None or d not in place else AffineDimExpr(place[d]) for d in dims]
    return AffineMap(rank, 0, tuple(results))
