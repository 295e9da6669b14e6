"""`penstock backup`: the whole of a service while it works, as it was at one moment.

The database is dumped from a snapshot, and the same snapshot says which contents are needed: what happens afterwards is
not in the backup, and nothing that it needs is collected before it was copied.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from penstock.compiler.errors import PenstockError
from penstock.db.repositories.retention import CONTENT_LOCK
from penstock.db.schema.tables import SCHEMA, STUDY_SCHEMA
from penstock.services.settings import Settings
from penstock.services.store import ContentStore, MissingContentError
from penstock.services.upkeep.archive import (
    CONTENTS,
    DATABASE,
    KEY,
    MANIFEST,
    BackupWriter,
    Manifest,
    Say,
    content_name,
)
from penstock.services.upkeep.postgres_tools import connect, find_tool, plain_url, version_of
from penstock.services.version import version

_NEEDED = f"""
    SELECT sha256, max(size) FROM (
        SELECT sha256, size FROM {SCHEMA}.artifacts
        UNION ALL SELECT sha256, coalesce(size, 0) FROM {SCHEMA}.models WHERE sha256 IS NOT NULL
    ) AS content GROUP BY sha256 ORDER BY sha256
"""


@dataclass(frozen=True)
class BackupMade:
    """What a backup holds."""

    path: Path
    manifest: Manifest


def back_up(url: str, settings: Settings, target: Path, *, whole: bool = True, say: Say = lambda _: None) -> BackupMade:
    """Writes the backup to `target`, a folder, or a file whose name ends with .tar; neither may be there yet."""
    _check_target(target)
    with _content_held(url), connect(url) as snapshot:
        snapshot.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        name, revision, runs = _facts(snapshot)
        server, major = version_of(snapshot)
        tool = find_tool("pg_dump", major)
        with BackupWriter(target) as writer, tempfile.TemporaryDirectory(dir=target.parent, prefix=".dump-") as folder:
            dump = Path(folder) / DATABASE
            say("dumping the database")
            tool.run(
                "--format=custom", "--no-owner", "--no-privileges", f"--snapshot={name}", f"--schema={SCHEMA}",
                f"--schema={STUDY_SCHEMA}", f"--file={dump}", plain_url(url),
            )  # fmt: skip
            files: dict[str, str] = {}
            with dump.open("rb") as file:
                files[DATABASE] = writer.add(DATABASE, file, dump.stat().st_size)
            kept: list[tuple[str, int]] = []
            missing: list[str] = []
            if whole:
                key = _key(settings.secret_file)
                if key:
                    files[KEY] = writer.add_bytes(KEY, key)
                rows = snapshot.execute(_NEEDED).fetchall()
                snapshot.rollback()  # copying may take long, and needs no more of the database than the lock
                say(f"copying {len(rows)} files of the store")
                store = ContentStore(settings.store_folder)
                kept, missing = _copy_contents(writer, store, [str(row[0]) for row in rows])
                listing = "".join(f"{sha256} {size}\n" for sha256, size in kept)
                files[CONTENTS] = writer.add_bytes(CONTENTS, listing.encode())
            manifest = Manifest(
                made_at=datetime.now(UTC).isoformat(timespec="seconds"), made_by=version(),
                schema_revision=revision, postgres=server, tools_major=tool.major, whole=whole, files=files, runs=runs,
                contents=len(kept), bytes=sum(size for _, size in kept), missing=missing,
            )  # fmt: skip
            writer.add_bytes(MANIFEST, manifest.model_dump_json(indent=1).encode())
            writer.keep()
    return BackupMade(target, manifest)


@contextmanager
def _content_held(url: str) -> Iterator[None]:
    """Nothing of the store is collected in the block. If this process dies, the lock goes with its connection."""
    with connect(url) as lock:
        lock.autocommit = True
        lock.execute("SELECT pg_advisory_lock_shared(%s)", [CONTENT_LOCK])
        try:
            yield
        finally:
            lock.execute("SELECT pg_advisory_unlock_shared(%s)", [CONTENT_LOCK])


def _copy_contents(
    writer: BackupWriter, store: ContentStore, hashes: list[str]
) -> tuple[list[tuple[str, int]], list[str]]:
    """What was copied with its size, and what is not there. Content that is not what its name says ends the backup."""
    kept: list[tuple[str, int]] = []
    missing: list[str] = []
    for sha256 in hashes:
        try:
            path = store.path(sha256)
        except MissingContentError:
            missing.append(sha256)
            continue
        size = path.stat().st_size
        with path.open("rb") as file:
            if writer.add(content_name(sha256), file, size) != sha256:
                raise PenstockError(
                    code="store-damaged", what="a file of the store is not what its name says", where=str(path),
                    hint="the disk is failing, or somebody wrote to it: remove the file; its runs can be started again",
                )  # fmt: skip
        kept.append((sha256, size))
    return kept, missing


def _facts(snapshot: psycopg.Connection) -> tuple[str, str, int]:
    """The snapshot's name, the revision of the schema, and how many runs there are."""
    try:
        row = snapshot.execute(
            f"SELECT pg_export_snapshot(), (SELECT version_num FROM {SCHEMA}.alembic_version),"
            f" (SELECT count(*) FROM {SCHEMA}.runs)".encode()
        ).fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    if row is None or row[1] is None:
        raise PenstockError(
            code="not-penstock", what="this database holds no Penstock service", where="PENSTOCK_DATABASE_URL",
            hint="name the database of the service",
        )  # fmt: skip
    return str(row[0]), str(row[1]), int(row[2])


def _key(path: Path) -> bytes:
    """Empty where none was made yet."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise PenstockError(
            code="folder-unusable", what=f"the service's key cannot be read: {error.strerror}", where=str(path),
            hint="run this as the user who runs the service",
        ) from None  # fmt: skip


def _check_target(target: Path) -> None:
    problem = ""
    if target.exists():
        problem = "there is something already"
    elif not target.parent.is_dir():
        problem = f"there is no folder {target.parent}"
    if problem:
        raise PenstockError(
            code="output-exists", what=problem, where=str(target),
            hint="name a new folder, or a new file that ends with .tar",
        )  # fmt: skip
