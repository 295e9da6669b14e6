"""A single matrix product as a scheduled nest: what the schedule's tests look at."""

from __future__ import annotations

from functools import cache

from xdsl.parser import Parser

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import nest
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import lower
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.schedule import NestSchedule, load_library, schedule_nest

OPEN = ("open-ecp5", 100.0)
VITIS_300 = ("vitis-ultrascale-plus", 300.0)
VITIS_250 = ("vitis-ultrascale-plus", 250.0)

_BODIES = {
    "int8": """%u = arith.extsi %a : i8 to i32
      %v = arith.extsi %b : i8 to i32
      %p = arith.muli %u, %v : i32
      %s = arith.addi %c, %p : i32""",
    "float32": """%p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32""",
}
_TYPES = {"int8": ("i8", "i32", "0"), "float32": ("f32", "f32", "0.0")}


@cache
def gemm_program(m: int, n: int, k: int, kind: str) -> Program:
    """C[m, n] = sum over k of X[m, k] * W[k, n], with X streamed in and W a parameter."""
    scalar, wide, zero = _TYPES[kind]
    x, w, out = f"tensor<{m}x{k}x{scalar}>", f"tensor<{k}x{n}x{scalar}>", f"tensor<{m}x{n}x{wide}>"
    maps = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>"
    text = f"""
func.func @main(%x: {x} {{penstock.name = "x", penstock.kind = "input"}},
                %w: {w} {{penstock.name = "w", penstock.kind = "param"}}) -> {out} {{
  %z = arith.constant {zero} : {wide}
  %e = tensor.empty() : {out}
  %f = linalg.fill ins(%z : {wide}) outs(%e : {out}) -> {out}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : {x}, {w}) outs(%f : {out}) attrs = {{penstock.layer = "fc"}} {{
    ^bb0(%a: {scalar}, %b: {scalar}, %c: {wide}):
      {_BODIES[kind]}
      linalg.yield %s : {wide}
  }} -> {out}
  func.return %r : {out}
}}"""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    result = "int32" if kind == "int8" else kind
    return Program("gemm", module, {}, Signature((Port("x", (m, k), kind),), (Port("r", (m, n), result),)))


def gemm_nest(
    shape: tuple[int, int, int],
    tile: tuple[int, int, int],
    unroll: tuple[int, int, int],
    order: tuple[int, int, int] = (0, 1, 2),
    kind: str = "int8",
    bindings: dict[str, str] | None = None,
    interval: int = 1,
) -> nest.NestOp:
    """The compute nest of the product under a schedule."""
    design = Design("u55c", 250.0, {"fc": KernelDesign(tile, unroll, order, "rom", bindings or {}, interval)})
    lowered = lower(gemm_program(*shape, kind), design)
    return next(n for task, n in lowered.nests if task.sym_name.data == "fc")


def gemm_schedule(
    shape: tuple[int, int, int],
    tile: tuple[int, int, int],
    unroll: tuple[int, int, int],
    order: tuple[int, int, int] = (0, 1, 2),
    kind: str = "int8",
    library: tuple[str, float] = OPEN,
    bindings: dict[str, str] | None = None,
    interval: int = 1,
) -> NestSchedule:
    return schedule_nest(gemm_nest(shape, tile, unroll, order, kind, bindings, interval), load_library(*library))
