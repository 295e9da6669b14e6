"""Operations of the paper's tables 1 and 2: they print and parse, refuse what they cannot mean, and compute."""

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
SPLIT = "!itensor.itensor<1x4xi8, iter_space: [3, 2]*[2, 1], iter_map: (d0, d1) -> (d0 + d1, 0)>"
COLUMNS = "!itensor.itensor<1x4xi8, iter_space: [2, 3]*[1, 2], iter_map: (d0, d1) -> (d0 + d1, 0)>"
WIDE = "!itensor.itensor<1x1x4xi8, iter_space: [2, 3]*[1, 1], iter_map: (d0, d1) -> (d0, d1, 0)>"
FLAT = "!itensor.itensor<4xi8, iter_space: [6]*[4], iter_map: (d0) -> (d0)>"
TALL = "!itensor.itensor<1x4xi8, iter_space: [12]*[1], iter_map: (d0) -> (d0, 0)>"


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


@pytest.mark.parametrize(
    "text",
    [
        f"%0 = itensor.empty : {ROWS}",
        f'%0 = itensor.instance "rows" : {ROWS}',
        f'%0 = itensor.instance "rows" : {ROWS}\n%1 = itensor.read %0 : {ROWS} -> vector<1x4xi8>',
        f'%0 = itensor.instance "rows" : {ROWS}\n%1 = tensor.empty() : tensor<1x4xi8>\n'
        f"%2 = itensor.read %0 init %1 : tensor<1x4xi8> : {ROWS} -> tensor<1x4xi8>\n"
        f"%3 = itensor.empty : {ROWS}\n%4 = itensor.write %2 into %3 : tensor<1x4xi8>, {ROWS} -> {ROWS}",
        f'%0 = itensor.instance "rows" : {ROWS}\n%1 = itensor.cast "split" %0 : {ROWS} -> {SPLIT}',
        f'%0 = itensor.instance "rows" : {ROWS}\n%1 = itensor.reassociate "wide" %0 : {ROWS} -> {WIDE}',
        f'%0 = itensor.instance "rows" : {ROWS}\n%1 = itensor.reassociate "flat" %0 : {ROWS} -> {FLAT}',
        f'%0 = itensor.instance "a" : {ROWS}\n%1 = itensor.instance "b" : {ROWS}\n'
        f'%2 = itensor.join "both" %0, %1 : {ROWS}, {ROWS} -> {TALL}',
        f'%0 = itensor.instance "rows" : {ROWS}\n'
        f"%1 = itensor.to_stream %0 : {ROWS} -> !stream.stream<vector<1x4xi8>, depth: 2>\n"
        f"%2 = itensor.from_stream %1 : !stream.stream<vector<1x4xi8>, depth: 2> -> {ROWS}\n"
        "%3 = stream.cast %1 : !stream.stream<vector<1x4xi8>, depth: 2> -> !stream.stream<vector<2x2xi8>, depth: 2>",
    ],
)
def test_operations_print_and_parse(text: str) -> None:
    module = parse(text)
    module.verify()
    assert str(parse(str(module))) == str(module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'%0 = itensor.instance "r" : {ROWS}\n%1 = itensor.read %0 : {ROWS} -> vector<4x1xi8>', "is no slice of"),
        (
            f'%0 = itensor.instance "r" : {ROWS}\n%1 = tensor.empty() : tensor<2x4xi8>\n'
            f"%2 = itensor.read %0 init %1 : tensor<2x4xi8> : {ROWS} -> tensor<1x4xi8>",
            "cannot be stored to an init",
        ),
        (
            f"%0 = itensor.empty : {ROWS}\n%1 = tensor.empty() : tensor<4xi8>\n"
            f"%2 = itensor.write %1 into %0 : tensor<4xi8>, {ROWS} -> {ROWS}",
            "is no slice of",
        ),
        (f'%0 = itensor.instance "r" : {ROWS}\n%1 = itensor.cast "c" %0 : {ROWS} -> {COLUMNS}', "use a converter"),
        (
            f'%0 = itensor.instance "r" : {COLUMNS}\n%1 = itensor.reassociate "w" %0 : {COLUMNS} -> {WIDE}',
            "do not send the same elements in the same order",
        ),
        (
            f'%0 = itensor.instance "a" : {ROWS}\n%1 = itensor.join "j" %0 : {ROWS} -> {TALL}',
            "do not make 12",
        ),
        (
            f'%0 = itensor.instance "r" : {ROWS}\n'
            f"%1 = itensor.to_stream %0 : {ROWS} -> !stream.stream<vector<4xi8>, depth: 2>",
            "is carried by tokens of",
        ),
        (
            f'%0 = itensor.instance "r" : {ROWS}\n'
            f"%1 = itensor.to_stream %0 : {ROWS} -> !stream.stream<vector<1x4xi8>, depth: 2>\n"
            "%2 = stream.cast %1 : !stream.stream<vector<1x4xi8>, depth: 2> -> !stream.stream<vector<2xi8>, depth: 2>",
            "cannot be seen as",
        ),
    ],
)
def test_operations_refuse(text: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        parse(text).verify()


def kernel(body: str, inputs: dict[str, str], output: str) -> ModuleOp:
    outer = ", ".join(f'%{n}: {t} {{penstock.name = "{n}", penstock.kind = "input"}}' for n, t in inputs.items())
    inner = ", ".join(f"%{n}_1: {t}" for n, t in inputs.items())
    names, types = ", ".join(f"%{n}" for n in inputs), ", ".join(inputs.values())
    return parse(f"""
    func.func @main({outer}) -> {output} {{
      %0 = "itensor.kernel"({names}) <{{sym_name = "k", group = #builtin.int<0>}}> ({{
      ^bb0({inner}):
        {body}
        itensor.yield %out : {output}
      }}) : ({types}) -> {output}
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
