"""FIFO depths from token times: they cost no time, and no choice of depths here can deadlock.

A channel that is the only connection between two parts of the network (a bridge) cannot be part of a cycle of
waiting tasks, so any depth is safe there; it gets as many slots as its reader needs by the modelled times, so
that it never waits for want of depth, and at least 2. Where loads alone fill it that is bounded, for a whole tensor
would be fetched ahead of a reader that begins late: by what the design allows, and what covers an access to external
memory (`profiling/prefetch.py`).
On all other channels, where paths part and meet again, the times must not be trusted with safety: they get room
for every token of a run, so that their writers never wait at all. Narrow, but certain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from penstock.compiler.design import PREFETCH_BITS
from penstock.compiler.errors import PenstockError
from penstock.compiler.plan.port_tasks import whole_bits
from penstock.profiling.model import ChannelFigures
from penstock.profiling.prefetch import Prefetch

LEAST_DEPTH = 2
_WAITING_BITS = 1 << 17
"""What waits for the last reader of a frame while its port goes on with the next frames: so many bits cost no block of
memory. More waits only where as much may be fetched ahead."""


def safe_depths(channels: Iterable[ChannelFigures], prefetch_bits: int = PREFETCH_BITS) -> dict[str, int]:
    """A depth for every FIFO, from figures that were modelled without regard to depths.

    FIFOs that loads alone fill hold at most `prefetch_bits`, or what covers an access to external memory if it is more.
    """
    listed = list(channels)
    written = Counter(c.writer for c in listed)
    alone = bridges(listed)

    def slots(channel: ChannelFigures) -> int:
        if channel.prefetch is not None:  # whatever else waits, its reader takes all of it in the end
            return _ahead(channel, channel.prefetch, prefetch_bits)
        if channel.name not in alone:
            return channel.tokens
        # a writer of several channels must not wait for one of them: the others' readers would wait with it
        return channel.least_depth if written[channel.writer] == 1 else channel.high_water

    return {c.name: max(LEAST_DEPTH, slots(c)) for c in listed if c.kind == "stream"}


def _ahead(channel: ChannelFigures, prefetch: Prefetch, prefetch_bits: int) -> int:
    """How far a load runs ahead: as its reader asks, or, since others wait for its port, as far as it may."""
    if not prefetch.depth:
        return LEAST_DEPTH
    if held_whole(channel, prefetch_bits):
        return max(channel.tokens, waiting_tokens(channel, prefetch_bits))
    most = max(prefetch.depth, prefetch_bits // (prefetch.parts * channel.bits))
    enough = channel.tokens if prefetch.shared else channel.least_depth
    return max(waiting_tokens(channel, prefetch_bits), min(enough, most))


def waiting_tokens(channel: ChannelFigures, prefetch_bits: int = PREFETCH_BITS) -> int:
    """The tokens of all frames that are under way at once, where a few bits hold them; else 0.

    Loads that share a port go in turn: the next frame's first layer would wait until this one's last has its weights.
    """
    known = channel.prefetch
    if known is None or known.frames == 1:
        return 0
    tokens = channel.tokens * known.frames
    most = max(_WAITING_BITS, whole_bits(prefetch_bits, striped=known.striped))
    return tokens if tokens * channel.bits * known.parts <= most else 0


def held_whole(channel: ChannelFigures, prefetch_bits: int) -> bool:
    """Whether a tensor may pass before one that is wanted earlier (`plan/port_tasks.py`): all of it must fit."""
    known = channel.prefetch
    if known is None or not known.shared or not known.depth:
        return False
    most = max(prefetch_bits, whole_bits(prefetch_bits, striped=known.striped))
    return channel.tokens * channel.bits * known.parts <= most


def prefetched(channels: Iterable[ChannelFigures], prefetch_bits: int = PREFETCH_BITS) -> dict[str, int]:
    """The FIFOs that are as deep as their loads may run ahead, and how deep that is."""
    listed = list(channels)
    ahead = {c.name for c in listed if c.prefetch is not None}
    return {name: depth for name, depth in safe_depths(listed, prefetch_bits).items() if name in ahead}


def bridges(channels: Iterable[ChannelFigures]) -> set[str]:
    """The channels without which the network would fall apart, looked at without direction."""
    return set(_bridges(tuple([(c.name, c.writer, c.reader) for c in channels])))


@lru_cache(maxsize=1 << 12)
def _bridges(channels: tuple[tuple[str, str, str], ...]) -> frozenset[str]:
    """By name, writer and reader; designs of one model mostly have the same.

    Channels are walked along from any task: one is a bridge if nothing behind it leads back to before it by another.
    """
    around: dict[str, list[tuple[str, int]]] = {}
    for number, (_, writer, reader) in enumerate(channels):
        around.setdefault(writer, []).append((reader, number))
        around.setdefault(reader, []).append((writer, number))
    met: dict[str, int] = {}
    soonest: dict[str, int] = {}
    found: list[str] = []
    for first in around:
        if first in met:
            continue
        met[first] = soonest[first] = len(met)
        path = [(first, -1, iter(around[first]))]
        while path:
            task, came_by, left = path[-1]
            for other, number in left:
                if other not in met:
                    met[other] = soonest[other] = len(met)
                    path.append((other, number, iter(around[other])))
                    break
                if number != came_by:
                    soonest[task] = min(soonest[task], met[other])
            else:
                path.pop()
                if path:
                    before = path[-1][0]
                    soonest[before] = min(soonest[before], soonest[task])
                    if soonest[task] > met[before]:
                        found.append(channels[came_by][0])
    return frozenset(found)


def single_blocks(channels: Iterable[ChannelFigures]) -> dict[str, int]:
    """One block for each channel that hands over one a run: a second one would only wait for the next input."""
    return {c.name: 1 for c in channels if c.kind == "block" and c.tokens == 1}


def check_blocks(channels: Iterable[ChannelFigures], depths: Mapping[str, int]) -> None:
    """Refuse a single block given by hand where the next of a run would have to wait for it."""
    for channel in channels:
        if channel.kind == "block" and channel.tokens > 1 and depths.get(channel.name, LEAST_DEPTH) < LEAST_DEPTH:
            raise PenstockError(
                code="unsafe-depth", what="a single block where a run hands over several", where=channel.name,
                limit=f"{channel.tokens} blocks a run", hint=f"give it {LEAST_DEPTH}, or leave it to the tool",
            )  # fmt: skip


def check_depths(
    channels: Iterable[ChannelFigures], depths: Mapping[str, int], prefetch_bits: int = PREFETCH_BITS
) -> None:
    """Refuse a depth given by hand where it could let the design deadlock."""
    listed = list(channels)
    alone = bridges(listed)
    for channel in listed:
        depth = depths.get(channel.name)
        free = (channel.name in alone or channel.prefetch is not None) and not held_whole(channel, prefetch_bits)
        if channel.kind == "stream" and depth is not None and not free and depth < channel.tokens:
            raise PenstockError(
                code="unsafe-depth", what=f"depth {depth} where a whole tensor may have to wait", where=channel.name,
                limit=f"{channel.tokens} tokens a run", hint=f"give it {channel.tokens}, or leave it to the tool",
            )  # fmt: skip
