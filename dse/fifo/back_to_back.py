"""FIFO depths for inputs that follow each other, from modelled times.

With one input alone a writer that is held back delays nobody, if its reader never waits for it. With others behind it,
it does: it begins with the next one so much later. And while a reader waits for the weights of its next input, or is
still with the last one, the words of that input come already (`profiling/waiting.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from penstock.dse.fifo.depths import LEAST_DEPTH, bridges
from penstock.dse.fifo.equalise import equalised_depths
from penstock.dse.fifo.meeting import depths_where_paths_meet, lean_depths
from penstock.profiling.model import ChannelFigures

_MARGIN = 2
"""One token more for so many, since inputs that follow each other wait for each other."""


def depths_back_to_back(
    channels: Sequence[ChannelFigures], times: Sequence[ChannelFigures], depths: Mapping[str, int]
) -> tuple[dict[str, int], bool]:
    """Depths for inputs that follow each other, and whether they may stop for ever and are to be simulated.

    They hold what FIFOs do by modelled `times`: those of the `channels`, or of slower tasks. What loads fill stays as
    it is in the safe `depths`.
    """
    alone, held = bridges(channels), {one.name: one.high_water for one in times}
    found, doubtful = dict(depths), False
    for channel in channels:
        if channel.kind != "stream" or channel.prefetch is not None:
            continue
        most = held[channel.name] + channel.waiting
        wanted = max(most, min(channel.tokens, most + most // _MARGIN + LEAST_DEPTH))
        found[channel.name] = max(LEAST_DEPTH, wanted)
        doubtful |= channel.name not in alone and wanted < depths[channel.name]
    return found, doubtful


def roomy_or_slower(
    channels: Sequence[ChannelFigures],
    slower: Callable[[], Sequence[ChannelFigures]],
    depths: Mapping[str, int],
    room: float,
) -> tuple[dict[str, int], bool]:
    """The same, where tasks go at their own pace if FIFOs have `room` for that: else as the `slower` ones do.

    Those go no faster than the slowest, as all do in the long run. Where there is no room for that either, FIFOs are
    as for one input, but hold what waits for readers that are still with the input before. Without room for that, each
    is as shallow as any of these say: what one holds while tasks go at one pace seldom has to wait there at all if they
    go at another. Without room for that either, they are as for one input alone; or tasks of one input go as slowly as
    the slowest, where that takes the fewest bits. What loads fill is as the design says.
    """
    own = [channel for channel in channels if channel.kind == "stream" and channel.prefetch is None]

    def bits(found: Mapping[str, int]) -> int:
        return sum(found[channel.name] * channel.bits for channel in own)

    def has_room(found: Mapping[str, int]) -> bool:
        return bits(found) <= room

    slowly = cache(slower)  # to model that takes as long as to model the design
    enough: list[Mapping[str, int]] = []
    for times in (lambda: channels, slowly):
        found, doubtful = depths_back_to_back(channels, times(), depths)
        if has_room(found):
            return found, doubtful
        enough.append(found)
    held = depths_where_paths_meet(channels, depths, room)
    waiting = held | {c.name: max(held[c.name], c.high_water + c.waiting) for c in own if c.waiting}
    lean = held | lean_depths(channels, waiting, *enough)
    for found in (waiting, lean, held):
        if has_room(found):
            return found, found != depths
    evenly, doubtful = equalised_depths(channels, slowly(), depths)
    return (evenly, doubtful) if bits(evenly) < bits(lean) else (lean, lean != depths)
