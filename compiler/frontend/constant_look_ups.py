"""Look-ups at places that the model states itself: slices and a concatenation, which the accelerator has.

`x[:, [2, 0, 1]]`, `index_select` with a tensor that was made once, ONNX Gather with an initialiser, the windows of
`unfold`. `gather` at such places reads each row at places of its own: a product with zeros and ones.
"""

# torch's operations and classes come without types
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.utils import _pytree as pytree

from penstock.compiler.frontend.graph_calls import GraphCall, call_as, draws, replace_node
from penstock.compiler.frontend.lift import state_value

aten = torch.ops.aten
_MOST_RUNS = 128
"""Each run of places that follow one another becomes a slice of its own."""
_MOST_PLACES = 2**16
MOST_ONES = 2**20
"""Zeros and ones of a product that stands for a look-up, or for sums at such places."""


@dataclass(frozen=True)
class _LookUp:
    """What is read along which dims, which lie side by side and count as one, at which places."""

    x: Node
    dim: int
    dims: int
    places: torch.Tensor


def replace_constant_look_ups(program: ExportedProgram) -> None:
    """In place. Places that are not known here, or are too many, stay for the host."""
    for node in list(program.graph.nodes):
        if node.op != "call_function":
            continue
        if (found := _look_up(program, node)) is not None and found.x.meta["val"].is_floating_point():
            runs = _runs([int(i) for i in found.places.reshape(-1)])
            if len(runs) <= _MOST_RUNS:
                replace_by(program, node, lambda call, at=found, runs=runs: _slices(call, at, runs))
        elif node.target is aten.gather.default:
            _replace_gather(program, node)
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()


def _look_up(program: ExportedProgram, node: Node) -> _LookUp | None:
    if node.target is aten.index_select.default:
        x, dim, index = node.args
        assert isinstance(dim, int)
        given = [(dim, index)]
    elif node.target is aten.index.Tensor:
        x, indices = node.args
        assert isinstance(indices, list | tuple)
        given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    else:
        return None
    assert isinstance(x, Node)
    found = [known_value(program, index) for _, index in given]
    sizes = x.meta["val"].shape
    dims = [dim % len(sizes) for dim, _ in given]
    if not dims or dims != list(range(dims[0], dims[0] + len(dims))):
        return None
    places = torch.zeros((), dtype=torch.int64)
    for dim, index in zip(dims, found, strict=True):
        if index is None or index.dtype not in (torch.int64, torch.int32) or not index.numel():
            return None
        places = places * sizes[dim] + index % sizes[dim]
    return _LookUp(x, dims[0], len(dims), places)


def _replace_gather(program: ExportedProgram, node: Node) -> None:
    x, dim, index = node.args[:3]
    assert isinstance(x, Node)
    assert isinstance(index, Node)
    assert isinstance(dim, int)
    value, places = x.meta["val"], known_value(program, index)
    if places is None or not places.numel() or not value.is_floating_point() or not value.dim():
        return
    dim = dim % value.dim()
    others = [i for i in range(value.dim()) if i != dim]
    if any(places.shape[i] != value.shape[i] for i in others):
        return
    rows = [i for i in others if bool((places != places.narrow(i, 0, 1)).any())]
    first, last = int(places.min()), int(places.max()) + 1
    if math.prod(places.shape[i] for i in rows) * places.shape[dim] * (last - first) <= MOST_ONES:
        replace_by(program, node, lambda call: _product_with_ones(call, x, index, dim, rows, (first, last)))


def known_value(program: ExportedProgram, node: Any) -> torch.Tensor | None:
    """The value of a node that is a tensor of the model's own, if it was imported with numbers."""
    if not isinstance(node, Node):
        return None
    if node.op == "call_function":
        return _computed(program, node)
    specs = program.graph_signature.input_specs
    changed = {s.target for s in program.graph_signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
    own = {
        s.arg.name: str(s.target) for s in specs
        if s.kind is not InputKind.USER_INPUT and s.target is not None and s.target not in changed
    }  # fmt: skip
    if node.op != "placeholder" or node.name not in own:
        return None
    value = state_value(program, own[node.name])
    return None if isinstance(value, FakeTensor) else value


def _computed(program: ExportedProgram, node: Node) -> torch.Tensor | None:
    """Places that are counted, shifted and the like, from nothing but numbers and the model's own tensors."""
    shape = node.meta.get("val")
    if not isinstance(shape, torch.Tensor) or shape.is_floating_point() or shape.numel() > _MOST_PLACES:
        return None
    values = {x: known_value(program, x) for x in node.all_input_nodes}
    if any(value is None for value in values.values()) or not isinstance(node.target, OpOverload):
        return None
    if draws(node):
        return None
    given: Any = pytree.tree_map_only(Node, lambda x: values[x], (node.args, dict(node.kwargs)))
    found: Any = node.target(*given[0], **given[1])
    return found if isinstance(found, torch.Tensor) else None


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """First place and the one behind the last, of places that follow one another."""
    starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(places)) if b != a + 1), len(places)]
    return [(places[a], places[b - 1] + 1) for a, b in pairwise(starts)]


def replace_by(program: ExportedProgram, node: Node, write: Callable[[GraphCall], Node]) -> None:
    with program.graph.inserting_before(node):
        joined = write(call_as(program, node))
    replace_node(program, node, joined)


def _slices(call: GraphCall, at: _LookUp, runs: list[tuple[int, int]]) -> Node:
    x, dim, sizes = at.x, at.dim, list(at.x.meta["val"].shape)
    before, behind = sizes[:dim], sizes[dim + at.dims :]
    if at.dims > 1:
        x = call(aten.reshape.default, x, [*before, math.prod(sizes[dim : dim + at.dims]), *behind])
    parts = [call(aten.slice.Tensor, x, dim, start, end) for start, end in runs]
    joined = call(aten.cat.default, parts, dim) if len(parts) > 1 else parts[0]
    return joined if at.places.dim() == 1 else call(aten.reshape.default, joined, [*before, *at.places.shape, *behind])


def _product_with_ones(
    call: GraphCall, x: Node, index: Node, dim: int, rows: list[int], bounds: tuple[int, int]
) -> Node:
    """The rows that read at places of their own come first, then all that reads at the same ones, then the places."""
    sizes, count = list(x.meta["val"].shape), index.meta["val"].shape[dim]
    same = [i for i in range(len(sizes)) if i != dim and i not in rows]
    order, lead = [*rows, *same, dim], math.prod(sizes[i] for i in rows)
    values = call(aten.permute.default, call(aten.slice.Tensor, x, dim, *bounds), order)
    values = call(aten.reshape.default, values, [lead, -1, bounds[1] - bounds[0]])
    for i in same:
        index = call(aten.slice.Tensor, index, i, 0, 1)
    places = call(aten.reshape.default, call(aten.permute.default, index, order), [lead, 1, count])
    counted = call(aten.arange.start_step, *bounds, 1, dtype=torch.int64, device=torch.device("cpu"))
    ones = call(aten.eq.Tensor, places, call(aten.reshape.default, counted, [1, -1, 1]))
    ones = call(aten._to_copy.default, ones, dtype=x.meta["val"].dtype)
    read = call(aten.reshape.default, call(aten.bmm.default, values, ones), [*(sizes[i] for i in order[:-1]), count])
    turned = call(aten.permute.default, read, [order.index(i) for i in range(len(sizes))])
    return call(aten.clone.default, turned, memory_format=torch.contiguous_format)  # others view it as it was
