"""ONNX files: the same numbers as the ONNX project's evaluator, the file's own names, and refusals that say why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator
from torch import nn
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.onnx_graph import load_onnx
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels, verify_pytorch
from penstock.compiler.reference import OnnxReference
from penstock.compiler.transforms.editor import layer_of
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from tests.frontend.models import make
from tests.frontend.onnx_files import export, graph, reference_answers, save


class Attention(nn.Module):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out = nn.Linear(d, d, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.norm(tokens)
        scores = torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2) / 3, -1)
        return tokens + self.out(scores @ self.v(x))


class FeedForward(nn.Module):
    def __init__(self, d: int = 6) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, 10), nn.Linear(d, 10), nn.Linear(10, d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.gelu(self.gate(x)) * self.up(x))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))


MODELS = {
    "mlp": (mlp, (2, 8), 17),
    "attention": (Attention, (4, 8), 17),
    "norms of primitive operations": (Attention, (4, 8), 13),
    "feed-forward": (FeedForward, (3, 6), 17),
    "an old opset": (mlp, (2, 8), 11),
}


@pytest.mark.parametrize("name", MODELS)
def test_files_of_pytorchs_exporter_keep_their_meaning(name: str, tmp_path: Path) -> None:
    build, shape, opset = MODELS[name]
    path = export(make(build), (torch.zeros(shape),), tmp_path / "net.onnx", opset_version=opset)
    program = prepare(import_model(str(path)))
    assert program.samples is not None
    (wanted,) = reference_answers(path, program)
    np.testing.assert_allclose(program.samples.outputs[0], wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run(program, program.samples.inputs)[0], wanted, rtol=1e-4, atol=1e-5)


def test_names_are_those_of_the_file(tmp_path: Path) -> None:
    path = export(make(mlp), (torch.zeros(1, 8),), tmp_path / "net.onnx", input_names=["pixels"])
    program = import_model(str(path))
    stored = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(str(path)).graph.initializer}
    assert set(program.params) == set(stored) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert all(np.array_equal(program.params[name], value) for name, value in stored.items())
    assert [port.name for port in program.signature.inputs] == ["pixels"]
    layers = [layer_of(op) for op in program.module.walk() if isinstance(op, linalg.GenericOp) and op.inputs]
    assert layers == ["0.Gemm.weight", "0.Gemm", "0.Gemm.bias", "1.Relu", "2.Gemm.weight", "2.Gemm", "2.Gemm.bias"]


def test_a_small_file_through_every_level(tmp_path: Path) -> None:
    path = export(make(Attention), (torch.zeros(4, 8),), tmp_path / "net.onnx")
    program = prepare(import_model(str(path)))
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0, None))
    frames = make_inputs(lowered, random_sets=1)
    assert all(level.equal for level in verify_levels(lowered, frames))
    pytorch = verify_pytorch(lowered)
    assert pytorch is not None
    assert pytorch.equal
    emit(lowered, tmp_path / "out", part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    assert verify_csim(lowered, build_csim(tmp_path / "out", ToolRunner()), frames).equal


def node(op: str, inputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), ["y"], f"/block/{op}", **attributes)


def numbers(*values: int) -> np.ndarray:
    return np.asarray(values, np.int64)


WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32)
NODES: dict[str, tuple[onnx.NodeProto, dict[str, Any]]] = {
    **{
        op: (node(op, "x"), {})
        for op in ("Abs", "Asinh", "Atan", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor",
                   "GlobalAveragePool", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "LeakyRelu", "LogSoftmax",
                   "LpNormalization", "Mish", "Neg", "Reciprocal", "ReduceLogSumExp", "ReduceProd", "Relu", "Round",
                   "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Tan", "Tanh",
                   "ThresholdedRelu", "Transpose")
    },
    **{op: (node(op, "x c"), {"c": WEIGHTS[:4]})
       for op in ("Add", "Div", "Max", "Mean", "Min", "Mul", "PRelu", "Sub", "Sum")},
    "Mod": (node("Mod", "x c", fmod=1), {"c": WEIGHTS[:4]}),
    "Slice backwards": (node("Slice", "x s e a t"), {"s": numbers(-1), "e": numbers(-99), "a": numbers(2),
                                                     "t": numbers(-2)}),
    **{f"Pad, {mode}": (node("Pad", "x p", mode=mode), {"p": numbers(0, 1, 2, 0, 1, 1)})
       for mode in ("edge", "reflect", "wrap")},
    "CumSum backwards": (node("CumSum", "x a", exclusive=1, reverse=1), {"a": np.int64(-1)}),
    "GatherND": (node("GatherND", "x i"), {"i": np.asarray([[0, 2], [0, 1]], np.int64)}),
    "ScatterND": (node("ScatterND", "x i v"), {"i": numbers(0).reshape(1, 1), "v": WEIGHTS.reshape(1, 3, 4)}),
    **{op: (node(op, "x axes"), {"axes": numbers(2)})
       for op in ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare")},
    "ReduceMean, axes as attribute": (node("ReduceMean", "x", axes=[1], keepdims=0), {}),
    "Pow": (node("Pow", "x c"), {"c": np.float32(2)}),
    "Clip": (node("Clip", "x low high"), {"low": np.float32(-0.5), "high": np.float32(0.25)}),
    "Gelu": (node("Gelu", "x", approximate="tanh"), {}),
    "Gemm": (node("Gemm", "m c b", transA=1, alpha=0.5, beta=2.0), {"c": WEIGHTS.reshape(3, 4), "b": WEIGHTS[:4]}),
    "MatMul": (node("MatMul", "x c"), {"c": WEIGHTS.reshape(4, 3)}),
    "Einsum": (node("Einsum", "x x", equation="bij,bkj->bik"), {}),
    "LayerNormalization": (node("LayerNormalization", "x s b"), {"s": WEIGHTS[:4], "b": WEIGHTS[4:8]}),
    "BatchNormalization": (node("BatchNormalization", "x s b b v"),
                           {"s": WEIGHTS[:3], "b": WEIGHTS[4:7], "v": WEIGHTS[9:]}),
    "InstanceNormalization": (node("InstanceNormalization", "x s b"), {"s": WEIGHTS[:3], "b": WEIGHTS[4:7]}),
    "Reshape": (node("Reshape", "x c"), {"c": numbers(0, -1, 2)}),
    "Flatten": (node("Flatten", "x", axis=-1), {}),
    "Squeeze": (node("Squeeze", "x c"), {"c": numbers(0)}),
    "Unsqueeze": (node("Unsqueeze", "x c"), {"c": numbers(-1, 0)}),
    "Concat": (node("Concat", "x x", axis=-1), {}),
    "Slice": (node("Slice", "x s e a t"), {"s": numbers(-3, 0), "e": numbers(99, 3), "a": numbers(2, 1),
                                           "t": numbers(1, 2)}),
    "Expand": (node("Expand", "x c"), {"c": numbers(2, 1, 1)}),
    "Tile": (node("Tile", "x c"), {"c": numbers(1, 2, 1)}),
    "Pad": (node("Pad", "x p v"), {"p": numbers(0, 1, 0, 0, 0, 2), "v": np.float32(3)}),
    "Gather, one": (node("Gather", "x i", axis=1), {"i": np.int64(-1)}),
    "Gather, many": (node("Gather", "x i", axis=2), {"i": numbers(2, 0, 1, -1)}),
    "Where": (node("Where", "c x z"), {"c": WEIGHTS[:4] > -0.7, "z": WEIGHTS[3:4]}),
    "Trilu": (node("Trilu", "x k", upper=0), {"k": np.int64(0)}),
    **{op: (node(op, "x c"), {"c": WEIGHTS[:4]})
       for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")},
    **{op: (node(op, "x", axis=1), {}) for op in ("ArgMax", "ArgMin")},
    "TopK": (node("TopK", "x k", axis=1), {"k": numbers(2)}),
    "Split": (node("Split", "x", axis=2, num_outputs=2), {}),
    "Size": (node("Size", "x"), {}),
    "Shape": (node("Shape", "x", start=1), {}),
    "Dropout": (node("Dropout", "x"), {}),
    "Cast": (node("Cast", "x", to=7), {}),
    "CumSum": (node("CumSum", "x k"), {"k": np.int64(2)}),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_each_operator_means_what_onnx_says(name: str, tmp_path: Path) -> None:
    made, constants = NODES[name]
    opset = 20 if name == "Gelu" else 17 if "attribute" in name else 18
    used = {"m": (3, 2)} if "m" in made.input else {"x": (1, 3, 4)}
    if name in ("Shape", "Size"):  # they need no input when the model runs, so one node more
        shaped = helper.make_node(
            made.op_type, ["x"], ["sizes"], **dict[str, Any]((a.name, a.i) for a in made.attribute)
        )
        cast = helper.make_node("Cast", ["sizes"], ["float"], to=1)
        nodes = [shaped, cast, helper.make_node("ReduceSum", ["float"], ["sum"]),
                 helper.make_node("Mul", ["x", "sum"], ["y"])]  # fmt: skip
    else:
        nodes = [made]
    outputs = ["y", "z"] if name in ("TopK", "Split") else ["y"]
    made.output[:] = outputs if len(nodes) == 1 else ["y"]
    same_as_reference(graph(nodes, {**used}, outputs, constants, opset=opset), tmp_path)


def test_several_nodes_mean_what_onnx_says(tmp_path: Path) -> None:
    """Conditions, look-ups at computed places, tables made from constants, and norms by group."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["positive"]),
        helper.make_node("Less", ["x", "half"], ["small"]),
        helper.make_node("And", ["positive", "small"], ["both"]),
        helper.make_node("Not", ["both"], ["other"]),
        helper.make_node("Or", ["other", "small"], ["either"]),
        helper.make_node("Xor", ["either", "positive"], ["mask"]),
        helper.make_node("Abs", ["x"], ["size"]),
        helper.make_node("Sqrt", ["size"], ["root"]),
        helper.make_node("Log", ["root"], ["log"]),
        helper.make_node("Where", ["mask", "log", "root"], ["chosen"]),
        helper.make_node("ArgMax", ["chosen"], ["place"], axis=2),
        helper.make_node("GatherElements", ["chosen", "place"], ["found"], axis=2),
        helper.make_node("Range", ["start", "end", "step"], ["range"]),
        helper.make_node("ConstantOfShape", ["shape"], ["ones"],
                         value=onnx.numpy_helper.from_array(np.ones(1, np.float32))),
        helper.make_node("Mul", ["range", "ones"], ["table"]),
        helper.make_node("Add", ["found", "table"], ["moved"]),
        helper.make_node("GroupNormalization", ["moved", "scale", "bias"], ["y"], num_groups=2),
    ]  # fmt: skip
    constants = {
        "zero": np.float32(0), "half": np.float32(0.5), "start": np.float32(0), "end": np.float32(2),
        "step": np.float32(0.5), "shape": numbers(2, 4, 4), "scale": WEIGHTS[:4], "bias": WEIGHTS[4:8],
    }  # fmt: skip
    same_as_reference(graph(nodes, {"x": (2, 4, 4)}, ["y"], constants, opset=21), tmp_path)


