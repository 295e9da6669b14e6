"""What `forward` returns, as named tensors: a tensor, or tuples, mappings and dataclasses of them.

One tensor is `output`; those of a tuple are `output0`, `output1`; members of mappings and dataclasses have their names.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils import _pytree as pytree

from penstock.compiler.errors import PenstockError


def tensors_of(returned: Any, where: str) -> tuple[torch.Tensor, ...]:
    """All tensors of what forward returned, in the order of their names. None is nothing."""
    _know_dataclasses(returned)
    leaves, _ = pytree.tree_flatten(returned)
    tensors = tuple(leaf for leaf in leaves if leaf is not None)
    other = next((leaf for leaf in tensors if not isinstance(leaf, torch.Tensor)), None)
    if other is not None or not tensors:
        inside = "" if other is None or other is returned else f" with a {type(other).__name__} in it"
        raise PenstockError(
            code="model-output", what=f"forward returns a {type(returned).__name__}{inside}", where=where,
            limit="outputs are tensors, or tuples, mappings and dataclasses of them",
            hint="wrap the model in a module whose forward picks the tensors that are wanted",
        )  # fmt: skip
    return tensors


def name_results(program: ExportedProgram) -> list[str]:
    """The names of the program's results; what is not a tensor is dropped from the program, in place."""
    spec = cast("pytree.TreeSpec", program.call_spec.out_spec)
    (output,) = (node for node in program.graph.nodes if node.op == "output")
    results = list(output.args[0])
    whole = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    paths = [path for path, _ in pytree.tree_flatten_with_path(whole)[0]]
    signature = program.graph_signature
    others = len(results) - len(paths)  # state that changes comes first; it is refused elsewhere
    kept = [place for place, node in enumerate(results[others:]) if isinstance(node, Node)]
    if len(kept) < len(paths):
        output.args = ((*results[:others], *(results[others + place] for place in kept)),)
        specs = signature.output_specs
        specs[others:] = [specs[others + place] for place in kept]
        program.graph_module.recompile()
    taken = {node.name for node in program.graph.nodes if node.op == "placeholder"}
    return _names([paths[place] for place in kept], taken)


def _names(paths: list[tuple[Any, ...]], taken: set[str]) -> list[str]:
    if len(paths) == 1 and not any(isinstance(key, pytree.MappingKey | pytree.GetAttrKey) for key in paths[0]):
        return ["output"]
    found: list[str] = []
    for path in paths:
        keys = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path]
        name = re.sub(r"\W", "_", "_".join(keys), flags=re.ASCII)
        name = f"output{name}" if not name or name[0].isdigit() else name
        wanted, number = name, 1
        while wanted in taken or wanted in found:
            number, wanted = number + 1, f"{name}_{number}"
        found.append(wanted)
    return found


def _know_dataclasses(returned: Any) -> None:
    """PyTorch looks into dataclasses only where it was told of them."""
    for leaf in pytree.tree_leaves(returned):
        kind = cast("type[Any]", type(leaf))
        if dataclasses.is_dataclass(kind) and not isinstance(leaf, torch.Tensor):
            torch.export.register_dataclass(kind)
            _know_dataclasses(returned)
            return
