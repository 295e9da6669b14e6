"""`python -m penstock.services.worker.health`: exit code 0 if a worker on this machine can reach what it needs."""

from __future__ import annotations

import logging
import sys

import redis

from penstock.db import Database
from penstock.services.settings import SettingError, Settings
from penstock.services.worker.logs import configure_logging

log = logging.getLogger(__name__)


def main() -> int:
    configure_logging()
    try:
        settings = Settings.from_environment()
        database = Database(settings.require_database_url(), application="penstock health", pool_size=1)
        broker = redis.Redis.from_url(settings.require_redis_url(), socket_timeout=5, socket_connect_timeout=5)
    except SettingError as error:
        log.error("%s", error)
        return 2
    if not database.is_up():
        log.error("the database does not answer")
        return 1
    try:
        broker.ping()
    except redis.RedisError as error:
        log.error("the broker does not answer: %s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
