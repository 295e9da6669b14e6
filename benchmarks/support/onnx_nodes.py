"""ONNX's operators, each as one node between two matrix products; `x` is [2, 4, 8] where it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSET = 18
"""Of the operators that it has; a newer one is written at the opset that brought it."""
_UNARY = (
    "Abs", "Neg", "Sign", "Exp", "Erf", "Sin", "Cos", "Tan", "Tanh", "Sinh", "Cosh", "Atan", "Asinh", "Floor", "Ceil",
    "Round", "Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Sigmoid", "HardSigmoid", "HardSwish", "Softplus", "Softsign",
    "Mish", "Gelu", "Swish", "ThresholdedRelu", "Identity", "Softmax", "LogSoftmax", "Shrink", "Flatten", "Transpose",
    "Size", "GlobalAveragePool", "GlobalMaxPool", "Hardmax", "Shape", "LpNormalization",
)  # fmt: skip
_POSITIVE = ("Log", "Sqrt", "Reciprocal")
_BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Mod")
_REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip
_OF_CONDITIONS = ("Where", "Not", "And", "Or", "Xor")
_OF_INTEGERS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
_COMPARISONS = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal")


@dataclass(frozen=True)
class Node:
    """How an operator is tried: constants behind `x`, attributes, and the shape that `x` has.

    One that makes numbers of constants is `alone`: they are added to what stands before it.
    """

    constants: tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shape: tuple[int, ...] = (2, 4, 8)
    positive: bool = False
    results: int = 1
    alone: bool = False


def _floats(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)


def _ints(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def _inside(kind: str, reads: tuple[str, ...], *, turns: bool = False) -> onnx.GraphProto:
    """The graph of a branch, or with `turns` of a loop: one node, whose result is also what the next turn gets."""
    here = [_value(name, (2, 4, 8)) for name in reads if name != "before"]
    nodes, outputs = [helper.make_node(kind, reads, ["made"])], [_value("made", (2, 4, 8))]
    if not turns:
        return helper.make_graph(nodes, "inside", here, outputs)
    goes_on = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("goes_on", "still")]
    nodes.append(helper.make_node("Identity", ["goes_on"], ["still"]))
    turn = helper.make_tensor_value_info("turn", TensorProto.INT64, [])
    return helper.make_graph(nodes, "inside", [turn, goes_on[0], *here], [goes_on[1], *outputs])


def _step() -> onnx.GraphProto:
    row, made = _value("row", (4, 8)), _value("made", (4, 8))
    return helper.make_graph([helper.make_node("Relu", ["row"], ["made"])], "inside", [row], [made])


def _value(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _bytes(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-9, 9, shape, dtype=np.int8)


_STEP = (np.float32(0.1), np.int8(0))
_OF_QUANTISED = ("DequantizeLinear", "QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger")
_NARROW = (TensorProto.BOOL, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8)
_IMAGE = (1, 3, 6, 6)
NODES: dict[str, Node] = {
    **dict.fromkeys(_UNARY, Node()),
    **dict.fromkeys(_POSITIVE, Node(positive=True)),
    **dict.fromkeys(_BINARY, Node((_floats(8),))),
    **dict.fromkeys(_OF_INTEGERS, Node()),
    **dict.fromkeys(_COMPARISONS, Node((_floats(8),))),
    **dict.fromkeys(_REDUCTIONS, Node((), {"keepdims": 1}, positive=True)),
    "Mod": Node((_floats(8),), {"fmod": 1}),
    "Transpose": Node((), {"perm": [0, 2, 1]}),
    "GlobalAveragePool": Node(shape=_IMAGE), "GlobalMaxPool": Node(shape=_IMAGE),
    "Pow": Node((np.float32(2),), positive=True), "PRelu": Node((_floats(8),)),
    "Clip": Node((np.float32(-0.5), np.float32(0.5))), "Dropout": Node(), "Cast": Node((), {"to": TensorProto.FLOAT}),
    "Gemm": Node((_floats(8, 5), _floats(5)), shape=(4, 8)), "MatMul": Node((_floats(8, 5),)),
    "Einsum": Node((_floats(8, 5),), {"equation": "bij,jk->bik"}),
    "Reshape": Node((_ints(2, 8, 4),)), "Squeeze": Node((_ints(0),), shape=(1, 4, 8)), "Unsqueeze": Node((_ints(1),)),
    "Concat": Node((_floats(2, 4, 8),), {"axis": 1}), "Split": Node((_ints(4, 4),), {"axis": 2}, results=2),
    "Slice": Node((_ints(1), _ints(3), _ints(1))), "Expand": Node((_ints(2, 4, 8),), shape=(1, 4, 8)),
    "Tile": Node((_ints(1, 2, 1),)), "Pad": Node((_ints(0, 0, 1, 0, 0, 1),)),
    "Gather": Node((_ints(2, 0),), {"axis": 1}), "GatherElements": Node((np.zeros((2, 4, 8), np.int64),), {"axis": 1}),
    "GatherND": Node((np.zeros((2, 1), np.int64),)),
    "ScatterElements": Node((np.zeros((1, 4, 8), np.int64), _floats(1, 4, 8))),
    "ScatterND": Node((np.zeros((1, 1), np.int64), _floats(1, 4, 8))),
    "OneHot": Node((np.array(4, np.int64), np.array([0, 1], np.float32))), "NonZero": Node(), "Where": Node(),
    "TopK": Node((_ints(2),), {"axis": -1}, results=2), "ArgMax": Node(), "ArgMin": Node(),
    "CumSum": Node((np.array(1, np.int64),)), "CumProd": Node((np.array(1, np.int64),)),
    "Trilu": Node((), {"upper": 0}),
    "LayerNormalization": Node((_floats(8), _floats(8))),
    "BatchNormalization": Node((_floats(4), _floats(4), _floats(4), _floats(4))),
    "InstanceNormalization": Node((_floats(4), _floats(4))),
    "GroupNormalization": Node((_floats(4), _floats(4)), {"num_groups": 2}), "RMSNormalization": Node((_floats(8),)),
    "Attention": Node((_floats(2, 5, 8), _floats(2, 5, 8)), {"q_num_heads": 2, "kv_num_heads": 2}),
    "RotaryEmbedding": Node((_floats(2, 4, 2), _floats(2, 4, 2)), {"num_heads": 2}),
    "SwiGLU": Node((_floats(2, 4, 8),)),
    "LRN": Node((), {"size": 3}, shape=_IMAGE), "MeanVarianceNormalization": Node(shape=_IMAGE),
    "LpPool": Node((), {"kernel_shape": [2, 2], "strides": [2, 2]}, shape=_IMAGE),
    "CastLike": Node((np.float32(0),)), "Compress": Node((np.array([True, False, True, True]),), {"axis": 1}),
    "EyeLike": Node(shape=(8, 8)), "ReverseSequence": Node((_ints(2, 1),), {"batch_axis": 0, "time_axis": 1}),
    "Conv": Node((_floats(4, 3, 3, 3),), shape=_IMAGE), "ConvTranspose": Node((_floats(3, 4, 2, 2),), shape=_IMAGE),
    "MaxPool": Node((), {"kernel_shape": [2, 2], "strides": [2, 2]}, shape=_IMAGE),
    "AveragePool": Node((), {"kernel_shape": [2, 2], "strides": [2, 2]}, shape=_IMAGE),
    "Resize": Node((np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)), shape=_IMAGE),
    "DepthToSpace": Node((), {"blocksize": 2}, shape=(1, 4, 3, 3)),
    "SpaceToDepth": Node((), {"blocksize": 2}, shape=_IMAGE),
    "LSTM": Node((_floats(1, 24, 8), _floats(1, 24, 6)), {"hidden_size": 6}),
    "GRU": Node((_floats(1, 18, 8), _floats(1, 18, 6)), {"hidden_size": 6}),
    "RNN": Node((_floats(1, 6, 8), _floats(1, 6, 6)), {"hidden_size": 6}),
    "QuantizeLinear": Node(_STEP), "DequantizeLinear": Node(_STEP), "DynamicQuantizeLinear": Node(results=3),
    "QLinearMatMul": Node((*_STEP, _bytes(8, 5), *_STEP, *_STEP)), "MatMulInteger": Node((_bytes(8, 5),)),
    "QLinearConv": Node((*_STEP, _bytes(4, 3, 3, 3), *_STEP, *_STEP), shape=_IMAGE),
    "ConvInteger": Node((_bytes(4, 3, 3, 3),), shape=_IMAGE),
    "If": Node((np.array(True),), {"then_branch": _inside("Relu", ("before",)),
                                   "else_branch": _inside("Neg", ("before",))}, alone=True),
    "Loop": Node((np.array(2, np.int64), np.array(True), _floats(2, 4, 8)),
                 {"body": _inside("Add", ("state", "before"), turns=True)}, alone=True),
    "Constant": Node((), {"value_float": 0.5}, alone=True), "Scan": Node((), {"body": _step(), "num_scan_inputs": 1}),
    "Range": Node((np.float32(0), np.float32(8), np.float32(1)), alone=True),
    "ConstantOfShape": Node((_ints(2, 4, 8),), alone=True),
}  # fmt: skip


def _newest(opset: int) -> dict[str, Any]:
    """The default domain's operators at an opset, without those that were withdrawn."""
    history = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == "" and s.since_version <= opset]
    newest = {schema.name: schema for schema in sorted(history, key=lambda s: s.since_version)}
    return {name: schema for name, schema in newest.items() if not schema.deprecated}


