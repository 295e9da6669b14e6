"""Brings a database to the newest schema; any number of processes may call it at once."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from penstock.db.database import normalise
from penstock.db.schema.revision import newest_revision
from penstock.db.schema.tables import SCHEMA, STUDY_SCHEMA

_LOCK = 0x50656E73746F636B  # "Penstock"


class NewerSchemaError(Exception):
    """The database was brought up to date by a version that this one knows nothing of."""

    def __init__(self, found: str) -> None:
        super().__init__(f"the database has schema {found}, and this version knows none after {newest_revision()}")


def migrate(url: str, revision: str = "head") -> None:
    """Make our schemas and run what is missing up to `revision`. Does nothing if nothing is missing.

    An advisory lock lets one process work while the others wait; the lock goes with its connection, so a
    killed process never blocks the rest.
    """
    engine = create_engine(normalise(url), poolclass=NullPool, connect_args={"connect_timeout": 10})
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
        connection.commit()
        try:
            for schema in (SCHEMA, STUDY_SCHEMA):
                connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {schema}"))
            connection.commit()
            _refuse_newer(connection)
            command.upgrade(_config(connection), revision)
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
            connection.commit()


def _refuse_newer(connection: Connection) -> None:
    table = connection.execute(text(f"SELECT to_regclass('{SCHEMA}.alembic_version')")).scalar_one()
    found = connection.execute(text(f"SELECT max(version_num) FROM {SCHEMA}.alembic_version")).scalar() if table else ""
    if found and found > newest_revision():
        raise NewerSchemaError(found)


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config