def same_as_reference(made: onnx.ModelProto, folder: Path) -> None:
    """In PyTorch, where operators that no accelerator has work too, as in the ONNX project's evaluator."""
    path = save(made, folder / "net.onnx")
    model = load_onnx(OnnxReference(path))
    names = [entry.name for entry in made.graph.input]
    given = {name: x.numpy() for name, x in zip(names, model.example_inputs, strict=True)}
    wanted = ReferenceEvaluator(made).run(None, given)
    answers = model.module(*model.example_inputs)
    for ours, theirs in zip(answers if isinstance(answers, tuple) else (answers,), wanted, strict=True):
        np.testing.assert_allclose(ours.numpy(), np.asarray(theirs), rtol=1e-5, atol=1e-6)


def test_convolutions_and_pools_mean_what_onnx_says(tmp_path: Path) -> None:
    kernel = np.linspace(-1, 1, 3 * 2 * 3 * 3, dtype=np.float32).reshape(3, 2, 3, 3)
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["a"], pads=[1, 0, 0, 1], strides=[1, 2]),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], strides=[1, 1]),
        helper.make_node("AveragePool", ["b"], ["y"], kernel_shape=[2, 2], pads=[1, 1, 1, 1]),
    ]
    same_as_reference(graph(nodes, {"x": (1, 2, 7, 8)}, ["y"], {"k": kernel}), tmp_path)


