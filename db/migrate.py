"""Brings a database to the newest schema; any number of processes may call it at once."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from penstock.db.database import normalise
from penstock.db.schema.tables import SCHEMA, STUDY_SCHEMA

_LOCK = 0x50656E73746F636B  # "Penstock"


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
            command.upgrade(_config(connection), revision)
            connection.commit()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
            connection.commit()


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config
