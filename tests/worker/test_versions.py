"""Two versions at once on one database: a service is brought up to date while the old one's programs still run.

The next version is this one with another migration and a higher number, imported from a folder of its own.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import text

from benchmarks.service_load import SLOW
from penstock import IMPORT_ROOT
from penstock.compiler.errors import PenstockError
from penstock.db import Database, lifecycle
from penstock.db.schema.records import Run
from penstock.db.schema.revision import newest_revision
from penstock.db.schema.states import RunState
from penstock.services.settings import Settings
from penstock.services.steps.graph import run_steps
from penstock.services.supervisor.stack import migrate_database
from penstock.services.worker import dispatcher
from tests.fixtures.service import ROOT, Service, assert_legal

BODIES = "benchmarks.service_load.noop"
TRIALS = 300
"""Half a minute of work: an old worker looks at the schema every ten seconds."""
NEXT = "0999"


@pytest.fixture
def next_version(tmp_path: Path) -> str:
    """What PYTHONPATH is for the next version's programs."""
    folder = tmp_path / "next"
    package = folder / "penstock"
    package.mkdir(parents=True)
    for path in (IMPORT_ROOT / "penstock").iterdir():
        if path.name not in ("db", "__init__.py", "__pycache__"):
            (package / path.name).symlink_to(path.resolve())
    shutil.copy(IMPORT_ROOT / "penstock" / "__init__.py", package)
    shutil.copytree((IMPORT_ROOT / "penstock" / "db").resolve(), package / "db")
    migration = f'revision = "{NEXT}"\ndown_revision = "{newest_revision()}"\nbranch_labels = depends_on = None\n'
    change = "ALTER TABLE penstock.runs ADD COLUMN mood text"
    migration += f'def upgrade():\n    from alembic import op\n    op.execute("{change}")\n'
    (package / "db" / "migrations" / "versions" / f"{NEXT}_moods.py").write_text(migration)
    metadata = folder / "penstock-99.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: penstock\nVersion: 99.0\n")
    return f"{folder}:{ROOT}"


@pytest.mark.slow
def test_a_run_goes_on_while_its_service_is_brought_up_to_date(service: Service, next_version: str) -> None:
    run = _submit(service)
    old_dispatcher, old_worker = service.dispatcher(), service.worker()
    service.until(lambda: len(_ended(service, run)) > 8, lambda: service.explain(run))
    service.start("penstock.services.supervisor.migrate", PYTHONPATH=next_version).wait()
    newer = {"PYTHONPATH": next_version, "PENSTOCK_CONCURRENCY": "1"}
    service.start("penstock.services.worker.dispatcher", PYTHONPATH=next_version)
    service.worker(**newer)
    service.until(
        lambda: old_worker.poll() is not None or len(_ended(service, run)) == TRIALS + 5, lambda: service.explain(run)
    )
    assert old_worker.poll() is not None, "it did all of it, although the schema is not its own"
    assert old_dispatcher.wait() == 2
    assert service.wait(run).state == RunState.SUCCEEDED, service.explain(run)
    assert_legal(service.events(run))
    assert Counter(_ended(service, run)) == dict.fromkeys(_ended(service, run), 1)
    assert len(_ended(service, run)) == TRIALS + 5
    said = (service.home / "penstock.services.worker.log").read_text()
    assert f"the database has schema {NEXT}, and this program knows none after {newest_revision()}" in said
    assert "Traceback" not in said


def test_an_older_dispatcher_says_so_and_ends(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database.url)
    monkeypatch.setenv("PENSTOCK_REDIS_URL", "redis://127.0.0.1:1/0")
    _as_if_migrated(database)
    assert dispatcher.main() == 2
    assert f"the database has schema {NEXT}" in caplog.text


def test_a_dispatcher_ends_whose_service_was_brought_up_to_date(database: Database, tmp_path: Path) -> None:
    running = dispatcher.Dispatcher(
        Settings(home=tmp_path, database_url=database.url, redis_url="redis://127.0.0.1:1/0")
    )
    _as_if_migrated(database)
    with pytest.raises(PenstockError, match=f"schema {NEXT}"):
        running.run()


def test_an_older_release_does_not_migrate_and_says_so(database: Database) -> None:
    _as_if_migrated(database)
    with pytest.raises(PenstockError, match=f"schema {NEXT}, and this version knows none after") as refused:
        migrate_database(database.url)
    assert refused.value.code == "version-skew"


def _as_if_migrated(database: Database) -> None:
    with database.begin() as tx:
        tx.connection.execute(text("UPDATE penstock.alembic_version SET version_num = :next"), {"next": NEXT})


def _submit(service: Service) -> Run:
    options = {"platform": "u55c", "trials": TRIALS}
    with service.database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:mlp")
        return lifecycle.submit(
            tx, model_id=model.id, name=SLOW, steps=run_steps(model, options), options=options, owner=None
        )


def _ended(service: Service, run: Run) -> list[str]:
    return [event.data["key"] for event in service.events(run) if event.kind == "step.succeed"]
