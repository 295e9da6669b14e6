"""Tells whoever asks that a worker is there: a line in Redis, renewed every few seconds.

Leases show which workers hold steps; this shows the idle ones too, so that "nobody serves this queue" can be
said. It is a hint for people: no decision about a step rests on it, and Redis may be wiped at any time.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import redis

KEY = "penstock:workers"
DRAIN = "penstock:drain"
EVERY_SECONDS = 3.0
ALIVE_SECONDS = 12.0
_FORGET_SECONDS = 3600.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sign:
    """A worker, what it takes, and how long ago it last said so."""

    name: str
    queues: tuple[str, ...]
    concurrency: int
    seen_at: datetime
    alive: bool
    drains: bool = False
    """It takes nothing new."""


class SignOfLife:
    """Renews this worker's line from a thread of its own; `stop` takes it away."""

    def __init__(
        self, url: str, name: str, queues: Sequence[str], concurrency: int, drain: Callable[[], object] | None = None
    ) -> None:
        self._client = connect(url)
        self._name = name
        self._drain = drain
        self._line: dict[str, object] = {"queues": list(queues), "concurrency": concurrency}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sign-of-life", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)
        try:
            self._client.hdel(KEY, self._name)
        except redis.RedisError as error:
            log.info("the sign of life stays behind until it is stale: %s", error)
        self._client.close()

    def _run(self) -> None:
        while True:
            try:
                line = json.dumps({**self._line, "at": server_time(self._client)})
                self._client.hset(KEY, self._name, line)
                self._look_for_orders()
            except redis.RedisError as error:
                log.debug("no sign of life: %s", error)  # the broker's outage is reported where it hurts
            if self._stop.wait(EVERY_SECONDS):
                return

    def _look_for_orders(self) -> None:
        if self._drain is not None and self._client.srem(DRAIN, self._name):
            self._line["drains"] = True
            self._drain()


def order_drain(client: redis.Redis, name: str) -> None:
    """Have a worker end its steps, take no others, and end; it learns of it at its next sign of life."""
    client.sadd(DRAIN, name)
    client.expire(DRAIN, 3600)


def connect(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=3)


def server_time(client: redis.Redis) -> float:
    """The broker's clock, so that machines with different clocks agree on what is recent."""
    seconds, micros = cast("tuple[int, int]", client.time())
    return seconds + micros / 1e6


def signs(client: redis.Redis) -> list[Sign]:
    """The workers that gave a sign lately, dead ones included; those of long ago are removed."""
    now = server_time(client)
    found: list[Sign] = []
    for name, line in cast("dict[bytes, bytes]", client.hgetall(KEY)).items():
        said = json.loads(line)
        age = now - float(said["at"])
        if age > _FORGET_SECONDS:
            client.hdel(KEY, name)
            continue
        found.append(
            Sign(
                name=name.decode(),
                queues=tuple(said["queues"]),
                concurrency=int(said["concurrency"]),
                seen_at=datetime.fromtimestamp(now - age, UTC),
                alive=age < ALIVE_SECONDS,
                drains=bool(said.get("drains")),
            )
        )
    return sorted(found, key=lambda sign: sign.name)
