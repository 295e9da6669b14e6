"""The processes of the whole service in the order in which they need each other."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.services.settings import reachable
from penstock.services.supervisor import programs
from penstock.services.supervisor.home import Home
from penstock.services.supervisor.keeper import Keeper, ending
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.process import Child
from penstock.services.supervisor.redis import EmbeddedRedis
from penstock.services.supervisor.server import EmbeddedServer
from penstock.services.version import version

HEALTH_PATH = "/v1/health"
HEALTHY_SECONDS = 180.0  # a program that ends is noticed at once; this is for machines that are very busy
STOP_SECONDS = 8.0  # longer than a worker needs to hand its steps back


@dataclass(frozen=True)
class StackPlan:
    """What to start. A URL that is given is used instead of an embedded server."""

    host: str
    port: int
    workers: int
    database_url: str | None
    redis_url: str | None
    allow_python: bool = False
    api_processes: int = 1


class Stack:
    """`start`, then `watch` again and again, then `stop`, which is safe at any point."""

    def __init__(self, home: Home, plan: StackPlan, say: Callable[[str], None]) -> None:
        self.home = home
        self.plan = plan
        self.keeper = Keeper(say)
        self.listener: socket.socket | None = None
        self.url = ""
        self.database_url = ""
        self.servers: dict[str, str] = {}
        self.hurry = False

    def start(self) -> None:
        """Return when the API reports health."""
        self.listener = listen(self.plan.host, self.plan.port)
        port = int(self.listener.getsockname()[1])
        self.url = f"http://{reachable(self.plan.host)}:{port}"
        self.home.announce(self.url)
        environment = programs.shared_environment(self.home.root, self.url, self.plan.host, port)
        if self.plan.allow_python:
            environment["PENSTOCK_ALLOW_PYTHON_MODELS"] = "1"
        environment["PENSTOCK_DATABASE_URL"] = self.database_url = self._postgres()
        environment["PENSTOCK_REDIS_URL"] = self._redis()
        logs, descriptor = self.home.logs, self.listener.fileno()
        # These two load libraries for seconds before they look at a table: time enough to migrate.
        for number in range(1, self.plan.workers + 1):
            self._keep(programs.worker(number, logs, environment))
        for number in range(1, self.plan.api_processes + 1):
            self._keep(programs.api(number, descriptor, logs, environment))
        migrate_database(environment["PENSTOCK_DATABASE_URL"])
        self._keep(programs.dispatcher(logs, environment))
        self._wait_healthy()

    def watch(self) -> None:
        """Restart what crashed; returns at once, for the caller's loop."""
        self.keeper.look(time.monotonic())

    def stop(self) -> None:
        """In the opposite order of the start: nothing new is dispatched, and the servers end last."""
        self.keeper.stop_all()
        if self.listener is not None:
            self.listener.close()
        self.home.remove_sockets()

    def _grace(self, seconds: float) -> float:
        return 0.2 if self.hurry else seconds

    def _keep(self, child: Child) -> None:
        def start() -> Child:
            child.start()
            return child

        self.keeper.add(child.name, start, lambda: child.stop(self._grace(STOP_SECONDS)))

    def _keep_server(self, server: EmbeddedServer) -> None:
        self.keeper.add(server.name, server.start, lambda: server.stop(self._grace(server.stop_seconds)))
        self.servers[server.name] = server.origin

    def _postgres(self) -> str:
        if self.plan.database_url:
            self.servers["Postgres"] = "by PENSTOCK_DATABASE_URL"
            return self.plan.database_url
        server = EmbeddedPostgres(
            self.home.postgres,
            self.home.make_sockets(),
            log=programs.rotated(self.home.logs / "postgres.log"),
        )
        self._keep_server(server)
        return server.url

    def _redis(self) -> str:
        if self.plan.redis_url:
            check_redis(self.plan.redis_url)
            self.servers["Redis"] = "by PENSTOCK_REDIS_URL"
            return self.plan.redis_url
        server = EmbeddedRedis(
            self.home.redis, self.home.make_sockets(), log=programs.rotated(self.home.logs / "redis.log")
        )
        self._keep_server(server)
        return server.client_url

    def _wait_healthy(self) -> None:
        """During the start a program that ends is a failed start, not a crash to be mended."""
        assert self.listener is not None
        deadline = time.monotonic() + HEALTHY_SECONDS
        answer: dict[str, Any] | None = None
        while time.monotonic() < deadline:
            for kept in self.keeper.ended():
                assert kept.child is not None
                last = kept.child.log_tail(1) or "(empty)"
                raise PenstockError(
                    code="start-failed",
                    what=f"{kept.name} {ending(kept.child)} while starting",
                    limit=f"its log ends: {last}",
                    hint=f"read {kept.child.log}",
                )
            answer = health(self.url)
            if answer is not None and works(answer):
                return
            time.sleep(0.05)
        said = json.dumps(answer) if answer is not None else "nothing"
        raise PenstockError(
            code="start-failed",
            what=f"the API was not healthy after {HEALTHY_SECONDS:.0f} s",
            limit=f"it said {said}",
            hint=f"read the logs in {self.home.logs}",
        )


def migrate_database(url: str) -> None:
    """Bring the schema up to date. Imported here: a failed start before this point needs no driver."""
    from sqlalchemy.exc import SQLAlchemyError

    from penstock.db.migrate import NewerSchemaError, migrate

    try:
        migrate(url)
    except NewerSchemaError as error:
        raise PenstockError(
            code="version-skew",
            what=str(error),
            limit=f"Penstock {version()}",
            hint="start the version that brought it up to date, or restore a backup of before with `penstock restore`",
        ) from None
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise PenstockError(
            code="database-unusable",
            what=f"the database cannot be used: {reason}",
            hint="check PENSTOCK_DATABASE_URL, that the server runs, and that the user may create schemas",
        ) from None


def check_redis(url: str) -> None:
    """Refuse an explicit URL behind which nothing answers."""
    import redis

    client_url = url.replace("redis+socket://", "unix://", 1)
    try:
        with redis.Redis.from_url(client_url, socket_connect_timeout=5, socket_timeout=5) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise PenstockError(
            code="redis-unusable",
            what=f"Redis does not answer: {error}",
            hint="check PENSTOCK_REDIS_URL and that the server runs",
        ) from None


def health(url: str) -> dict[str, Any] | None:
    """What the API says of itself, or None where it does not answer."""
    address = url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=2)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        connection.request("GET", HEALTH_PATH)
        said = json.loads(connection.getresponse().read())
        return said if isinstance(said, dict) else None
    return None


def works(said: dict[str, Any]) -> bool:
    """Whether a run that is submitted now would move. A disk that gets full is for the pages to tell."""
    parts = (said.get("database"), said.get("broker"))
    up = all(isinstance(part, dict) and part.get("status") == "ok" for part in parts)
    return up and bool(said.get("workers_alive"))


def listen(host: str, port: int) -> socket.socket:
    """The listening socket of the API, opened before anything is started."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _port_error(host, port, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise _port_error(host, port, error) from None
    return listener


def _port_error(host: str, port: int, error: OSError) -> PenstockError:
    used = error.errno == 98
    return PenstockError(
        code="port-used" if used else "port-unusable",
        what="another program listens on the port" if used else f"cannot listen: {error.strerror}",
        where=f"{host}:{port}",
        hint="choose another one with --port, or --port 0 for a free one",
    )
