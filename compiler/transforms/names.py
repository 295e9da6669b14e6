"""Names that are safe in C++, Verilog and file systems and still lead back to the model's layer."""

from __future__ import annotations

import re


def c_name(name: str) -> str:
    """`encoder.0/fc1.weight` -> `encoder_0_fc1_weight`; a leading digit gets an underscore."""
    safe = re.sub(r"\W+", "_", name).strip("_") or "value"
    return f"_{safe}" if safe[0].isdigit() else safe
