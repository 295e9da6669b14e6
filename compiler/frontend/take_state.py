"""Buffers that forward changes become inputs and results: what a model keeps between calls.

Rows written at places that are computed (a cache's next token) are chosen one by one on the chip, so that what reads
the buffer sees them; where the buffer itself is written so, only the rows leave, and all else stays where it is. Where
each call says how many rows there are, they come to their places by one product with a matrix of ones and zeros.
"""

# torch's operations and classes come without types
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.fx import Interpreter, Node
from torch.utils import _pytree as pytree

from penstock.compiler.frontend.lift import state_value
from penstock.compiler.frontend.loaded import LoadedModel

aten = torch.ops.aten
MOST_ROWS = 16
"""That are written at computed places in one call: each is a choice of its own."""


@dataclass(frozen=True)
class TakenState:
    """`node` is the buffer's placeholder, an input now; `result` what leaves: its new value, or the new rows alone."""

    name: str
    node: str
    initial: torch.Tensor
    result: str
    dim: int | None = None
    positions: str | None = None


def take_state(program: ExportedProgram, model: LoadedModel) -> tuple[list[TakenState], dict[str, int]]:
    """Rewrites the program in place; its first inputs and results are then the state's, in one order.

    Also the values that say where rows go, with how many places there are.
    """
    signature = program.graph_signature
    written = _write_rows(program, varies=model.varies)
    changed = [s for s in signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION]
    buffers = {str(s.target): s.arg.name for s in signature.input_specs if s.kind is InputKind.BUFFER}
    nodes = {n.name: n for n in program.graph.nodes}
    taken: dict[str, TakenState] = {}
    (output,) = (n for n in program.graph.nodes if n.op == "output")
    for spec in changed:
        name = str(spec.target)
        value = state_value(program, name)
        old, new = nodes[buffers[name]], nodes[spec.arg.name]
        one = next((w for w in written.values() if w.value.name == spec.arg.name), None)
        is_read = any(user is not output for user in new.users)  # else nobody computes on the host where rows go
        if one is not None and one.into is old and value.dtype == torch.float32 and is_read:
            taken[name] = TakenState(name, old.name, value.detach().clone(), one.rows.name, one.dim, one.index.name)
        else:
            taken[name] = TakenState(name, old.name, value.detach().clone(), new.name)
    bounds = {one.index.name: int(one.into.meta["val"].shape[one.dim]) for one in written.values()}
    if not taken:
        return [], bounds
    _as_ports(program, taken)
    return [taken[name] for name in _in_order(program, taken)], bounds


def _in_order(program: ExportedProgram, taken: dict[str, TakenState]) -> list[str]:
    names = {one.node: name for name, one in taken.items()}
    return [names[n.name] for n in program.graph.nodes if n.op == "placeholder" and n.name in names]


def _as_ports(program: ExportedProgram, taken: dict[str, TakenState]) -> None:
    signature, graph = program.graph_signature, program.graph
    nodes = {n.name: n for n in graph.nodes}
    states = [taken[name] for name in _in_order(program, taken)]
    signature.input_specs[:] = [
        InputSpec(InputKind.USER_INPUT, s.arg, None) if s.kind is InputKind.BUFFER and str(s.target) in taken else s
        for s in signature.input_specs
    ]
    (output,) = (n for n in graph.nodes if n.op == "output")
    pairs = list(zip(signature.output_specs, output.args[0], strict=True))
    others = [pair for pair in pairs if pair[0].kind is not OutputKind.BUFFER_MUTATION]
    results = [(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(s.result), None), nodes[s.result]) for s in states]
    signature.output_specs[:] = [spec for spec, _ in (*results, *others)]
    output.args = (tuple(node for _, node in (*results, *others)),)
    graph.eliminate_dead_code()
    program.graph_module.recompile()


@dataclass(frozen=True)
class _Written:
    """`rows` go into `into` along `dim` at `index`; `value` is the whole with them."""

    into: Node
    rows: Node
    index: Node
    dim: int
    value: Node


def _write_rows(program: ExportedProgram, *, varies: bool) -> dict[str, _Written]:
    """Writes of a few rows at computed places as choices; by the name of the node that each was."""
    found: dict[str, _Written] = {}
    conditions: _Conditions = {}
    for node in list(program.graph.nodes):
        if node.op == "call_function" and (write := _a_write(node, varies=varies)) is not None:
            found[node.name] = _rewrite(program, node, *write, conditions, varies=varies)
    program.graph_module.recompile()
    return found


def _a_write(node: Node, *, varies: bool) -> tuple[Node, int, Node, Node] | None:
    """Into what, along which dim, at which places, which values."""
    if node.target is aten.index_copy.default and len(node.args) == 4:
        into, dim, index, values = node.args[0], node.args[1], node.args[2], node.args[3]
    elif node.target is aten.index_put.default and len(node.args) == 3 and not node.kwargs.get("accumulate"):
        into, indices, values = node.args[0], node.args[1], node.args[2]
        assert isinstance(indices, list | tuple)
        given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
        if len(given) != 1:
            return None
        ((dim, index),) = given
    else:
        return None
    assert isinstance(into, Node)
    assert isinstance(index, Node)
    assert isinstance(values, Node)
    assert isinstance(dim, int)
    place = index.meta["val"]
    fits = place.dtype in (torch.int64, torch.int32) and place.dim() < 2 and (varies or place.numel() <= MOST_ROWS)
    if not fits or not into.meta["val"].is_floating_point():
        return None
    return into, dim % into.meta["val"].dim(), index, values


