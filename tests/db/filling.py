"""Rows in every table that a schema has, whatever schema that is: its own catalogue says what they must look like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from penstock.db.schema.ids import new_id

ROWS = 2
PREFIXES = {"tokens": "tok", "models": "mdl", "runs": "run", "steps": "stp", "artifacts": "art", "webhooks": "whk"}
# What a value must be for the code to make sense of the row; each by its column, or by table and column.
MEANT: Mapping[str, Any] = {
    "runs.state": "running", "steps.state": "queued", "steps.kind": "import", "steps.queue": "import",
    "trials.state": "complete", "models.kind": "zoo", "tokens.scope": "submit", "evidence": "modelled",
    "sha256": "a" * 64, "attempts.outcome": None, "deliveries.state": "pending",
}  # fmt: skip
_COLUMNS = text("""
    SELECT table_name, column_name, data_type FROM information_schema.columns
    WHERE table_schema = 'penstock' AND table_name <> 'alembic_version'
        AND coalesce(column_default, '') NOT LIKE 'nextval(%'
    ORDER BY table_name, ordinal_position
""")
_KEYS = text("""
    SELECT c.conrelid::regclass::text, a.attname, c.confrelid::regclass::text FROM pg_constraint AS c
    JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
    WHERE c.contype = 'f' AND c.connamespace = 'penstock'::regnamespace
""")
_BY_TYPE: Mapping[str, Any] = {
    "integer": 1, "bigint": 1, "double precision": 1.5, "boolean": False, "date": "2026-01-01",
    "timestamp with time zone": "2026-01-01T00:00:00Z", "jsonb": json.dumps({"latency_cycles": 7}), "ARRAY": ["x"],
}  # fmt: skip


def fill(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Some rows in every table; returns them by table."""
    columns: dict[str, list[tuple[str, str]]] = {}
    for table, column, kind in connection.execute(_COLUMNS):
        columns.setdefault(table, []).append((column, kind))
    refers = {(_bare(table), column): _bare(other) for table, column, other in connection.execute(_KEYS)}
    made: dict[str, list[dict[str, Any]]] = {}
    while len(made) < len(columns):
        ready = [
            table for table in columns if table not in made
            and all(other in made or other == table for (of, _), other in refers.items() if of == table)
        ]  # fmt: skip
        assert ready, "tables that need each other"
        for table in ready:
            made[table] = [_insert(connection, table, columns[table], refers, made, n) for n in range(ROWS)]
    return made


def _insert(
    connection: Connection, table: str, columns: list[tuple[str, str]], refers: dict[tuple[str, str], str],
    made: dict[str, list[dict[str, Any]]], number: int,
) -> dict[str, Any]:  # fmt: skip
    row: dict[str, Any] = {}
    for column, kind in columns:
        other = refers.get((table, column))
        if other is not None:
            row[column] = made[other][number].get("id", made[other][number].get("key"))
        elif column == "id" and table in PREFIXES:
            row[column] = new_id(PREFIXES[table])
        elif f"{table}.{column}" in MEANT or column in MEANT:
            row[column] = MEANT.get(f"{table}.{column}", MEANT.get(column))
        elif kind == "bytea":
            row[column] = bytes([number])
        elif kind in _BY_TYPE:
            row[column] = number if column in ("number", "fence") else _BY_TYPE[kind]
        else:
            row[column] = f"{column}-{number}"
    names, values = ", ".join(f'"{name}"' for name in row), ", ".join(f":{name}" for name in row)
    connection.execute(text(f"INSERT INTO penstock.{table} ({names}) VALUES ({values})"), row)
    return row


def _bare(name: str) -> str:
    return name.rpartition(".")[2]
