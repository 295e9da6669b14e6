"""Takes steps from workers that went silent: back to the queue, or given up after the last attempt."""

from __future__ import annotations

import logging

from penstock.db import Database, lifecycle
from penstock.services.settings import Settings

log = logging.getLogger(__name__)


def reap_expired(database: Database, settings: Settings) -> int:
    """One transaction a step, so that one stuck run does not hold up the rest; returns how many were taken.

    After a start of Postgres, workers that could not reach it get time for a heartbeat first.
    """
    with database.begin() as tx:
        expired = tx.steps.expired(grace_seconds=3 * settings.heartbeat_seconds)
    taken = 0
    for step in expired:
        with database.begin() as tx:
            after = lifecycle.reap(tx, step)
        if after is not None:
            taken += 1
            log.warning("%s of %s: lease of %s expired, now %s", step.key, step.run_id, step.owner, after.state)
    return taken
