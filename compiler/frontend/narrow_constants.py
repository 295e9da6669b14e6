"""Numbers that the model makes narrow from nothing but its own: worked out while it is imported.

Slopes that an attention casts to bfloat16 before it multiplies positions by them, and casts back: what comes of them
is a tensor of the model's own, and nothing narrow is left for the accelerator.
"""

# torch's operations and classes come without types
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils import _pytree as pytree

from penstock.compiler.frontend.constant_look_ups import known_value
from penstock.compiler.frontend.graph_calls import add_constant, draws, replace_node

TOO_NARROW = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
_MOST_ELEMENTS = 2**20


def replace_narrow_constants(program: ExportedProgram) -> None:
    """In place. What depends on the inputs, or on weights without numbers, stays as it is."""
    values: dict[Node, torch.Tensor | None] = {}
    for node in list(program.graph.nodes):
        if _is_narrow(node) or not any(_is_narrow(x) for x in node.all_input_nodes):
            continue
        if (value := _value(program, node, values)) is not None:
            replace_node(program, node, add_constant(program, f"{node.name}_known", value))
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()


def _is_narrow(node: Node) -> bool:
    value = node.meta.get("val")
    return node.op == "call_function" and isinstance(value, torch.Tensor) and value.dtype in TOO_NARROW


def _value(program: ExportedProgram, node: Node, values: dict[Node, torch.Tensor | None]) -> torch.Tensor | None:
    if node not in values:
        values[node] = _computed(program, node, values) if node.op == "call_function" else known_value(program, node)
    return values[node]


def _computed(program: ExportedProgram, node: Node, values: dict[Node, torch.Tensor | None]) -> torch.Tensor | None:
    shape, target = node.meta.get("val"), node.target
    if not isinstance(shape, torch.Tensor) or shape.numel() > _MOST_ELEMENTS or not isinstance(target, OpOverload):
        return None
    if draws(node):
        return None
    given = {x: _value(program, x, values) for x in node.all_input_nodes}
    if any(value is None for value in given.values()):
        return None
    arguments: Any = pytree.tree_map_only(Node, lambda x: given[x], (node.args, dict(node.kwargs)))
    found: Any = target(*arguments[0], **arguments[1])
    return found if isinstance(found, torch.Tensor) else None
