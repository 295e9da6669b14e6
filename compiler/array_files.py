"""Arrays in numpy's files whose author is not trusted: nothing is unpacked that is larger than it says or may be.

Sizes are read from headers first. Whatever is wrong with a file is one error, with a sentence.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from numpy.lib import format as npy

from penstock.compiler.arrays import Array

MOST_ARRAYS = 100_000
_MOST_HEADER = 4096
_ENCRYPTED = 1
_UNPACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_SUFFIX = ".npy"


class BadArraysError(Exception):
    """What is wrong with a file of arrays, and which limit it is above."""

    def __init__(self, what: str, limit: str = "") -> None:
        super().__init__(what)
        self.what, self.limit = what, limit


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
            file.seek(0)
            _check_array(file, path.stat().st_size, name, None, 0)
            if path.stat().st_size > most_bytes:
                raise BadArraysError(f"{name} has {path.stat().st_size} bytes", f"at most {most_bytes}")
            file.seek(0)
            return {"": npy.read_array(file, allow_pickle=False)}
        with zipfile.ZipFile(file) as archive:
            found = _checked(archive, name, most_bytes, None, 0)
            return {key: _read(archive, entry) for key, (_, entry) in found.items()}


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    with archive.open(entry) as file:
        return npy.read_array(cast(Any, file), allow_pickle=False)


def _checked(
    archive: zipfile.ZipFile, name: str, most_bytes: int, look: LookAtText | None, longest: int
) -> dict[str, tuple[int, zipfile.ZipInfo]]:
    """Size and entry of every array, each of which is what it says."""
    entries = archive.infolist()
    if any(entry.compress_type not in _UNPACKED for entry in entries):
        raise BadArraysError(f"{name} is packed in a way that gives out more than it is asked for")
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
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


def _check_array(file: Any, size: int, where: str, look: LookAtText | None, longest: int) -> None:
    version = npy.read_magic(file)
    if (read := _HEADERS.get(version)) is None:
        raise BadArraysError(f"{where} has a header of version {version}")
    try:
        shape, _, dtype = read(file, max_header_size=_MOST_HEADER)
    except Exception as error:  # numpy reads a header as Python, which fails in as many ways as Python does
        raise BadArraysError(f"{where} has a header that says nothing: {type(error).__name__}") from error
    if dtype.hasobject or dtype.kind not in "biufUV" or (dtype.kind == "V" and dtype.names):
        raise BadArraysError(f"{where} holds {dtype}, which is no plain number")
    if math.prod(shape) * dtype.itemsize > size:
        raise BadArraysError(f"{where} says that it has shape {shape}, for which its {size} bytes are too few")
    if dtype.kind == "U" and look is not None:
        if shape or size > _MOST_HEADER + 4 * longest:
            raise BadArraysError(f"{where} holds more than one name")
        look(file.read(), dtype.byteorder == ">")


@contextmanager
def _reading(name: str) -> Generator[None]:
    """What the two libraries raise at bytes that are none of theirs: zipfile at an archive that is damaged or of
    another version, zlib inside of one, numpy at an array that ends early or is no array."""
    try:
        yield
    except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, ValueError, OSError) as error:
        raise BadArraysError(f"{name} is no file of arrays: {str(error)[:200] or 'it ends early'}") from error
