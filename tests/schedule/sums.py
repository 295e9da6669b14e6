"""A task at stream level whose partial sums come back the sooner the fewer columns a call says."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from penstock.compiler.dialects.stream import TopOp
from penstock.compiler.frontend.context import make_context

_LENGTHS = " attributes {lengths = #nest.lengths<seq: LOW to 16>}"
_SUMS = """builtin.module {
  stream.top "sums" takes ["x", "y", "lengths"] as ["input", "output", "lengths"] lying [unit, unit, unit]LENGTHS {
  ^bb0(%x: memref<4x16xf32>, %y: memref<16xf32>, %lengths: memref<1xi32>):
    stream.task "sum" of "sum" group 0 {
      %acc = stream.buffer "acc" : memref<16xf32>
      nest.nest "compute" <r: 4, c: 16 as seq> {
        %a = nest.load %x at (d0, d1) -> (d0, d1) : memref<4x16xf32> -> vector<1x1xf32>
        %old = nest.load %acc at (d0, d1) -> (d1) : memref<16xf32> -> vector<1xf32>
        %zero = nest.constant 0.0 : f32 -> vector<1xf32>
        %start = nest.select %zero else %old when <d0 eq 0> : vector<1xf32>
        %new = nest.map %a, %start lanes [(d0) -> (0, d0), (d0) -> (d0)]
            : vector<1x1xf32>, vector<1xf32> -> vector<1xf32> {
        ^bb1(%p: f32, %q: f32):
          %s = arith.addf %p, %q : f32
          nest.yield %s : f32
        }
        nest.store %new to %acc at (d0, d1) -> (d1) : vector<1xf32> to memref<16xf32>
        nest.store %new to %y at (d0, d1) -> (d1) when <d0 eq 3> : vector<1xf32> to memref<16xf32>
      }
    }
  }
}
"""


def sums(low: int, *, calls: bool = False) -> ModuleOp:
    """Sums over an outer loop, kept for as many columns as a call says; with `calls` one start runs a list of them."""
    text = _SUMS.replace("LENGTHS", _LENGTHS.replace("LOW", str(low)))
    if calls:
        text = text.replace('"lengths"]', '"lengths", "calls"]').replace("unit]", "unit, unit]", 1)
        text = text.replace("%lengths: memref<1xi32>", "%lengths: memref<1xi32>, %calls: memref<5xi32>")
    return _parsed(text)


def sums_of(columns: int) -> ModuleOp:
    """The same for one number of columns."""
    return _parsed(_SUMS.replace("16 as seq", str(columns)).replace("LENGTHS", ""))


def top(module: ModuleOp) -> TopOp:
    return next(op for op in module.ops if isinstance(op, TopOp))


def _parsed(text: str) -> ModuleOp:
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return module
