"""Where measurements and built programs are kept, and how one process at a time makes what is missing.

Entries are named by their content, written whole (a temporary file that is renamed), and locked by a file while
somebody makes them, so that two equal requests at once start the tool once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from penstock.compiler.errors import PenstockError

T = TypeVar("T")
FailureT = TypeVar("FailureT")
ABANDONED_SECONDS = 3600.0


def cache_folder() -> Path:
    """Below `$PENSTOCK_CACHE`, `$PENSTOCK_HOME/cache` or the user's cache folder, whichever is the first to be set."""
    cache, home = (os.environ.get(name, "").strip() for name in ("PENSTOCK_CACHE", "PENSTOCK_HOME"))
    if cache:
        return Path(cache) / "open-rtl"
    return (Path(home) / "cache" if home else user_cache() / "penstock") / "open-rtl"


def runs_folder() -> Path:
    """Where the tools work, on the disk of what they make."""
    return cache_folder() / "runs"


def user_cache() -> Path:
    """The user's cache folder, or a place below the temporary folder for users without a home."""
    with suppress(RuntimeError):
        found = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        if os.access(_nearest(found), os.W_OK | os.X_OK):
            return found
    return Path(tempfile.gettempdir()) / f"penstock-{os.geteuid()}"


def _nearest(folder: Path) -> Path:
    return next(one for one in (folder, *folder.parents) if one.exists())


def content_key(*parts: object) -> str:
    """A name for whatever these parts say."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


class CacheStore:
    """One kind of entries below the cache folder, by key; at most `keep` of them, the oldest go first."""

    def __init__(self, kind: str, keep: int, root: Path | None = None) -> None:
        self.kind, self.keep, self._root = kind, keep, root

    @property
    def folder(self) -> Path:
        folder = (self._root or cache_folder()) / self.kind
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable("made", error, folder) from error
        return folder

    def path(self, key: str) -> Path:
        return self.folder / key

    def read(self, key: str) -> Any | None:
        """The JSON document of a key; None where there is none, or none that can be read."""
        path = self.path(f"{key}.json")
        try:
            document = json.loads(path.read_text())
        except (OSError, ValueError):
            return None  # what is damaged is measured again
        with suppress(OSError):  # of another user's: it is read, and counts as old
            os.utime(path)
        return document

    def write(self, key: str, document: Any) -> None:
        temporary = self.path(f".{uuid.uuid4().hex}")
        try:
            temporary.write_text(json.dumps(document))
            temporary.replace(self.path(f"{key}.json"))
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _unusable("written to", error, self.folder) from error
        self.prune()

    @contextmanager
    def making(self, key: str) -> Iterator[None]:
        """Only one thread of one process is in here for a key; the others wait."""
        with self._locked(key, fcntl.LOCK_EX):
            yield

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Whether nobody else is making this key; if so, nobody will be while this lasts."""
        with self._locked(key, fcntl.LOCK_EX | fcntl.LOCK_NB) as mine:
            yield mine

    @contextmanager
    def _locked(self, key: str, how: int) -> Iterator[bool]:
        """Whether the key's file could be locked. One that was pruned meanwhile locks nobody out: it is made anew."""
        while True:
            try:
                descriptor = os.open(self.path(f"{key}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise _unusable("written to", error, self.folder) from error
            try:
                mine = _lock(descriptor, how)
                if mine and not os.fstat(descriptor).st_nlink:
                    continue
                yield mine
                return
            finally:
                os.close(descriptor)

    def prune(self) -> None:
        """Remove the entries that were not used for longest, and what killed writers left."""
        paths = list(self.folder.iterdir())
        for path in paths:
            if path.name.startswith(".") and 0 < _age(path) < time.time() - ABANDONED_SECONDS:
                remove(path)
        entries = [path for path in paths if not path.name.startswith(".") and path.suffix != ".lock"]
        if len(entries) <= self.keep:
            return
        ages = sorted((_age(path), path) for path in entries)
        for _, path in ages[: len(entries) - self.keep]:
            remove(path)
            key = path.name.removesuffix(".json")
            with self.claim(key) as mine:
                if mine:  # who makes it anew at this moment keeps the lock, or somebody else would make it as well
                    remove(self.path(f"{key}.lock"))


def fetch_many(
    store: CacheStore,
    keys: Iterable[str],
    read: Callable[[Any], T | None],
    make: Callable[[list[str]], Mapping[str, T | FailureT]],
    write: Callable[[T | FailureT], Any | None],
) -> dict[str, T | FailureT]:
    """Entries by key: read where they are kept, else made, each once whoever asks at the same time.

    `read` gives None for a document that it does not understand, `write` for what is not to be kept.
    """
    found: dict[str, T | FailureT] = {}
    with ExitStack() as locks:
        for key in sorted(set(keys)):  # in one order, so that two batches never wait for each other
            if (known := read(store.read(key))) is None:
                locks.enter_context(store.making(key))
                known = read(store.read(key))  # somebody else may just have made it
            if known is not None:
                found[key] = known
        for key, made in make([key for key in dict.fromkeys(keys) if key not in found]).items():
            found[key] = made
            if (document := write(made)) is not None:
                store.write(key, document)
    return found


def _unusable(what: str, error: OSError, folder: Path) -> PenstockError:
    return PenstockError(
        code="cache-folder", what=f"the cache folder cannot be {what}: {error.strerror}", where=str(folder),
        hint="free space there, or set PENSTOCK_HOME to a folder that you can write to",
    )  # fmt: skip


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    return True


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # somebody else has just removed it


def remove(path: Path) -> None:
    """A file or a folder; it may be gone already."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
