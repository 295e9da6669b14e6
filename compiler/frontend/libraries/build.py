"""From a reference to (module, example inputs): looked at without memory first, then built, the same each time."""

# some of torch's functions come without types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.libraries.called import Arguments, as_called, cut_out
from penstock.compiler.frontend.libraries.fence import check_size, shapes_only
from penstock.compiler.frontend.libraries.values import library_options, size_option
from penstock.compiler.reference import LibraryReference, check_installed

Fill = Callable[[nn.Module], None]


@dataclass(frozen=True)
class Recipe:
    """How a library's model is made: the module, the arguments that one call of it takes, what is built around it."""

    make: Callable[[], nn.Module]
    arguments: Callable[[nn.Module], Arguments]
    wrap: Callable[[nn.Module], nn.Module] = lambda module: module


def build(reference: LibraryReference, fill: Fill) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The module and its example inputs; `part` picks a module inside of it, with what it is called with.

    `fill` gives the library's own module its weights, or keeps the random ones.
    """
    check_installed(reference)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when a library is imported: nothing is ever fetched
    recipe = _recipes(reference)(reference, library_options(reference))
    with shapes_only(str(reference)):
        _call(recipe, str(reference), fill)
    return _built(reference, recipe, fill)


def _built(reference: LibraryReference, recipe: Recipe, fill: Fill) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    part = dict(reference.options).get("part")
    with torch.random.fork_rng(devices=()), torch.no_grad():
        torch.manual_seed(size_option(reference, "seed", 0))
        module = recipe.make().eval()
        fill(module)
        module = recipe.wrap(module)
        arguments = recipe.arguments(module)
        if part is not None:
            module, arguments = cut_out(module, part, arguments, str(reference))
    return as_called(module, arguments)


def _call(recipe: Recipe, where: str, fill: Fill) -> None:
    """Build it and call it once with shapes only. What only fails there is no fault of the model."""
    module = recipe.make().eval()
    fill(module)
    module = recipe.wrap(module)
    state = [*module.parameters(), *module.buffers()]
    check_size(sum(x.numel() for x in state), len(state), where)  # copies of modules were not counted as they were made
    try:
        arguments = recipe.arguments(module)
        with torch.no_grad():
            module(*arguments.positional, **arguments.named)
    except PenstockError:
        raise
    except Exception:  # noqa: BLE001  (a way that depends on values, say: the real call judges it)
        pass


def _recipes(reference: LibraryReference) -> Callable[[LibraryReference, dict[str, Any]], Recipe]:
    file = {"hf": "transformers_models", "torch.nn": "torch_layers"}.get(reference.library, "vision_models")
    name = f"penstock.compiler.frontend.libraries.{file}"
    return importlib.import_module(name).recipe
