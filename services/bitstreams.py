"""Which bitstream a run's options ask for, and by which tools.

Light: the API makes graphs of it, and a compilation without the service asks too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.compiler.evidence import LICENSED
from penstock.compiler.platforms import load_platform

NO_BITSTREAM, HARDWARE = "none", "hw"


def measured_in_steps(options: Mapping[str, Any]) -> bool:
    """Whether the best designs are measured by tools that take long, a step for each."""
    return options.get("evidence") in LICENSED


def bitstream_target(options: Mapping[str, Any]) -> str:
    """hw, hw_emu or none. Asked for nothing, a run whose evidence has the tools at hand builds what a card takes."""
    asked = options.get("bitstream")
    return str(asked) if asked else HARDWARE if measured_in_steps(options) else NO_BITSTREAM


def wants_link(options: Mapping[str, Any]) -> bool:
    """Whether there is something for v++ to do. That its tools are not there the step says itself."""
    if bitstream_target(options) == NO_BITSTREAM or not options.get("platform"):
        return False
    platform = load_platform(str(options["platform"]))
    return bool(platform.shell) and platform.board is None  # a board has a shell of ours, and its own builder
