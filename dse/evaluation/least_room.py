"""What every design of a model needs, however slow it is: found before a search tries many that cannot fit.

A kernel of its own for every operation, one lane each, no converters and no FIFOs; weights that must lie on the chip at
their own bits, in whatever memory it has. What this calls too large is; what it lets pass may still not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Operation, OpResult, SSAValue

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.dialects.scaling import scaling_of
from penstock.compiler.dialects.types import tensor_bits, tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Resources
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.scalars.operations import is_constant
from penstock.dse.evaluation.evaluate import Evaluator

_ROWS: dict[type[Operation], set[str]] = {
    arith.MulfOp: {"arith.mulf"}, arith.AddfOp: {"arith.addf"}, arith.MuliOp: {"arith.muli", "mac"},
}  # fmt: skip
"""Operations that are built as what they are, and the rows of the operator library that they may be built by."""
_LUT_BITS = 64


@dataclass(frozen=True)
class LeastNeed:
    """So much of something every design takes; `why` says what of the model asks for it."""

    what: str
    needed: float
    available: float
    why: str
    hint: str
    of: tuple[str, ...] = ()
    """The resources that a user may limit."""

    @property
    def short(self) -> bool:
        return self.needed > self.available


def check_room(evaluator: Evaluator) -> None:
    """An error that names what is short whatever the design, by how much, and why."""
    missing = [need for need in least_needs(evaluator) if need.short]
    if not missing:
        return
    worst = max(missing, key=lambda need: need.needed / max(need.available, 1e-9))
    asked = [one.text for one in evaluator.goal.limits if one.sense == "<=" and one.name in worst.of and one.bound < 1]
    limit, hint = f"{evaluator.platform.title} has {worst.available:,.0f}", worst.hint
    if asked:  # the platform may have enough
        limit, hint = f"asked for was {' and '.join(asked)}", "relax the limit, or quantise with w8a8"
    raise PenstockError(
        code="does-not-fit", what=f"no design fits: {worst.why} at least {worst.needed:,.0f} {worst.what}",
        where=evaluator.program.name, limit=limit, hint=hint,
    )  # fmt: skip


def least_needs(evaluator: Evaluator) -> list[LeastNeed]:
    """Of everything that a platform has a budget of."""
    caps = evaluator.may_use
    return [*_of_operators(evaluator, caps), *_of_weights(evaluator, caps), *_of_external_memory(evaluator)]


def _of_operators(evaluator: Evaluator, caps: Resources) -> Iterator[LeastNeed]:
    library = evaluator.assembler.library
    operations = evaluator.space.graph.operations
    needed = {"dsp": 0, "lut": library.control.lut * len(operations), "ff": library.control.ff * len(operations)}
    both = 0.0
    for operation in operations:
        for ways in _operators(operation, evaluator):
            for name in needed:
                needed[name] += min(way.as_dict()[name] for way in ways)
            both += min(way.dsp / max(caps.dsp, 1e-9) + way.lut / max(caps.lut, 1e-9) for way in ways)
    why = f"its {len(operations)} kernels with one lane each take"
    hint = "choose a larger platform, or quantise with w8a8"
    for name, count in needed.items():
        yield LeastNeed(name, count, caps.as_dict()[name], why, hint, (name,))
    # of a share of both, one has to bear at least half
    yield LeastNeed("% of the DSPs or of the LUTs", 50 * both, 100, why, hint, ("dsp", "lut"))


def _operators(operation: TensorOp, evaluator: Evaluator) -> Iterator[list[Resources]]:
    """Of each operator of one lane that is there in any design: what every way to build it takes, at its smallest."""
    last = operation.op.body.block.last_op
    result = None if last is None else last.operands[0]
    terms = prod(operation.trips[d] for d in operation.reductions)
    for inner in operation.op.body.block.ops:
        names = _ROWS.get(type(inner), set[str]())
        if not names or any(is_constant(operand) for operand in inner.operands) or scaling_of(inner) is not None:
            continue
        if terms <= 1 and _makes(inner, result):
            continue  # a sum of one term needs no adder
        ways = [row.area(1) for row in evaluator.assembler.library.operators if names.intersection(row.ops)]
        if ways:
            yield ways


def _makes(inner: Operation, value: SSAValue | None) -> bool:
    return isinstance(value, OpResult) and value.op is inner


def _of_weights(evaluator: Evaluator, caps: Resources) -> Iterator[LeastNeed]:
    """Weights that lie on the chip: in its memories, in LUTs and registers, or as constants of lanes of their own."""
    graph, space = evaluator.space.graph, evaluator.space
    if space.weights != "rom" or space.options.kernels:
        return
    weights = [value for value in graph.arguments if graph.is_param(value)]
    bits = sum(map(tensor_bits, weights))
    widest = max((type_bits(tensor_type(value)) for value in weights), default=0)
    holds = caps.memory_bits + caps.lut * _LUT_BITS + caps.ff
    larger = "choose a platform with external memory, or a larger one"
    quantise = f"quantise with w8a8, {larger}" if evaluator.quantize is None else larger
    yield LeastNeed(
        "KiB on the chip", bits / 8192, (holds + space.max_lanes * widest) / 8192, "its weights take", quantise
    )


def _of_external_memory(evaluator: Evaluator) -> Iterator[LeastNeed]:
    graph, memory = evaluator.space.graph, evaluator.platform.fastest_memory
    if memory is None or evaluator.platform.has_array_arguments:
        return
    there = [value for value in graph.arguments if evaluator.space.weights == "stream" or not graph.is_param(value)]
    bits = sum(map(tensor_bits, (*there, *graph.returned)))
    yield LeastNeed(
        f"MB of {memory.name}", bits / 8e6, memory.gigabytes * 1000, "its inputs, weights and results take",
        "quantise with w8a8, or choose a larger platform",
    )  # fmt: skip
