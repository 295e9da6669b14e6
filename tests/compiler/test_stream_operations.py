"""Operations on streams: they print and parse, refuse what they cannot mean, and compute."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import itensor, stream
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter import itensor as itensor_interpreter
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.transforms.lower_to_streams import LowerToStreams

ROWS = "!itensor.itensor<1x4xi8, iter_space: [6]*[1], iter_map: (d0) -> (d0, 0)>"
COLUMNS = "!itensor.itensor<1x4xi8, iter_space: [2, 3]*[1, 2], iter_map: (d0, d1) -> ((d0 + d1), 0)>"
WIDE = "!itensor.itensor<1x1x4xi8, iter_space: [2, 3]*[1, 1], iter_map: (d0, d1) -> (d0, d1, 0)>"
FLAT = "!itensor.itensor<4xi8, iter_space: [6]*[4], iter_map: (d0) -> (d0)>"
TOP = "!itensor.itensor<1x4xi8, iter_space: [2]*[1], iter_map: (d0) -> (d0, 0)>"
TALL = "!itensor.itensor<1x4xi8, iter_space: [12]*[1], iter_map: (d0) -> (d0, 0)>"
SHAPES = {ROWS: (6, 4), COLUMNS: (6, 4)}


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def loaded(kind: str, operation: str) -> str:
    """An operation on the stream `%r`."""
    tensor = "x".join(map(str, SHAPES[kind]))
    return (
        f'%t = tensor.empty() : tensor<{tensor}xi8>\n%r = itensor.load "r" %t : tensor<{tensor}xi8> -> {kind}\n'
        + operation
    )


@pytest.mark.parametrize(
    "operation",
    [
        f'%a = itensor.reassociate "wide" %r : {ROWS} -> {WIDE}',
        f'%a = itensor.reassociate "flat" %r : {ROWS} -> {FLAT}',
        f'%a = itensor.converter "turned" %r : {ROWS} -> {COLUMNS}',
        f'%a, %b = itensor.fork "both" %r : {ROWS} -> {ROWS}, {ROWS}',
        f'%a = itensor.chunk "first" %r along 0 at [0] : {ROWS} -> {TOP}',
        f'%a = itensor.concat "twice" %r, %r along 0 : {ROWS}, {ROWS} -> {TALL}',
    ],
)
def test_operations_print_and_parse(operation: str) -> None:
    text = loaded(ROWS, operation)
    module = parse(text)
    module.verify()
    assert operation in str(module), "it is printed as it was written"
    assert str(parse(str(module))) == str(module)


@pytest.mark.parametrize(
    ("kind", "operation", "message"),
    [
        (COLUMNS, f'%1 = itensor.reassociate "w" %r : {COLUMNS} -> {WIDE}', "do not send the same elements"),
        (ROWS, f'%1 = itensor.converter "c" %r : {ROWS} -> {TALL}', "changes the order, not the data"),
        (ROWS, f'%1 = itensor.chunk "c" %r along 0 at [5] : {ROWS} -> {TOP}', "is no whole number of slices"),
        (ROWS, f'%1 = itensor.concat "c" %r along 0 : {ROWS} -> {TALL}', "do not fill"),
    ],
)
def test_operations_refuse(kind: str, operation: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        parse(loaded(kind, operation)).verify()


def kernel(body: str, inputs: dict[str, str], output: str) -> ModuleOp:
    outer = ", ".join(f'%{n}: {t} {{penstock.name = "{n}", penstock.kind = "input"}}' for n, t in inputs.items())
    inner = ", ".join(f"%{n}_1: {t}" for n, t in inputs.items())
    names, types = ", ".join(f"%{n}" for n in inputs), ", ".join(inputs.values())
    return parse(f"""
    func.func @main({outer}) -> {output} {{
      %0 = itensor.kernel "k" group 0 takes {names} : ({types}) -> {output} {{
      ^bb0({inner}):
        {body}
        itensor.yield %out : {output}
      }}
      func.return %0 : {output}
    }}""")


def run_both(module: ModuleOp, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The result, the same at the itensor and the stream level."""
    module.verify()
    (wanted,) = itensor_interpreter.run(module, list(inputs.values()))
    streams = LowerToStreams(Design("u55c", 300.0, {})).apply(module)
    streams.verify()
    got = stream_interpreter.run(streams, inputs, {})["output_0"]
    assert np.array_equal(got, wanted)
    return wanted


def test_another_shape_is_the_same_fifo() -> None:
    text = f"""%a = itensor.load "load.x" %x_1 : tensor<6x4xi8> -> {ROWS}
        %c = itensor.reassociate "wide" %a : {ROWS} -> {WIDE}
        %out = itensor.store "store" %c : {WIDE} -> tensor<2x3x4xi8>"""
    module = kernel(text, {"x": "tensor<6x4xi8>"}, "tensor<2x3x4xi8>")
    x = np.arange(24, dtype=np.int8).reshape(6, 4)
    assert np.array_equal(run_both(module, {"x": x}), x.reshape(2, 3, 4))
    streams = LowerToStreams(Design("u55c", 300.0, {})).apply(module)
    assert sum(isinstance(op, stream.StreamOp) for op in streams.walk()) == 1
    assert sum(isinstance(op, stream.TaskOp) for op in streams.walk()) == 2


RESHAPED = """
func.func @main(%x: tensor<6x4xi32> {penstock.name = "x", penstock.kind = "input"}) -> tensor<4x6xi32> {
  %e = tensor.empty() : tensor<6x4xi32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x4xi32>) outs(%e : tensor<6x4xi32>)
      attrs = {penstock.layer = "double"} {
  ^bb0(%v: i32, %o: i32):
    %s = arith.addi %v, %v : i32
    linalg.yield %s : i32
  } -> tensor<6x4xi32>
  %f = tensor.collapse_shape %a [[0, 1]] : tensor<6x4xi32> into tensor<24xi32>
  %r = tensor.expand_shape %f [[0, 1]] output_shape [4, 6] : tensor<24xi32> into tensor<4x6xi32>
  %g = tensor.empty() : tensor<4x6xi32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%r : tensor<4x6xi32>) outs(%g : tensor<4x6xi32>)
      attrs = {penstock.layer = "square"} {
  ^bb0(%v: i32, %o: i32):
    %s = arith.muli %v, %v : i32
    linalg.yield %s : i32
  } -> tensor<4x6xi32>
  func.return %b : tensor<4x6xi32>
}"""


@pytest.mark.parametrize("unroll", [{"double": (2, 1), "square": (1, 3)}, {"double": (1, 4), "square": (2, 2)}])
@pytest.mark.parametrize("groups", [{}, {"double": 0, "square": 1}])
def test_reshapes_between_layers(unroll: dict[str, tuple[int, int]], groups: dict[str, int]) -> None:
    """Rows of four become rows of six: through the row-major order, whatever the layers' own orders are."""
    module = parse(RESHAPED)
    signature = Signature((Port("x", (6, 4), "int32"),), (Port("y", (4, 6), "int32"),))
    program = Program("reshaped", module, {}, signature)
    base = default_design(read_graph(module), "u55c", 300.0)
    kernels = {name: KernelDesign(k.tile, unroll[name], k.order) for name, k in base.kernels.items()}
    lowered = lower(program, Design("u55c", 300.0, kernels, groups=groups))
    assert any(isinstance(op, itensor.ReassociateOp) for op in lowered.itensor.walk())
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=2)):
        assert comparison.equal, comparison
