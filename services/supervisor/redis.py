"""A private Redis: a unix socket that only its user can open, no TCP port, nothing kept on disk.

It carries step ids from the dispatcher to the workers and no state: Postgres can fill it again at any time.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.binaries import RedisBinary, find_redis, reachable_redis
from penstock.services.supervisor.identity import check_enterable, give_to, server_user
from penstock.services.supervisor.postgres import LONGEST_SOCKET_PATH
from penstock.services.supervisor.process import Child

SOCKET = "redis.sock"
START_SECONDS = 60.0


class EmbeddedRedis:
    """`start()`, `stop()`; in between `url` (for Celery) and `client_url` (for redis-py) answer."""

    def __init__(self, data_dir: Path, socket_dir: Path, *, log: Path | None = None) -> None:
        self.data_dir = data_dir.absolute()
        self.socket_dir = socket_dir.absolute()
        self.log = log or self.data_dir.with_name(self.data_dir.name + ".log")
        self.child: Child | None = None
        self.binary: RedisBinary | None = None

    @property
    def socket_path(self) -> Path:
        return self.socket_dir / SOCKET

    @property
    def url(self) -> str:
        """As Celery's broker."""
        return f"redis+socket://{self.socket_path}"

    @property
    def client_url(self) -> str:
        """For redis.Redis.from_url."""
        return f"unix://{self.socket_path}"

    @property
    def pid(self) -> int:
        assert self.child is not None, "Redis was not started"
        return self.child.pid

    @property
    def running(self) -> bool:
        return self.child is not None and self.child.running

    def start(self) -> None:
        """Return when the server answers PING. After a crash, start the same object again."""
        if self.child is not None:
            self.child.stop(grace=0)
        user = server_user()
        for folder in (self.data_dir, self.socket_dir):
            check_enterable(folder, user)
            give_to(folder, user)
        length = len(os.fsencode(self.socket_path))
        if length > LONGEST_SOCKET_PATH:
            raise PenstockError(
                code="socket-path-too-long",
                what=f"the unix socket would have a path of {length} bytes",
                where=str(self.socket_path),
                limit=f"at most {LONGEST_SOCKET_PATH}",
                hint="use a folder with a shorter path",
            )
        self.socket_path.unlink(missing_ok=True)
        binary = reachable_redis(find_redis(), user, self.data_dir.parent / "servers")
        self.binary = binary
        command = [str(binary.server), "--port", "0", "--unixsocket", str(self.socket_path)]
        command += [
            "--unixsocketperm",
            "700",
            "--dir",
            str(self.data_dir),
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        command += ["--maxmemory-policy", "noeviction", "--daemonize", "no", "--logfile", ""]
        self.child = Child("Redis", command, self.log, user=user, folder=self.data_dir)
        self.child.start()
        self._wait_ready()

    def stop(self, grace: float = 5.0) -> None:
        if self.child is not None:
            self.child.stop(grace)

    def _wait_ready(self) -> None:
        assert self.child is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if not self.child.running:
                raise self._failure("Redis ended while starting")
            if self.answers():
                return
            time.sleep(0.02)
        self.stop()
        raise self._failure(f"Redis did not answer within {START_SECONDS:.0f} s")

    def answers(self) -> bool:
        """Whether PING gets its PONG; spoken by hand, since a check of five bytes needs no client library."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(1.0)
                connection.connect(str(self.socket_path))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def _failure(self, what: str) -> PenstockError:
        assert self.child is not None
        last = self.child.log_tail(1) or "(empty)"
        return PenstockError(
            code="redis-failed",
            what=what,
            where=str(self.socket_dir),
            limit=f"its log ends: {last}",
            hint=f"read {self.log}",
        )
