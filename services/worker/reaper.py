"""Takes steps from workers that went silent: back to the queue, or given up after the last attempt."""

from __future__ import annotations

import logging

from penstock.db import Database, lifecycle
from penstock.services.settings import Settings

LONGEST_LEASES = 10.0
"""Of those that the dispatcher knows: workers may have been given longer ones."""

log = logging.getLogger(__name__)


def reap_expired(database: Database, settings: Settings) -> int:
    """One transaction a step, so that one stuck run does not hold up the rest; returns how many were taken.

    After a start of Postgres, workers that could not reach it get time for a heartbeat first. A lease that ends later
    than any could is from before the database's clock was put back: whoever lives renews it, whoever is dead is known
    to be when it is over.
    """
    with database.begin() as tx:
        tx.steps.shorten_leases(LONGEST_LEASES * settings.lease_seconds)
        expired = tx.steps.expired(grace_seconds=3 * settings.heartbeat_seconds)
    taken = 0
    for step in expired:
        with database.begin() as tx:
            after = lifecycle.reap(tx, step)
        if after is not None:
            taken += 1
            log.warning("%s of %s: lease of %s expired, now %s", step.key, step.run_id, step.owner, after.state)
    return taken
