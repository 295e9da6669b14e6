"""Files in half or double precision: their numbers become float32, as those of PyTorch's models do."""

# protobuf's messages come with partial types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from penstock.compiler.arrays import Array

_FLOATS: dict[int, str] = {
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.DOUBLE: "float64",
}
_SAY_TYPES = ("to", "dtype", "output_dtype")
"""Attributes that name the type of a result."""


def in_float32(model: onnx.ModelProto, read: Callable[[TensorProto], Array]) -> str:
    """Change the model in place; a sentence about it, or nothing. `read` gives a tensor's numbers."""
    found = {
        _FLOATS[tensor.data_type] for tensor in _tensors_of(model) if tensor.data_type in _FLOATS
    } | {_FLOATS[kind.elem_type] for kind in _types(model.graph) if kind.elem_type in _FLOATS}  # fmt: skip
    if not found:
        return ""
    for tensor in _tensors_of(model):
        if tensor.data_type in _FLOATS:
            with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is looked at later
                values = read(tensor).astype(np.float32)
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(values, name))
    for kind in _types(model.graph):
        if kind.elem_type in _FLOATS:
            kind.elem_type = TensorProto.FLOAT
    for nodes in _bodies(model):
        for node in nodes:
            _say_float(node)
    return (
        f"values of the file in {' and '.join(sorted(found))} were converted: the model runs in float32, "
        "and so do the answers that it is held against"
    )


def _say_float(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.name in _SAY_TYPES and attribute.i in _FLOATS:
            attribute.i = TensorProto.FLOAT
        for graph in _graphs(attribute):
            for inner in graph.node:
                _say_float(inner)


def _bodies(model: onnx.ModelProto) -> Iterator[Sequence[onnx.NodeProto]]:
    yield model.graph.node
    yield from (function.node for function in model.functions)


def _tensors_of(model: onnx.ModelProto) -> Iterator[TensorProto]:
    yield from model.graph.initializer
    for nodes in _bodies(model):
        yield from _tensors(nodes)


def _tensors(nodes: Sequence[onnx.NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for graph in _graphs(attribute):
                yield from graph.initializer
                yield from _tensors(graph.node)


def _types(graph: onnx.GraphProto) -> Iterator[onnx.TypeProto.Tensor]:
    for entry in (*graph.input, *graph.output, *graph.value_info):
        if entry.type.HasField("tensor_type"):
            yield entry.type.tensor_type
    for node in graph.node:
        for attribute in node.attribute:
            for inner in _graphs(attribute):
                yield from _types(inner)


def _graphs(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
