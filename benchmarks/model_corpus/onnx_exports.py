"""ONNX files as three kinds of exporters write them: PyTorch's two, and converters of other frameworks.

What scikit-learn's and TensorFlow's converters write is made here by hand, node for node: the packages are large.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from benchmarks.model_corpus import plain_models
from benchmarks.model_corpus.common import Model

OPSET = 18


def write(name: str, folder: Path) -> Path:
    """The file `NAME.onnx` in the folder."""
    path = folder / f"{name}.onnx"
    WRITERS[name](path)
    return path


def _torch_export(model: Callable[[], Model], *, dynamo: bool) -> Callable[[Path], None]:
    def export(path: Path) -> None:
        module, inputs = model()
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module, inputs, str(path), dynamo=dynamo, opset_version=OPSET, external_data=False, verbose=False
            )

    return export


class _Graph:
    """A graph written node by node, with random weights that are the same each time."""

    def __init__(self, opset: int = OPSET) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.numbers = np.random.default_rng(0)
        self.opset = opset

    def weight(self, name: str, *shape: int) -> str:
        bound = shape[-1] ** -0.5 if shape else 1.0
        return self.constant(name, self.numbers.uniform(-bound, bound, shape).astype(np.float32))

    def constant(self, name: str, value: object) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=f"{output}/{kind}", **attributes))
        return output

    def save(
        self, path: Path, inputs: dict[str, tuple[int | str, ...]], outputs: dict[str, tuple[int | str, ...]]
    ) -> None:
        def typed(given: dict[str, tuple[int | str, ...]]) -> list[onnx.ValueInfoProto]:
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(s)) for n, s in given.items()]

        graph = helper.make_graph(self.nodes, path.stem, typed(inputs), typed(outputs), self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, str(path))


def _sklearn_mlp(path: Path) -> None:
    """As skl2onnx writes an MLPClassifier: Cast, MatMul, Add, Relu, Softmax."""
    g = _Graph()
    x = g.node("Cast", ["X"], "cast_input", to=TensorProto.FLOAT)
    for layer, (here, there) in enumerate(((8, 16), (16, 16), (16, 3))):
        x = g.node(
            "MatMul", [x, g.weight(f"coefficient{layer}" if layer else "coefficient", here, there)], f"mul{layer}"
        )
        x = g.node("Add", [x, g.weight(f"intercepts{layer}" if layer else "intercepts", 1, there)], f"add{layer}")
        if layer < 2:
            x = g.node("Relu", [x], f"next_activations{layer}")
    g.node("Softmax", [x], "probabilities", axis=1)
    g.save(path, {"X": (4, 8)}, {"probabilities": (4, 3)})


def _sklearn_scaler_regression(path: Path) -> None:
    """As skl2onnx writes a StandardScaler and a linear regression: Sub, Div, Gemm, Reshape."""
    g = _Graph()
    x = g.node("Sub", ["X", g.constant("mean", np.linspace(-1, 1, 8, dtype=np.float32))], "centred")
    x = g.node("Div", [x, g.constant("scale", np.linspace(1, 2, 8, dtype=np.float32))], "scaled")
    x = g.node("Gemm", [x, g.weight("coef", 8, 1), g.weight("intercept", 1)], "multiplied", alpha=1.0, beta=1.0)
    g.node("Reshape", [x, g.constant("shape", np.array([-1, 1], dtype=np.int64))], "variable")
    g.save(path, {"X": (4, 8)}, {"variable": (4, 1)})


def _keras_dense(path: Path) -> None:
    """As tf2onnx writes Keras' dense layers: names with slashes and colons, MatMul and Add, an Identity at the end."""
    g = _Graph(15)
    x = "dense_input:0"
    for layer, (here, there) in enumerate(((8, 16), (16, 4))):
        root = f"sequential/dense_{layer}"
        x = g.node("MatMul", [x, g.weight(f"{root}/MatMul/ReadVariableOp:0", here, there)], f"{root}/MatMul:0")
        x = g.node("Add", [x, g.weight(f"{root}/BiasAdd/ReadVariableOp:0", there)], f"{root}/BiasAdd:0")
        if not layer:
            x = g.node("Relu", [x], f"{root}/Relu:0")
    x = g.node("Softmax", [x], "sequential/Softmax:0", axis=-1)
    g.node("Identity", [x], "Identity:0")
    g.save(path, {"dense_input:0": (2, 8)}, {"Identity:0": (2, 4)})


