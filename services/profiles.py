"""Profiles that all workers share, in Postgres: measured by one of them, cited by every run that uses them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from penstock.compiler.errors import PenstockError
from penstock.db import Database, Transaction
from penstock.db.database import is_transient
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import NewProfile
from penstock.db.schema.records import ProfileRow as Row
from penstock.profiling.protocol import Profile
from penstock.profiling.store import KeptProfile, SingleFlight

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
"""How often a worker looks whether what another one measures is there."""


class SharedProfiles(SingleFlight):
    """The store of one run's step. `check` is called while it waits, to end the step that should not go on.

    A claim is renewed while its holder lives, and lapses `lease_seconds` after its death.
    """

    def __init__(
        self,
        database: Database,
        run_id: str,
        *,
        lease_seconds: float = 30.0,
        check: Callable[[], None] = lambda: None,
        platform: str = "",
    ) -> None:
        super().__init__()
        self._database, self._run_id = database, run_id
        self._lease, self._check, self._platform = lease_seconds, check, platform
        self._resting = threading.Event()

    def _read(self, keys: Collection[str], waited: Collection[str]) -> dict[str, KeptProfile]:
        def read(tx: Transaction) -> dict[str, KeptProfile]:
            found = {row.key: kept for row in tx.profiles.use(keys) if (kept := _kept(row)) is not None}
            how = {key: "wait" if key in waited else "hit" for key in found}
            words = list(how.values())
            tx.profiles.cite(self._run_id, how)
            saved = sum(kept.seconds for kept in found.values())
            tx.profiles.count({"hits": words.count("hit"), "waits": words.count("wait"), "seconds_saved": saved})
            return found

        return self._database.run(read)

    @contextmanager
    def _claimed(self, keys: Sequence[str], label: str) -> Iterator[set[str]]:
        holder = new_id("clm")
        mine = self._database.run(lambda tx: tx.profiles.claim(keys, holder, label, self._lease))
        if not mine:
            yield set()
            return
        over = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(holder, over), name="profile-claim", daemon=True)
        renewing.start()
        try:
            yield set(mine)
        finally:
            over.set()
            renewing.join()
            self._database.run(lambda tx: tx.profiles.release(holder))

    def _renew(self, holder: str, over: threading.Event) -> None:
        while not over.wait(self._lease / 4):
            try:
                with self._database.begin() as tx:
                    tx.profiles.renew(holder, self._lease)
            except Exception as error:
                if not is_transient(error):
                    raise
                log.warning("a claim could not be renewed: the database cannot be reached")

    def _keep(self, made: Mapping[str, KeptProfile], failures: int, label: str) -> None:
        rows = [
            NewProfile(
                key=key, platform=self._platform, tool=kept.profile.tool, evidence=kept.profile.evidence,
                figures=kept.profile.to_json(), seconds=kept.seconds, label=kept.profile.name or label,
            )
            for key, kept in made.items()
        ]  # fmt: skip

        def keep(tx: Transaction) -> None:
            tx.profiles.put(rows)
            tx.profiles.cite(self._run_id, dict.fromkeys(made, "miss"))
            tx.profiles.count({"misses": len(made) + failures, "failures": failures})

        self._database.run(keep)

    def _pause(self) -> None:
        self._check()
        self._resting.wait(LOOK_SECONDS)


def _kept(row: Row) -> KeptProfile | None:
    """What is of another schema is measured again."""
    try:
        return KeptProfile(Profile.from_json(dict(row.figures)), row.seconds)
    except PenstockError:
        return None
