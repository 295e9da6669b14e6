"""Whether a worker or dispatcher may work for that service: one schema, one version. Two that differ would misread each
other."""

from __future__ import annotations

import time

import httpx
from sqlalchemy.exc import ProgrammingError

from penstock.compiler.errors import PenstockError
from penstock.db import Database
from penstock.db.database import is_transient
from penstock.db.schema.revision import newest_revision
from penstock.services.remote_store import check_answer
from penstock.services.settings import Settings
from penstock.services.version import version

LOOK_SECONDS = 10.0
"""Between two looks at the schema of a database that is worked with."""
MIGRATION_SECONDS = 120.0
"""How long the schema may be older than the worker's: the service may be migrating it at this moment."""


def check_compatible(settings: Settings) -> None:
    """Refuse, in a sentence, a database or a service of another version; wait for a migration that is under way."""
    if settings.store_url:
        _check_service(settings)
    database = Database(settings.require_database_url(), application="penstock worker", pool_size=1)
    deadline = time.monotonic() + MIGRATION_SECONDS
    try:
        while True:
            found = schema_of(database)
            if found is not None:
                refuse_newer(found)
            if found == newest_revision():
                return
            if time.monotonic() > deadline:
                raise PenstockError(
                    code="version-skew",
                    what=f"the database has schema {found or 'none'}, and this program needs {newest_revision()}",
                    limit=f"it is of version {version()}",
                    hint="migrate it with this version: `python -m penstock.services.supervisor.migrate`",
                )
            time.sleep(0.3)
    finally:
        database.close()


def refuse_newer(found: str) -> None:
    """A schema that this code has never heard of is that of a newer service."""
    if found > newest_revision():
        raise PenstockError(
            code="version-skew",
            what=f"the database has schema {found}, and this program knows none after {newest_revision()}",
            limit=f"it is of version {version()}",
            hint="install the version that the API has, and start it again",
        )


class SchemaWatch:
    """Whether the schema is still one that this code knows; that of a service that was brought up to date is not."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._look_at = 0.0

    def check(self, *, patience: float) -> None:
        """Refuse a newer schema; the database is asked every few seconds at most."""
        now = time.monotonic()
        if now >= self._look_at:
            refuse_newer(self._database.run(lambda tx: tx.revision(), patience=patience))
            self._look_at = now + LOOK_SECONDS


def schema_of(database: Database) -> str | None:
    """The revision of the schema; None while there is none, or the database is away."""
    try:
        with database.begin() as tx:
            return tx.revision()
    except ProgrammingError:
        return None
    except Exception as error:
        if not is_transient(error):
            raise
        return None


def _check_service(settings: Settings) -> None:
    """That the address is one of a Penstock of this version, and takes the token."""
    assert settings.store_url
    headers = {"Authorization": f"Bearer {settings.store_token}"}
    try:
        with httpx.Client(base_url=settings.store_url, headers=headers, timeout=20.0) as client:
            said = client.get("/v1/health").json()
            check_answer(client.get("/v1/audit?limit=1"), settings.store_url)
    except (httpx.HTTPError, ValueError) as error:
        raise PenstockError(
            code="store-away", what=f"{settings.store_url} does not answer as a Penstock: {error}",
            where="PENSTOCK_STORE_URL", hint="it is the address of the API, such as https://penstock.example.org",
        ) from None  # fmt: skip
    if said.get("version") != version():
        raise PenstockError(
            code="version-skew",
            what=f"the service is version {said.get('version')}, and this worker {version()}",
            where=settings.store_url,
            hint="install the version that the API has, and start it again",
        )
