"""Look-ups at places that the model states itself: slices and a concatenation, which the accelerator has.

`x[:, [2, 0, 1]]`, `index_select` with a tensor that was made once, ONNX Gather with an initialiser.
"""

# torch's operations and classes come without types
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx import Node
from torch.utils import _pytree as pytree

from penstock.compiler.frontend.lift import state_value

aten = torch.ops.aten
_MOST_RUNS = 128
"""Each run of places that follow one another becomes a slice of its own."""
_MOST_PLACES = 4096


def replace_constant_look_ups(program: ExportedProgram) -> None:
    """In place. Places that are not known here, or are too many, stay for the host."""
    for node in list(program.graph.nodes):
        if node.op == "call_function" and (found := _look_up(program, node)) is not None:
            runs = _runs(found.places)
            if len(runs) <= _MOST_RUNS and found.x.meta["val"].is_floating_point():
                _replace(program, node, found, runs)
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()


@dataclass(frozen=True)
class _LookUp:
    """What is read at which places of the dims from `first` to `last`, counted as one, in which shape."""

    x: Node
    first: int
    last: int
    places: list[int]
    shape: tuple[int, ...]


def _look_up(program: ExportedProgram, node: Node) -> _LookUp | None:
    if node.target is aten.index_select.default:
        x, dim, index = node.args
        assert isinstance(dim, int)
        given: list[tuple[int, Any]] = [(dim, index)]
    elif node.target is aten.index.Tensor:
        x, indices = node.args
        assert isinstance(indices, list | tuple)
        given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    else:
        return None
    assert isinstance(x, Node)
    sizes = list(x.meta["val"].shape)
    dims, known = [dim % len(sizes) for dim, _ in given], [_known(program, index) for _, index in given]
    if not given or dims != list(range(dims[0], dims[0] + len(dims))):
        return None
    places: Any = 0
    for dim, index in zip(dims, known, strict=True):
        if index is None or index.dtype not in (torch.int64, torch.int32) or not index.numel():
            return None
        places = places * sizes[dim] + index.long() % sizes[dim]
    return _LookUp(x, dims[0], dims[-1], [int(i) for i in places.reshape(-1)], tuple(places.shape))


def _known(program: ExportedProgram, node: Any) -> torch.Tensor | None:
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
    values = {x: _known(program, x) for x in node.all_input_nodes}
    if any(value is None for value in values.values()) or not isinstance(node.target, OpOverload):
        return None
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return None
    given: Any = pytree.tree_map_only(Node, lambda x: values[x], (node.args, dict(node.kwargs)))
    found: Any = node.target(*given[0], **given[1])
    return found if isinstance(found, torch.Tensor) else None


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """First place and the one behind the last, of places that follow one another."""
    starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(places)) if b != a + 1), len(places)]
    return [(places[a], places[b - 1] + 1) for a, b in pairwise(starts)]


def _replace(program: ExportedProgram, node: Node, found: _LookUp, runs: list[tuple[int, int]]) -> None:
    def call(target: Any, *args: Any) -> Node:
        made = program.graph.call_function(target, args)
        made.meta.update({k: v for k, v in node.meta.items() if k != "tensor_meta"})
        values: Any = pytree.tree_map_only(Node, _value, args)
        with node.meta["val"].fake_mode:
            made.meta["val"] = target(*values)
        return made

    with program.graph.inserting_before(node):
        x, dim, sizes = found.x, found.first, list(found.x.meta["val"].shape)
        if found.last > dim:
            x = call(aten.reshape.default, x, [*sizes[:dim], -1, *sizes[found.last + 1 :]])
        parts = [call(aten.slice.Tensor, x, dim, start, end) for start, end in runs]
        joined = call(aten.cat.default, parts, dim) if len(parts) > 1 else parts[0]
        if len(found.shape) != 1:
            joined = call(aten.reshape.default, joined, [*sizes[:dim], *found.shape, *sizes[found.last + 1 :]])
    node.replace_all_uses_with(joined)
    results = program.graph_signature.output_specs
    for place, spec in enumerate(results):
        if spec.arg.name == node.name:
            results[place] = replace(spec, arg=TensorArgument(joined.name))


def _value(node: Node) -> Any:
    return node.meta["val"]
