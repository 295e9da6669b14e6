"""What the pass below linalg makes of one small program, in full: a golden that shows it at work."""

from __future__ import annotations

from pathlib import Path

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


def test_golden() -> None:
    program, design = two_readers()
    (stage,) = run_passes(program.module, itensor_passes(design))
    check_golden(GOLDENS / f"{stage.name}.mlir", str(stage.module) + "\n")
    assert str(Parser(make_context(), str(stage.module)).parse_module()) == str(stage.module)


def test_what_a_plan_decides() -> None:
    """A kernel a group; a converter where orders differ or words meet slices, in the load where that needs blocks."""
    program, design = two_readers()
    (stage,) = run_passes(program.module, itensor_passes(design))
    assert sum(isinstance(op, itensor.KernelOp) for op in stage.module.walk()) == 2
    converters = [op.sym_name.data for op in stage.module.walk() if isinstance(op, itensor.ConverterOp)]
    assert converters == ["unpack.x", "pack.0", "convert.columns", "pack.1"]


def test_folded_loads_and_stores_compute() -> None:
    program, design = two_readers()
    lowered = lower(program, design)
    through = [op for op in lowered.itensor.walk() if isinstance(op, itensor.LoadOp) and op.through is not None]
    assert [op.sym_name.data for op in through] == ["load.x.group1"]
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=2)):
        assert comparison.equal, comparison
