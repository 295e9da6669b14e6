"""What the private servers have in common: a child process with its folders, a unix socket, and a start that waits."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.process import Child

LONGEST_SOCKET_PATH = 107  # sun_path of sockaddr_un holds 108 bytes with its closing zero


class EmbeddedServer(ABC):
    """Start with `start()`, stop with `stop()`. After a crash, start the same object again."""

    name: str
    start_seconds: float
    stop_seconds: float
    late: str
    """What to say when it does not answer in time."""

    def __init__(self, data_dir: Path, socket_dir: Path, log: Path | None) -> None:
        self.data_dir = data_dir
        self.socket_dir = socket_dir.absolute()
        self.log = log or data_dir.with_name(data_dir.name + ".log")
        self.child: Child | None = None
        self.origin = ""
        """Which program it is, once it was started: its version, and where that was found."""

    @property
    def pid(self) -> int:
        assert self.child is not None, f"{self.name} was not started"
        return self.child.pid

    @property
    def running(self) -> bool:
        return self.child is not None and self.child.running

    @property
    def copies(self) -> Path:
        """Where binaries are copied to that the server's user cannot reach where they are."""
        return self.data_dir.parent / "servers"

    def start(self) -> Child:
        """Return when the server answers."""
        if self.child is not None:
            self.child.stop(grace=0)
        self.child = child = self.prepare()
        child.start()
        deadline = time.monotonic() + self.start_seconds
        while time.monotonic() < deadline:
            if not self.running:
                raise self.failure(f"{self.name} ended while starting")
            if self.answers():
                return child
            time.sleep(0.02)
        self.stop()
        raise self.failure(self.late)

    def stop(self, grace: float | None = None) -> None:
        if self.child is not None:
            self.child.stop(self.stop_seconds if grace is None else grace)

    @abstractmethod
    def prepare(self) -> Child:
        """Folders and files as the server wants them, and the process, not yet started."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it does what it is for."""

    @abstractmethod
    def failure(self, what: str) -> PenstockError: ...


def check_socket_path(path: Path, what: str, where: Path) -> None:
    """Refuse a path that no socket can have; `what` would have it."""
    length = len(os.fsencode(path))
    if length > LONGEST_SOCKET_PATH:
        raise PenstockError(
            code="socket-path-too-long",
            what=f"{what} would have a path of {length} bytes",
            where=str(where),
            limit=f"at most {LONGEST_SOCKET_PATH}",
            hint="use a folder with a shorter path",
        )
