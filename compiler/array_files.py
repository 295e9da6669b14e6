"""Arrays in numpy's files whose author is not trusted: nothing is unpacked that is larger than it says or may be.

Sizes are read from headers first. Whatever is wrong with a file is one error, with a sentence.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.compiler.arrays import Array
from penstock.compiler.runtime.penstock_runtime.errors import DAMAGED, ENCRYPTED, says_damaged
from penstock.compiler.runtime.penstock_runtime.npy import (
    MOST_HEADER,
    BadArraysError,
    Header,
    read_header,
    read_values,
)

MOST_ARRAYS = 100_000
_UNPACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SUFFIX = ".npy"


LookAtText = Callable[[bytes, bool], None]
"""Sees the words of an array of text, and whether they are big-endian."""


def check_archive(path: Path, name: str, most_bytes: int, look: LookAtText | None = None, longest: int = 0) -> int:
    """The bytes that the arrays of an .npz take in memory. Text is numbers of no use, but to who says to `look`."""
    with _reading(name), zipfile.ZipFile(path) as archive:
        return sum(size for size, _ in _checked(archive, name, most_bytes, look, longest).values())


def read_arrays(path: Path, name: str, most_bytes: int) -> dict[str, Array]:
    """Numbers by their names in an .npz; those of an .npy have the name ''."""
    with _reading(name), path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            header = read_header(file, size, name)
            if size > most_bytes:
                raise BadArraysError(f"{name} has {size} bytes", f"at most {most_bytes}")
            return {"": read_values(file, header, name)}
        with zipfile.ZipFile(file) as archive:
            found = _checked(archive, name, most_bytes, None, 0)
            return {key: _read(archive, entry, f"{name}/{key[:80]!r}") for key, (_, entry) in found.items()}


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str) -> Array:
    with archive.open(entry) as file:
        return read_values(file, read_header(file, entry.file_size, where), where)


def _checked(
    archive: zipfile.ZipFile, name: str, most_bytes: int, look: LookAtText | None, longest: int
) -> dict[str, tuple[int, zipfile.ZipInfo]]:
    """Size and entry of every array, each of which is what it says."""
    entries = archive.infolist()
    if any(entry.compress_type not in _UNPACKED for entry in entries):
        raise BadArraysError(f"{name} is packed in a way that gives out more than it is asked for")
    if any(entry.flag_bits & ENCRYPTED for entry in entries):
        raise BadArraysError(f"{name} is encrypted")
    total = sum(entry.file_size for entry in entries)
    if total > most_bytes or len(entries) > MOST_ARRAYS:
        raise BadArraysError(
            f"{name} unpacks to {total} bytes in {len(entries)} arrays", f"{most_bytes} bytes are left"
        )
    found: dict[str, tuple[int, zipfile.ZipInfo]] = {}
    for entry in entries:
        with archive.open(entry) as file:
            _check_array(file, entry.file_size, f"{name}/{entry.filename[:80]!r}", look, longest)
        key = entry.filename.removesuffix(_SUFFIX)
        if key in found:
            raise BadArraysError(f"{name} holds {key[:80]!r} twice")
        found[key] = entry.file_size, entry
    return found


def _check_array(file: Any, size: int, where: str, look: LookAtText | None, longest: int) -> Header:
    header = read_header(file, size, where)
    if header.dtype.kind == "U" and look is not None:
        if header.shape or size > MOST_HEADER + 4 * longest:
            raise BadArraysError(f"{where} holds more than one name")
        look(file.read(), header.dtype.byteorder == ">")
    return header


@contextmanager
def _reading(name: str) -> Generator[None]:
    """Whatever is wrong with an archive, or with the disk that it lies on, in one sentence."""
    try:
        yield
    except DAMAGED as error:
        raise BadArraysError(f"{name} is no file of arrays: {str(error)[:200] or 'it ends early'}") from error
    except OSError as error:
        what = "is no file of arrays" if says_damaged(error) else "cannot be read"
        raise BadArraysError(f"{name} {what}: {error.strerror or error}") from error
