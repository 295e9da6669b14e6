"""Functions of a sum, as activations behind a layer are, in integers: the sum is rounded to 256 levels, then looked up.

The levels lie where the function is not the same for all: what an activation makes of numbers far below zero has none.
So its operand is rounded about as finely as its result, and where that would cost more than a step of the result, as it
does where a function is steep, the operation computes in f32 as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import IntegerType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.look_up import LookUpOp, entries_of, every_index
from penstock.compiler.scalars.operations import evaluate, evaluate_chain, is_constant, is_scalar_op
from penstock.compiler.transforms.chains import chain_between, leaves_chain
from penstock.compiler.transforms.generics import body_ops, yielded
from penstock.compiler.transforms.quantiser import LEVELS, Quantiser

MOST_STEPS = 1.0
"""Of the result, by which rounding a function's operand may change it anywhere."""
_GRID = 1 << 13
_FINE = 15
"""Bits without sign of an entry that goes on into a sum."""


@dataclass(frozen=True)
class TabulatedFunction:
    """`made` follows from `source` alone. Integer x in -128 .. 127 stands for `step` * x + `centre`."""

    source: SSAValue
    made: SSAValue
    step: float
    centre: float
    entries: tuple[int, ...]
    scale: float
    """Of an entry."""
    width: int

    def look_up(self, index: SSAValue) -> LookUpOp:
        return LookUpOp(index, self.entries, IntegerType(self.width))


def find_functions(state: Quantiser, op: linalg.GenericOp, steps: Array) -> Mapping[SSAValue, TabulatedFunction]:
    """The values of a body that are looked up, by the value; a result has these steps, one or one a channel.

    Channels have no tables of their own: what is looked up must do for the finest, and goes on to be narrowed.
    """
    step = float(steps.flat[0]) if steps.size == 1 else None
    finest = None if step is not None else float(np.min(steps))
    sources, known = _sources(op), _known(state, op)
    found: dict[SSAValue, TabulatedFunction] = {}
    for inner in body_ops(op):
        value = inner.results[0]
        source = sources.get(value)
        if source is None or source is value or not leaves_chain(value, source, sources):
            continue
        chain = chain_between(op, source, value)
        if not any(map(_is_curved, chain)) or _is_small(state, op, source) or source in known:
            continue
        reach = _reach(state, op, source, found)
        if reach is None or reach == 0.0:
            continue
        made = _tabulated(source, value, chain, reach, step if value is yielded(op) else None, finest)
        if made is not None:
            found[value] = made
    return found


def needed_ops(
    op: linalg.GenericOp, functions: Mapping[SSAValue, TabulatedFunction], wanted: SSAValue
) -> list[Operation]:
    """What of a body leads to a value, in order; what leads to a function's operand is the function's own."""
    needed: set[SSAValue] = set()
    waiting = [wanted]
    while waiting:
        value = waiting.pop()
        if value not in needed:
            needed.add(value)
            made = value.owner
            waiting += made.operands if isinstance(made, Operation) and value not in functions else ()
    return [inner for inner in body_ops(op) if inner.results[0] in needed]


def _sources(op: linalg.GenericOp) -> dict[SSAValue, SSAValue]:
    """The last value that each value follows from alone, constants apart."""
    sources: dict[SSAValue, SSAValue] = {a: a for a in op.body.block.args[: len(op.inputs)]}
    for inner in body_ops(op):
        value, given = inner.results[0], [x for x in inner.operands if not is_constant(x)]
        if given and is_scalar_op(inner):
            alone = {sources.get(x) for x in given}
            source = alone.pop() if len(alone) == 1 else None
            sources[value] = value if source is None else source
    return sources


def _is_curved(op: Operation) -> bool:
    """Whether it has no integer form of its own: a function, or a product or quotient of numbers that vary."""
    if isinstance(op, arith.MulfOp):
        return not any(map(is_constant, op.operands))
    if isinstance(op, arith.DivfOp):
        return not is_constant(op.rhs)
    return op.name.startswith(f"{math_dialect.Math.name}.")


def _is_small(state: Quantiser, op: linalg.GenericOp, source: SSAValue) -> bool:
    """Whether it has eight bits already: then its table is exact (`TabulateFunctions`)."""
    if not isinstance(source, BlockArgument):
        return False
    value = op.inputs[source.index]
    code = None if state.editor.is_param(value) else state.codes[state.values[value]]
    return code is None or code.width <= 8


