"""Alembic's entry: runs the migrations on the connection that penstock.db.migrate opened and locked."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from penstock.db.schema.tables import SCHEMA, metadata

connection: Connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table_schema=SCHEMA,
    include_schemas=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
