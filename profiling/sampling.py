"""Which tokens of each channel the timeline looks at, and in which iterations they pass.

Short channels are looked at whole. Of long ones an even sample is taken, with the corners of both ends'
patterns: the tokens at which bursts begin and end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.schedule import NestSchedule, PortSchedule, TokenPattern
from penstock.profiling.network import TaskNetwork
from penstock.profiling.protocol import ProfilingError

Times = NDArray[np.int64]

MAX_TOKENS = 4096
_CORNER_LEVELS = 8


@lru_cache(maxsize=1 << 10)
def evenly(count: int, most: int) -> Times:
    """Up to so many of the tokens of a channel, at even distances, the first and the last among them. To be read only:
    it is the same array whenever it is asked for."""
    found = np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
    found.setflags(write=False)
    return found


def iterations_of(pattern: TokenPattern, tokens: Times) -> Times:
    """`TokenPattern.iteration` for many tokens at once."""
    levels, base = _regular(pattern)
    position, left = np.full(tokens.shape, base, np.int64), tokens
    for number, (count, stride, counters) in enumerate(levels, 1):
        if number < len(levels):
            outer = left // count
            left, index = outer, left - outer * count
        else:
            index = left  # nothing outside it
        position += (index if counters is None else counters[index]) * stride
    return position


def _regular(pattern: TokenPattern) -> tuple[list[tuple[int, int, Times | None]], int]:
    """Levels as (count, stride, counters unless they are 0, 1, 2, …), innermost first, as few as they can be.

    What every token has in common is the second result: where the counters of a level begin.
    """
    levels: list[tuple[int, int, Times | None]] = []
    base = 0
    for level in reversed(pattern.levels):
        count, stride, counters = level.count, level.stride, None
        if len(level.runs) == 1:
            base += level.runs[0][0] * stride
            if count == 1:
                continue
            if levels and levels[-1][2] is None and levels[-1][0] * levels[-1][1] == stride:
                levels[-1] = (levels[-1][0] * count, levels[-1][1], None)
                continue
        else:
            counters = np.concatenate([np.arange(first, first + n) for first, n in level.runs])
        levels.append((count, stride, counters))
    return levels, base


def handovers(port: PortSchedule, schedule: NestSchedule) -> TokenPattern:
    """The slots in which a port is met; for a block channel one access a block, at the block's first iteration."""
    if port.kind != "block":
        return schedule.in_slots(port.pattern)
    outer = tuple(level for level in port.pattern.levels if level.stride >= schedule.block_iterations)
    return schedule.in_slots(TokenPattern(outer))


@dataclass(frozen=True, eq=False)
class Ends:
    """How nests meet channels in one run, by port in the order in which they name them first."""

    ports: tuple[str, ...]
    writes: tuple[bool, ...]
    counts: tuple[int, ...]
    corners: tuple[Times, ...]


def ends_of(nests: Sequence[NestSchedule]) -> Ends:
    """Tokens that pass at each port, and those at which bursts begin and end where there are many."""
    writes: dict[str, bool] = {}
    counts: dict[str, int] = {}
    corners: dict[str, Times] = {}
    for schedule in nests:
        for port in schedule.ports:
            if port.kind == "external":
                continue
            pattern = handovers(port, schedule)
            first = counts.get(port.channel, 0)
            writes[port.channel] = port.direction == "write"
            counts[port.channel] = first + pattern.count
            known = corners.get(port.channel, _NONE)
            many = pattern.count > MAX_TOKENS
            corners[port.channel] = np.concatenate((known, _corners(pattern) + first)) if many else known
    return Ends(tuple(counts), tuple(writes.values()), tuple(counts.values()), tuple(corners.values()))


def sample_tokens(network: TaskNetwork, ends: Mapping[str, Ends], known: dict[Hashable, Times]) -> dict[str, Times]:
    """The tokens to look at in each channel; refuses a channel whose ends do not match.

    Equal samples are the same array, which is kept in `known`. `ends` are those of each task.
    """
    put: dict[str, tuple[int, Times]] = {}
    got: dict[str, tuple[int, Times]] = {}
    for task in network.tasks:
        side = ends[task.name]
        for port, writes, count, corners in zip(side.ports, side.writes, side.counts, side.corners, strict=True):
            (put if writes else got)[task.channel(port)] = (count, corners)
    samples: dict[str, Times] = {}
    for name in network.channels:
        (count, corners), (taken, others) = put.get(name, (0, _NONE)), got.get(name, (0, _NONE))
        if count != taken or count == 0:
            raise ProfilingError(
                "bad-request", what=f"{count} tokens are written and {taken} read in one run", where=name,
                limit="a channel must be emptied in every run",
                hint="report this design: its ends do not match",
            )  # fmt: skip
        both = _NONE if count <= MAX_TOKENS else _distinct(corners, others)
        key = (count, both.tobytes())
        if key not in known:
            if count <= MAX_TOKENS:
                known[key] = np.arange(count)
            else:
                known[key] = _distinct(np.linspace(0, count - 1, MAX_TOKENS).astype(np.int64), both)
        samples[name] = known[key]
    return samples


_NONE = np.zeros(0, np.int64)


def _distinct(first: Times, second: Times) -> Times:
    """All of both, in order, once."""
    both = np.sort(np.concatenate((first, second)), kind="stable")
    return both[np.concatenate(([True], both[1:] != both[:-1]))] if len(both) else both


def _corners(pattern: TokenPattern) -> Times:
    """Tokens at which every level is at its first or its last count: where bursts begin and end."""
    tokens = np.zeros(1, np.int64)
    for size in [level.count for level in pattern.levels if level.count > 1][-_CORNER_LEVELS:]:
        tokens = (tokens[:, None] * size + np.array([0, size - 1])).ravel()
    return tokens