_Call = Callable[..., Node]
"""Adds an operation where a write stood."""
_Conditions = dict[tuple[Node, int], tuple[Node, list[Node]]]
"""By the index and how many places there are: the index as a list, and the conditions that say where its rows go."""


def _rewrite(
    program: ExportedProgram,
    node: Node,
    into: Node,
    dim: int,
    index: Node,
    values: Node,
    conditions: _Conditions,
    *,
    varies: bool,
) -> _Written:
    """What is written at the same places shares its conditions."""

    def call(target: Any, *args: Any, **kwargs: Any) -> Node:
        made = program.graph.call_function(target, args, kwargs)
        made.meta.update({k: v for k, v in node.meta.items() if k != "tensor_meta"})
        given: Any = pytree.tree_map_only(Node, _value, args)
        with node.meta["val"].fake_mode:
            made.meta["val"] = target(*given, **kwargs)
        return made

    shape, count = list(into.meta["val"].shape), max(1, index.meta["val"].numel())
    rows_shape = [count if d == dim else size for d, size in enumerate(shape)]
    with program.graph.inserting_before(node):
        if index.meta["val"].dim() == 0 and values.meta["val"].dim() == len(shape) - 1:
            values = call(aten.unsqueeze.default, values, dim)
        rows = call(aten.expand.default, values, rows_shape)
        if (index, shape[dim]) not in conditions:
            places = call(aten.view.default, index, [count])
            numbers = call(aten.arange.start_step, 0, shape[dim], 1, dtype=torch.int64)
            conditions[index, shape[dim]] = places, (_matrix if varies else _one_by_one)(call, places, numbers)
        places, chosen = conditions[index, shape[dim]]
        value = (_by_product if varies else _by_choices)(call, into, rows, dim, chosen)
    node.replace_all_uses_with(value)
    for place, spec in enumerate(program.graph_signature.output_specs):
        if spec.arg.name == node.name:
            program.graph_signature.output_specs[place] = replace(spec, arg=TensorArgument(value.name))
    program.graph.erase_node(node)
    return _Written(into, rows, places, dim, value)


def _one_by_one(call: _Call, places: Node, numbers: Node) -> list[Node]:
    """For each row which places are its own."""
    rows = range(places.meta["val"].numel())
    return [call(aten.eq.Tensor, numbers, call(aten.slice.Tensor, places, 0, row, row + 1)) for row in rows]


def _by_choices(call: _Call, into: Node, rows: Node, dim: int, chosen: list[Node]) -> Node:
    shape = into.meta["val"].shape
    along = [size if d == dim else 1 for d, size in enumerate(shape)]
    value = into
    for number, one in enumerate(chosen):
        here = call(aten.view.default, one, along)
        row = rows if len(chosen) == 1 else call(aten.slice.Tensor, rows, dim, number, number + 1)
        value = call(aten.where.self, here, row, value)
    return value


def _matrix(call: _Call, places: Node, numbers: Node) -> list[Node]:
    """Which row goes to which place, and which places a row goes to."""
    size, count = numbers.meta["val"].numel(), places.meta["val"].numel()
    columns, rows = call(aten.view.default, places, [1, count]), call(aten.view.default, numbers, [size, 1])
    here = call(aten._to_copy.default, call(aten.eq.Tensor, rows, columns), dtype=torch.int64)  # integers: on the host
    met = call(aten.sum.dim_IntList, here, [1], True)
    last = call(aten.eq.Tensor, call(aten.cumsum.default, here, 1), met)  # of rows for one place the last counts
    here = call(aten.mul.Tensor, here, call(aten._to_copy.default, last, dtype=torch.int64))
    return [call(aten._to_copy.default, here, dtype=torch.float32), call(aten.ne.Scalar, met, 0)]


def _by_product(call: _Call, into: Node, rows: Node, dim: int, chosen: list[Node]) -> Node:
    """A sum in which one number counts is that number, in floats and in integers."""
    here, met = chosen
    shape = list(into.meta["val"].shape)
    order = [dim, *(d for d in range(len(shape)) if d != dim)]
    first = [shape[d] for d in order]
    whole = prod(first[1:])
    flat = call(aten.view.default, call(aten.clone.default, call(aten.permute.default, rows, order)), [-1, whole])
    placed = call(aten.mm.default, here, flat)
    again = [order.index(d) for d in range(len(shape))]
    back = call(aten.permute.default, call(aten.view.default, placed, first), again)
    along = [size if d == dim else 1 for d, size in enumerate(shape)]
    return call(aten.where.self, call(aten.view.default, met, along), back, into)


def _value(node: Node) -> Any:
    return node.meta["val"]


def first_results(program: ExportedProgram, taken: list[TakenState], model: LoadedModel) -> tuple[torch.Tensor, ...]:
    """What the program answers on the example inputs, the state's new values in front."""
    given = iter(model.example_inputs)
    specs = {s.arg.name: s for s in program.graph_signature.input_specs}
    arguments = [
        next(given) if specs[n.name].kind is InputKind.USER_INPUT else state_value(program, str(specs[n.name].target))
        for n in program.graph.nodes if n.op == "placeholder"
    ]  # fmt: skip
    with torch.no_grad():
        return tuple(Interpreter(program.graph_module).run(*arguments))[: len(taken)]
