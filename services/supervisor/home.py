"""The one folder that holds all of a stack: data, logs, sockets, and the lock of its supervisor."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.identity import give_to, server_user
from penstock.services.supervisor.postgres import SOCKET
from penstock.services.supervisor.server import LONGEST_SOCKET_PATH

LEAST_FREE_BYTES = 256 * 1024 * 1024
HINT = "set PENSTOCK_HOME to a folder that you can write to"


@dataclass(frozen=True)
class Running:
    """What the lock file says of the supervisor that holds it."""

    pid: int
    url: str


class Home:
    """Made and checked by `prepare`; `lock` keeps a second supervisor out while this process lives."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._lock: IO[str] | None = None

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def redis(self) -> Path:
        return self.root / "redis"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def lock_file(self) -> Path:
        return self.root / "supervisor.lock"

    @property
    def sockets(self) -> Path:
        """Inside the folder, or in a short temporary one where a socket's path would get too long."""
        inside = self.root / "run"
        if len(os.fsencode(inside / SOCKET)) <= LONGEST_SOCKET_PATH:
            return inside
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"penstock-{os.geteuid()}-{name}"

    def prepare(self) -> None:
        """Make the folders; refuse, in a sentence, a place that cannot hold them."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(exist_ok=True)
            if os.stat(self.root).st_uid == os.geteuid():
                self.root.chmod(0o711 if os.geteuid() == 0 else 0o700)
            self._check_space()
            with tempfile.TemporaryFile(dir=self.root) as probe:
                probe.write(b"x" * 4096)
        except OSError as error:
            raise self._unusable(error) from None

    def lock(self) -> None:
        """Become the one supervisor of this folder, or say who is."""
        try:
            lock = self.lock_file.open("a+")
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            running = self.running()
            who = f"pid {running.pid}, {running.url}" if running else "it is just starting"
            raise PenstockError(
                code="already-running",
                what=f"Penstock already runs on this folder ({who})",
                where=str(self.root),
                hint="use that one, stop it, or set PENSTOCK_HOME to another folder",
            ) from None
        lock.truncate(0)
        self._lock = lock

    def announce(self, url: str) -> None:
        """Write into the lock who holds it and where it answers."""
        assert self._lock is not None, "announce needs the lock"
        try:
            self._lock.seek(0)
            self._lock.truncate(0)
            self._lock.write(json.dumps({"pid": os.getpid(), "url": url}))
            self._lock.flush()
        except OSError as error:
            raise self._unusable(error) from None

    def running(self) -> Running | None:
        """The announced supervisor, where one holds the lock."""
        try:
            with self.lock_file.open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    return None
                except BlockingIOError:
                    said = json.load(lock)
                    return Running(int(said["pid"]), str(said["url"]))
        except (OSError, ValueError, KeyError):
            return None

    def release(self) -> None:
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.close()
            self._lock = None

    def make_sockets(self) -> Path:
        """The socket folder, emptied by whoever holds the lock, private to the servers' user."""
        folder = self.sockets
        if folder.is_symlink():
            raise PenstockError(
                code="folder-unusable",
                what="the socket folder is a symbolic link",
                where=str(folder),
                hint=HINT,
            )
        give_to(folder, server_user())
        return folder

    def remove_sockets(self) -> None:
        shutil.rmtree(self.sockets, ignore_errors=True)

    def _check_space(self) -> None:
        free = shutil.disk_usage(self.root).free
        if free < LEAST_FREE_BYTES:
            raise PenstockError(
                code="folder-full",
                what=f"only {free // 2**20} MB are free in the data folder",
                where=str(self.root),
                limit=f"at least {LEAST_FREE_BYTES // 2**20} MB",
                hint="free some space, or set PENSTOCK_HOME to a folder on another disk",
            )

    def _unusable(self, error: OSError) -> PenstockError:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return PenstockError(
            code="folder-full" if full else "folder-unusable",
            what=f"cannot use the data folder: {error.strerror}",
            where=str(self.root),
            hint="free some space" if full else HINT,
        )
