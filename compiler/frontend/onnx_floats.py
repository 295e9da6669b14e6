"""Files in half or double precision: their numbers become float32, as those of PyTorch's models do."""

# protobuf's messages come with partial types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from penstock.compiler.arrays import Array
from penstock.compiler.frontend.onnx_walk import all_nodes, all_tensors, graphs_of

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
        _FLOATS[tensor.data_type] for tensor in all_tensors(model) if tensor.data_type in _FLOATS
    } | {_FLOATS[kind.elem_type] for kind in _types(model.graph) if kind.elem_type in _FLOATS}  # fmt: skip
    if not found:
        return ""
    for tensor in all_tensors(model):
        if tensor.data_type in _FLOATS:
            with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, and is looked at later
                values = read(tensor).astype(np.float32)
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(values, name))
    for kind in _types(model.graph):
        if kind.elem_type in _FLOATS:
            kind.elem_type = TensorProto.FLOAT
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.name in _SAY_TYPES and attribute.i in _FLOATS:
                attribute.i = TensorProto.FLOAT
    return (
        f"values of the file in {' and '.join(sorted(found))} were converted: the model runs in float32, "
        "and so do the answers that it is held against"
    )


def _types(graph: onnx.GraphProto) -> Iterator[onnx.TypeProto.Tensor]:
    for entry in (*graph.input, *graph.output, *graph.value_info):
        if entry.type.HasField("tensor_type"):
            yield entry.type.tensor_type
    for node in graph.node:
        for inner in graphs_of(node):
            yield from _types(inner)
