"""linalg as text: constants become parameters, named operations generics; everything else is refused with its place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model, make_context
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels, verify_pytorch
from penstock.compiler.program import Program
from penstock.compiler.transforms.editor import layer_of
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner

DENSE = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @net(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {  // linalg.matmul in a comment
  %weight = arith.constant dense<[[1.0, -2.0], [0.5, 0.25], [3.0, 1.0]]> : tensor<3x2xf32>
  %bias = arith.constant dense<[0.5, -0.5]> : tensor<2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %fc = linalg.matmul ins(%x, %weight : tensor<2x3xf32>, tensor<3x2xf32>) outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
  %act = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%fc, %bias : tensor<2x2xf32>, tensor<2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<2x2xf32>
  return %act : tensor<2x2xf32>
}
"""


def load(text: str | bytes, folder: Path) -> Program:
    path = folder / "net.mlir"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return import_model(str(path))


def function(body: str, result: str = "tensor<2x3xf32>") -> str:
    return f"func.func @main(%x: tensor<2x3xf32>) -> {result} {{\n{body}\n}}\n"


def test_constants_are_parameters_and_values_name_layers(tmp_path: Path) -> None:
    program = load(DENSE, tmp_path)
    assert program.name == "net"
    assert program.params["weight"].tolist() == [[1.0, -2.0], [0.5, 0.25], [3.0, 1.0]]
    assert program.params["bias"].tolist() == [0.5, -0.5]
    assert [(p.name, p.shape, p.dtype) for p in program.signature.inputs] == [("x", (2, 3), "float32")]
    assert [layer_of(op) for op in program.module.walk() if isinstance(op, linalg.GenericOp)] == ["fc", "act"]
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    wanted = np.maximum(x @ program.params["weight"] + program.params["bias"], 0)
    np.testing.assert_allclose(run(prepare(program), [x])[0], wanted)


def test_the_reference_is_the_interpreter_and_says_so(tmp_path: Path) -> None:
    program = load(DENSE, tmp_path)
    program.save(tmp_path / "saved")
    loaded = Program.load(tmp_path / "saved", make_context())
    assert loaded.samples is not None
    assert loaded.samples.reference == "linalg interpreter"


