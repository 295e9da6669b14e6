"""A module that is called with keywords, constants or nested tuples becomes one that takes its tensors in a row.

The module stays the root, so that layers and parameters keep their names: only its class gets another `forward`.
"""

# some of torch's functions come without types
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import nn
from torch.utils import _pytree as pytree

from penstock.compiler.errors import PenstockError, nearest


@dataclass(frozen=True)
class Arguments:
    """Of one call. Inside of a model whole numbers and conditions (positions, masks) are its own, no inputs."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inside: bool = False

    def is_input(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and (value.is_floating_point() or not self.inside)


class _Cut(Exception):
    pass


def cut_out(module: nn.Module, part: str, arguments: Arguments, where: str) -> tuple[nn.Module, Arguments]:
    """The module inside of another that has this path, with the arguments that it gets there."""
    parts = dict(module.named_modules())
    if part not in parts:
        top = ", ".join(name for name in parts if name and "." not in name)
        raise PenstockError(
            code="unknown-option", what=f"the model has no part {part!r}", where=where,
            hint=nearest(part, parts, f"its parts: {top}"),
        )  # fmt: skip
    caught: list[Arguments] = []

    def catch(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        caught.append(Arguments(args, kwargs, inside=True))
        raise _Cut

    hook = parts[part].register_forward_pre_hook(catch, with_kwargs=True)
    try:
        module(*arguments.positional, **arguments.named)
    except _Cut:
        pass
    finally:
        hook.remove()
    if not caught:
        raise PenstockError(
            code="unknown-option", what=f"the part {part!r} is never called", where=where,
            hint="name a part that the model calls, such as one of its layers",
        )  # fmt: skip
    return parts[part], caught[0]


def as_called(module: nn.Module, arguments: Arguments) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The module as one that takes a row of tensors, and the tensors; all else of the call becomes part of it."""
    bound = _bound(module, arguments)
    paths, spec = pytree.tree_flatten_with_path(bound)
    tensors = [(_name(path), leaf) for path, leaf in paths if arguments.is_input(leaf)]
    values = tuple(leaf.detach().clone() for _, leaf in tensors)
    if arguments.positional and not arguments.named and all(arguments.is_input(x) for x in arguments.positional):
        return module, values
    leaves = [None if arguments.is_input(leaf) else leaf for _, leaf in paths]
    places = [place for place, (_, leaf) in enumerate(paths) if arguments.is_input(leaf)]
    base = type(module)

    def forward(self: nn.Module, *given: torch.Tensor) -> Any:
        whole = list(leaves)
        for place, tensor in zip(places, given, strict=True):
            whole[place] = tensor
        positional, named = cast("tuple[tuple[Any, ...], dict[str, Any]]", pytree.tree_unflatten(whole, spec))
        return base.forward(self, *positional, **named)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = _distinct([name for name, _ in tensors])
    parameters = [inspect.Parameter(name, kind) for name in ("self", *names)]
    forward.__dict__["__signature__"] = inspect.Signature(parameters)
    members = {"forward": forward, "__module__": base.__module__, "__qualname__": base.__qualname__}
    module.__class__ = type(base.__name__, (base,), members)
    return module, values


def _bound(module: nn.Module, arguments: Arguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """By the names that `forward` gives them, as far as it does."""
    signature = inspect.signature(module.forward)
    named, rest = dict(arguments.named), list(arguments.positional)
    result: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD or not rest:
            break
        result[name] = rest.pop(0)
    if rest:  # *args: only by place
        return arguments.positional, named
    return (), {**result, **named}


def _name(path: tuple[Any, ...]) -> str:
    keys = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path[1:]]
    return re.sub(r"\W", "_", "_".join(keys), flags=re.ASCII).lstrip("_0123456789") or "input"


def _distinct(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        number, wanted = 1, name
        while wanted in found:
            number, wanted = number + 1, f"{name}_{number}"
        found.append(wanted)
    return found