def all_operators() -> list[str]:
    return sorted({**_newest(OPSET), **_newest(onnx.defs.onnx_opset_version())})


def _opset_of(operator: str) -> int:
    known = _newest(OPSET)
    return OPSET if operator in known else _newest(onnx.defs.onnx_opset_version())[operator].since_version


def write(operator: str, path: Path) -> None:
    """A model with the operator between a matrix product before and one behind, where its result lets that be."""
    tried = NODES.get(operator, Node())
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def constant(value: Any) -> str:
        weights.append(numpy_helper.from_array(np.asarray(value), f"constant{len(weights)}"))
        return weights[-1].name

    width = tried.shape[-1]
    nodes.append(helper.make_node("MatMul", ["x", constant(_floats(width, width) / width)], ["before"], name="before"))
    given = "before"
    if tried.positive:
        nodes.append(helper.make_node("Mul", ["before", "before"], ["square"], name="square"))
        nodes.append(helper.make_node("Add", ["square", constant(np.float32(0.5))], ["positive"], name="positive"))
        given = "positive"
    inputs = [given, *(constant(value) if np.size(value) else "" for value in tried.constants)]
    if operator in _OF_CONDITIONS:
        nodes.append(helper.make_node("Greater", [given, constant(np.float32(0))], ["condition"], name="condition"))
        nodes.append(helper.make_node("Less", [given, constant(np.float32(1))], ["other"], name="other"))
        inputs = {"Where": ["condition", given, constant(_floats(8))], "Not": ["condition"]}.get(
            operator, ["condition", "other"]
        )
    if operator in _OF_INTEGERS:
        nodes.append(helper.make_node("Cast", [given], ["whole"], name="whole", to=TensorProto.INT32))
        inputs = ["whole", *([constant(np.array(5, np.int32))] if operator != "BitwiseNot" else [])]
    if operator in _OF_QUANTISED:  # they read integers only
        step = [given, *map(constant, _STEP)]
        nodes.append(helper.make_node("QuantizeLinear", step, ["quantised"], name="quantised"))
        inputs[0] = "quantised"
    results = [f"y{i}" for i in range(tried.results)]
    inputs = inputs[1:] if tried.alone else inputs
    nodes.append(helper.make_node(operator, inputs, results, name="node", **tried.attributes))
    if tried.alone:
        nodes.append(helper.make_node("Add", [given, *results], ["added"], name="added"))
        results = ["added"]
    opset = _opset_of(operator)
    outputs = _with_product_behind(nodes, weights, results, tried.shape, constant, opset)
    graph = helper.make_graph(nodes, path.stem, [_value("x", tried.shape)], outputs, weights)
    onnx.save(_model(graph, opset), str(path))


