"""How full a channel gets, from when its tokens are written and read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.compiler.jit import Compiled
from penstock.profiling.sampling import Times

_IN = ("penstock.profiling.held",)
IN_USE = Compiled("held", _IN, "most_in_use", before_loading=10_000_000, before_compiling=200_000_000)  # tokens
LATE = Compiled("held-late", _IN, "most_when_late", before_loading=10_000_000, before_compiling=200_000_000)
_SPACING = 32  # tokens between those that are looked at first
_FEW = 256  # tokens that are looked at all at once


@dataclass(frozen=True)
class ChannelTimes:
    """Cycle of the write and of the read of the sampled tokens (or blocks) `index` of `count`.

    `claimed` is when the writer takes the slot: the write itself, or the first part of a block.
    """

    index: Times
    count: int
    claimed: Times
    written: Times
    read: Times

    @cached_property
    def high_water(self) -> int:
        """Slots that the writer needs so that it never waits for the reader."""
        return max(1, most_held(self.index, self.claimed, self.read))

    @cached_property
    def least_depth(self) -> int:
        """Slots with which the reader never waits longer, though the writer may; at most the high water.

        Right for a writer that serves no other channel: what holds it back then delays nobody. Its own
        suppliers are held back with it, never sooner than they are needed.
        """
        if self.high_water == 1:
            return 1
        return min(self.high_water, _held_when_late(self.index, self.written, self.read) or self.high_water)


def _held_when_late(index: Times, written: Times, read: Times) -> int:
    """The most slots in use where each token is written as late as keeps no reader waiting; 0 where there is no such.

    A token that is written late delays all later ones as much, so none may use up what the tightest of these has.
    """
    if LATE.pays(len(index)):
        return LATE.function()(index, written, read)
    spare = np.minimum.accumulate((read - written)[::-1])[::-1]
    return max(1, _most_held(index, written + (spare - 1), read)) if spare[0] >= 1 else 0


def most_held(index: Times, wanted: Times, read: Times) -> int:
    """The most slots in use when a token finds one in the cycle that it is `wanted`, its own among them."""
    if IN_USE.pays(len(index)):
        return IN_USE.function()(index, wanted, read)
    return _most_held(index, wanted, read)


def _most_held(index: Times, wanted: Times, read: Times) -> int:
    """The same without compiled code: one search, most of it skipped.

    Times never fall from token to token. Tokens at even distances say how far behind the reader mostly is; of the
    others, only those are searched that find it further behind.
    """
    count, spacing = len(index), _SPACING if len(index) > _FEW else 1
    first = np.arange(0, count, spacing)
    gone = read.searchsorted(wanted[::spacing])
    most = int(_held(index, first, gone).max())
    if spacing == 1:
        return most
    behind = max(1, int((first + 1 - gone).max()))
    unknown = np.empty(count, np.bool_)
    np.greater_equal(read[:-behind], wanted[behind:], out=unknown[behind:])
    if int(index[-1]) == count - 1:
        unknown[:behind] = False  # they are no more than `behind`, and that many were found
    else:
        unknown[behind:] |= index[behind:] - index[:-behind] > most
        unknown[:behind] = index[:behind] >= most
    left = np.flatnonzero(unknown)
    if len(left):
        most = max(most, int(_held(index, left, read.searchsorted(wanted[left])).max()))
    return most


def _held(index: Times, places: Times, gone: Times) -> Times:
    """Tokens up to each of these samples, less those up to the last of the samples that are `gone`."""
    return index[places] - np.where(gone > 0, index[gone - 1], -1)
