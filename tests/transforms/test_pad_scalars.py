"""What is said of a scalar holds for every number that it may be."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.transforms.generics import constant
from penstock.compiler.transforms.pad_scalars import FINITE, Bounds, Content, PadNumber, joined, run_body, same

PAIRS = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.MaximumfOp, arith.MinimumfOp)
SINGLES = (arith.NegfOp, math.ExpOp, math.RsqrtOp, math.SqrtOp, math.TanhOp, math.AbsFOp)
CONSTANTS = (0.0, 1.0, -1.0, 0.25, -3.0, 1e-5, 11.0, -np.inf, np.inf)
FINITE_NUMBERS = st.floats(-12, 12, width=32)
ENOUGH = 1e30
"""Beyond it, sums and products overflow, which the analysis does not look at."""


Step = tuple[int, int, int]
"""An operation, by its number, of two earlier values, by theirs."""
STEPS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8)


def build(steps: list[Step]) -> tuple[Block, list[Operation]]:
    block = Block(arg_types=[f32, f32])
    values: list[SSAValue] = list(block.args)
    ops: list[Operation] = []
    for kind, first, second in steps:
        one, other = values[first % len(values)], values[second % len(values)]
        if kind < len(PAIRS):
            op: Operation = PAIRS[kind](one, other)
        elif kind < len(PAIRS) + len(SINGLES):
            op = SINGLES[kind - len(PAIRS)](one)
        else:
            op = constant(CONSTANTS[first % len(CONSTANTS)], f32)
        block.add_op(op)
        ops.append(op)
        values.append(op.results[0])
    block.add_op(linalg.YieldOp(values[-1]))
    return block, ops


@settings(max_examples=150)
@given(steps=STEPS, first=st.sampled_from([None, *CONSTANTS]), actual=st.tuples(FINITE_NUMBERS, FINITE_NUMBERS))
@example([(12, 1, 0), (1, 1, 8), (0, 0, 0), (2, 0, 3), (8, 5, 0)], 0.0, (0.0, 0.0))  # one by the root of minus zero
def test_contents_hold(steps: list[Step], first: float | None, actual: tuple[float, float]) -> None:
    block, ops = build(steps)
    known: Content = FINITE if first is None else np.array(first, np.float32)
    contents = run_body(block, [known, FINITE])
    start = (actual[0] if first is None else first, actual[1])
    values: dict[SSAValue, PadNumber] = {}
    values |= {a: np.array(v, np.float32) for a, v in zip(block.args, start, strict=True)}
    for op in ops:
        result = values[op.results[0]] = evaluate(op, [values[o] for o in op.operands])
        assume(not (ENOUGH < abs(float(result)) < np.inf))
        match contents[op.results[0]]:
            case None:
                pass
            case Bounds(low, high):
                assert np.isfinite(result)
                rounding = 1e-5 * (1 + abs(float(result)))
                assert low - rounding <= float(result) <= high + rounding
            case number:
                assert np.array_equal(number, result, equal_nan=True)


def test_one_of_several() -> None:
    zero, one = np.array(0.0, np.float32), np.array(1.0, np.float32)
    assert same(joined([zero, zero]), zero)
    assert joined([zero, one]) == Bounds(0.0, 1.0)
    assert joined([zero, np.array(np.inf, np.float32)]) is None
    assert joined([one, FINITE]) == FINITE
