"""A model's layers as a block of a program: their answers, their ends, and what is refused at which place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.blocks_beside import with_blocks
from penstock.compiler.tasks.interpret import interpret
from penstock.compiler.tasks.network import Instances
from penstock.compiler.tasks.opened import open_network
from tests.frontend import onnx_files
from tests.tasks.programs import read

LAYERS = """builtin.module {
  func.func @main(%x: tensor<2x4xf32>) -> tensor<2x3xf32> {
    %w = arith.constant dense<[[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0], [0.0, 1.0, 0.0], [4.0, -2.0, 1.0]]> : tensor<4x3xf32>
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<2x3xf32>
    %first = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>,
        affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%first : tensor<2x3xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %c, %m : f32
      linalg.yield %s : f32
    } -> tensor<2x3xf32>
    %z = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
        iterator_types = ["parallel", "parallel"]} ins(%y : tensor<2x3xf32>) outs(%empty : tensor<2x3xf32>) {
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %zero : f32
      linalg.yield %m : f32
    } -> tensor<2x3xf32>
    func.return %z : tensor<2x3xf32>
  }
}
"""
WEIGHTS = np.array([[1, 2, 3], [-1, 0.5, 2], [0, 1, 0], [4, -2, 1]], np.float32)
INPUT = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
ALONE = """from penstock.tasks import *

@program
def p(x: float32[2, 4], y: float32[2, 3]):
    BLOCK
"""
BETWEEN = """from penstock.tasks import *

@program
def p(x: float32[2, 4], y: float32[2, 3]):
    a = Stream[float32, (4,)]
    b = Stream[float32, (3,)]

    @task
    def load():
        for i in range(2):
            a.put(x[i, 0:4])

    BLOCK

    @task
    def store():
        for i in range(2):
            y[i, 0:3] = b.get()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "layers.mlir").write_text(LAYERS)
    return tmp_path


def opened(folder: Path, program: str, call: str) -> Instances:
    text = with_blocks(folder / "p.py", program.replace("BLOCK", call))
    return open_network("p.py", text, "", ())


@pytest.mark.parametrize(
    ("program", "call"),
    [
        (ALONE, 'block("layers.mlir", x, y)'),
        (ALONE, 'block("layers.mlir", x, y, lanes=2, name="net")'),
        (BETWEEN, 'block("layers.mlir", a, b)'),
        (BETWEEN, 'block("layers.mlir", a, b, lanes=4)'),
    ],
)
def test_a_block_answers_as_its_model_does(folder: Path, program: str, call: str) -> None:
    network = opened(folder, program, call)
    np.testing.assert_allclose(interpret(network, {"x": INPUT})["y"], np.maximum(INPUT @ WEIGHTS, 0), rtol=1e-6)
    assert len(network.tables) == 1


def test_two_blocks_follow_each_other(folder: Path) -> None:
    """Each with names of its own."""
    relu = LAYERS[: LAYERS.index("    %w =")] + LAYERS[LAYERS.index("    %zero") :]
    relu = relu[: relu.index("    %first")] + relu[relu.index("    %z =") :]
    (folder / "relu.mlir").write_text(relu.replace("2x4", "2x3").replace("ins(%y", "ins(%x"))
    calls = 'c = Stream[float32]\n    block("layers.mlir", a, c)\n    block("relu.mlir", c, b)'
    names = [one.name for one in opened(folder, BETWEEN, calls).instances]
    assert "layers_take_x" in names
    assert "relu_take_x" in names


@pytest.fixture
def onnx_folder(tmp_path: Path) -> Path:
    """The layers as an ONNX file, and a convolution."""
    fc, act = (
        helper.make_node("MatMul", ["x", "w"], ["m"], name="fc"),
        helper.make_node("Relu", ["m"], ["y"], name="act"),
    )
    onnx_files.save(onnx_files.graph([fc, act], {"x": (2, 4)}, ["y"], {"w": WEIGHTS}), tmp_path / "layers.onnx")
    conv, ones = helper.make_node("Conv", ["x", "k"], ["y"], name="conv"), np.ones((1, 1, 3, 3), np.float32)
    onnx_files.save(onnx_files.graph([conv], {"x": (1, 1, 6, 6)}, ["y"], {"k": ones}), tmp_path / "conv.onnx")
    return tmp_path


@pytest.mark.parametrize(
    ("program", "call"), [(ALONE, 'block("layers.onnx", x, y)'), (BETWEEN, 'block("layers.onnx", a, b, lanes=4)')]
)
def test_a_block_of_an_onnx_file_answers_as_the_file_does(onnx_folder: Path, program: str, call: str) -> None:
    network = opened(onnx_folder, program, call)
    (wanted,) = onnx_files.evaluated(onnx.load(str(onnx_folder / "layers.onnx")), {"x": INPUT})
    np.testing.assert_allclose(interpret(network, {"x": INPUT})["y"], wanted, rtol=1e-6)
    assert {"layers_fc", "layers_act_relu"} <= {one.name for one in network.instances}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('block("conv.onnx", x, y)', "p.py:5:5: conv.onnx cannot be a block: conv has windows"),
        ('block("layers.onnx", x, y, layers="gemm")', "layers.onnx has no layer 'gemm'"),
        ('block("bad.onnx", x, y)', "p.py:5:11: bad.onnx: this is no valid ONNX model"),
    ],
)
def test_an_onnx_file_that_is_no_block_is_refused_at_its_call(onnx_folder: Path, call: str, said: str) -> None:
    (onnx_folder / "bad.onnx").write_bytes(b"\x08hello")
    with pytest.raises(PenstockError) as error:
        opened(onnx_folder, ALONE, call)
    assert said in error.value.one_line()


