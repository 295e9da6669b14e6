"""Operators are looked up at the width that they have, whatever else their kernel reads."""

from __future__ import annotations

from xdsl.parser import Parser

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.frontend.context import make_context
from penstock.compiler.schedule import load_library
from penstock.dse.lanes.binding import operand_bits, operator_bits
from penstock.dse.lanes.costs import KnownLanes, LaneCosts
from penstock.dse.lanes.steps import lane_cost

TEXT = """
func.func @main(%x: tensor<4xf32> {penstock.name = "x", penstock.kind = "input"},
                %n: tensor<4xi64> {penstock.name = "n", penstock.kind = "input"}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x, %n : tensor<4xf32>, tensor<4xi64>) outs(%e : tensor<4xf32>)
      attrs = {penstock.layer = "clamp"} {
    ^bb0(%a: f32, %b: i64, %c: f32):
      %least = arith.sitofp %b : i64 to f32
      %s = arith.maximumf %a, %least : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}"""


def test_a_float_beside_a_wide_integer_is_no_wider_for_it() -> None:
    (op,) = read_graph(Parser(make_context(), TEXT).parse_module()).operations
    assert operand_bits(op) == 64
    assert operator_bits(op, "arith.maximumf") == 32
    assert operator_bits(op, "arith.sitofp") == 64
    library = load_library("vitis-ultrascale-plus", 250.0)
    alone = library.find("arith.maximumf", 32).area(32)
    assert lane_cost(op, library).lut >= alone.lut
    assert LaneCosts(library, "", frozenset(), KnownLanes()).of_lane(op, "").lut >= alone.lut


SCALED = """
func.func @main(%x: tensor<4xi32> {penstock.name = "x", penstock.kind = "input"},
                %s: tensor<4xi16> {penstock.name = "s", penstock.kind = "input"}) -> tensor<4xi8> {
  %e = tensor.empty() : tensor<4xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x, %s : tensor<4xi32>, tensor<4xi16>) outs(%e : tensor<4xi8>)
      attrs = {penstock.layer = "scale"} {
    ^bb0(%a: i32, %b: i16, %c: i8):
      %narrow = arith.trunci %a : i32 to i22
      %wide = arith.extsi %narrow : i22 to i64
      %factor = arith.extsi %b : i16 to i64
      %product = arith.muli %wide, %factor : i64
      %twenty = arith.constant 20 : i64
      %scaled = arith.shrsi %product, %twenty : i64
      %result = arith.trunci %scaled : i64 to i8
      linalg.yield %result : i8
  } -> tensor<4xi8>
  func.return %r : tensor<4xi8>
}"""


def test_a_scale_takes_the_slices_that_its_numbers_need() -> None:
    (op,) = read_graph(Parser(make_context(), SCALED).parse_module()).operations
    library = load_library("vitis-ultrascale-plus", 250.0)
    found = LaneCosts(library, "", frozenset(), KnownLanes()).of_lane(op, "")
    assert found.dsp == library.find("arith.muli", 22, None, 16).dsp == 1
    assert library.find("arith.muli", 32).dsp > 1
