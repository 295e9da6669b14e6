"""What a backup looks like: a folder or one tar with a manifest, the database, the keys, and the store by hash.

A backup appears under its name when it is whole. Everything in it is named by its hash, so that a damaged one is found
before anything is made of it.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from penstock.compiler.errors import PenstockError

MANIFEST, DATABASE, KEY, CONTENTS = "manifest.json", "database.dump", "secret.key", "contents.txt"
FORMAT_VERSION = 1
_CONTENT = re.compile(r"([0-9a-f]{64}) ([0-9]{1,18})")
CHUNK = 1 << 20
Say = Callable[[str], None]
"""Told what is being done."""


class Manifest(BaseModel):
    """The first thing that is read of a backup, and the last that is written."""

    model_config = ConfigDict(frozen=True)

    format: Literal["penstock-backup"] = "penstock-backup"
    version: int = FORMAT_VERSION
    made_at: str
    made_by: str
    """The version of Penstock."""
    schema_revision: str
    postgres: str
    """The version of the server, whose major version or a later one can take it in."""
    tools_major: int
    whole: bool
    """With the content of the store and the key; else the database alone."""
    files: dict[str, str]
    """Hashes of the database, the key and the list of contents."""
    runs: int
    contents: int
    bytes: int
    missing: list[str]
    """Contents that rows refer to and that were not in the store even then."""


def content_name(sha256: str) -> str:
    return f"store/{sha256[:2]}/{sha256}"


class BackupWriter:
    """Takes files into a backup under way; `keep` gives it its name."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
        self.as_tar = target.suffix == ".tar"
        self._tar: tarfile.TarFile | None = None

    def __enter__(self) -> BackupWriter:
        if self.as_tar:
            descriptor = os.open(self.partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # it holds keys
            self._raw = os.fdopen(descriptor, "wb")
            self._tar = tarfile.open(fileobj=self._raw, mode="w", format=tarfile.PAX_FORMAT)
        else:
            self.partial.mkdir(mode=0o700)
        return self

    def __exit__(self, *_: object) -> None:
        if self.as_tar:
            self._raw.close()
            self.partial.unlink(missing_ok=True)
        else:
            shutil.rmtree(self.partial, ignore_errors=True)

    def add(self, name: str, source: IO[bytes], size: int) -> str:
        """The hash of what was taken in."""
        hashed = _Hashing(source)
        if self._tar is not None:
            info = tarfile.TarInfo(name)
            info.size, info.mode = size, 0o600
            self._tar.addfile(info, hashed)  # pyright: ignore[reportArgumentType]
        else:
            path = self.partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(hashed, file, CHUNK)
                file.flush()
                os.fsync(file.fileno())
            path.chmod(0o600)
        return hashed.digest.hexdigest()

    def add_bytes(self, name: str, data: bytes) -> str:
        return self.add(name, io.BytesIO(data), len(data))

    def keep(self) -> None:
        if self._tar is not None:
            self._tar.close()
            self._raw.flush()
            os.fsync(self._raw.fileno())
            self._raw.close()
        self.partial.rename(self.target)


class BackupReader:
    """A backup that is there: its manifest, and its files one after the other."""

    def __init__(self, source: Path) -> None:
        self.source = source
        if source.is_dir():
            self._tar = None
        else:
            try:
                self._tar = tarfile.open(source, mode="r:")  # noqa: SIM115
            except FileNotFoundError:
                raise bad_backup(source, "there is no such file or folder") from None
            except (tarfile.TarError, OSError, EOFError) as error:
                raise bad_backup(source, f"it cannot be read: {error}") from None
            try:
                self._tar.getmembers()  # reads all headers: one that was cut off is found here
            except (tarfile.TarError, OSError, EOFError) as error:
                self.close()
                raise bad_backup(source, f"it cannot be read: {error}") from None
        try:
            self.manifest = self._manifest()
        except PenstockError:
            self.close()
            raise

    def __enter__(self) -> BackupReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._tar is not None:
            self._tar.close()

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        try:
            if self._tar is None:
                file: IO[bytes] | None = (self.source / name).open("rb")
            else:
                file = self._tar.extractfile(name)
        except (KeyError, FileNotFoundError, IsADirectoryError):
            file = None
        except (OSError, RecursionError) as error:
            raise bad_backup(self.source, f"{name} cannot be read: {type(error).__name__}") from None
        if file is None:
            raise bad_backup(self.source, f"it has no {name}")
        with file:
            yield file

    def checked(self, name: str) -> bytes:
        """A file of the manifest, whole, if it is what the manifest says."""
        with self.open(name) as file:
            data = file.read()
        if hashlib.sha256(data).hexdigest() != self.manifest.files.get(name):
            raise bad_backup(self.source, f"{name} is damaged: its hash differs")
        return data

    def check(self, name: str) -> None:
        """As `checked`, for what is too large to be held."""
        with self.open(name) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
        if found != self.manifest.files.get(name):
            raise bad_backup(self.source, f"{name} is damaged: its hash differs")

    def contents(self) -> list[tuple[str, int]]:
        """Hash and size of every content that it holds."""
        lines = self.checked(CONTENTS).decode(errors="replace").splitlines()
        rows = [_CONTENT.fullmatch(line) for line in lines]
        if not all(rows):
            raise bad_backup(self.source, f"{CONTENTS} is no list of contents")
        return [(row[1], int(row[2])) for row in rows if row is not None]

    def _manifest(self) -> Manifest:
        with self.open(MANIFEST) as file:
            data = file.read(1 << 24)
        try:
            manifest = Manifest.model_validate_json(data)
        except ValidationError:
            raise bad_backup(self.source, "its manifest is not one of a Penstock backup") from None
        if manifest.version > FORMAT_VERSION:
            raise bad_backup(self.source, f"it was made by a later Penstock ({manifest.made_by})")
        return manifest


class _Hashing(io.RawIOBase):
    """Passes on what is read, and keeps its hash."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self.digest.update(data)
        return data


def bad_backup(source: Path, what: str) -> PenstockError:
    return PenstockError(
        code="bad-backup", what=what, where=str(source), hint="take another backup; nothing was changed",
    )  # fmt: skip
