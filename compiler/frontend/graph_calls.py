"""Writing into an exported graph: calls in the place of a node, and constants of its own."""

# torch's operations and classes come without types
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node
from torch.utils import _pytree as pytree

GraphCall = Callable[..., Node]


def call_as(program: ExportedProgram, node: Node) -> GraphCall:
    """Adds an operation where the graph is being written, as a part of what `node` is."""

    def call(target: Any, *args: Any, **named: Any) -> Node:
        made = program.graph.call_function(target, args, named)
        made.meta.update({k: v for k, v in node.meta.items() if k != "tensor_meta"})
        values: Any = pytree.tree_map_only(Node, lambda x: x.meta["val"], args)
        with fake_mode(program):
            made.meta["val"] = target(*values, **named)
        return made

    return call


def draws(node: Node) -> bool:
    """Whether a node gives random numbers."""
    return isinstance(node.target, OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def fake_mode(program: ExportedProgram) -> Any:
    """In which the graph was traced: its values are shapes."""
    values = (node.meta.get("val") for node in program.graph.nodes)
    return next(value.fake_mode for value in values if isinstance(value, FakeTensor))


def add_constant(program: ExportedProgram, name: str, value: torch.Tensor) -> Node:
    """A tensor of the model's own that it did not have, before all others."""
    taken = {*program.constants, *program.state_dict}
    name = next(one for one in (name, *(f"{name}_{n}" for n in range(2, len(taken) + 3))) if one not in taken)
    program.constants[name] = value
    first = next(iter(program.graph.nodes))
    with program.graph.inserting_before(first):
        made = program.graph.placeholder(f"c_{name.replace('.', '_')}")
    traced = fake_mode(program)
    made.meta["val"] = value if isinstance(value, FakeTensor) else traced.from_tensor(value, static_shapes=True)
    spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(made.name), name)
    program.graph_signature.input_specs.insert(0, spec)
    return made


def replace_node(program: ExportedProgram, node: Node, other: Node) -> None:
    """Everywhere, as a result of the model too."""
    node.replace_all_uses_with(other)
    results = program.graph_signature.output_specs
    for place, spec in enumerate(results):
        if spec.arg.name == node.name:
            results[place] = replace(spec, arg=TensorArgument(other.name))
