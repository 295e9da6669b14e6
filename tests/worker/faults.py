"""What can happen to a service, one fault at a time: each is done, lasts for a moment, and is put right again."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import redis

from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.process import dying_with_us
from penstock.services.supervisor.redis import EmbeddedRedis
from tests.fixtures.service import Service
from tests.fixtures.waiting import QUIET_SECONDS

Fault = Callable[[random.Random, float], None]
FORWARD = Path(__file__).with_name("forward.py")


class Faults:
    """A service with servers of its own, workers, and one whose only way to them is a wire that can be cut."""

    def __init__(
        self,
        service: Service,
        postgres: EmbeddedPostgres,
        embedded: EmbeddedRedis,
        listener: socket.socket,
        near_workers: int,
    ) -> None:
        self.service, self.postgres, self.redis, self.listener = service, postgres, embedded, listener
        self.wire = self._wire()
        self.far = self._far_environment()
        self.dispatcher = service.dispatcher()
        self.api = self._start_api()
        self.workers = [*(service.worker() for _ in range(near_workers)), service.worker(**self.far)]
        self.played: list[str] = []
        self.all: tuple[Fault, ...] = (
            self.kill_worker, self.freeze_worker, self.freeze_worker_children, self.kill_dispatcher,
            self.freeze_dispatcher, self.kill_api, self.wipe_redis, self.restart_redis, self.lock_redis,
            self.kill_postgres, self.use_up_connections, self.cut_wire,
        )  # fmt: skip

    def play(self, rng: random.Random) -> None:
        """One fault, drawn by lot, and for how long."""
        fault = rng.choice(self.all)
        self.cause(fault, rng, rng.uniform(0.2, 4.0))  # a lease is 2 s: some faults end before it, some after

    def cause(self, fault: Fault, rng: random.Random, seconds: float) -> None:
        self.played.append(fault.__name__)
        fault(rng, seconds)

    def shuffled(self, rng: random.Random) -> Iterator[Fault]:
        """Without end, and each of them before any comes again."""
        while True:
            yield from rng.sample(self.all, len(self.all))

    def kill_worker(self, rng: random.Random, seconds: float) -> None:
        number = rng.randrange(len(self.workers))
        self.service.kill(self.workers[number])
        time.sleep(seconds)
        self.workers[number] = self.service.worker(**(self.far if number == len(self.workers) - 1 else {}))

    def freeze_worker(self, rng: random.Random, seconds: float) -> None:
        """As a machine that swaps, or a laptop that sleeps: it comes back with leases that others have."""
        worker = psutil.Process(rng.choice(self.workers).pid)
        self._freeze([worker, *worker.children()], seconds)

    def freeze_worker_children(self, rng: random.Random, seconds: float) -> None:
        self._freeze(psutil.Process(rng.choice(self.workers).pid).children(), seconds)

    def kill_dispatcher(self, rng: random.Random, seconds: float) -> None:
        self.service.kill(self.dispatcher)
        time.sleep(seconds)
        self.dispatcher = self.service.dispatcher()

    def freeze_dispatcher(self, rng: random.Random, seconds: float) -> None:
        self._freeze([psutil.Process(self.dispatcher.pid)], seconds)

    def kill_api(self, rng: random.Random, seconds: float) -> None:
        self.service.kill(self.api)
        time.sleep(seconds)
        self.api = self._start_api()

    def wipe_redis(self, rng: random.Random, seconds: float) -> None:
        with self._client() as client:
            client.flushall()

    def restart_redis(self, rng: random.Random, seconds: float) -> None:
        _kill(self.redis.pid)
        time.sleep(seconds)
        self.redis.start()

    def lock_redis(self, rng: random.Random, seconds: float) -> None:
        """Read-only, as a replica is."""
        with self._client() as client:
            client.replicaof("127.0.0.1", "1")
            time.sleep(seconds)
            client.replicaof("NO", "ONE")

    def kill_postgres(self, rng: random.Random, seconds: float) -> None:
        _kill(self.postgres.pid)
        time.sleep(seconds)
        self.postgres.start()

    def use_up_connections(self, rng: random.Random, seconds: float) -> None:
        """Whoever needs a new one meanwhile is refused."""
        url = self.postgres.url.replace("+psycopg", "")
        with contextlib.ExitStack() as held:
            with contextlib.suppress(psycopg.OperationalError):
                for _ in range(300):
                    held.enter_context(psycopg.connect(url))
            time.sleep(seconds)

    def cut_wire(self, rng: random.Random, seconds: float) -> None:
        """Nothing passes, and nobody is told."""
        self._freeze([psutil.Process(self.wire.pid)], seconds)

    def _freeze(self, processes: list[psutil.Process], seconds: float) -> None:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)

    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self.redis.client_url, socket_timeout=30)

    def _start_api(self) -> subprocess.Popen[bytes]:
        number = self.listener.fileno()
        module = "penstock.services.supervisor.serve_api"
        return self.service.start(module, str(number), files=(number,), PENSTOCK_AUTH="off")

    def _wire(self) -> subprocess.Popen[bytes]:
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.ports = (one.getsockname()[1], other.getsockname()[1])
        sockets = (f"{self.postgres.socket_dir}/.s.PGSQL.5432", self.redis.client_url.removeprefix("unix://"))
        ways = [f"{port}={path}" for port, path in zip(self.ports, sockets, strict=True)]
        process = subprocess.Popen(dying_with_us([sys.executable, str(FORWARD), "127.0.0.1", *ways]))
        self.service.processes.append(process)
        return process

    def _far_environment(self) -> dict[str, str]:
        return {
            "PENSTOCK_DATABASE_URL": f"postgresql://penstock@127.0.0.1:{self.ports[0]}/postgres",
            "PENSTOCK_REDIS_URL": f"redis://127.0.0.1:{self.ports[1]}/0",
        }


def _kill(pid: int) -> None:
    process = psutil.Process(pid)
    process.kill()
    process.wait(QUIET_SECONDS)
