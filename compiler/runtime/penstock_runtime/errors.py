"""The one error of the host runtime."""

from __future__ import annotations

import errno
import zipfile
import zlib


class PackageError(Exception):
    """What is wrong with the package, the input or the machine, and what to do about it, on one line."""

    def __init__(self, what: str, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        super().__init__(f"{what} - {hint}" if hint else what)


DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError)
"""What an archive raises that is damaged, or says that it is of another version."""
ENCRYPTED = 1
"""In the flags of an archive's entry: Penstock makes none that are."""


def says_damaged(error: OSError) -> bool:
    """Whether it is of a place before a file's beginning, which a damaged archive names; not of a disk."""
    return error.errno == errno.EINVAL
