"""The tensor interpreter: order of sums, many runs at once, rows, and its refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.parser import Parser

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter import points
from penstock.compiler.interpreter.linalg import run, run_many, run_rows
from penstock.compiler.interpreter.rows import join_rows, split_rows
from penstock.compiler.program import Port, Program, Quantisation, Signature

SUM = """
func.func @main(%x: tensor<{n}xf32> {{penstock.name = "x", penstock.kind = "input"}}) -> tensor<1xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<{n}xf32>) outs(%f : tensor<1xf32>) {{
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  }} -> tensor<1xf32>
  func.return %r : tensor<1xf32>
}}
"""

PRODUCT = """
func.func @main(%x: tensor<2x3xi8> {penstock.name = "x", penstock.kind = "input"},
                %w: tensor<3x4xi8> {penstock.name = "w", penstock.kind = "param"}) -> tensor<2x4xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<2x4xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<2x4xi32>) -> tensor<2x4xi32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>,
                       affine_map<(d0, d1, d2) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x3xi8>, tensor<3x4xi8>) outs(%f : tensor<2x4xi32>) {
  ^bb0(%a: i8, %b: i8, %s: i32):
    %p = arith.extsi %a : i8 to i32
    %q = arith.extsi %b : i8 to i32
    %m = arith.muli %p, %q : i32
    %t = arith.addi %s, %m : i32
    linalg.yield %t : i32
  } -> tensor<2x4xi32>
  func.return %r : tensor<2x4xi32>
}
"""


def program(text: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], **params: Any) -> Program:
    return Program("p", Parser(make_context(), text).parse_module(), params, Signature(inputs, outputs))


def sum_of(count: int) -> Program:
    return program(SUM.format(n=count), (Port("x", (count,), "float32"),), (Port("y", (1,), "float32"),))


def product() -> Program:
    weights = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    quant = Quantisation(0.5, "int8")
    inputs, outputs = Port("x", (2, 3), "int8", quant), Port("y", (2, 4), "int32", Quantisation(0.25, "int32"))
    return program(PRODUCT, (inputs,), (outputs,), w=weights)


def test_float_sums_run_from_first_to_last() -> None:
    numbers = np.array([1e8, 1.0, -1e8, 1.0], np.float32)  # any other order gives another result
    (total,) = run(sum_of(4), [numbers])
    assert total.tolist() == [1.0]
    (total,) = run(sum_of(4), [numbers[[0, 2, 1, 3]]])
    assert total.tolist() == [2.0]


@pytest.mark.parametrize("elements", [1, 30])
def test_terms_worked_out_at_once_change_no_bit(monkeypatch: pytest.MonkeyPatch, elements: int) -> None:
    """All points of the sum at once, in parts of which the last is shorter, and one after the other."""
    numbers = np.random.default_rng(0).normal(size=(3, 71)).astype(np.float32)
    whole = run_many(sum_of(71), [numbers])[0]
    in_order = np.array([np.add.accumulate(row)[-1] for row in numbers])
    assert whole[:, 0].tobytes() == in_order.tobytes()
    batches = np.random.default_rng(0).integers(-128, 128, (5, 2, 3)).astype(np.int8)
    exact = run_many(product(), [batches])[0]
    monkeypatch.setattr(points, "_ELEMENTS", elements)
    assert run_many(sum_of(71), [numbers])[0].tobytes() == whole.tobytes()
    assert run_many(product(), [batches])[0].tobytes() == exact.tobytes()


def test_integer_products_are_exact_and_many_runs_are_independent() -> None:
    rng = np.random.default_rng(0)
    batches = rng.integers(-128, 128, (5, 2, 3)).astype(np.int8)
    (together,) = run_many(product(), [batches])
    assert together.dtype == np.int32
    weights = product().params["w"].astype(np.int32)
    for batch, result in zip(batches, together, strict=True):
        assert np.array_equal(result, batch.astype(np.int32) @ weights)
        assert np.array_equal(result, run(product(), [batch])[0])


def test_rows_are_cut_into_batches_and_put_back() -> None:
    rows = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    outputs = run_rows(product(), rows)
    assert outputs.shape == (7, 4)
    integers = np.clip(np.rint(rows / 0.5), -128, 127).astype(np.int32)
    assert np.array_equal(outputs, (integers @ product().params["w"].astype(np.int32)) * np.float32(0.25))


def test_split_and_join_rows() -> None:
    rows = np.arange(10).reshape(5, 2)
    batches = split_rows(rows, (2, 2), "m")
    assert batches.shape == (3, 2, 2)
    assert np.array_equal(batches[-1], [[8, 9], [8, 9]])
    assert np.array_equal(join_rows(batches, rows, (2, 2)), rows)
    assert split_rows(rows, (2,), "m") is rows
    with pytest.raises(PenstockError, match=r"evaluation inputs have shape \(5, 2\)"):
        split_rows(rows, (2, 3), "m")


def test_wrong_inputs_are_refused() -> None:
    with pytest.raises(PenstockError, match=r"2 inputs given.*takes 1"):
        run(sum_of(4), [np.zeros(4, np.float32)] * 2)
    with pytest.raises(PenstockError, match=r"float32 of shape \(5,\) given.*shape \(4,\)"):
        run(sum_of(4), [np.zeros(5, np.float32)])
    with pytest.raises(PenstockError, match="float64"):
        run(sum_of(4), [np.zeros(4)])
