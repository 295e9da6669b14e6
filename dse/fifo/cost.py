"""What FIFOs cost."""

from __future__ import annotations

from collections.abc import Mapping


def total_bits(depths: Mapping[str, int], bits: Mapping[str, int]) -> int:
    """Depth times width, over all channels of which the width is asked for."""
    return sum(depth * bits[name] for name, depth in depths.items() if name in bits)
