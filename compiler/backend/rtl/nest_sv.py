"""One nest as a statically scheduled pipeline: the schedule's stages, flushing, with one slot every II cycles."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Operation, SSAValue

from penstock.compiler.backend.rtl.accumulators import Accumulator, find_accumulators
from penstock.compiler.backend.rtl.handshake import ChannelSignals, Handshake
from penstock.compiler.backend.rtl.lane_sv import LaneEmitter, LaneSpan
from penstock.compiler.backend.rtl.lines import SvLines, clog2, conjunction, flat
from penstock.compiler.backend.rtl.nest_parts import NestParts
from penstock.compiler.backend.rtl.numbers import ValueRange, type_bits, type_range
from penstock.compiler.backend.rtl.primitives.registry import Primitive
from penstock.compiler.backend.rtl.scalar_sv import literal_of
from penstock.compiler.backend.rtl.scalars import LaneBody, Scalar
from penstock.compiler.backend.rtl.stages import LaneVector, lane
from penstock.compiler.backend.rtl.task_memory import TaskMemories
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.affine import coefficients, projected_dims
from penstock.compiler.dialects.nest import GuardAttr
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.dialects.types import lane_shape
from penstock.compiler.scalars.index_text import linear, total


@dataclass
class NestSv(NestParts):
    """`memories` belong to the task, whose nests share them."""

    memories: TaskMemories = field(kw_only=True)
    used: dict[str, Primitive] = field(default_factory=dict[str, Primitive])
    signals: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """To the task's channels, by when each is given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.handshake = Handshake(self.stages)
        found = find_accumulators(self.op, self.timing)
        self.accumulators: dict[Operation, Accumulator] = {one.load: one for one in found}
        self.kept: dict[Operation, LaneVector] = {}
        self.lane_emitter = LaneEmitter(
            self.timing.schedule.name,
            self.timing.spans,
            self.used,
            self.memories.tables,
            {one.combine for one in found},
        )

    def emit(self, before: str, *, starts: bool, begins: bool) -> SvLines:
        """The body first, since it says what control must provide.

        `before` is the end of what runs before; `begins` marks the task's first nest, `starts` one that also waits
        for the accelerator's start.
        """
        for op in self.op.body.block.ops:
            self._operation(op)
        self._blocks()
        head = SvLines()
        self._control(head, before, starts=starts, begins=begins)
        self.handshake.write(head, self.signals)
        self.stages.write_valid(head)
        self.stages.write(head)
        text = SvLines()
        text.add(*self.stages.declarations, "")
        if self.loops.turning:
            text.add("// loops")
            self.loops.write(text)
        text.add("", "// when each stage moves", *head.text, *self.addressing.wires)
        text.add("", "// what is computed", *self.out.text)
        return text

    # -- control

    @property
    def ended(self) -> str:
        return f"{self.stages.prefix}ended"

    def _control(self, out: SvLines, before: str, *, starts: bool, begins: bool) -> None:
        stages, loops, prefix = self.stages, self.loops, self.stages.prefix
        ii, depth = self.timing.schedule.ii, stages.depth
        active, valid = stages.declare(f"{prefix}active", 1), stages.declare(stages.valid(0), 1)
        last = loops.all_of(loops.last_of(0), f"{prefix}all_last")
        conditions = [active]
        if ii > 1:
            slot = stages.declare(f"{prefix}slot", clog2(ii))
            conditions.append(f"({slot} == 0)")
        if starts:
            first = loops.all_of(loops.first_of(0), f"{prefix}all_first")
            stages.declare("pending", 8)
            conditions.append(f"(start | (pending != 0){f' | ~{first}' if first else ''})")
            begun = conjunction([stages.valid(0), stages.go, *([first] if first else [])])
            out.add(f"always_ff @(posedge clk) pending <= rst ? '0 : pending + start - ({begun});")
        out.add(f"assign {valid} = {conjunction(conditions)};")
        stages.declare(loops.advance, 1)
        if prefix:  # else it is the task's own
            stages.declare(self.ended, 1)
        out.add(f"assign {loops.advance} = {valid} & {stages.go};")
        flag = [stages.later(last, 0, depth - 1, 1)] if last else []
        terms = [stages.valid(depth - 1), stages.fires(depth - 1), *flag]
        out.add(f"assign {self.ended} = {conjunction(terms)};")
        with out.block("always_ff @(posedge clk) begin"):
            out.add(
                f"if (rst) {active} <= 1'b{int(begins)};",
                f"else if ({before}) {active} <= 1'b1;",
                f"else if ({conjunction([loops.advance, *([last] if last else [])])}) {active} <= 1'b0;",
            )
        if ii > 1:
            with out.block("always_ff @(posedge clk) begin"):
                out.add(
                    f"if (rst | {self.ended}) {prefix}slot <= '0;",
                    f"else if ({stages.go} & ({valid} | {prefix}slot != 0)) "
                    f"{prefix}slot <= {prefix}slot == {ii - 1} ? '0 : {prefix}slot + 1'b1;",
                )

    def _due(self, stage: int, when: GuardAttr) -> str:
        flag = self.loops.guard(when, stage)
        return conjunction([self.stages.valid(stage), *([flag] if flag is not None else [])])

    # -- operations

    def _operation(self, op: Operation) -> None:
        match op:
            case nest.ReadOp():
                name, stage = self.names[op.stream], self.timing.start(op)
                self._meet(stage, op.when, f"{name}_tvalid", f"{name}_tready", offers=False)
                self.values[op.result] = self._value(op.result, f"{name}_tdata", stage)
            case nest.WriteOp():
                self._write(op)
            case nest.LoadOp():
                self._load(op)
            case nest.StoreOp():
                self._store(op)
            case nest.SelectOp():
                self._select(op)
            case nest.WithinOp():
                self._within(op)
            case nest.StackOp():
                self._stack(op)
            case nest.PickOp():
                self._pick(op)
            case nest.ConstantOp():
                literal = literal_of(op.value)
                shape = lane_shape(op.result)
                bits = type_bits(op.result.type)
                self.values[op.result] = LaneVector(
                    "", shape, prod(shape), ValueRange(literal, literal), bits, None, literal
                )
            case nest.MapOp():
                self._map(op)
            case nest.ReduceOp():
                self._reduce(op)
            case _:
                raise AssertionError(op.name)  # the dialect has no other operation in a nest

    def _meet(self, stage: int, when: GuardAttr, ready: str, signal: str, *, offers: bool) -> None:
        self.handshake.meetings.append(ChannelSignals(stage, self._due(stage, when), ready, signal, offers))

    def _value(self, value: SSAValue, name: str, stage: int | None) -> LaneVector:
        shape = lane_shape(value)
        return LaneVector(name, shape, prod(shape), type_range(value.type), type_bits(value.type), stage)

    def _write(self, op: nest.WriteOp) -> None:
        name, stage = self.names[op.stream], self.timing.start(op)
        self._meet(stage, op.when, f"{name}_tready", f"{name}_tvalid", offers=True)
        self.memories.offer(self, op, name, stage, self.loops.guard(op.when, stage))

    def _load(self, op: nest.LoadOp) -> None:
        start, end = self.timing.spans[op]
        if (one := self.accumulators.get(op)) is not None:
            ranges = {value: known.range for value, known in self.values.items()}
            shape, bits = lane_shape(op.result), type_bits(op.result.type)
            name = self.stages.fresh(self.names[op.memory])
            kept = LaneVector(name, shape, prod(shape), one.range(ranges, self.op.trips), bits, start)
            self.values[op.result] = self.kept[one.total] = kept
            return
        flag = self.loops.guard(op.when, start)
        fire = conjunction([self.stages.valid(start), *([flag] if flag else []), self.stages.fires(start)])
        self.values[op.result] = self.memories.load(self, op, (start, end), fire)

    def _store(self, op: nest.StoreOp) -> None:
        if any(one.store is op for one in self.accumulators.values()):
            return
        start = self.timing.start(op)
        flag = self.loops.guard(op.when, start)
        fire = conjunction([self.stages.valid(start), *([flag] if flag else []), self.stages.fires(start)])
        self.memories.store(self, op, start, fire)

    def _blocks(self) -> None:
        """A block is claimed by the first iteration that may meet it, and handed on by the last."""
        split = self.op.block_loops.data
        for memory, stage, writes in self._met_blocks():
            name = self.names[memory]
            first = GuardAttr(tuple(self.loops.first_of(split)))
            last = self.loops.all_of(self.loops.last_of(split), "block_last")
            self._meet(stage, first, f"{name}_free" if writes else f"{name}_full", f"{name}_claim", offers=False)
            flag = [self.stages.later(last, 0, stage, 1)] if last is not None else []
            release = conjunction([self.stages.valid(stage), *flag, self.stages.fires(stage)])
            self.signals.setdefault(f"{name}_release", []).append(release)

    def _met_blocks(self) -> list[tuple[SSAValue, int, bool]]:
        found: dict[SSAValue, tuple[int, bool]] = {}
        for op in self.op.body.block.ops:
            if isinstance(op, nest.LoadOp | nest.StoreOp) and isinstance(op.memory.type, BlocksType):
                found[op.memory] = (self.timing.start(op), isinstance(op, nest.StoreOp))
        return [(memory, *how) for memory, how in found.items()]

    def _select(self, op: nest.SelectOp) -> None:
        start, end = self.timing.spans[op]
        inside, outside = self.values[op.inside], self.values[op.outside]
        flag = self.loops.guard(op.when, start)
        if flag is None:
            self.values[op.result] = inside
            return
        shape = lane_shape(op.result)
        found = inside.range | outside.range
        name = self.stages.fresh("chosen")
        result = LaneVector(name, shape, prod(shape), found, inside.bits, start)
        self.stages.declare(name, found.width, result.lanes)
        with self.out.lanes(shape, f"{name}_lane") as index:
            at, body = flat(shape, index), LaneBody(self.stages, self.out)
            left, right = (Scalar.of(v, at).term(start, body) for v in (inside, outside))
            self.out.add(f"assign {lane(name, result.lanes, at)} = {flag} ? {left} : {right};")
        if end > start:
            delayed = self.stages.later(name, start, end, found.width, result.lanes)
            result = LaneVector(delayed, shape, result.lanes, found, inside.bits, end)
        self.values[op.result] = result

    def _within(self, op: nest.WithinOp) -> None:
        """One comparison a bound in stage 0; the lanes share its bit."""
        (_, stage), shape, name = self.timing.spans[op], lane_shape(op.result), self.stages.fresh("unpadded")
        self.stages.declare(name, 1, prod(shape))
        factors = coefficients(op.place.data.results[0], len(self.op.trips))
        for number, bound in enumerate(op.bounds):
            flag = self.loops.at_most(factors, bound, name, stage)
            self.out.add(f"assign {lane(name, prod(shape), str(number))} = {flag};")
        self.values[op.result] = LaneVector(name, shape, prod(shape), type_range(op.result.type), 1, stage)

    def _stack(self, op: nest.StackOp) -> None:
        """Wires: what comes earlier waits for the last to come."""
        values, shape, name = [self.values[v] for v in op.inputs], lane_shape(op.result), self.stages.fresh("window")
        stage = max(value.stage or 0 for value in values)
        found = ValueRange(min(v.range.low for v in values), max(v.range.high for v in values))
        self.stages.declare(name, found.width, prod(shape))
        with self.out.lanes(op.beside, f"{name}_lane") as index:
            body = LaneBody(self.stages, self.out)
            for made, number, taken in op.lanes(index):
                source = Scalar.of(values[number], flat(values[0].shape, taken))
                self.out.add(f"assign {lane(name, prod(shape), flat(shape, made))} = {source.term(stage, body)};")
        self.values[op.result] = LaneVector(name, shape, prod(shape), found, values[0].bits, stage)

    def _pick(self, op: nest.PickOp) -> None:
        """Wires."""
        value, shape, name = self.values[op.value], lane_shape(op.result), self.stages.fresh("lanes")
        start, factors = op.factors
        self.stages.declare(name, value.range.width, prod(shape))
        with self.out.lanes(shape, f"{name}_lane") as index:
            body = LaneBody(self.stages, self.out)
            source = Scalar.of(value, linear(start, factors, index))
            goal = lane(name, prod(shape), flat(shape, index))
            self.out.add(f"assign {goal} = {source.term(value.stage or 0, body)};")
        self.values[op.result] = LaneVector(
            name, shape, prod(shape), value.range, value.bits, value.stage, value.literal
        )

    def _map(self, op: nest.MapOp) -> None:
        shape, kept = lane_shape(op.result), self.kept.get(op)
        label = kept.name if kept else self.stages.fresh("map")
        block = op.body.block
        with self.out.lanes(shape, f"{label}_lane") as index:
            arguments: list[Scalar] = []
            for value, projection in zip(op.inputs, op.lanes, strict=True):
                dims = projected_dims(projection.data)
                at = ["0" if d is None else index[d] for d in dims]
                arguments.append(Scalar.of(self.values[value], flat(lane_shape(value), at)))
            body = LaneBody(self.stages, self.out)
            result = self.lane_emitter.run(block, arguments, body)
            stage = result.stage
            goal = lane(label, prod(shape), flat(shape, index))
            spelled = result.term if kept else result.text
            self.out.add(f"assign {goal} = {spelled(stage or 0, body)};")
        range_ = kept.range if kept else result.range
        self.stages.declare(label, range_.width, prod(shape))
        self.values[op.result] = LaneVector(
            label, shape, prod(shape), range_, type_bits(op.result.type), stage, result.literal
        )

    def _reduce(self, op: nest.ReduceOp) -> None:
        """A tree a dim: neighbours in pairs, an odd one out waits for the next level."""
        value = self.values[op.value]
        combine = next(iter(op.body.block.ops))
        spans = iter(self.timing.levels[op])
        for dim in (d.data for d in op.dims):
            while value.shape[dim] > 1:
                value = self._level(value, dim, op, combine, next(spans))
        self.values[op.result] = value

    def _level(self, value: LaneVector, dim: int, op: nest.ReduceOp, combine: Operation, span: LaneSpan) -> LaneVector:
        pairs, odd = divmod(value.shape[dim], 2)
        shape = tuple(pairs + odd if d == dim else s for d, s in enumerate(value.shape))
        name = self.stages.fresh("tree")
        emitter = LaneEmitter(self.lane_emitter.where, {combine: span}, self.used)
        found = value.range
        with self.out.lanes([pairs if d == dim else s for d, s in enumerate(shape)], f"{name}_lane") as index:
            body = LaneBody(self.stages, self.out)
            sides = [
                Scalar.of(value, flat(value.shape, [_pair(i, side) if d == dim else i for d, i in enumerate(index)]))
                for side in (0, 1)
            ]
            result = emitter.run(op.body.block, sides, body)
            found = result.range | (value.range if odd else result.range)
            self.out.add(f"assign {lane(name, prod(shape), flat(shape, index))} = {result.term(span[1], body)};")
        if odd:
            with self.out.lanes([1 if d == dim else s for d, s in enumerate(shape)], f"{name}_odd") as index:
                body = LaneBody(self.stages, self.out)
                source = flat(value.shape, [str(2 * pairs) if d == dim else i for d, i in enumerate(index)])
                target = flat(shape, [str(pairs) if d == dim else i for d, i in enumerate(index)])
                left = Scalar.of(value, source)
                moved = Scalar(
                    left.range, left.bits, span[0], name=body.wire("odd", left.range.width, left.text(span[0], body))
                )
                self.out.add(f"assign {lane(name, prod(shape), target)} = {moved.term(span[1], body)};")
        self.stages.declare(name, found.width, prod(shape))
        return LaneVector(name, shape, prod(shape), found, value.bits, span[1])


def _pair(index: str, side: int) -> str:
    if index == "0":
        return str(side)
    return total([f"2 * {index}", "1"]) if side else f"2 * {index}"
