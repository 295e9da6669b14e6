"""Parts without elements: a model that may have more tokens, and has none, joins them all the same."""

# torch's operations and classes come without types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from penstock.compiler.frontend.graph_calls import replace_node
from penstock.compiler.frontend.origins import op_name

_JOINS = ("cat", "concat", "concatenate")


def drop_empty_parts(program: ExportedProgram) -> None:
    """In place: out of every join that has others; and weights without elements that nothing reads."""
    joins = [n for n in program.graph.nodes if n.op == "call_function" and op_name(n) in _JOINS and not _is_empty(n)]
    for node in joins:
        parts, *rest = node.args
        full = [part for part in parts if not _is_empty(part)]
        if len(full) == len(parts):
            continue
        if len(full) == 1:
            replace_node(program, node, full[0])
        else:
            node.args = (full, *rest)
    program.graph.eliminate_dead_code()
    specs = program.graph_signature.input_specs
    for node in [n for n in program.graph.nodes if n.op == "placeholder" and _is_empty(n) and not n.users]:
        specs[:] = [s for s in specs if s.kind is InputKind.USER_INPUT or s.arg.name != node.name]
        if all(s.arg.name != node.name for s in specs):
            program.graph.erase_node(node)
    program.graph_module.recompile()


def _is_empty(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and 0 in value.shape
