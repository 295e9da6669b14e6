"""One byte that the worker's main process shares with its pool children: the worker is to end."""

from __future__ import annotations

import mmap

_flag = mmap.mmap(-1, 1)  # anonymous and shared: children forked later see it too


def announce() -> None:
    _flag[0] = 1


def announced() -> bool:
    return _flag[0] == 1
