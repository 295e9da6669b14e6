"""Brings files out from behind the fence: those that were named beforehand, and only plain ones.

The folder was foreign code's to fill. It is walked by descriptors without following a link, so that a symlink, a pipe,
a device or a second name of another file is never opened for what it is not.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence

_CHUNK = 1 << 20


def collect(inside: int, outside: int, names: Sequence[str], most_bytes: int) -> str:
    """Copy the named files from one open folder into the other; returns what is wrong with one, if anything is."""
    left = most_bytes
    for name in names:
        *folders, last = name.split("/")
        try:
            source = _open_below(inside, folders, last)
        except FileNotFoundError:
            continue
        except OSError:
            return f"the output {name} is not a plain file"
        try:
            facts = os.fstat(source)
            if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
                return f"the output {name} is not a plain file"
            if facts.st_size > left:
                return f"the outputs are larger than {most_bytes} bytes"
            left -= facts.st_size
            _copy(source, outside, folders, last, facts.st_size)
        finally:
            os.close(source)
    return ""


def _open_below(folder: int, folders: Sequence[str], name: str) -> int:
    here = os.dup(folder)
    try:
        for part in folders:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


def _copy(source: int, outside: int, folders: Sequence[str], name: str, size: int) -> None:
    here = os.dup(outside)
    try:
        for part in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=here)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        target = os.open(name, flags, 0o644, dir_fd=here)
    finally:
        os.close(here)
    try:
        while size and (data := os.read(source, min(size, _CHUNK))):
            written = 0
            while written < len(data):
                written += os.write(target, data[written:])
            size -= len(data)
    finally:
        os.close(target)
