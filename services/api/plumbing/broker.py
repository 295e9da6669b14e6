"""Asks the broker whether it is there, and which workers gave a sign of life."""

from __future__ import annotations

from collections.abc import Callable

import redis

from penstock.services.api.plumbing.health import HealthLook
from penstock.services.settings import SettingError, Settings
from penstock.services.worker.sign_of_life import connect, order_drain, signs

_WRITTEN = "penstock:written"
"""Whether it can be: one that only answers wakes nobody."""


class BrokerAwayError(Exception):
    """The broker cannot be told."""


def drain(settings: Settings, name: str) -> None:
    """Order a worker to begin nothing more; it looks for orders every few seconds."""
    try:
        with connect(settings.require_redis_url()) as client:
            order_drain(client, name)
    except (redis.RedisError, SettingError, ValueError) as error:
        raise BrokerAwayError(f"the broker does not answer: {error}") from None


def look_at_workers(settings: Settings) -> Callable[[], HealthLook]:
    """A function that looks once."""
    try:
        client = connect(settings.require_redis_url())
    except (SettingError, ValueError) as error:
        problem = str(error)
        return lambda: HealthLook(problem, ())

    def look() -> HealthLook:
        try:
            found = tuple(signs(client))
            try:
                client.set(_WRITTEN, "", ex=60)
            except redis.ResponseError as error:  # a replica after a failover, a full memory or disk
                return HealthLook(f"takes no writes: {error}", found)
            return HealthLook("", found)
        except redis.RedisError as error:
            return HealthLook(f"does not answer: {str(error) or type(error).__name__}", ())

    return look
