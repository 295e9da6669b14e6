"""Postgres and Redis as embedded servers: started, back after a crash, gone with their parent."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.binaries import find_postgres, find_redis
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.redis import EmbeddedRedis
from tests.supervisor.stacks import ROOT, alive, eventually


@pytest.fixture
def postgres(folder: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(folder / "postgres", folder / "run", fsync=False)
    yield server
    server.stop()


@pytest.fixture
def redis(folder: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(folder / "redis", folder / "run")
    yield server
    server.stop()


def query(server: EmbeddedPostgres, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize("origin", ["path", "wheel"])
def test_postgres_keeps_its_data_over_a_restart(
    postgres: EmbeddedPostgres, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SERVERS", origin)
    try:
        find_postgres()
    except PenstockError as error:
        pytest.skip(error.one_line())
    postgres.start()
    query(postgres, "CREATE TABLE kept AS SELECT 7 AS seven")
    postgres.stop()
    assert not postgres.running
    postgres.start()
    assert query(postgres, "SELECT seven FROM kept") == [(7,)]


def test_servers_are_private(postgres: EmbeddedPostgres, redis: EmbeddedRedis) -> None:
    postgres.start()
    redis.start()
    assert redis.answers()
    assert postgres.socket_dir.stat().st_mode & 0o777 == 0o700
    assert postgres.data_dir.stat().st_mode & 0o777 == 0o700
    for server in (postgres, redis):
        assert psutil.Process(server.pid).net_connections("inet") == []
        assert psutil.Process(server.pid).uids().real != 0


def test_postgres_comes_back_after_a_kill(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    query(postgres, "CREATE TABLE kept AS SELECT 7 AS seven")
    backends = [child.pid for child in psutil.Process(postgres.pid).children()]
    os.kill(postgres.pid, signal.SIGKILL)
    postgres.start()
    assert query(postgres, "SELECT seven FROM kept") == [(7,)]
    assert not alive(backends)


def test_a_stale_pid_file_of_a_living_stranger_is_no_obstacle(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    pid_file = postgres.data_dir / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    postgres.stop()
    stranger = subprocess.Popen(["sleep", "60"], user=pid_file.parent.stat().st_uid)
    try:
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        (postgres.socket_dir / ".s.PGSQL.5432").touch()
        postgres.start()
        assert query(postgres, "SELECT 1") == [(1,)]
    finally:
        stranger.kill()
        stranger.wait()


def test_a_second_server_on_the_folder_is_refused(
    postgres: EmbeddedPostgres, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.services.supervisor.postgres.PREVIOUS_SECONDS", 0.2)
    postgres.start()
    second = EmbeddedPostgres(folder / "postgres", folder / "run2", fsync=False)
    with pytest.raises(PenstockError, match=f"{postgres.pid}.*already uses the data folder"):
        second.start()
    assert query(postgres, "SELECT 1") == [(1,)]


def test_a_long_socket_path_is_refused(folder: Path) -> None:
    with pytest.raises(PenstockError, match="at most 107"):
        EmbeddedPostgres(folder / "postgres", folder / ("x" * 90)).start()
    with pytest.raises(PenstockError, match="at most 107"):
        EmbeddedRedis(folder / "redis", folder / ("x" * 90)).start()


def test_a_foreign_folder_is_left_alone(folder: Path) -> None:
    (folder / "postgres").mkdir()
    (folder / "postgres" / "precious.txt").write_text("not a database")
    server = EmbeddedPostgres(folder / "postgres", folder / "run")
    with pytest.raises(PenstockError, match="not a Postgres data folder"):
        server.start()
    assert (folder / "postgres" / "precious.txt").read_text() == "not a database"


def test_a_failed_start_quotes_the_log(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.stop()
    with (postgres.data_dir / "postgresql.conf").open("a") as configuration:
        configuration.write("no_such_setting = 1\n")
    with pytest.raises(PenstockError, match="no_such_setting"):
        postgres.start()


def test_data_of_a_version_that_is_not_here(postgres: EmbeddedPostgres) -> None:
    postgres.data_dir.mkdir()
    (postgres.data_dir / "PG_VERSION").write_text("9\n")
    with pytest.raises(PenstockError, match="Postgres 9, which made the data folder"):
        postgres.start()


def test_nothing_found_says_where_it_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SERVERS", "nowhere")
    with pytest.raises(PenstockError, match="found: none"):
        find_postgres()
    with pytest.raises(PenstockError, match="no Redis server"):
        find_redis()


PARENT = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.redis import EmbeddedRedis
from tests.fixtures.service import Service
folder = Path(sys.argv[1])
postgres = EmbeddedPostgres(folder / "postgres", folder / "run")
redis = EmbeddedRedis(folder / "redis", folder / "run")
postgres.start(); redis.start()
service = Service(folder, SimpleNamespace(url=postgres.url), redis, "penstock.services.steps.registry")
print(postgres.pid, redis.pid, service.worker().pid, service.dispatcher().pid, flush=True)
time.sleep(60)
"""


def test_servers_and_what_tests_start_die_with_a_killed_parent(folder: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    with parent.stdout:
        pids = [int(text) for text in parent.stdout.readline().split()]
        assert len(pids) == 4
        pids += [child.pid for pid in pids for child in psutil.Process(pid).children(recursive=True)]
        parent.kill()
        parent.wait()
    assert eventually(lambda: not alive(pids)), alive(pids)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as another user")
def test_programs_in_a_closed_folder_are_copied(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A venv in root's home: the user of the servers cannot enter it."""
    monkeypatch.setenv("PENSTOCK_SERVERS", "wheel")
    try:
        wheel = find_postgres().postgres.parents[2]
        redis_package = find_redis().server.parents[1]
    except PenstockError as error:
        pytest.skip(error.one_line())
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for source in (wheel, wheel.with_name(f"{wheel.name}.libs"), redis_package):
        shutil.copytree(source, closed / source.name, symlinks=True)
    packages = {name: closed / name for name in (wheel.name, redis_package.name)}
    monkeypatch.setattr("penstock.services.supervisor.binaries._package_folder", packages.get)
    server, broker = (
        EmbeddedPostgres(folder / "postgres", folder / "run", fsync=False),
        EmbeddedRedis(folder / "redis", folder / "run"),
    )
    try:
        server.start()
        broker.start()
        assert query(server, "SELECT 1") == [(1,)]
        assert broker.answers()
        for child in (server, broker):
            assert folder in Path(psutil.Process(child.pid).exe()).parents
    finally:
        server.stop()
        broker.stop()
