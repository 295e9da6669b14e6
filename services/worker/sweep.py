"""Removes what is not needed: work folders of ended claims, half-written content, old keys, unused profiles."""

from __future__ import annotations

import logging
import shutil
import time

from penstock.db import Database
from penstock.db.database import is_transient
from penstock.services.jobs.removal import GRACE_SECONDS, collect_content
from penstock.services.remote_store import open_store
from penstock.services.settings import Settings
from penstock.services.store import ContentStore

log = logging.getLogger(__name__)


def sweep_work_folders(settings: Settings, database: Database | None = None) -> int:
    """Remove work folders whose claim is over; returns how many. The newest stay: their claim may be fresh.

    Without a database at hand one is opened; where it cannot be reached nothing is removed.
    """
    if not settings.work_folder.is_dir():
        return 0
    limit = time.time() - 2 * settings.lease_seconds
    old = [path for path in settings.work_folder.iterdir() if path.is_dir() and path.stat().st_mtime < limit]
    claims = {path: path.name.rpartition("-") for path in old}
    opened = database or Database(settings.require_database_url(), application="penstock sweep", pool_size=1)
    try:
        with opened.begin() as tx:
            live = tx.steps.live_fences([step_id for step_id, _, _ in claims.values()])
    except Exception as error:
        if not is_transient(error):
            raise
        log.warning("work folders are not swept: the database cannot be reached")
        return 0
    finally:
        if database is None:
            opened.close()
    over = [path for path, (step_id, _, fence) in claims.items() if str(live.get(step_id)) != fence]
    for path in over:
        shutil.rmtree(path, ignore_errors=True)
    return len(over)


def forget_old_words(settings: Settings, database: Database) -> int:
    """Remove events and audit entries that are older than this service keeps them; a part at a time."""
    gone = 0
    for days, forget in (
        (settings.events_days, lambda tx, days: tx.retention.forget_events(days)),
        (settings.audit_days, lambda tx, days: tx.retention.forget_audit(days)),
    ):
        some = -1
        while days is not None and some != 0:
            with database.begin() as tx:
                some = forget(tx, days)
            gone += some
    return gone


def sweep_everything(settings: Settings, database: Database, *, steady_seconds: float) -> None:
    """What is needed no more goes. Content goes by the age of its file, so only where the clock was `steady_seconds`
    long not set: one that was put forward makes what was stored a moment ago look old."""
    sweep_work_folders(settings, database)
    files_can_be_told_by_age = steady_seconds >= GRACE_SECONDS
    if files_can_be_told_by_age:
        open_store(settings).sweep()
    with database.begin() as tx:
        tx.idempotency.sweep()
        tx.webhooks.sweep()
    if files_can_be_told_by_age and not settings.store_url:  # else the service sweeps its own
        collect_content(database, ContentStore(settings.store_folder))
    forget_old_words(settings, database)
    with database.begin() as tx:
        tx.profiles.evict(keep=settings.profiles_kept, unused_days=settings.profiles_days)