def _keras_layer_norm_gelu(path: Path) -> None:
    """As tf2onnx takes LayerNormalization and GELU apart: ReduceMean, Sub, Mul, Sqrt, Reciprocal, Erf."""
    g = _Graph(17)
    mean = g.node("ReduceMean", ["x"], "mean", axes=[-1], keepdims=1)
    centred = g.node("Sub", ["x", mean], "centred")
    square = g.node("Mul", [centred, centred], "square")
    variance = g.node("ReduceMean", [square], "variance", axes=[-1], keepdims=1)
    shifted = g.node("Add", [variance, g.constant("epsilon", np.float32(1e-3))], "shifted")
    inverse = g.node("Reciprocal", [g.node("Sqrt", [shifted], "deviation")], "inverse")
    scale = g.node("Mul", [inverse, g.constant("gamma", np.linspace(0.5, 1.5, 8, dtype=np.float32))], "scale")
    normed = g.node("Mul", [centred, scale], "normed")
    x = g.node("MatMul", [normed, g.weight("kernel", 8, 12)], "projected")
    inner = g.node("Erf", [g.node("Mul", [x, g.constant("half", np.float32(0.70710678))], "scaled")], "erf")
    inner = g.node("Mul", [g.node("Add", [inner, g.constant("one", np.float32(1))], "plus"), x], "product")
    g.node("Mul", [inner, g.constant("halves", np.float32(0.5))], "y")
    g.save(path, {"x": (4, 8)}, {"y": (4, 12)})


def _keras_attention(path: Path) -> None:
    """Attention as tf2onnx writes einsum and reshapes: Reshape, Transpose, MatMul, Softmax."""
    g = _Graph(15)
    heads: dict[str, str] = {}
    shape = g.constant("shape", np.array([1, 6, 2, 4], dtype=np.int64))
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        x = g.node("MatMul", ["x", g.weight(f"{name}_kernel", 8, 8)], f"{name}_matmul")
        x = g.node("Reshape", [x, shape], f"{name}_split")
        heads[name] = g.node("Transpose", [x], f"{name}_heads", perm=order)
    scores = g.node("MatMul", [heads["q"], heads["k"]], "scores")
    scores = g.node("Mul", [scores, g.constant("scale", np.float32(0.5))], "scaled")
    mixed = g.node("MatMul", [g.node("Softmax", [scores], "weights", axis=-1), heads["v"]], "mixed")
    joined = g.node("Transpose", [mixed], "back", perm=[0, 2, 1, 3])
    joined = g.node("Reshape", [joined, g.constant("flat", np.array([1, 6, 8], dtype=np.int64))], "joined")
    g.node("MatMul", [joined, g.weight("out_kernel", 8, 8)], "y")
    g.save(path, {"x": (1, 6, 8)}, {"y": (1, 6, 8)})


def _open_batch(path: Path) -> None:
    """A Gemm with transposed weights and a batch that the file leaves open, clipped, as many exporters write it."""
    g = _Graph(13)
    x = g.node("Gemm", ["x", g.weight("w0", 12, 6), g.weight("b0", 12)], "h0", transB=1)
    x = g.node("Clip", [x, g.constant("low", np.float32(0)), g.constant("high", np.float32(6))], "h1")
    g.node("Gemm", [x, g.weight("w1", 3, 12), g.weight("b1", 3)], "y", transB=1)
    g.save(path, {"x": ("batch", 6)}, {"y": ("batch", 3)})


_DYNAMO = ("hls4ml_jet_tagging", "residual_mlp", "attention_pooling", "patch_embedding_vit")
_SCRIPT = ("hls4ml_jet_tagging", "finn_tfc_batch_norm", "vae", "gru_classifier")
_BY_HAND: dict[str, Callable[[Path], None]] = {
    "onnx-sklearn-mlp": _sklearn_mlp,
    "onnx-sklearn-scaler": _sklearn_scaler_regression,
    "onnx-keras-dense": _keras_dense,
    "onnx-keras-norm-gelu": _keras_layer_norm_gelu,
    "onnx-keras-attention": _keras_attention,
    "onnx-open-batch": _open_batch,
}
DIMS = {"onnx-open-batch": "batch=2"}
"""Sizes for dims that a file leaves open."""


def _exports(names: tuple[str, ...], kind: str, *, dynamo: bool) -> dict[str, Callable[[Path], None]]:
    return {
        f"onnx-{kind}-{name.replace('_', '-')}": _torch_export(getattr(plain_models, name), dynamo=dynamo)
        for name in names
    }


_BY_DYNAMO = _exports(_DYNAMO, "dynamo", dynamo=True)
WRITERS = {**_BY_HAND, **_exports(_SCRIPT, "script", dynamo=False), **_BY_DYNAMO}
NEEDS = dict.fromkeys(_BY_DYNAMO, "onnxscript")
