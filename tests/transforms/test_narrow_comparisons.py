"""A comparison of a widened number says the same when nothing is widened, also right beside the number."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Block

from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.transforms.canonicalise import simplify
from penstock.compiler.transforms.generics import constant, scalar_constant
from penstock.compiler.transforms.simplify_bodies import compare_narrowly
from tests.frontend.models import import_module, make, seeded

NUMBERS = (20.0, 0.1, -0.1, 1e-50, -1e-50, 1e300, -1e300, 0.0, float("inf"), float("nan"))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("predicate", range(1, 14))
def test_every_predicate_beside_every_number(predicate: int, swapped: bool) -> None:
    for number in NUMBERS:
        source, fixed = AnyOp(result_types=[f32]), constant(number, f64)
        wide = arith.ExtFOp(source.results[0], f64)
        sides = (fixed.result, wide.result) if swapped else (wide.result, fixed.result)
        compare = arith.CmpfOp(*sides, predicate)
        block = Block([source, fixed, wide, compare])
        narrow = compare_narrowly(compare)
        if narrow is None:
            assert predicate in (6, 7, 8)  # of order alone, or of an equality that holds for what is unordered
            continue
        block.insert_op_after(narrow, compare)
        assert all(value.type == f32 for value in narrow.operands)
        with np.errstate(over="ignore"):
            near = np.float32(number)
            beside = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
        x = np.array([*beside, 0.0, -0.0, 1.0, np.inf, -np.inf, np.nan], np.float32)
        operands = {source.results[0]: x, fixed.result: np.array(number), wide.result: x.astype(np.float64)}
        limit = next(value for value in narrow.operands if value is not source.results[0])
        known = scalar_constant(limit)
        assert known is not None
        operands[limit] = known
        before, after = (evaluate(op, [operands[v] for v in op.operands]) for op in (compare, narrow))
        np.testing.assert_array_equal(before, after, err_msg=f"{number} {predicate}")


def test_a_softplus_needs_no_double_precision() -> None:
    program = simplify(import_module(make(lambda: nn.Sequential(nn.Linear(4, 3), nn.Softplus())), seeded((2, 4))))
    types = {str(value.type) for op in program.module.walk() for value in op.results}
    assert "f64" not in types
