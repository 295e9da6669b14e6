"""`penstock restore`: a service made of a backup, on an empty folder or into an empty database.

Everything is checked before anything is made. Content comes before the rows that refer to it; runs that were going are
taken up by the first workers, as after a crash.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psycopg
from alembic.script import ScriptDirectory

from penstock import db
from penstock.compiler.errors import PenstockError
from penstock.db.migrate import migrate
from penstock.db.schema.tables import SCHEMA, STUDY_SCHEMA
from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from penstock.services.upkeep.archive import CHUNK, DATABASE, KEY, BackupReader, Manifest, Say, bad_backup, content_name
from penstock.services.upkeep.postgres_tools import connect, find_tool, plain_url, version_of


def restore(url: str, settings: Settings, source: Path, *, say: Say = lambda _: None) -> Manifest:
    """Fill the empty database at `url` and the store of these settings; refuses whatever is not empty or not sound."""
    with BackupReader(source) as backup:
        manifest = _restore(url, settings, backup, say)
    migrate(url)
    return manifest


def _restore(url: str, settings: Settings, backup: BackupReader, say: Say) -> Manifest:
    manifest = backup.manifest
    _check_revision(backup)
    with connect(url) as connection:
        _check_server(connection, backup)
        _check_empty(connection)
    tool = find_tool("pg_restore", manifest.tools_major)
    say("checking the database's dump")
    backup.check(DATABASE)
    if manifest.whole:
        contents = backup.contents()
        say(f"copying {len(contents)} files to the store")
        _fill_store(backup, ContentStore(settings.store_folder), contents)
        if KEY in manifest.files:
            _install_key(settings.secret_file, backup.checked(KEY))
    say(f"restoring {manifest.runs} runs")
    with _as_file(backup) as dump:
        _drop_empty_schemas(url)
        tool.run(
            "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", f"--dbname={plain_url(url)}",
            str(dump),
        )  # fmt: skip
    return manifest


def _check_revision(backup: BackupReader) -> None:
    known = {one.revision for one in ScriptDirectory(str(Path(db.__file__).parent / "migrations")).walk_revisions()}
    if backup.manifest.schema_revision not in known:
        raise bad_backup(backup.source, f"it was made by a later Penstock ({backup.manifest.made_by})")


def _check_server(connection: psycopg.Connection, backup: BackupReader) -> None:
    server, major = version_of(connection)
    if major < int(backup.manifest.postgres.split(".")[0]):
        raise PenstockError(
            code="postgres-too-old", what=f"the backup is of Postgres {backup.manifest.postgres}, and this is {server}",
            limit="a backup can be restored to the same or a later major version",
            hint="PENSTOCK_SERVERS=wheel or =path chooses another Postgres; or set PENSTOCK_DATABASE_URL",
        )  # fmt: skip


def _check_empty(connection: psycopg.Connection) -> None:
    there = connection.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.runs"]).fetchone()
    if there is not None and there[0] is not None:
        raise PenstockError(
            code="not-empty", what="the database holds a service already", where=f"schema {SCHEMA}",
            hint="restore to a new PENSTOCK_HOME, or into a new database: nothing is ever overwritten",
        )  # fmt: skip


def _drop_empty_schemas(url: str) -> None:
    """What `migrate` may have begun; a schema with tables in it stays, and the restore refuses it."""
    with connect(url) as connection:
        for schema in (SCHEMA, STUDY_SCHEMA):
            tables = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = %s", [schema]).fetchone()
            if tables is None:
                connection.execute(f"DROP SCHEMA IF EXISTS {schema}".encode())


def _fill_store(backup: BackupReader, store: ContentStore, contents: list[tuple[str, int]]) -> None:
    for sha256, _ in contents:
        with backup.open(content_name(sha256)) as file:
            stored = store.put_chunks(iter(lambda file=file: file.read(CHUNK), b""))
        if stored.sha256 != sha256:
            raise bad_backup(backup.source, f"{content_name(sha256)} is damaged: its hash differs")


def _install_key(path: Path, key: bytes) -> None:
    """The key that tokens were made with. Another one that is there stays: it belongs to somebody."""
    if path.exists():
        if hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(key).digest():
            return
        raise PenstockError(
            code="not-empty", what="there is another key already", where=str(path),
            hint="restore to a new PENSTOCK_HOME, or move the key away",
        )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)


@contextmanager
def _as_file(backup: BackupReader) -> Iterator[Path]:
    """The dump as a file of its own: pg_restore reads no tar of ours."""
    if backup.source.is_dir():
        yield backup.source / DATABASE
        return
    with tempfile.TemporaryDirectory(prefix="penstock-restore-") as folder, backup.open(DATABASE) as file:
        path = Path(folder) / DATABASE
        _copy(file, path)
        yield path


def _copy(source: IO[bytes], target: Path) -> None:
    with target.open("wb") as file:
        shutil.copyfileobj(source, file, CHUNK)
