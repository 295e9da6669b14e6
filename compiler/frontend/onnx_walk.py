"""What lies deep inside an ONNX file: graphs in attributes, nodes and tensors in these and in functions."""

# protobuf's messages come with partial types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that a node holds: branches, and bodies of loops."""
    return [g for a in node.attribute for g in (*([a.g] if a.HasField("g") else []), *a.graphs)]


def all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Those inside others and in the file's own functions too."""
    yield from _nodes(model.graph.node)
    for function in model.functions:
        yield from _nodes(function.node)


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor that the file stores."""
    yield from model.graph.initializer
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for graph in graphs_of(node):
            yield from graph.initializer


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for graph in graphs_of(node):
            yield from _nodes(graph.node)