def _known(state: Quantiser, op: linalg.GenericOp) -> set[SSAValue]:
    """What follows from parameters and constants alone: what is made of it does so too, and needs no table."""
    inputs = zip(op.body.block.args, op.inputs, strict=False)  # the last argument is the result's
    found: set[SSAValue] = {argument for argument, value in inputs if state.editor.is_param(value)}
    for inner in body_ops(op):
        if is_constant(inner.results[0]) or (inner.operands and found.issuperset(inner.operands)):
            found.update(inner.results)
    return found


def _reach(
    state: Quantiser, op: linalg.GenericOp, value: SSAValue, functions: Mapping[SSAValue, TabulatedFunction]
) -> float | None:
    """No number of a value is larger in magnitude, as far as was measured of what it is the sum of."""
    if value in functions:
        return max(map(abs, functions[value].entries)) * functions[value].scale
    if isinstance(value, BlockArgument):
        given = op.inputs[value.index]
        if state.editor.is_param(given):
            return float(max(np.max(np.abs(row), initial=0.0) for row in state.rows(given)))
        code = state.codes[state.values[given]]
        held = None if code is None else float(np.max(code.scale)) * code.bound
        return state.ranges.get(given, held)
    if is_constant(value):
        assert isinstance(value.owner, Operation)
        return float(np.abs(evaluate(value.owner, [])))
    made = value.owner
    assert isinstance(made, Operation)
    known = [_reach(state, op, operand, functions) for operand in made.operands]
    parts = [one for one in known if one is not None]
    if len(parts) < len(known):
        return None
    match made:
        case arith.AddfOp() | arith.SubfOp():
            return sum(parts)
        case arith.MulfOp():
            return parts[0] * parts[1]
        case arith.NegfOp() | arith.MaximumfOp() | arith.MinimumfOp():
            return max(parts)
        case _:
            return None


def _tabulated(
    source: SSAValue, value: SSAValue, chain: Sequence[Operation], reach: float, step: float | None,
    finest: float | None,
) -> TabulatedFunction | None:  # fmt: skip
    """The function's table; None where 256 levels of its operand are too few. Without a `step` it goes into a sum."""

    def real(numbers: Array) -> Array | None:
        try:
            made = evaluate_chain(chain, {source: numbers.astype(np.float32)})[value]
        except PenstockError:
            return None
        found = np.broadcast_to(made, numbers.shape).astype(np.float64)
        return found if np.all(np.isfinite(found)) else None

    grid = np.linspace(-reach, reach, _GRID + 1)
    there = real(grid)
    if value.type != f32 or there is None:
        return None
    largest = float(np.max(np.abs(there)))
    seen = step or finest or largest / LEVELS
    if not seen:
        return None
    limit = LEVELS if finest is None else largest / seen  # coarser channels use all of it
    codes = np.rint(np.clip(there / seen, -limit - 1, limit))
    changes = np.flatnonzero(np.diff(codes))
    if not len(changes):
        return None
    low, high = float(grid[changes[0]]), float(grid[changes[-1] + 1])
    fine, centre = (high - low) / 255, low + (high - low) / 255 * 128
    levels = np.arange(-128, 128) * fine + centre
    at, edges = real(levels), real(np.append(levels - fine / 2, levels[-1] + fine / 2))
    if at is None or edges is None or _steps(at / seen, edges / seen, limit) > MOST_STEPS:
        return None
    width, scale = (8, seen) if step else (_FINE + 1, largest / ((1 << _FINE) - 1))
    most = (1 << (width - 1)) - 1
    numbers = np.rint(np.clip(at / scale, -most - 1, most)).astype(np.int64)
    entries = entries_of(numbers[every_index(IntegerType(8)).astype(np.int64) + 128])
    return TabulatedFunction(source, value, fine, centre, entries, scale, width)


def _steps(at: Array, edges: Array, limit: float) -> float:
    """The largest difference between a level's entry and what lies at the ends of its stretch, within the clamp."""
    here, limited = (np.clip(x, -limit - 1, limit) for x in (at, edges))
    return float(np.max(np.abs([here - limited[:-1], here - limited[1:]])))
