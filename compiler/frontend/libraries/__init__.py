"""Models of installed libraries by name: `hf:`, `timm:`, `torchvision:` and `torch.nn:`, with random weights.

Nothing is downloaded. A model is first built without memory (`fence.py`), so that one that is too large is refused
before it costs anything.
"""

from __future__ import annotations

from penstock.compiler.frontend.libraries.build import build

__all__ = ["build"]
