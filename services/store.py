"""Files addressed by the SHA-256 of their content: what steps hand to each other and to users.

A file appears under its hash only when it is whole (temporary file, fsync, rename), so a killed writer
leaves nothing that a reader could take for an output. The same bytes are kept once.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import re
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

TREE_MEDIA_TYPE = "application/x-tar"
_HASH = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20
_BATCH = 500
# Python before 3.11.4 has no filters; put_tree wrote the tar, and writes plain files only.
_ONLY_DATA: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


class StoreError(Exception):
    """The content store cannot do what was asked; the message says why."""


class TooLargeError(StoreError):
    """More bytes came than the caller allows."""


class WrongContentError(StoreError):
    """What came is not what its hash says."""


class MissingContentError(StoreError):
    """No file with that hash is in the store."""


@dataclass(frozen=True)
class StoredFile:
    sha256: str
    size: int


class ContentStore:
    """A folder of immutable files named by their hash. Any number of processes may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._incoming = root / "incoming"
        self._leaving = root / "leaving"

    def put_bytes(self, data: bytes) -> StoredFile:
        return self.put_chunks([data])

    def put_file(self, path: Path) -> StoredFile:
        with path.open("rb") as source:
            return self.put_chunks(iter(lambda: source.read(_CHUNK), b""))

    def put_chunks(self, chunks: Iterable[bytes], limit: int | None = None) -> StoredFile:
        """Store a stream, refusing it as soon as it grows beyond `limit` bytes."""
        with self.receiving() as writer:
            for chunk in chunks:
                if limit is not None and writer.size + len(chunk) > limit:
                    raise TooLargeError(f"more than {limit} bytes")
                writer.write(chunk)
            return self.keep(writer)

    def put_tree(self, folder: Path) -> StoredFile:
        """Store a folder as one tar that depends on names, bits and executable flags only.

        Symbolic links are refused: what they point at is not part of the content.
        """
        if not folder.is_dir():
            raise StoreError(f"{folder} is not a folder")
        with (
            self.receiving() as writer,
            tarfile.open(fileobj=writer, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for path in sorted(folder.rglob("*"), key=lambda p: p.relative_to(folder).parts):
                _add_to_tar(tar, path, path.relative_to(folder).as_posix())
            tar.close()
            return self.keep(writer)

    def extract_tree(self, sha256: str, folder: Path) -> Path:
        """Unpack what put_tree stored into `folder`, which is made if it is absent."""
        folder.mkdir(parents=True, exist_ok=True)
        with self.open(sha256) as source, tarfile.open(fileobj=source, mode="r|") as tar:
            tar.extractall(folder, **_ONLY_DATA)
        return folder

    def read_from_tree(self, sha256: str, name: str) -> bytes:
        """One file of what put_tree stored; KeyError where none has that name."""
        with self.open(sha256) as source, tarfile.open(fileobj=source) as tar:
            found = tar.extractfile(name)
            return found.read() if found is not None else b""

    def path(self, sha256: str) -> Path:
        """Where the content lies; it exists. Callers must not write to it."""
        path = self._path(sha256)
        if not path.is_file() and not self._put_back(sha256):
            raise MissingContentError(f"no content {sha256} in the store at {self.root}")
        return path

    def open(self, sha256: str) -> BinaryIO:
        return self.path(sha256).open("rb")

    def read_bytes(self, sha256: str) -> bytes:
        return self.path(sha256).read_bytes()

    def exists(self, sha256: str) -> bool:
        return self._path(sha256).is_file() or self._put_back(sha256)

    def renew(self, sha256: str) -> bool:
        """Whether it is there, and from now on as young as if it had just been stored: a row will refer to it."""
        try:
            os.utime(self._path(sha256))
        except FileNotFoundError:
            return self._put_back(sha256) and self.renew(sha256)
        return True

    def old(self, older_than_seconds: float) -> Iterator[list[str]]:
        """Hashes of what nobody stored or renewed for so long, some hundreds at a time."""
        limit = time.time() - older_than_seconds
        for folder in sorted(self.root.glob("[0-9a-f][0-9a-f]")):
            found = [path.name for path in folder.iterdir() if _HASH.fullmatch(path.name) and _mtime(path) < limit]
            for first in range(0, len(found), _BATCH):
                yield found[first : first + _BATCH]

    def remove(self, sha256s: Iterable[str], older_than_seconds: float, needed: Callable[[list[str]], set[str]]) -> int:
        """Remove what is old and not needed; how many bytes went.

        Each file is first set aside, where no writer counts on it any more, and then looked at again: what was renewed
        or came to be needed meanwhile goes back. Whatever is set aside while this process dies goes back at the next
        use, so that nothing that a row refers to is ever gone.
        """
        self._leaving.mkdir(parents=True, exist_ok=True)
        limit = time.time() - older_than_seconds
        aside = [sha256 for sha256 in sha256s if self._set_aside(sha256)]
        keep = needed(aside) if aside else set[str]()
        freed = 0
        for sha256 in aside:
            path = self._leaving / sha256
            if sha256 in keep or _mtime(path) >= limit:
                self._put_back(sha256)
                continue
            with contextlib.suppress(FileNotFoundError):
                size = path.stat().st_size
                path.unlink()
                freed += size
        return freed

    def sweep(self, older_than_seconds: float = 86400.0) -> int:
        """Remove what killed writers left in the incoming folder; returns how many files went."""
        removed = 0
        limit = time.time() - older_than_seconds
        if self._incoming.is_dir():
            for path in self._incoming.iterdir():
                try:
                    if path.stat().st_mtime < limit:
                        path.unlink()
                        removed += 1
                except FileNotFoundError:
                    continue  # its writer has just finished, or another process sweeps too
        if self._leaving.is_dir():
            for path in self._leaving.iterdir():  # of a collector that was killed: it begins anew
                self._put_back(path.name)
        return removed

    def _set_aside(self, sha256: str) -> bool:
        try:
            os.replace(self._path(sha256), self._leaving / sha256)
        except FileNotFoundError:
            return False
        return True

    def _put_back(self, sha256: str) -> bool:
        """What was set aside stands in its place again."""
        path = self._path(sha256)
        try:
            os.replace(self._leaving / sha256, path)
        except FileNotFoundError:
            return path.is_file()
        return True

    def _path(self, sha256: str) -> Path:
        if not _HASH.fullmatch(sha256):
            raise StoreError(f"{sha256!r} is not a SHA-256 in lower-case hexadecimal")
        return self.root / sha256[:2] / sha256

    @contextmanager
    def receiving(self) -> Iterator[HashingWriter]:
        """A file that goes with the block unless it was kept."""
        self._incoming.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._incoming)
        path = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield HashingWriter(file, path)
        finally:
            path.unlink(missing_ok=True)

    def keep(self, writer: HashingWriter, sha256: str | None = None) -> StoredFile:
        """Have what was written appear under its hash, which must be this one if one is given."""
        digest = writer.digest.hexdigest()
        if sha256 is not None and digest != sha256:
            raise WrongContentError(f"{writer.size} bytes came with the hash {digest}, not {sha256}")
        writer.sync()
        final = self._path(digest)
        if not self.renew(digest):
            os.chmod(writer.path, 0o444)
            final.parent.mkdir(parents=True, exist_ok=True)
            os.replace(writer.path, final)
            _sync_folder(final.parent)
        return StoredFile(digest, writer.size)


def file_hash(path: Path) -> str:
    """As content is called."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class HashingWriter(io.RawIOBase):
    """Passes bytes on to a file and keeps their hash and count."""

    def __init__(self, file: io.BufferedWriter, path: Path) -> None:
        self.file = file
        self.path = path
        self.digest = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.file.write(data)
        self.digest.update(data)
        self.size += len(data)
        return len(data)

    def sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())


def _add_to_tar(tar: tarfile.TarFile, path: Path, name: str) -> None:
    if path.is_symlink():
        raise StoreError(f"{name} is a symbolic link; store the file itself")
    info = tarfile.TarInfo(name)
    if path.is_dir():
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
        return
    status = path.stat()
    info.size, info.mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
    with path.open("rb") as source:
        tar.addfile(info, source)


def _mtime(path: Path) -> float:
    """When the file was stored or renewed; a file that has just gone is as young as can be."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