WRONG: Mapping[str, tuple[str, str, str]] = {
    "too few ends": (ALONE, 'block("layers.mlir", x)', "p.py:5:5: layers has 2 ends, 1 are given"),
    "the ends swapped": (ALONE, 'block("layers.mlir", y, x)', "p.py:5:26: y is float32[2, 3], and the block's"),
    "a number for an end": (ALONE, 'block("layers.mlir", x, 3)', "p.py:5:29: 3 is no end of a block"),
    "tokens that are no rows": (
        BETWEEN.replace("(4,)", "(8,)").replace("0:4", "0:4 "), 'block("layers.mlir", a, b)',
        "p.py:13:26: a carries float32[8], which is no row of the block's",
    ),
    "another number": (
        BETWEEN.replace("Stream[float32, (4,)]", "Stream[int8, (4,)]"), 'block("layers.mlir", a, b)',
        "p.py:13:26: a carries int8[4], and the block's",
    ),
    "a token too few": (
        BETWEEN.replace("range(2):\n            a", "range(1):\n            a"), 'block("layers.mlir", a, b)',
        "load puts 1 tokens into a, layers_take_x gets 2",
    ),
    "no such file": (ALONE, 'block("other.onnx", x, y)', "p.py:5:11: there is no file 'other.onnx' beside"),
    "a file elsewhere": (ALONE, 'block("../layers.mlir", x, y)', "p.py:5:11: there is no block '../layers.mlir'"),
    "code": (ALONE, 'block("model.py:net", x, y)', "p.py:5:11: there is no block 'model.py:net'"),
    "weights of others": (
        ALONE, 'block("zoo:mlp?weights=other.safetensors", x, y)', "there is no block 'zoo:mlp?weights=other"
    ),
    "a model by a constant": (ALONE, "block(MODEL, x, y)", "p.py:5:11: block takes a model and its ends"),
    "an end without a type": (
        ALONE + '@block("mine")\ndef mine(a):\n    pass\n', 'block("mine", x)', "p.py:7:10: the end a has no type"
    ),
    "no such layer": (ALONE, 'block("layers.mlir", x, y, layers="conv9")', "has no layer 'conv9'"),
    "no such option": (ALONE, 'block("layers.mlir", x, y, lane=4)', "p.py:5:37: lane is no argument of block"),
    "too many lanes": (ALONE, 'block("layers.mlir", x, y, lanes=1000)', "1000 lanes"),
    "twice by one name": (
        BETWEEN, 'block("layers.mlir", a, b)\n    block("layers.mlir", a, b)', "there is a block 'layers' already"
    ),
    "a name that a task has": (
        BETWEEN.replace("def load", "def layers_take_x"), 'block("layers.mlir", a, b)',
        "there is a task 'layers_take_x' already",
    ),
    "a file that is no model": (ALONE, 'block("bad.mlir", x, y)', "p.py:5:11: bad.mlir: "),
    "a word that means something else": (
        ALONE.replace("@program", "def stack(x):\n    return x\n\n\n@program"), 'block("layers.mlir", x, y)',
        "'stack' means something else here",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_named_where_the_block_is_called(name: str, folder: Path) -> None:
    (folder / "bad.mlir").write_text("builtin.module { func.func")
    program, call, said = WRONG[name]
    with pytest.raises(PenstockError) as error:
        opened(folder, program, call)
    assert said in error.value.one_line()


def test_tables_are_arrays_that_nothing_stores_into() -> None:
    program = """
ROWS = ((1, 2), (3, -4))

@program
def p(x: int8[4, 2], y: int32[4]):
    @task
    def work():
        w: int8[2, 2] = ROWS
        kept: int8[2] = (5, 6)
        for i in range(4):
            total: int32 = 0
            for k in range(2):
                total += x[i, k] * w[1, k] + kept[k]
                kept[k] = 7
            y[i] = total
"""
    network = read(program)
    assert [values.tolist() for values in network.tables.values()] == [[[1, 2], [3, -4]]]
    x = np.arange(8, dtype=np.int8).reshape(4, 2)
    wanted = x.astype(np.int32) @ [3, -4] + [11, 14, 14, 14]
    np.testing.assert_array_equal(interpret(network, {"x": x})["y"], wanted)


def test_a_text_that_is_no_table_is_refused() -> None:
    with pytest.raises(PenstockError, match=r"the text is no table of int8\[2\]"):
        read("""
@program
def p(y: int32[2]):
    @task
    def work():
        w: int8[2] = "base64:AAAA"
        for i in range(2):
            y[i] = w[i]
""")