_KERNEL = np.linspace(-1, 1, 2 * 3 * 3 * 2, dtype=np.float32)
WINDOWS: dict[str, onnx.NodeProto] = {
    "Conv, padded at the end": node("Conv", "x k", auto_pad="SAME_UPPER", strides=[2, 2]),
    "Conv, padded at the beginning": node("Conv", "x k", auto_pad="SAME_LOWER", dilations=[2, 1]),
    "MaxPool over the end": node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "MaxPool, padded much": node("MaxPool", "x", kernel_shape=[2, 2], pads=[1, 0, 1, 1], dilations=[1, 2]),
    "AveragePool over the end": node("AveragePool", "x", kernel_shape=[3, 2], strides=[2, 2], pads=[0, 1, 1, 0],
                                     ceil_mode=1),
    "AveragePool, its padding counts": node("AveragePool", "x", kernel_shape=[3, 2], pads=[0, 1, 1, 0],
                                            count_include_pad=1),
    "ConvTranspose": node("ConvTranspose", "x t", strides=[2, 2], pads=[0, 1, 1, 0], output_padding=[1, 0]),
    "ConvTranspose of a given size": node("ConvTranspose", "x t", strides=[2, 2], output_shape=[16, 17]),
    "LRN over an even number of channels": node("LRN", "n", size=4, alpha=0.5, beta=0.6, bias=1.5),
    "GlobalMaxPool": node("GlobalMaxPool", "x"),
    "DepthToSpace": node("DepthToSpace", "d", blocksize=2, mode="CRD"),
    "SpaceToDepth": node("SpaceToDepth", "e", blocksize=2),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_lie_as_onnx_says(name: str, tmp_path: Path) -> None:
    made = WINDOWS[name]
    shapes = {"x": (1, 2, 7, 8), "d": (1, 8, 2, 3), "e": (1, 2, 4, 6)}
    shapes["n"] = (8, 8, 2, 3)  # of LRN the reference computes as many channels as there are frames, others are zero
    kernels = {"k": _KERNEL.reshape(3, 2, 3, 2), "t": _KERNEL.reshape(2, 3, 3, 2)}
    constants = {name: value for name, value in kernels.items() if name in made.input}
    model = graph([made], {made.input[0]: shapes[made.input[0]]}, ["y"], constants, opset=19)
    same_as_reference(model, tmp_path)


def test_shapes_that_the_graph_computes_are_known_at_compile_time(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "one"], ["n"]),
        helper.make_node("Mul", ["n", "two"], ["m"]),
        helper.make_node("Concat", ["m", "minus"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    constants = {"one": numbers(1), "two": numbers(2), "minus": numbers(-1)}
    path = save(graph(nodes, {"x": (4, 3)}, ["y"], constants), tmp_path / "net.onnx")
    assert import_model(str(path)).signature.outputs[0].shape == (6, 2)


def test_a_size_of_minus_one_is_open(tmp_path: Path) -> None:
    """As Paddle's exporter writes it."""
    path = save(graph([node("Relu", "x")], {"x": (-1, 3, -1)}, ["y"]), tmp_path / "net.onnx")
    with pytest.raises(PenstockError, match=r"model.onnx\?x.2=1"):
        import_model(str(path))
    program = import_model(f"{path}?x.2=5")
    assert program.signature.inputs[0].shape == (1, 3, 5)
    assert any("x.0" in note for note in program.notes)
    path = save(graph([node("Relu", "x")], {"x": ("?", "?", 4)}, ["y"]), tmp_path / "net.onnx")
    assert import_model(f"{path}?x.1=5").signature.inputs[0].shape == (1, 5, 4)
    assert any("calibration=FILE" in note for note in program.notes)


def test_a_dim_that_the_file_leaves_open_can_be_given(tmp_path: Path) -> None:
    path = save(graph([node("Relu", "x")], {"x": (2, "steps")}, ["y"]), tmp_path / "net.onnx")
    assert import_model(f"{path}?steps=3").signature.inputs[0].shape == (2, 3)
    with pytest.raises(PenstockError, match=r"input 'x' of .*dim 1 \('steps'\) is dynamic.*model.onnx\?steps=1"):
        import_model(str(path))
    with pytest.raises(PenstockError, match="no input has a dim called 'rows'"):
        import_model(f"{path}?rows=3")


@pytest.mark.parametrize(("first", "name"), [("batch", "batch"), (None, "x.0")])
def test_an_open_first_dim_is_a_batch_of_one_unless_the_reference_says_more(
    first: str | None, name: str, tmp_path: Path
) -> None:
    path = save(graph([node("Relu", "x")], {"x": (first, 4)}, ["y"]), tmp_path / "net.onnx")
    program = import_model(str(path))
    assert program.signature.inputs[0].shape == (1, 4)
    assert program.notes[0] == f"The file leaves dim 0 of 'x' open: it is 1 here, and net.onnx?{name}=8 makes it 8."
    given = import_model(f"{path}?{name}=3")
    assert given.signature.inputs[0].shape == (3, 4)
    assert program.notes[1:] == given.notes, "that its inputs are random numbers"
