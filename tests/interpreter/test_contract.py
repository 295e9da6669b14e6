"""The quick way through large products answers as the exact one, and leaves alone what is none."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter import contract as quick
from penstock.compiler.program import Program


@pytest.fixture(scope="module")
def mlp() -> Program:
    return import_model("zoo:mlp?inputs=6&hidden=5&outputs=3&batch=4")


def products(program: Program) -> list[linalg.GenericOp]:
    found = [op for op in program.module.walk() if isinstance(op, linalg.GenericOp)]
    assert found
    return found


def values_of(op: linalg.GenericOp, runs: int) -> dict[SSAValue, Array]:
    """The first operand comes in several runs, all others once."""
    random = np.random.default_rng(3)
    given: dict[SSAValue, Array] = {}
    for number, operand in enumerate(op.operands):
        assert isinstance(operand.type, TensorType)
        shape = operand.type.get_shape()
        given[operand] = random.standard_normal((runs if number == 0 else 1, *shape)).astype(np.float32)
    return given


def test_large_products_are_summed_as_numpy_does(mlp: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_LARGE", 0)
    taken = 0
    for op in products(mlp):
        values = values_of(op, 2)
        found = quick.contract(op, values)
        if found is None:
            continue
        taken += 1
        (a, b), start = (values[x].astype(np.float64) for x in op.inputs), values[op.outputs[0]]
        columns = op.indexing_maps.data[1].data.results
        reduced = op.indexing_maps.data[0].data.results[-1]
        right = b[0] if columns[0] == reduced else b[0].T
        np.testing.assert_allclose(found, a @ right + start, rtol=1e-5, atol=1e-5)
        assert found.dtype == np.float32
        assert found.shape[0] == 2
    assert taken == 2


def test_small_products_and_other_operations_go_the_exact_way(mlp: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(quick.contract(op, values_of(op, 1)) is None for op in products(mlp))
    monkeypatch.setattr(quick, "_LARGE", 0)
    others = [op for op in products(mlp) if len(op.inputs) != 2 or len(list(op.body.block.ops)) != 3]
    assert others
    assert all(quick.contract(op, values_of(op, 1)) is None for op in others)
