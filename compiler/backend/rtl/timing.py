"""When each operation of a nest runs: the schedule's stages, given back to the operations that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation

from penstock.compiler.analysis.nests import read_nest
from penstock.compiler.backend.rtl.lane_sv import LaneSpan
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.nest_lane_op import LaneOp
from penstock.compiler.dialects.types import vector_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.operations import is_wires
from penstock.compiler.schedule import NestSchedule, OperatorLibrary, schedule_nest
from penstock.compiler.schedule.flatten import FlatStep, flatten


@dataclass
class NestTiming:
    """The schedule of one nest by operation; a reduction has a span for every level of its tree."""

    schedule: NestSchedule
    spans: dict[Operation, LaneSpan] = field(default_factory=dict[Operation, LaneSpan])
    levels: dict[Operation, list[LaneSpan]] = field(default_factory=dict[Operation, list[LaneSpan]])

    def start(self, op: Operation) -> int:
        return self.spans[op][0]


def time_nest(op: nest.NestOp, library: OperatorLibrary) -> NestTiming:
    schedule = schedule_nest(op, library)
    steps = flatten(read_nest(op), library)
    waiting = [(step, (at.start, at.end)) for step, at in zip(steps, schedule.stages, strict=True)]
    timing = NestTiming(schedule)
    waiting.reverse()

    def take(name: str) -> LaneSpan:
        step, span = waiting.pop() if waiting else (None, (0, 0))
        if not isinstance(step, FlatStep) or step.name != name:
            raise PenstockError(
                code="unsupported-nest", what=f"the schedule has no place for {name}", where=schedule.name,
                hint="this is a defect in the RTL backend; please report it",
            )  # fmt: skip
        return span

    for one in op.body.block.ops:
        match one:
            case nest.ConstantOp():
                pass
            case LaneOp() if one.built_of([0] * len(one.operands)) is None:  # wires
                pass
            case nest.MapOp():
                for scalar in one.body.block.ops:
                    if not isinstance(scalar, nest.YieldOp) and not is_wires(scalar):
                        timing.spans[scalar] = take(scalar.name)
            case nest.ReduceOp():
                combine = next(iter(one.body.block.ops))
                shape = vector_type(one.value).get_shape()
                count = sum((shape[d.data] - 1).bit_length() for d in one.dims)
                timing.levels[one] = [take(combine.name) for _ in range(count)]
            case _:
                timing.spans[one] = take(one.name)
    return timing
