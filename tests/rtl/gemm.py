"""An int8 matrix product as a program and a design: rows times columns, the sum innermost."""

from __future__ import annotations

import numpy as np
from xdsl.parser import Parser

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.program import Port, Program, Signature

TEXT = """func.func @main(
    %x: tensor<{m}x{k}xi8> {{penstock.name = "x", penstock.kind = "input"}},
    %w: tensor<{k}x{n}xi8> {{penstock.name = "gemm.weight", penstock.kind = "param"}}) -> tensor<{m}x{n}xi32> {{
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<{m}x{n}xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<{m}x{n}xi32>) -> tensor<{m}x{n}xi32>
  %y = linalg.generic {{
      indexing_maps = [
        affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<{m}x{k}xi8>, tensor<{k}x{n}xi8>) outs(%start : tensor<{m}x{n}xi32>)
      attrs = {{penstock.layer = "gemm"}} {{
  ^bb0(%a: i8, %b: i8, %c: i32):
    %wide_a = arith.extsi %a : i8 to i32
    %wide_b = arith.extsi %b : i8 to i32
    %p = arith.muli %wide_a, %wide_b : i32
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  }} -> tensor<{m}x{n}xi32>
  func.return %y : tensor<{m}x{n}xi32>
}}"""


def gemm(m: int, n: int, k: int, lanes: int) -> Lowered:
    """`lanes` columns at once."""
    module = Parser(make_context(), TEXT.format(m=m, n=n, k=k)).parse_module()
    weight = np.random.default_rng(0).integers(-128, 127, (k, n), endpoint=True).astype(np.int8)
    ports = Signature((Port("x", (m, k), "int8"),), (Port("output", (m, n), "int32"),))
    program = Program("gemm", module, {"gemm.weight": weight}, ports)
    kernel = KernelDesign((1, lanes, 1), (1, lanes, 1), (0, 1, 2), "rom")
    return lower(program, Design(platform="ecp5-85k", clock_mhz=100.0, kernels={"gemm": kernel}, port_bits=512))
