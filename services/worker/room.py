"""A disk without room: it is nobody's fault, nothing is lost by it, and work waits until there is some again."""

from __future__ import annotations

import errno
import shutil

from penstock.services.settings import Settings

WAIT_SECONDS = 15.0
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DISK_FULL_STATE = "53100"  # of Postgres
_NEARLY = 1 << 20
"""So little that whatever fails now failed for it, also where the error says something else: a file cut short."""


def has_room(settings: Settings) -> bool:
    """Whether a step may be begun."""
    return _free(settings) >= settings.work_disk_bytes


def came_from_a_full_disk(error: BaseException, settings: Settings) -> bool:
    """Whether the disk was full. Libraries wrap such errors in their own, so the causes are looked at."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _FULL:
            return True
        if getattr(getattr(seen, "orig", None), "sqlstate", None) == _DISK_FULL_STATE:
            return True
        seen = seen.__cause__ or seen.__context__
    return _free(settings) < _NEARLY


def _free(settings: Settings) -> int:
    settings.work_folder.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(settings.work_folder).free
