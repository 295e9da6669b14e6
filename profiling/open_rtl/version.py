"""Which version of this route a figure comes from."""

from __future__ import annotations

from penstock.profiling.sources import sources_digest


def route_digest() -> str:
    """A change of the RTL backend, the schedule or this package is another version."""
    return sources_digest(
        "compiler.scalars", "compiler.backend.rtl", "compiler.schedule", "compiler.platforms", "profiling.open_rtl"
    )
