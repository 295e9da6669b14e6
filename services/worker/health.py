"""`python -m penstock.services.worker.health`: exit code 0 if a worker on this machine can reach what it needs.

`python -m penstock.services.worker.health dispatcher`: and if a dispatcher looks for work, which has no door to
knock at: it asks the database twice a second, unless it hangs.
"""

from __future__ import annotations

import logging
import sys
from contextlib import closing

import redis
from sqlalchemy.exc import SQLAlchemyError

from penstock.db import Database
from penstock.services.settings import SettingError, Settings
from penstock.services.worker.logs import configure_logging

DISPATCHER = "penstock dispatcher"
"""What the database calls the connections of one."""
LONGEST_QUIET_SECONDS = 120.0
"""Far longer than a look for work takes, or a sweep."""
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
    with closing(database), closing(broker):
        return _asked(database, broker)


def _asked(database: Database, broker: redis.Redis) -> int:
    if not database.is_up():
        log.error("the database does not answer")
        return 1
    try:
        broker.ping()
    except redis.RedisError as error:
        log.error("the broker does not answer: %s", error)
        return 1
    return _dispatcher_health(database) if sys.argv[1:] == ["dispatcher"] else 0


def _dispatcher_health(database: Database) -> int:
    try:
        quiet = database.quiet_seconds(DISPATCHER)
    except SQLAlchemyError as error:
        log.error("the database does not answer: %s", type(error).__name__)
        return 1
    if quiet is None:
        log.error("no dispatcher is connected to the database")
    elif quiet > LONGEST_QUIET_SECONDS:
        log.error("the dispatcher has asked the database nothing for %.0f s", quiet)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
