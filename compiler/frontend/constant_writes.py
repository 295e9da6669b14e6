"""Sums at places that the model states itself: a product with zeros and ones, which the accelerator has.

`index_add` and `scatter_add` with a tensor that was made once: how the nodes of a graph whose edges are known add up
what comes along them.
"""

# torch's operations and classes come without types
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from penstock.compiler.frontend.constant_look_ups import MOST_ONES, known_value, replace_by
from penstock.compiler.frontend.graph_calls import GraphCall

aten = torch.ops.aten


def replace_constant_writes(program: ExportedProgram) -> None:
    """In place. Places that are not known here, are too many, or differ from row to row, stay for the host."""
    for node in list(program.graph.nodes):
        if (given := _given(node)) is not None and _places_are_known(program, *given):
            replace_by(program, node, lambda call, given=given: _summed(call, *given))
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()


def _given(node: Node) -> tuple[Node, int, Any, Node] | None:
    """What is added to, along which dim, at which places, and what; `index_add` has become `index_put` by now."""
    args: Any = node.args
    if node.target is aten.scatter_add.default:
        x, dim, index, new = args
    elif node.target is aten.index_put.default and len(args) == 4 and args[3]:
        x, indices, new = args[:3]
        given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
        if len(given) != 1:
            return None
        ((dim, index),) = given
    else:
        return None
    return (x, dim % x.meta["val"].dim(), index, new) if x.meta["val"].dim() else None


def _places_are_known(program: ExportedProgram, x: Node, dim: int, index: Any, new: Node) -> bool:
    """And the same for all rows along `dim`, and as many as rows are added."""
    value, added, places = x.meta["val"], new.meta["val"], known_value(program, index)
    if places is None or places.dtype == torch.bool or not places.numel() or not value.is_floating_point():
        return False
    others = [i for i in range(value.dim()) if i != dim]
    if added.dim() != value.dim() or any(added.shape[i] != value.shape[i] for i in others):
        return False
    if places.numel() * value.shape[dim] > MOST_ONES:
        return False
    if places.dim() < 2:
        return bool(places.numel() == added.shape[dim] and places.min() >= 0)
    return places.shape == added.shape and not any(bool((places != places.narrow(i, 0, 1)).any()) for i in others)


def _summed(call: GraphCall, x: Node, dim: int, index: Node, new: Node) -> Node:
    shape, count = list(x.meta["val"].shape), new.meta["val"].shape[dim]
    others = [i for i in range(len(shape)) if i != dim]
    if index.meta["val"].dim() > 1:
        for i in others:
            index = call(aten.slice.Tensor, index, i, 0, 1)
    places = call(aten.reshape.default, index, [count, 1])
    counted = call(aten.arange.start_step, 0, shape[dim], 1, dtype=torch.int64, device=torch.device("cpu"))
    ones = call(aten.eq.Tensor, places, call(aten.reshape.default, counted, [1, shape[dim]]))
    ones = call(aten._to_copy.default, ones, dtype=x.meta["val"].dtype)
    rows = call(aten.reshape.default, call(aten.permute.default, new, [*others, dim]), [-1, count])
    sums = call(aten.reshape.default, call(aten.mm.default, rows, ones), [*(shape[i] for i in others), shape[dim]])
    order = [*others, dim]
    turned = call(aten.permute.default, sums, [order.index(i) for i in range(len(shape))])
    return call(aten.add.Tensor, x, turned)
