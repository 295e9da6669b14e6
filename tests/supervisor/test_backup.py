"""Backups: everything that was there is there again, elsewhere; what is damaged or foreign is refused in a sentence."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from penstock.compiler.errors import PenstockError
from penstock.db import Database
from penstock.db.schema.revision import newest_revision
from penstock.services.jobs.removal import collect_content
from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.upkeep.backup import back_up
from penstock.services.upkeep.restore import restore
from tests.api.seeding import Seeder
from tests.fixtures.servers import fresh_database

TABLES = text("SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN ('penstock', 'optuna')")


def rows(database: Database) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    with database.begin() as tx:
        names = sorted(tx.connection.execute(TABLES).scalars())
        return {
            name: sorted(tx.connection.execute(text(f"SELECT t::text FROM {name} AS t")).scalars()) for name in names
        }


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    made = Settings(home=tmp_path / "home", database_url=database_url)
    made.home.mkdir()
    made.secret_file.write_bytes(b"k" * 32)
    return made


@pytest.fixture
def filled(database: Database, settings: Settings) -> Database:
    seeder = Seeder(database, ContentStore(settings.store_folder))
    seeder.finished_run(2)
    going = seeder.run(trials=2)
    seeder.explore(going, 2)
    seeder.claim(going, "trial/0000")
    return database


@pytest.fixture
def elsewhere(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[Settings]:
    with fresh_database(postgres, "template1") as url:
        yield Settings(home=tmp_path / "elsewhere", database_url=url)


@pytest.mark.parametrize("name", ["kept", "kept.tar"])
def test_everything_is_there_again(filled: Database, settings: Settings, elsewhere: Settings, name: str) -> None:
    target = settings.home.parent / name
    made = back_up(filled.url, settings, target)
    assert target.stat().st_mode & 0o077 == 0, "it holds keys"
    assert made.manifest.missing == []
    before = rows(filled)
    manifest = restore(elsewhere.require_database_url(), elsewhere, target)
    assert (manifest.runs, manifest.contents) == (2, made.manifest.contents)
    restored = Database(elsewhere.require_database_url())
    assert rows(restored) == before
    store = ContentStore(elsewhere.store_folder)
    with restored.begin() as tx:
        hashes = tx.connection.execute(text("SELECT sha256 FROM artifacts")).scalars().all()
    assert hashes
    assert all(store.exists(sha256) for sha256 in hashes)
    assert elsewhere.secret_file.read_bytes() == settings.secret_file.read_bytes(), "tokens are good there too"
    assert elsewhere.secret_file.stat().st_mode & 0o077 == 0
    with pytest.raises(PenstockError, match="holds a service already"):
        restore(elsewhere.require_database_url(), elsewhere, target)
    restored.close()


def test_nothing_is_collected_while_a_backup_copies(filled: Database, settings: Settings) -> None:
    store = ContentStore(settings.store_folder)
    for path in store.root.glob("??/*"):
        os.utime(path, (0, 0))
    freed: list[int] = []

    def meanwhile(line: str) -> None:
        if line.startswith("copying"):
            with filled.begin() as tx:
                tx.connection.execute(text("DELETE FROM runs"))
                tx.connection.execute(text("DELETE FROM models"))
            freed.append(collect_content(filled, store))

    made = back_up(filled.url, settings, settings.home.parent / "kept", say=meanwhile)
    assert freed == [0]
    assert made.manifest.missing == []
    assert made.manifest.runs == 2, "as it was when it began"
    assert collect_content(filled, store) == made.manifest.bytes


def replaced(backup: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    path = backup / name
    path.write_bytes(change(path.read_bytes()))


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def swapped(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new)

    return change


def test_what_is_damaged_or_foreign_is_refused(filled: Database, settings: Settings, elsewhere: Settings) -> None:
    target, url = settings.home.parent / "kept", elsewhere.require_database_url()
    back_up(filled.url, settings, target)
    content = next(target.glob("store/*/*")).relative_to(target).as_posix()
    cases: list[tuple[str, Callable[[bytes], bytes], str]] = [
        ("database.dump", flipped, "database.dump is damaged"),
        ("secret.key", flipped, "secret.key is damaged"),
        ("contents.txt", flipped, "contents.txt is damaged"),
        (content, flipped, "damaged"),
        ("manifest.json", lambda _: b"{}", "not one of a Penstock backup"),
        ("manifest.json", swapped(b'"version": 1', b'"version": 9'), "later Penstock"),
        ("manifest.json", swapped(f'"{newest_revision()}"'.encode(), b'"9999"'), "later Penstock"),
    ]
    for name, change, words in cases:
        before = (target / name).read_bytes()
        replaced(target, name, change)
        with pytest.raises(PenstockError, match=words):
            restore(url, elsewhere, target)
        (target / name).write_bytes(before)
        database = Database(url)
        assert rows(database) == {}, "nothing was made"
        database.close()
    (target / content).unlink()
    with pytest.raises(PenstockError, match="it has no store/"):
        restore(url, elsewhere, target)


def test_links_lead_nowhere(elsewhere: Settings, tmp_path: Path) -> None:
    for name, to in (("self", "manifest.json"), ("out", "/etc/passwd")):
        with tarfile.open(tmp_path / f"{name}.tar", "w") as tar:
            info = tarfile.TarInfo("manifest.json")
            info.type, info.linkname = tarfile.SYMTYPE, to
            tar.addfile(info)
        with pytest.raises(PenstockError) as error:
            restore(elsewhere.require_database_url(), elsewhere, tmp_path / f"{name}.tar")
        assert error.value.code == "bad-backup"


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04" + b"x" * 3000, b"\x1f\x8b" + b"y" * 3000, b"not a tar at all" * 99]
)
def test_other_files_are_no_backups(elsewhere: Settings, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.tar"
    file.write_bytes(content)
    with pytest.raises(PenstockError) as error:
        restore(elsewhere.require_database_url(), elsewhere, file)
    assert error.value.code == "bad-backup"
    with tarfile.open(file, "w") as tar:
        info = tarfile.TarInfo("../../etc/passwd")
        tar.addfile(info, io.BytesIO())
    with pytest.raises(PenstockError, match=r"it has no manifest\.json"):
        restore(elsewhere.require_database_url(), elsewhere, file)
    with pytest.raises(PenstockError, match="no such file"):
        restore(elsewhere.require_database_url(), elsewhere, tmp_path / "nowhere.tar")


def test_a_store_that_lacks_or_belies_content_is_told(filled: Database, settings: Settings) -> None:
    first, second = sorted(settings.store_folder.glob("??/*"))[:2]
    first.unlink()
    made = back_up(filled.url, settings, settings.home.parent / "kept")
    assert made.manifest.missing == [first.name]
    assert json.loads((made.path / "manifest.json").read_text())["missing"] == [first.name]
    with pytest.raises(PenstockError, match="there is something already"):
        back_up(filled.url, settings, made.path)
    second.chmod(0o644)
    second.write_bytes(b"somebody wrote here")
    with pytest.raises(PenstockError, match="not what its name says"):
        back_up(filled.url, settings, settings.home.parent / "other.tar")
    assert [path.name for path in settings.home.parent.iterdir() if "other" in path.name] == [], (
        "no half of one is left"
    )


def test_a_database_of_others_is_not_backed_up(empty_database_url: str, settings: Settings) -> None:
    with pytest.raises(PenstockError, match="holds no Penstock service"):
        back_up(empty_database_url, settings, settings.home.parent / "kept")
