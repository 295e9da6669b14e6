"""FIFOs where paths part and meet again, no deeper than the model says they get: what is tried is seen to run through.

Room for every token of a run is certain, and for frames it is whole tensors, with the places of windows many times
over. What a FIFO holds at most by the modelled times is far less. The times may be off, so this is simulated before
anybody relies on it (`runs_through`): no choice of depths that runs through once ever stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.dse.fifo.depths import LEAST_DEPTH, bridges, waiting_tokens
from penstock.profiling.model import ChannelFigures

_MARGIN = 2
"""One token more for so many. Model and simulation differ by less, but frames that follow each other wait for each
other: with a quarter more ResNet-20's take a third longer than with half more."""

_FEW_BITS = 2048
"""That a FIFO holds in LUTs, which are hardly fewer for less: in most of those of a frame's rows it is a few tokens."""


def depths_where_paths_meet(
    channels: Sequence[ChannelFigures], depths: Mapping[str, int], room: float
) -> dict[str, int]:
    """The safe `depths`, or where these take more bits than there is `room`, what is held by the modelled times.

    The latter may stop for ever, and are to be simulated.
    """
    alone = bridges(channels)
    meeting = [c for c in channels if c.kind == "stream" and c.name not in alone]
    if sum(depths[c.name] * c.bits for c in meeting) <= room:
        return dict(depths)
    most = {c.name: c.high_water + c.high_water // _MARGIN + LEAST_DEPTH for c in meeting}
    held = {c.name: min(depths[c.name], max(most[c.name], waiting_tokens(c))) for c in meeting}
    return {**depths, **held}


def lean_depths(channels: Sequence[ChannelFigures], *ways: Mapping[str, int]) -> dict[str, int]:
    """Each FIFO that no load fills as shallow as any of some `ways` says, but what the last one holds of a few bits.

    What waits in one place if tasks go at one pace seldom has to wait there at all if they go at another. It may stop
    for ever where `ways` do not, and is to be simulated.
    """
    own = [c for c in channels if c.kind == "stream" and c.prefetch is None]
    return {c.name: max(min(way[c.name] for way in ways), min(ways[-1][c.name], _FEW_BITS // c.bits)) for c in own}