def _with_product_behind(
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
    results: list[str],
    shape: tuple[int, ...],
    constant: Any,
    opset: int,
) -> list[onnx.ValueInfoProto]:
    last = helper.make_graph(
        nodes, "g", [_value("x", shape)], [helper.make_empty_tensor_value_info(results[0])], weights
    )
    try:
        found = shape_inference.infer_shapes(_model(last, opset), data_prop=True).graph.output[0]
    except shape_inference.InferenceError:  # an operator that cannot be fed with what stands before it
        found = last.output[0]
    sizes = tuple(dim.dim_value for dim in found.type.tensor_type.shape.dim)
    kind = found.type.tensor_type.elem_type
    if kind in _NARROW and sizes:
        nodes.append(helper.make_node("Cast", results[:1], ["cast"], name="cast", to=TensorProto.FLOAT))
        results, kind = ["cast"], TensorProto.FLOAT
    if kind == TensorProto.FLOAT and sizes and all(sizes):
        weight = constant(_floats(sizes[-1], 3))
        nodes.append(helper.make_node("MatMul", [results[0], weight], ["behind"], name="behind"))
        return [_value("behind", (*sizes[:-1], 3))]
    return [helper.make_tensor_value_info(results[0], kind or TensorProto.FLOAT, sizes if kind else [None])]


def _model(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    version = 8 if opset == OPSET else helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)
