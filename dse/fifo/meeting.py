"""FIFOs where paths part and meet again, no deeper than the model says they get: what is tried is seen to run through.

Room for every token of a run is certain, and for frames it is whole tensors, with the places of windows many times
over. What a FIFO holds at most by the modelled times is far less. The times may be off, so this is simulated before
anybody relies on it: no choice of depths that runs through once ever stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.compiler.platforms import Platform
from penstock.dse.fifo.depths import LEAST_DEPTH, bridges
from penstock.dse.fifo.of_design import runs_through
from penstock.profiling.model import ChannelFigures
from penstock.profiling.network import TaskNetwork

_MARGIN = 8
"""One token more for so many: model and simulation differ by less."""


def depths_where_paths_meet(
    network: TaskNetwork,
    platform: Platform,
    clock_mhz: float,
    channels: Sequence[ChannelFigures],
    depths: Mapping[str, int],
    room: float,
) -> dict[str, int]:
    """The safe `depths`, or where these take more bits than there is `room`, what is held by the modelled times."""
    alone = bridges(channels)
    meeting = [c for c in channels if c.kind == "stream" and c.name not in alone]
    if sum(depths[c.name] * c.bits for c in meeting) <= room:
        return dict(depths)
    held = {c.name: min(depths[c.name], c.high_water + c.high_water // _MARGIN + LEAST_DEPTH) for c in meeting}
    tried = {**depths, **held}
    return tried if runs_through(network, platform, clock_mhz, tried) else dict(depths)
