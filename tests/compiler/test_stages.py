"""What each pass below linalg makes of one small program, in full: goldens that show a pass at work."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.parser import Parser

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import itensor
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.stages import itensor_passes, run_passes
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.program import Port, Program, Signature
from tests.goldens import check_golden

GOLDENS = Path(__file__).parent / "goldens" / "stages"
TYPE = "tensor<8x16xi8>"
MAPS = "indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]"


def layer(name: str, source: str, result: str, operation: str) -> str:
    return f"""
  %{name}e = tensor.empty() : {TYPE}
  {result} = linalg.generic {{{MAPS}, iterator_types = ["parallel", "parallel"]}}
      ins({source} : {TYPE}) outs(%{name}e : {TYPE}) attrs = {{penstock.layer = "{name}"}} {{
  ^bb0(%v: i8, %o: i8):
    %s = {operation} %v, %v : i8
    linalg.yield %s : i8
  }} -> {TYPE}"""


def two_readers() -> tuple[Program, Design]:
    """One input: one kernel walks its rows, a later one its columns. The second one's result goes on to a third."""
    text = f"""func.func @main(%x: {TYPE} {{penstock.name = "x", penstock.kind = "input"}}) -> ({TYPE}, {TYPE}) {{
  {layer("rows", "%x", "%a", "arith.addi")}
  {layer("columns", "%x", "%b", "arith.muli")}
  {layer("after", "%b", "%c", "arith.addi")}
  func.return %a, %c : {TYPE}, {TYPE}
}}"""
    port = Port("x", (8, 16), "int8")
    module = Parser(make_context(), text).parse_module()
    program = Program("two_readers", module, {}, Signature((port,), (port, port)))
    kernels = {
        "rows": KernelDesign((8, 16), (1, 4), (0, 1)),
        "columns": KernelDesign((1, 1), (1, 1), (1, 0)),
        "after": KernelDesign((8, 16), (1, 2), (0, 1)),
    }
    design = Design("u55c", 300.0, kernels, groups={"rows": 0, "columns": 1, "after": 1}, port_bits=64)
    assert set(read_graph(module).by_layer) == set(kernels)
    return program, design


@pytest.mark.parametrize("stage", ["kernels", "fuse", "pack", "fold"])
def test_goldens(stage: str) -> None:
    program, design = two_readers()
    modules = {one.name: one.module for one in run_passes(program.module, itensor_passes(design))}
    check_golden(GOLDENS / f"{stage}.mlir", str(modules[stage]) + "\n")
    assert str(Parser(make_context(), str(modules[stage])).parse_module()) == str(modules[stage])


def test_what_the_passes_are_for() -> None:
    program, design = two_readers()
    found = {
        one.name: [type(op) for op in one.module.walk()] for one in run_passes(program.module, itensor_passes(design))
    }
    counts = {name: (kinds.count(itensor.KernelOp), kinds.count(itensor.ConverterOp)) for name, kinds in found.items()}
    assert counts["kernels"] == (3, 0)  # one a layer, all through external memory
    assert counts["fuse"] == (2, 1)  # two groups; columns reach their reader through a converter
    assert counts["pack"][1] > counts["fuse"][1]  # and words of 64 bits reach slices
    assert counts["fold"][1] < counts["pack"][1]  # but where they need blocks, the load has them


def test_folded_loads_and_stores_compute() -> None:
    program, design = two_readers()
    lowered = lower(program, design)
    through = [op for op in lowered.itensor.walk() if isinstance(op, itensor.LoadOp) and op.through is not None]
    assert [op.sym_name.data for op in through] == ["load.x.group1"]
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=2)):
        assert comparison.equal, comparison
