"""From the outbox to the broker. At least once: a message too many finds nothing to claim."""

from __future__ import annotations

import logging

import redis
from celery import Celery
from kombu.connection import Connection
from kombu.exceptions import OperationalError as BrokerError

from penstock.db import Database
from penstock.services.settings import Settings
from penstock.services.worker.app import TASK, make_app

log = logging.getLogger(__name__)

BROKER_ERRORS = (BrokerError, redis.RedisError, OSError)


class Publisher:
    """Owns one connection to the broker, made anew after every error."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._app: Celery = make_app(settings)
        self._connection: Connection | None = None
        self._redis = redis.Redis.from_url(settings.require_redis_url(), socket_timeout=5, socket_connect_timeout=5)

    def publish_due(self, batch: int = 50) -> int:
        """Send what is due, batch by batch, until nothing is; returns how many messages went out.

        Rows are marked after sending, in the transaction that holds them: if the broker or this process
        fails in between they stay unpublished.
        """
        sent = 0
        while True:
            with self._database.begin() as tx:
                entries = tx.outbox.take(batch)
                for entry in entries:
                    self._send(entry.step_id, entry.queue)
                tx.outbox.mark_published(entries)
            sent += len(entries)
            if len(entries) < batch:
                return sent

    def republish_lost(self) -> int:
        """Have messages sent again that the broker no longer has, as after its data was wiped.

        Postgres knows how many messages each queue should hold, the broker how many it holds. The difference
        is lost or in a worker's hands; the oldest of them, where old enough, go out again. Under a long
        backlog nothing is missing and nothing is sent twice.
        """
        with self._database.begin() as tx:
            expected = tx.outbox.published_counts()
        again = 0
        for queue, count in expected.items():
            held = self._redis.llen(queue)
            assert isinstance(held, int), "not a pipeline and not asyncio"
            if count > held:
                with self._database.begin() as tx:
                    again += tx.outbox.republish(queue, count - held, self._settings.republish_seconds)
        if again:
            log.info("%d messages were missing and go out again", again)
        return again

    def reset(self) -> None:
        """Drop the connection after an error, whatever state it is in."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except BROKER_ERRORS as error:
                log.debug("closing a broken broker connection: %s", error)
        self._redis.close()

    def _send(self, step_id: str, queue: str) -> None:
        if self._connection is None:
            self._connection = self._app.connection_for_write()
        with self._app.amqp.Producer(self._connection, auto_declare=False) as producer:
            self._app.send_task(TASK, args=(step_id,), queue=queue, producer=producer, retry=False, ignore_result=True)
