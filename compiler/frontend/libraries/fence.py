"""How large a model of a library may be: seen on PyTorch's meta device, where tensors have shapes and no memory."""

# some of torch's classes come without types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from penstock.compiler.errors import PenstockError

MOST_ELEMENTS = 2**28
"""Of each value on the way: a gigabyte of float32."""
MOST_PARAMETERS = 3 * 2**27
"""Of all parameters and buffers together: GPT-2-medium has 355 million."""
MOST_TENSORS = 20_000


class ModelTooLargeError(PenstockError):
    def __init__(self, what: str, limit: str, where: str) -> None:
        super().__init__(
            code="model-too-large", what=what, where=where, limit=limit,
            hint="make it smaller by its options (fewer or narrower layers, a shorter sequence), or write a file.py",
        )  # fmt: skip


class _LargestValue(TorchDispatchMode):
    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        values = func(*args, **(kwargs or {}))
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor) and value.numel() > MOST_ELEMENTS:
                raise ModelTooLargeError(
                    f"a tensor of shape {tuple(value.shape)}", f"at most {MOST_ELEMENTS:,} elements", self.where
                )
        return values


def check_size(elements: int, tensors: int, where: str) -> None:
    """Of all parameters and buffers together."""
    if elements > MOST_PARAMETERS or tensors > MOST_TENSORS:
        many = (
            f"{MOST_PARAMETERS:,} parameters" if elements > MOST_PARAMETERS else f"{MOST_TENSORS:,} parameter tensors"
        )
        limit = (
            f"a model that is built from options has at most {MOST_PARAMETERS:,} parameters in {MOST_TENSORS:,} tensors"
        )
        raise ModelTooLargeError(f"more than {many}", limit, where)


@contextlib.contextmanager
def shapes_only(where: str) -> Generator[None]:
    """What is built and run inside has shapes only; what is too large raises `ModelTooLargeError`."""
    elements, tensors = 0, 0

    def count(_module: nn.Module, _name: str, value: torch.Tensor | None) -> None:
        nonlocal elements, tensors
        if value is not None:
            elements, tensors = elements + value.numel(), tensors + 1
            check_size(elements, tensors, where)

    hooks = (
        registration.register_module_parameter_registration_hook(count),
        registration.register_module_buffer_registration_hook(count),
    )
    try:
        with torch.device("meta"), _LargestValue(where):
            yield
    finally:
        for hook in hooks:
            hook.remove()
