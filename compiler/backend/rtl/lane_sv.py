"""Scalar bodies lane by lane: expressions with registers after them, or cores where an expression would not do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from penstock.compiler.backend.rtl.lines import bits
from penstock.compiler.backend.rtl.numbers import ValueRange, type_bits, type_range
from penstock.compiler.backend.rtl.primitives import Rom, rom_of
from penstock.compiler.backend.rtl.primitives.registry import Primitive, find_primitive
from penstock.compiler.backend.rtl.scalar_sv import (
    NUMBER_STAYS,
    SPELLINGS,
    Operands,
    literal_of,
    product_range,
    result_range,
)
from penstock.compiler.backend.rtl.scalars import LaneBody, Scalar
from penstock.compiler.backend.rtl.tables import Tables, find_tables
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.scalars.operations import row_of

LaneSpan = tuple[int, int]
"""The stage in which an operation starts, and the one in which its result is there."""


@dataclass
class LaneEmitter:
    """Writes bodies into the generate block of a lane. `spans` says when each operation that takes a step runs."""

    where: str
    spans: Mapping[Operation, LaneSpan]
    used: dict[str, Primitive] = field(default_factory=dict[str, Primitive])
    """Cores that were instantiated, by module and parameters."""
    tables: Tables | None = None
    kept: set[Operation] = field(default_factory=set[Operation])
    """Operations whose last register keeps its value while no iteration passes."""

    def run(self, block: Block, arguments: Sequence[Scalar], body: LaneBody) -> Scalar:
        values: dict[SSAValue, Scalar] = dict(zip(block.args, arguments, strict=True))
        terminator = block.last_op
        assert terminator is not None
        found, idle = find_tables(block, self.spans) if self.tables is not None else ({}, set[Operation]())
        for op in block.ops:
            if op is terminator:
                break
            if op in idle:
                continue
            if op in found:
                values[op.results[0]] = self._table(op, found[op].rom, values[found[op].argument], body)
                continue
            values[op.results[0]] = self.operation(op, [values[o] for o in op.operands], body, self.spans.get(op))
        return values[terminator.operands[0]]

    def operation(self, op: Operation, operands: Sequence[Scalar], body: LaneBody, span: LaneSpan | None) -> Scalar:
        """`span` is None for what costs nothing: constants, extensions, shifts by constants."""
        width = type_bits(op.results[0].type)
        if isinstance(op, arith.ConstantOp):
            value = literal_of(op.value)
            return Scalar(ValueRange(value, value), width, None, value)
        if isinstance(op, LookUpOp):
            return self._table(op, rom_of(op), operands[0], body)
        row = row_of(op)
        label = row.sv_label or row.label or row.name.partition(".")[2]
        if op.name == "arith.muli" and span is not None and (core := self._multiplier(operands, width, body, span)):
            found = result_range(op, product_range(operands[0].range, operands[1].range))
            return self._instance(core, op, operands, body, span, label, found)
        core = None if span is None else self._core(op, operands, span)
        if core is not None and span is not None:
            return self._instance(core, op, operands, body, span, label, type_range(op.results[0].type))
        spell = SPELLINGS.get(op.name)
        if spell is None:
            raise PenstockError(
                code="unsupported-op", what=f"the RTL backend cannot write {op.name}", where=self.where,
                limit="it writes " + ", ".join(sorted(SPELLINGS)) + " and what has a core",
            )  # fmt: skip
        stage = span[0] if span is not None else max((s.stage for s in operands if s.stage is not None), default=None)
        latency = span[1] - span[0] if span is not None else 0
        early = 1 if op.name == "arith.muli" and latency > 1 else 0  # operands into registers first
        expression, found = spell(Operands(op, operands, (stage or 0) + early, body))
        range_ = result_range(op, found)
        if op.name in NUMBER_STAYS and range_ == operands[0].range:
            return replace(operands[0], bits=width)
        if latency == early:
            name = body.wire(label, range_.width, expression)
            return Scalar(range_, width, stage if stage is None else stage + early, name=name)
        assert stage is not None
        assert span is not None
        name = body.fresh(label)
        first = stage + early
        for s in range(first, span[1]):
            last = s == span[1] - 1
            target = name if last else body.fresh(f"{label}_in{s + 1}")
            also = f"{body.stages.valid(s)} & {body.stages.fires(s)}" if last and op in self.kept else ""
            body.register(target, range_.width, expression, s, also)
            expression = target
        return Scalar(range_, width, span[1], name=name)

    def _table(self, op: Operation, rom: Rom, argument: Scalar, body: LaneBody) -> Scalar:
        """A look-up that is there when the operation's result would be; until then its operand waits."""
        assert self.tables is not None
        end = self.spans[op][1]
        module, width = self.tables.module(rom), rom.output_bits
        name = body.fresh("entry")
        operand = argument.pattern(end - 1, body, rom.input_bits)
        enable = body.stages.enable(end - 1)
        body.out.add(
            f"wire {bits(width)}{name};  // {op.name} and what leads to it, stage {end - 1} to {end}",
            f"{module} {name}_table (.clk(clk), .ce({enable}), .a({operand}), .y({name}));",
        )
        kind = type_range(op.results[0].type)
        return Scalar(kind, type_bits(op.results[0].type), end, name=name)

    def _multiplier(self, operands: Sequence[Scalar], width: int, body: LaneBody, span: LaneSpan) -> Primitive | None:
        """A product's core: as wide as the numbers are, if it then has the schedule's stages and one clock enable."""
        if any(o.literal is not None for o in operands) or span[0] < body.stages.front < span[1]:
            return None
        a, b = (o.range.width + (not o.range.signed) for o in operands)
        if max(a, b) > 64:
            return None
        core = find_primitive("arith.muli", (f"i{a}", f"i{b}"), f"i{min(a + b, width)}")
        return core if core.latency == span[1] - span[0] else None

    def _core(self, op: Operation, operands: Sequence[Scalar], span: LaneSpan) -> Primitive | None:
        if op.name in SPELLINGS:
            return None
        name, types = op.name, tuple(str(o.type) for o in op.operands)
        if name == "arith.divf" and operands[0].literal == literal_one(operands[0].bits):
            # a one that comes from elsewhere is a literal here, and was none where the stages were counted
            core = find_primitive("reciprocal", types[1:], str(op.results[0].type))
            if core.latency == span[1] - span[0]:
                return core
        attributes = {"predicate": str(op.predicate.value.data)} if isinstance(op, arith.CmpfOp) else {}
        try:
            return find_primitive(name, types, str(op.results[0].type), attributes)
        except PenstockError as error:
            raise PenstockError(
                code=error.code, what=error.what, where=self.where, limit=error.limit, hint=error.hint
            ) from error

    def _instance(
        self, core: Primitive, op: Operation, operands: Sequence[Scalar], body: LaneBody, span: LaneSpan, label: str,
        range_: ValueRange,
    ) -> Scalar:  # fmt: skip
        start, end = span
        if core.latency != end - start:
            raise PenstockError(
                code="bad-operator-library", what=f"{op.name} has {core.latency} stages",
                where=self.where, limit=f"the library says {end - start}", hint="use the cores' own operator library",
            )  # fmt: skip
        if start < body.stages.front < end:
            raise PenstockError(
                code="unsupported-nest", what=f"{op.name} begins before the last read and ends after it",
                where=self.where, limit="a core has one clock enable", hint="read all streams before computing",
            )  # fmt: skip
        if len(core.inputs) < len(operands):
            operands = operands[-len(core.inputs) :]
        width = type_bits(op.results[0].type)
        name = body.fresh(label)
        parameters = ", ".join(f".{key}({value})" for key, value in core.parameters.items())
        pins = [f".{pin}({o.pattern(start, body, n)})" for pin, o, n in zip("abc", operands, core.inputs, strict=False)]
        body.out.add(f"wire {bits(range_.width)}{name};  // stage {start} to {end}")
        head = f"{core.module} #({parameters})" if parameters else core.module
        enable = body.stages.enable(start)
        body.out.add(f"{head} {name}_core (.clk(clk), .ce({enable}), {', '.join(pins)}, .y({name}));")
        self.used.setdefault(f"{core.module} {parameters}", core)
        return Scalar(range_, width, end, name=name)


def literal_one(width: int) -> int:
    return {16: 0x3C00, 32: 0x3F800000, 64: 0x3FF0000000000000}.get(width, -1)
