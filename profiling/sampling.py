"""Which tokens of each channel the timeline looks at, and in which iterations they pass.

Short channels are looked at whole. Of long ones an even sample is taken, with the corners of both ends'
patterns: the tokens at which bursts begin and end.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from compiler.schedule import NestSchedule, PortSchedule, TokenPattern
from profiling.network import Network
from profiling.protocol import ProfilingError

Times = NDArray[np.int64]

MAX_TOKENS = 4096


def iterations_of(pattern: TokenPattern, tokens: Times) -> Times:
    """`TokenPattern.iteration` for many tokens at once."""
    left, position = tokens.copy(), np.zeros(tokens.shape, np.int64)
    for level in reversed(pattern.levels):
        left, index = np.divmod(left, level.count)
        if len(level.runs) == 1:
            counter = index + level.runs[0][0]
        else:
            counter = np.concatenate([np.arange(first, first + n) for first, n in level.runs])[index]
        position += counter * level.stride
    return position


def handovers(port: PortSchedule, schedule: NestSchedule) -> TokenPattern:
    """The pattern of a port; for a block channel one access a block, at the block's first iteration."""
    if port.kind != "block":
        return port.pattern
    outer = tuple(level for level in port.pattern.levels if level.stride >= schedule.block_iterations)
    return TokenPattern(outer)


def sample_tokens(network: Network, known: dict[Hashable, Times]) -> dict[str, Times]:
    """The tokens to look at in each channel; refuses a channel whose ends do not match.

    Equal samples are the same array, which is kept in `known`.
    """
    counts: dict[tuple[str, str], int] = {}
    corners: dict[str, set[int]] = {name: set() for name in network.channels}
    for task in network.tasks:
        for schedule in task.nests:
            for port in schedule.ports:
                if port.kind == "external":
                    continue
                name, pattern = task.channel(port.channel), handovers(port, schedule)
                first = counts.get((name, port.direction), 0)
                counts[name, port.direction] = first + pattern.count
                if pattern.count > MAX_TOKENS:
                    corners[name] |= {first + c for c in _corners(pattern)}
    samples: dict[str, Times] = {}
    for name in network.channels:
        put, got = counts.get((name, "write"), 0), counts.get((name, "read"), 0)
        if put != got or put == 0:
            raise ProfilingError(
                "bad-request", what=f"{put} tokens are written and {got} read in one run", where=name,
                limit="a channel must be emptied in every run",
                hint="report this design: its ends do not match",
            )  # fmt: skip
        key = (put, frozenset(corners[name]))
        if key not in known:
            even = np.arange(put) if put <= MAX_TOKENS else np.linspace(0, put - 1, MAX_TOKENS).astype(np.int64)
            known[key] = np.unique(np.concatenate([even, np.array(sorted(corners[name]), np.int64)]))
        samples[name] = known[key]
    return samples


def _corners(pattern: TokenPattern) -> set[int]:
    """Tokens at which every level is at its first or its last count: where bursts begin and end."""
    sizes = [level.count for level in pattern.levels if level.count > 1]
    result: set[int] = set()
    for choice in product((0, 1), repeat=min(len(sizes), 8)):
        token = 0
        for size, last in zip(sizes[-8:], choice, strict=True):
            token = token * size + (size - 1 if last else 0)
        result.add(token)
    return result
