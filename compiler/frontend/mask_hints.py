"""PyTorch's transformers ask whether a mask is the causal one, for a faster kernel: numbers that a trace does not have.

Without that hint the mask is added as any other, with the same answers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from torch.nn.modules import transformer

_ASKED = "_detect_is_causal_mask"


def _only_if_said(_mask: object, is_causal: bool | None = None, _size: int | None = None) -> bool:
    return is_causal is True


@contextlib.contextmanager
def masks_as_given() -> Generator[None]:
    """What the caller says of a mask (`is_causal=True`) stays."""
    asked = getattr(transformer, _ASKED)
    setattr(transformer, _ASKED, _only_if_said)
    try:
        yield
    finally:
        setattr(transformer, _ASKED, asked)
