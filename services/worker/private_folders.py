"""Folders of steps, each of its own name; one that a step left empty becomes the next one's."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

_TEMPORARY = "tmp"


class PrivateFolders:
    """One pool child's. On many file systems a folder is moved in a hundredth of the time that its end takes, and most
    short steps leave nothing in theirs. At any moment a folder has the name of its claim: that is what the sweep of
    work folders goes by."""

    def __init__(self) -> None:
        self._empty: Path | None = None

    def make(self, folder: Path) -> None:
        """The step's own folder; what its body puts into temporary files lies there too and goes with it."""
        if not self._take_over(folder):
            (folder / _TEMPORARY).mkdir(parents=True)
        tempfile.tempdir = str(folder / _TEMPORARY)

    def remove(self, folder: Path) -> None:
        """The step's folder and what lies in it."""
        tempfile.tempdir = None
        if self._empty is None and _is_empty(folder):
            self._empty = folder
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Nothing more is to be done: what was kept for the next step goes."""
        empty, self._empty = self._empty, None
        if empty is not None:
            shutil.rmtree(empty, ignore_errors=True)

    def _take_over(self, folder: Path) -> bool:
        empty, self._empty = self._empty, None
        if empty is None:
            return False
        try:
            empty.rename(folder)
        except OSError:
            return False
        with contextlib.suppress(OSError):
            os.utime(folder)  # young again: old ones are swept
        return True


def _is_empty(folder: Path) -> bool:
    try:
        return os.listdir(folder) == [_TEMPORARY] and not os.listdir(folder / _TEMPORARY)
    except OSError:
        return False
