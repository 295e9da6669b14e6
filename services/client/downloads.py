"""A file on its way from the service: it appears whole, with the right hash, or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from types import TracebackType

from penstock.services.api.answers.schemas import ArtifactOut
from penstock.services.client.errors import ServiceError, damaged
from penstock.services.store import file_hash

CHUNK = 1 << 20


class Incoming:
    """Takes the chunks of an artifact; `keep` gives it its name."""

    def __init__(self, artifact: ArtifactOut, folder: Path) -> None:
        self.artifact = artifact
        self.target = folder / safe_name(artifact.name)
        self._digest = hashlib.sha256()

    @property
    def is_there(self) -> bool:
        """The same file was fetched before."""
        return self.target.is_file() and file_hash(self.target) == self.artifact.sha256

    def __enter__(self) -> Incoming:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.target.parent, prefix=".penstock-")
        self._file, self._temporary = os.fdopen(descriptor, "wb"), Path(name)
        return self

    def write(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self._file.write(chunk)

    def keep(self) -> Path:
        self._file.close()
        if self._digest.hexdigest() != self.artifact.sha256:
            raise damaged(self.artifact.name)
        self._temporary.chmod(0o644)
        self._temporary.replace(self.target)
        return self.target

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """The last part of an artifact's name: a service must not choose where on this machine it is written."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    if last in ("", ".", "..") or any(ord(letter) < 32 for letter in last):
        raise ServiceError(f"the artifact's name {name!r} is no file name", code="bad-name")
    return last
