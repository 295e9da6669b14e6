"""FIFO depths that a record names: of FIFOs that the design has, and deep enough for it to run through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.platforms import Platform
from penstock.dse.fifo import check_blocks, check_depths, safe_depths
from penstock.profiling.model import ChannelFigures
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import simulate_design


def given_depths(
    network: TaskNetwork,
    platform: Platform,
    clock_mhz: float,
    channels: Sequence[ChannelFigures],
    safe: Mapping[str, int],
    given: Mapping[str, int],
    prefetch_bits: int,
) -> dict[str, int]:
    """The safe depths, but those that are given. What is not safe whatever the times are is seen to run through."""
    blocks = {c.name: c.tokens for c in channels if c.kind == "block"}
    if unknown := sorted(set(given) - {*safe, *blocks}):
        raise PenstockError(
            code="unknown-channel", what="there is no such FIFO in the design", where=f"fifo_depths.{unknown[0]}",
            limit=f"{len(safe)} of them, and {len(blocks)} channels of blocks",
            hint=nearest(unknown[0], sorted({*safe, *blocks}), "check the names in the design record"),
        )  # fmt: skip
    depths = {**safe, **given}
    try:
        check_depths(channels, depths, prefetch_bits)
        check_blocks(channels, depths)
    except PenstockError as unsafe:
        simulation = simulate_design(network.with_depths(depths), platform, clock_mhz)
        if simulation.deadlock is None:
            return depths
        full = [wait.channel for wait in simulation.deadlock.cycle if wait.cause == "full"]
        named = next((name for name in full if name in depths), unsafe.where)
        enough = safe_depths(channels, prefetch_bits).get(named, 0)
        raise PenstockError(
            code="unsafe-depth", what=f"the design stops for ever: {simulation.deadlock}",
            where=f"fifo_depths.{named}", limit=f"its depth is {depths.get(named)}",
            hint=f"give it {enough} tokens, or leave its depth to the tool",
        ) from unsafe  # fmt: skip
    return depths
