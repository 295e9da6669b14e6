"""A model around the layers that share an accelerator, as data: operations of the host, and calls of a layer."""

# some of torch's classes come without types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.export import export
from penstock.compiler.frontend.host_regions import reach
from penstock.compiler.frontend.lift import numbers_of, refuse_mutation, state_value
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.origins import origin_of
from penstock.compiler.frontend.repeated_layers import LayerCall, RepeatedLayers, calls_replaced
from penstock.compiler.frontend.results import name_results
from penstock.compiler.frontend.split_host import document_of, port_of, tables_of
from penstock.compiler.runtime.penstock_runtime.host import LAYER

_KNOWN: list[LayerCall] = []
"""The call whose answers have the shapes that the operation below is to tell; one import runs in a process."""


@torch.library.custom_op("penstock::layer", mutates_args=())
def _layer(tensors: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    raise AssertionError(f"layer {number} of {len(tensors)} tensors is traced, never computed")


@_layer.register_fake
def _(tensors: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    return [tensors[0].new_empty(x.shape, dtype=x.dtype) for x in _KNOWN[-1].outputs if x is not None]


@dataclass(frozen=True)
class Whole:
    """`Layers.graph` and the tensors that it names."""

    graph: dict[str, Any]
    values: dict[str, Array]


def whole_of(model: LoadedModel, layers: RepeatedLayers) -> Whole:
    """The model with a call where each layer stands."""
    _KNOWN.append(layers.calls[0])
    try:
        with calls_replaced(layers, _layer):
            program = export(replace(model, evaluation=None))
    finally:
        _KNOWN.pop()
    refuse_mutation(program, model)
    return _document(program, model, layers)


def _document(program: ExportedProgram, model: LoadedModel, layers: RepeatedLayers) -> Whole:
    signature = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    inputs = [n for n in placeholders if signature[n.name].target is None]
    values = {n.name: numbers_of(state_value(program, str(signature[n.name].target)))
              for n in placeholders if n not in inputs and n.users}  # fmt: skip
    names = name_results(program)
    nodes: list[dict[str, Any]] = []
    for node in program.graph.nodes:
        if node.op == "call_function":
            nodes.append(_call(node, inputs, model, layers) if node.target is torch.ops.penstock.layer.default else
                         document_of(node, "stands around the layers", _name, model))  # fmt: skip
    (output,) = (n for n in program.graph.nodes if n.op == "output")
    results: list[Node] = list(output.args[0])
    return Whole(
        {
            "inputs": [port_of(n.name, n) for n in inputs],
            "outputs": [port_of(name, n) for name, n in zip(names, results, strict=True)],
            "tables": tables_of([n for n in program.graph.nodes if n.op == "call_function"], inputs),
            "nodes": nodes,
            "results": [n.name for n in results],
        },
        {name: np.ascontiguousarray(value) for name, value in values.items()},
    )


def _name(node: Node) -> str:
    return node.name


def _call(node: Node, inputs: Collection[Node], model: LoadedModel, layers: RepeatedLayers) -> dict[str, Any]:
    tensors, number = node.args
    assert isinstance(tensors, list | tuple)
    assert isinstance(number, int)
    given = [x for x in tensors if isinstance(x, Node)]
    taken = len(layers.calls[number].tensors)
    if len(given) < taken or not reach(given[taken:], lambda n: n.all_input_nodes).isdisjoint(inputs):
        raise PenstockError(
            code="layers-differ", where=model.reference,
            what=f"layer {layers.names[number]!r} is not given the tensors that it was given on the example inputs",
            limit="what a layer takes does not depend on the numbers in the model's inputs",
            hint="give example inputs with which it is given that, as a mask that leaves something out",
        )  # fmt: skip
    called = [{"value": x.name} for x in given[:taken]]
    return {"name": node.name, "op": LAYER, "number": number, "args": called, "layer": origin_of(node).path}