def test_text_through_every_level(tmp_path: Path) -> None:
    program = prepare(load(DENSE, tmp_path))
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0, None))
    frames = make_inputs(lowered, random_sets=1)
    assert all(level.equal for level in verify_levels(lowered, frames))
    reference = verify_pytorch(lowered)
    assert reference is not None
    assert reference.equal
    emit(lowered, tmp_path / "out", part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    assert verify_csim(lowered, build_csim(tmp_path / "out", ToolRunner()), frames).equal


def test_named_operations_become_generics(tmp_path: Path) -> None:
    body = """
    %e = tensor.empty() : tensor<2x3xf32>
    %t = tensor.empty() : tensor<3x2xf32>
    %c = tensor.empty() : tensor<2xf32>
    %zero = arith.constant 0.0 : f32
    %sum0 = linalg.fill ins(%zero : f32) outs(%c : tensor<2xf32>) -> tensor<2xf32>
    %added = linalg.add ins(%x, %x : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
    %sq = linalg.mul ins(%added, %x : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
    %turned = linalg.transpose ins(%sq : tensor<2x3xf32>) outs(%t : tensor<3x2xf32>) permutation = [1, 0]
    %back = linalg.transpose ins(%turned : tensor<3x2xf32>) outs(%e : tensor<2x3xf32>) permutation = [1, 0]
    %sum = linalg.reduce ins(%back : tensor<2x3xf32>) outs(%sum0 : tensor<2xf32>) dimensions = [1]
      (%i: f32, %a: f32) {
        %r = arith.addf %a, %i : f32
        linalg.yield %r : f32
      }
    %wide = linalg.broadcast ins(%sum : tensor<2xf32>) outs(%e : tensor<2x3xf32>) dimensions = [1]
    %y = linalg.sub ins(%x, %wide : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
    return %y : tensor<2x3xf32>"""
    program = prepare(load(function(body), tmp_path))
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    np.testing.assert_allclose(run(program, [x])[0], x - (2 * x * x).sum(1, keepdims=True))


EMPTY = "%e = tensor.empty() : tensor<2x3xf32>\n"
ADD = "%y = linalg.add ins(%x, %x : tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>\n"
RETURN = "return %y : tensor<2x3xf32>"
REFUSED: dict[str, tuple[str, str, str, str]] = {
    "llvm": (function('%y = "llvm.inline_asm"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n' + RETURN),
             "linalg-text", "llvm.inline_asm", "net.mlir:2:"),
    "scf": ("scf.for", "linalg-text", "scf.for", "net.mlir:1:"),
    "a call": (
        "func.func private @evil(tensor<2x3xf32>) -> tensor<2x3xf32>\n"
        + function("%y = func.call @evil(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n" + RETURN),
        "unsupported-op", "func.call", "net.mlir:3:6",
    ),
    "an external function": (
        "func.func private @main(tensor<2x3xf32>) -> tensor<2x3xf32>", "linalg-text", "@main has no body", "net.mlir",
    ),
    "two functions": (
        DENSE + DENSE.replace("@net", "@other").replace("#id", "#id2").replace("#row", "#row2"),
        "linalg-text", "@net, @other", "net.mlir",
    ),
    "no function": ("builtin.module {}", "linalg-text", "functions: none", "net.mlir"),
    "a dynamic shape": (
        DENSE.replace("2x3xf32", "?x3xf32"), "dynamic-shape", "tensor<?x3xf32>", "net.mlir:4:1",
    ),
    "a dynamic argument": (
        "func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {\n  return %x : tensor<?x3xf32>\n}\n",
        "dynamic-shape", "tensor<?x3xf32>", "net.mlir:1:1",
    ),
    "no elements": (
        "func.func @main(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {\n  return %x : tensor<0x3xf32>\n}\n",
        "empty-tensor", "tensor<0x3xf32>", "net.mlir:1:1",
    ),
    "doubles": (
        "func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {\n  return %x : tensor<3xf64>\n}\n",
        "unsupported-dtype", "tensor<3xf64>", "net.mlir:1:1",
    ),
    "an enormous tensor": (
        function("%h = tensor.empty() : tensor<99999x99999xf32>\n" + EMPTY + ADD + RETURN),
        "linalg-text", "tensor<99999x99999xf32>", "net.mlir:2:",
    ),
    "an operation of tensor": (
        function(EMPTY + "%z = tensor.cast %x : tensor<2x3xf32> to tensor<?x3xf32>\n" + ADD + RETURN),
        "unsupported-op", "tensor.cast", "net.mlir:3:6",
    ),
    "a broken line": (DENSE.replace("linalg.yield", "linalg.yeld"), "linalg-text", "linalg.yeld", "net.mlir:16:"),
    "a string without an end": (
        function(EMPTY + '%z = arith.constant {layer = "one \\" // of a name that nothing ends} 1.0 : f32\n' + RETURN),
        "linalg-text", "nothing ends the string", "net.mlir:3:",
    ),
    "an escape that there is not": (
        function(EMPTY + '%z = arith.constant {layer = "one long name \\q of many letters"} 1.0 : f32\n' + RETURN),
        "linalg-text", "nothing ends the string", "net.mlir:3:",
    ),
    "wrong types": (DENSE.replace("(%x, %weight :", "(%weight, %x :"), "linalg-text", "", "net.mlir"),
    "nothing": ("", "linalg-text", "cannot be read", "net.mlir:1:1"),
    "deep nesting": ("(" * 100_000, "linalg-text", "cannot be read", "net.mlir:1:1"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_on_the_list_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    text, code, what, where = REFUSED[name]
    with pytest.raises(PenstockError) as caught:
        load(text, tmp_path)
    error = caught.value
    assert (error.code, what in error.what, where in error.where) == (code, True, True), error.one_line()
    assert error.limit
    assert error.hint
    assert "\n" not in error.one_line()


def test_quotation_marks_in_comments_are_no_strings(tmp_path: Path) -> None:
    assert load('// it says "so\n' + DENSE, tmp_path).samples is not None


def test_bytes_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="the file is not text"):
        load(b"func\xff\xfe", tmp_path)


def test_a_body_that_yields_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="does not yield one value for each result"):
        load(re.sub(r"linalg.yield %\w+ : f32", "linalg.yield", DENSE, count=1), tmp_path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damage_to_a_text_is_refused_or_harmless(tmp_path: Path, data: st.DataObject) -> None:
    """A stretch of the text is left out, doubled, or replaced: a program comes of it, or an error of ours."""
    start = data.draw(st.integers(0, len(DENSE) - 1))
    end = data.draw(st.integers(start, min(len(DENSE), start + 30)))
    middle = data.draw(
        st.sampled_from(["", DENSE[start:end] * 2, "9" * 12, "-1", "?", "}", "%x", "dense<>", "\x00", '"'])
    )
    try:
        program = load(DENSE[:start] + middle + DENSE[end:], tmp_path)
    except PenstockError:
        return
    assert program.samples is not None
    assert len(program.samples.outputs) == 1
