"""Small kernels of several kinds, shapes and unroll factors: what a search over a model asks to have measured."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from benchmarks.single_kernels.requests import part_request
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import lower
from penstock.compiler.program import Port, Program, Signature
from penstock.profiling.protocol import ProfileRequest

PLATFORM, CLOCK = "ecp5-85k", 100.0
LAYER = "kernel"

_PRODUCTS = {
    "i8": ("i32", "0", "int8", "int32", """%u = arith.extsi %a : i8 to i32
      %v = arith.extsi %b : i8 to i32
      %p = arith.muli %u, %v : i32
      %s = arith.addi %c, %p : i32"""),
    "f32": ("f32", "0.0", "float32", "float32", "%p = arith.mulf %a, %b : f32\n      %s = arith.addf %c, %p : f32"),
}  # fmt: skip
_ELEMENTWISE = {
    "add": "%s = arith.addi %a, %b : i8",
    "relu": "%t = arith.subi %a, %b : i8\n      %z = arith.constant 0 : i8\n      %s = arith.maxsi %t, %z : i8",
    "average": """%u = arith.extsi %a : i8 to i16
      %v = arith.extsi %b : i8 to i16
      %t = arith.addi %u, %v : i16
      %one = arith.constant 1 : i16
      %h = arith.shrsi %t, %one : i16
      %s = arith.trunci %h : i16 to i8""",
}


def matrix_product(m: int, n: int, k: int, kind: str = "i8") -> Program:
    """C[m, n] = sum over k of X[m, k] * W[k, n]; X comes in, W stays on the chip."""
    wide, zero, dtype, result, body = _PRODUCTS[kind]
    x, w, out = f"tensor<{m}x{k}x{kind}>", f"tensor<{k}x{n}x{kind}>", f"tensor<{m}x{n}x{wide}>"
    maps = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>"
    text = f"""
func.func @main(%x: {x} {{penstock.name = "x", penstock.kind = "input"}},
                %w: {w} {{penstock.name = "w", penstock.kind = "param"}}) -> {out} {{
  %z = arith.constant {zero} : {wide}
  %e = tensor.empty() : {out}
  %f = linalg.fill ins(%z : {wide}) outs(%e : {out}) -> {out}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : {x}, {w}) outs(%f : {out}) attrs = {{penstock.layer = "{LAYER}"}} {{
    ^bb0(%a: {kind}, %b: {kind}, %c: {wide}):
      {body}
      linalg.yield %s : {wide}
  }} -> {out}
  func.return %r : {out}
}}"""
    return _program(text, Signature((Port("x", (m, k), dtype),), (Port("r", (m, n), result),)))


def elementwise(rows: int, columns: int, what: str) -> Program:
    """Two int8 tensors to one."""
    tensor, same = f"tensor<{rows}x{columns}xi8>", "affine_map<(r, c) -> (r, c)>"
    text = f"""
func.func @main(%x: {tensor} {{penstock.name = "x", penstock.kind = "input"}},
                %y: {tensor} {{penstock.name = "y", penstock.kind = "input"}}) -> {tensor} {{
  %e = tensor.empty() : {tensor}
  %r = linalg.generic {{indexing_maps = [{same}, {same}, {same}], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %y : {tensor}, {tensor}) outs(%e : {tensor}) attrs = {{penstock.layer = "{LAYER}"}} {{
    ^bb0(%a: i8, %b: i8, %c: i8):
      {_ELEMENTWISE[what]}
      linalg.yield %s : i8
  }} -> {tensor}
  func.return %r : {tensor}
}}"""
    shape = (rows, columns)
    return _program(text, Signature((Port("x", shape, "int8"), Port("y", shape, "int8")), (Port("r", shape, "int8"),)))


def _program(text: str, signature: Signature) -> Program:
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return Program(LAYER, module, {}, signature)


def lowered(program: Program, tile: tuple[int, ...], unroll: tuple[int, ...]) -> ModuleOp:
    design = Design(PLATFORM, CLOCK, {LAYER: KernelDesign(tile, unroll, tuple(range(len(tile))))})
    return lower(program, design).stream


def alone(name: str, module: ModuleOp) -> ProfileRequest:
    """The kernel's own task, with streams for ports."""
    return part_request(name, module, [LAYER], PLATFORM, CLOCK)


def distinct_kernels() -> Iterator[ProfileRequest]:
    """At most 16 lanes each; no two are alike."""
    for (m, n, k), unroll in product(
        ((8, 16, 16), (4, 32, 32), (16, 16, 32), (8, 24, 48), (16, 32, 64), (12, 48, 16), (4, 64, 64)),
        ((1, 1, 1), (1, 1, 2), (1, 2, 1), (1, 2, 2), (1, 1, 4), (1, 4, 1), (2, 2, 2), (1, 2, 4), (1, 1, 8), (1, 4, 4),
         (2, 2, 4), (1, 2, 8), (1, 1, 16)),
    ):  # fmt: skip
        tile = (max(1, unroll[0]), n, k)
        yield alone(f"product {m}x{n}x{k} {unroll}", lowered(matrix_product(m, n, k), tile, unroll))
    for (rows, columns), lanes, what in product(((16, 32), (8, 64), (24, 48)), (1, 2, 4, 8, 16), _ELEMENTWISE):
        name = f"{what} {rows}x{columns} {lanes}"
        yield alone(name, lowered(elementwise(rows, columns, what), (1, columns), (1, lanes)))
    for (m, n, k), unroll in product(((4, 8, 16), (8, 16, 16)), ((1, 1, 1), (1, 2, 1), (1, 4, 1))):
        name = f"f32 product {m}x{n}x{k} {unroll}"
        yield alone(name, lowered(matrix_product(m, n, k, "f32"), (1, n, k), unroll))
