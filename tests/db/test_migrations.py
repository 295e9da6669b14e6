"""Migrations: from nothing, again, from many processes at once, and to the shape that the code expects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from penstock.db import Database, claiming, lifecycle
from penstock.db.migrate import migrate
from penstock.db.schema.tables import SCHEMA, metadata
from tests.db.filling import ROWS, fill

ROOT = Path(__file__).parents[2]
REVISIONS = sorted(path.name[:4] for path in (ROOT / "db" / "migrations" / "versions").glob("0*.py"))
GONE = {"outbox"}
"""Tables that a later release has no use for."""
ANOTHER = {("models", "owner"), ("runs", "owner"), ("tokens", "owner")}
"""Columns whose meaning changed; the test of that release looks at them."""
MIGRATE = "import sys; from penstock.db.migrate import migrate; migrate(sys.argv[1])"


def test_from_nothing_and_again(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    with database.begin() as tx:
        assert tx.connection.execute(text(f"SELECT to_regclass('{SCHEMA}.alembic_version')")).scalar() is None
    migrate(empty_database_url)
    migrate(empty_database_url)
    with database.begin() as tx:
        reached = tx.connection.execute(text(f"SELECT version_num FROM {SCHEMA}.alembic_version")).scalar()
        assert reached == ScriptDirectory(str(ROOT / "db" / "migrations")).get_current_head()
        schemas = set(tx.connection.execute(text("SELECT nspname FROM pg_namespace")).scalars())
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        assert tx.models.get(model.id) == model
    database.close()
    assert {"penstock", "optuna"} <= schemas


def test_from_several_processes_at_once(empty_database_url: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, empty_database_url], cwd=ROOT, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    errors = [process.communicate(timeout=600)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors


def test_the_tables_are_what_the_migrations_make(database_url: str) -> None:
    # the user is called as our schema is, so Postgres would make that the default one, which Alembic omits
    options = {"options": "-csearch_path=public"}
    engine = create_engine(database_url, poolclass=NullPool, connect_args=options)
    with engine.connect() as connection:
        compared = {
            "include_schemas": True,
            "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
            "compare_type": True,
            "compare_server_default": True,
            "version_table_schema": SCHEMA,
        }
        context = MigrationContext.configure(connection, opts=compared)
        assert compare_metadata(context, metadata) == []


def test_owners_of_before_are_named_by_their_tokens(empty_database_url: str) -> None:
    migrate(empty_database_url, "0004")
    database = Database(empty_database_url)
    with database.begin() as tx:
        for statement in (
            "INSERT INTO penstock.tokens (id, name, prefix, digest) VALUES ('tok_1', 'ada', 'penstock_1', '')",
            "INSERT INTO penstock.models (id, name, kind, source, owner)"
            " VALUES ('mdl_1', 'm', 'zoo', 'zoo:m', 'tok_1')",
            "INSERT INTO penstock.runs (id, model_id, name, state, owner)"
            " VALUES ('run_1', 'mdl_1', 'r', 'queued', 'tok_1'), ('run_2', 'mdl_1', 'r', 'queued', NULL)",
        ):
            tx.connection.execute(text(statement))
    migrate(empty_database_url)
    with database.begin() as tx:
        token, model = tx.tokens.get("tok_1"), tx.models.get("mdl_1")
        assert token is not None
        assert model is not None
        assert (token.owner, token.scope, model.owner) == ("ada", "submit", "ada")
        assert {run.id: run.owner for run in tx.runs.list().items} == {"run_1": "ada", "run_2": None}
    database.close()


def kept_rows(connection: Connection, made: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Every row of every table that stays, with the columns that the released schema had."""
    found: dict[str, list[str]] = {}
    for table, rows in made.items():
        if table not in GONE:
            columns = ", ".join(f'"{name}"' for name in sorted(rows[0]) if (table, name) not in ANOTHER)
            statement = text(f"SELECT row({columns})::text FROM penstock.{table}")
            found[table] = sorted(connection.execute(statement).scalars())
            assert len(found[table]) == ROWS, table
    return found


@pytest.mark.parametrize("released", REVISIONS)
def test_every_released_schema_is_upgraded_with_its_rows(empty_database_url: str, released: str) -> None:
    migrate(empty_database_url, released)
    database = Database(empty_database_url)
    with database.begin() as tx:
        made = fill(tx.connection)
        before = kept_rows(tx.connection, made)
    migrate(empty_database_url)
    with database.begin() as tx:
        assert kept_rows(tx.connection, made) == before
    # and the code of today works with what is there
    run_id = made["runs"][0]["id"]
    with database.begin() as tx:
        assert {run.id for run in tx.runs.list().items} == {row["id"] for row in made["runs"]}
        assert {model.id for model in tx.models.list().items} == {row["id"] for row in made["models"]}
        assert [trial.figures for trial in tx.trials.list(run_id).items] == [{"latency_cycles": 7}]
        assert tx.artifacts.list(run_id).items[0].sha256 == "a" * 64
        (claimed,) = claiming.claim_next(tx, ["import"], worker="w", lease_seconds=60, licences={})
        lifecycle.finish(tx, claimed, lifecycle.StepOutcome(result={}))
        lifecycle.cancel_run(tx, next(row["id"] for row in made["runs"] if row["id"] != claimed.run_id))
    with database.begin() as tx:
        assert sorted(run.state for run in tx.runs.list().items) == ["cancelled", "succeeded"]
        tx.runs.lock(run_id)
        tx.retention.delete_run(run_id)
    database.close()
