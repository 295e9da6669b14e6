"""Wakes workers through the broker: as many messages as there are free hands and steps for them, and no more.

A message says only that a queue has something. Which step a worker gets is decided when it asks Postgres, so nothing
stale lies in the broker, and a broker that forgot everything is filled again at the next look.
"""

from __future__ import annotations

import logging
import time
from collections import Counter

import redis
from celery import Celery
from kombu.connection import Connection
from kombu.exceptions import OperationalError as BrokerError

from penstock.db import Database, claiming
from penstock.services.settings import Settings
from penstock.services.worker.app import TASK, make_app
from penstock.services.worker.sign_of_life import signs

log = logging.getLogger(__name__)

BROKER_ERRORS = (BrokerError, redis.RedisError, OSError)
_SLOTS_SECONDS = 1.0


class Publisher:
    """Owns one connection to the broker, made anew after every error."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._app: Celery = make_app(settings)
        self._connection: Connection | None = None
        self._redis = redis.Redis.from_url(settings.require_redis_url(), socket_timeout=5, socket_connect_timeout=5)
        self._slots: dict[str, int] = {}
        self._slots_at = -_SLOTS_SECONDS

    def wake(self) -> int:
        """Send what is missing; returns how many messages went out."""
        slots = self._slots_now()
        with self._database.begin() as tx:
            ready = tx.queues.ready(slots, claiming.taken_licences(tx, self._settings.licences))
        sent = 0
        for queue, count in ready.items():
            held = self._redis.llen(queue)
            assert isinstance(held, int), "not a pipeline and not asyncio"
            for _ in range(count - held):
                self._send(queue)
                sent += 1
        return sent

    def reset(self) -> None:
        """Drop the connection after an error, whatever state it is in."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except BROKER_ERRORS as error:
                log.debug("closing a broken broker connection: %s", error)
        self._redis.close()

    def _slots_now(self) -> dict[str, int]:
        """For each queue how many steps its workers do at once; one where none has given a sign of life yet."""
        now = time.monotonic()
        if now - self._slots_at >= _SLOTS_SECONDS:
            found = Counter(dict.fromkeys(self._settings.queues, 0))
            for sign in signs(self._redis):
                if sign.alive and not sign.drains:
                    found.update(dict.fromkeys(sign.queues, sign.concurrency))
            self._slots = {queue: max(1, count) for queue, count in found.items()}
            self._slots_at = now
        return self._slots

    def _send(self, queue: str) -> None:
        if self._connection is None:
            self._connection = self._app.connection_for_write()
        with self._app.amqp.Producer(self._connection, auto_declare=False) as producer:
            self._app.send_task(TASK, queue=queue, producer=producer, retry=False, ignore_result=True)
