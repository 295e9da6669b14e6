"""A private Redis: a unix socket that only its user can open, no TCP port, nothing kept on disk.

It carries step ids from the dispatcher to the workers and no state: Postgres can fill it again at any time.
"""

from __future__ import annotations

import socket
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.binaries import find_redis, reachable_redis
from penstock.services.supervisor.identity import check_enterable, give_to, server_user
from penstock.services.supervisor.process import Child
from penstock.services.supervisor.server import EmbeddedServer, check_socket_path

SOCKET = "redis.sock"


class EmbeddedRedis(EmbeddedServer):
    """`start()`, `stop()`; in between `url` (for Celery) and `client_url` (for redis-py) answer."""

    name = "Redis"
    start_seconds, stop_seconds = 60.0, 5.0
    late = f"Redis did not answer within {start_seconds:.0f} s"

    def __init__(self, data_dir: Path, socket_dir: Path, *, log: Path | None = None) -> None:
        super().__init__(data_dir.absolute(), socket_dir, log)

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

    def prepare(self) -> Child:
        user = server_user()
        for folder in (self.data_dir, self.socket_dir):
            check_enterable(folder, user)
            give_to(folder, user)
        check_socket_path(self.socket_path, "the unix socket", self.socket_path)
        self.socket_path.unlink(missing_ok=True)
        binary = reachable_redis(find_redis(), user, self.copies)
        self.origin = f"{binary.version} from {binary.origin}"
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
        return Child(self.name, command, self.log, user=user, folder=self.data_dir)

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

    def failure(self, what: str) -> PenstockError:
        assert self.child is not None
        last = self.child.log_tail(1) or "(empty)"
        return PenstockError(
            code="redis-failed",
            what=what,
            where=str(self.socket_dir),
            limit=f"its log ends: {last}",
            hint=f"read {self.log}",
        )
