"""Two bytes that the worker's main process shares with its pool children: the worker is to end, now or soon."""

from __future__ import annotations

import mmap

_flags = mmap.mmap(-1, 2)  # anonymous and shared: children forked later see them too
_NOW, _SOON = 0, 1


def announce() -> None:
    """Steps are to stop and to go back to the queue."""
    _flags[_NOW] = 1


def announced() -> bool:
    return _flags[_NOW] == 1


def drain() -> None:
    """Steps come to their end; no other one is begun."""
    _flags[_SOON] = 1


def drains() -> bool:
    return _flags[_SOON] == 1 or announced()
