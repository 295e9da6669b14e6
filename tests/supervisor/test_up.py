"""`penstock up` as a person meets it: the start, the end by every road, and the starts that cannot be."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.supervisor.stacks import (
    NOBODY,
    ROOT,
    Caller,
    Up,
    alive,
    eventually,
    get,
    myself,
    other_user,
    penstock,
    remove,
    run_up,
    up,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One stack for the tests that only look."""
    from penstock.services.supervisor.folders import open_folder

    home = open_folder("penstock-test-")
    with up(myself(), home) as running:
        yield running
    remove(home)


def listens(url: str) -> bool:
    port = int(url.rsplit(":", 1)[1])
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_it_is_healthy_when_it_says_so(shared: Up) -> None:
    said = get(f"{shared.url}/v1/health")
    assert said["database"]["status"] == "ok"
    assert said["broker"]["status"] == "ok"
    assert said["workers_alive"] >= 1
    assert shared.status["pid"] == shared.process.pid
    schema = json.loads((ROOT / "docs" / "up.schema.json").read_text())
    assert set(shared.status) == set(schema["required"]) == set(schema["properties"])


def test_its_user_gets_in_without_typing_and_others_do_not(shared: Up) -> None:
    home = Path(shared.status["home"])
    assert (home / "token").stat().st_mode & 0o777 == 0o600
    with httpx.Client(base_url=shared.url, trust_env=False, timeout=600) as browser:
        assert browser.get("/v1/runs").status_code == 401
        assert browser.get(shared.status["login"]).headers["location"] == "/runs"
        assert browser.get("/v1/me").json()["scope"] == "admin"
        assert browser.get("/runs").status_code == 200
    own = {"PENSTOCK_HOME": str(home)}  # on a port that nobody types
    said = penstock("runs", "--json", **own)
    assert said.returncode == 0, said.stderr
    made = penstock("token", "create", "ci", "--owner", "build", "--scope", "read", "--days", "2", "--json", **own)
    assert made.returncode == 0, made.stderr
    token = json.loads(made.stdout)
    elsewhere = {"PENSTOCK_URL": shared.url, "PENSTOCK_HOME": "/nonexistent", "PENSTOCK_TOKEN": token["token"]}
    assert penstock("runs", "--json", **elsewhere).returncode == 0
    refused = penstock("submit", "zoo:mlp", **elsewhere)
    assert "its scope is read" in refused.stderr
    assert "build" in penstock("token", "list", **own).stdout
    assert penstock("token", "revoke", token["id"], **own).returncode == 0
    assert penstock("runs", **elsewhere).returncode != 0
    assert shared.url in penstock("login", **own).stdout


def test_python_models_are_off_unless_it_is_said(shared: Up) -> None:
    assert get(f"{shared.url}/v1/health")["python_models"] is False


def test_it_listens_on_one_port_only(shared: Up) -> None:
    listening = {
        connection.laddr.port
        for pid in shared.pids()
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {int(shared.url.rsplit(":", 1)[1])}


def test_its_folder_is_private(shared: Up) -> None:
    home = Path(shared.status["home"])
    assert not home.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH | stat.S_IRGRP | stat.S_IWGRP)
    assert (home / "run").stat().st_mode & 0o777 == 0o700


def test_a_second_start_names_the_first(shared: Up) -> None:
    answer = run_up(myself(), Path(shared.status["home"]), "--port", "0")
    assert answer.returncode == 1
    assert f"pid {shared.process.pid}, {shared.url}" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_used_port(shared: Up, folder: Path) -> None:
    port = shared.url.rsplit(":", 1)[1]
    answer = run_up(myself(), folder, "--port", port)
    assert answer.returncode == 1
    assert f"127.0.0.1:{port}: another program listens on the port" in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("program", ["serve_api", "penstock.services.worker", "dispatcher", "redis"])
def test_what_crashes_comes_back(shared: Up, program: str) -> None:
    victims = shared.descendants()[program]
    main = min(victims)
    os.kill(main, signal.SIGKILL)

    def back() -> bool:
        now = shared.descendants().get(program, [])
        return main not in now and bool(now) and get(f"{shared.url}/v1/health")["workers_alive"] >= 1

    assert eventually(back)


def ends_in_order(running: Up, folder: Path, number: signal.Signals) -> None:
    pids = running.pids()
    assert len(pids) >= 6
    code, said = running.stop(number)
    assert code == 0
    assert said.rstrip().endswith("stopped")
    assert not alive(pids)
    assert not listens(running.url)
    assert not (folder / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(folder: Path, number: signal.Signals) -> None:
    with up(myself(), folder) as running:
        ends_in_order(running, folder, number)


def test_a_killed_supervisor_leaves_nothing_and_starts_again_until_it_is_interrupted(folder: Path) -> None:
    with up(myself(), folder) as running:
        pids = running.pids()
        running.process.kill()
        running.process.wait()
        assert eventually(lambda: not alive(pids)), alive(pids)
        assert not listens(running.url)
    with up(myself(), folder) as again:
        assert get(f"{again.url}/v1/health")["workers_alive"] >= 1
        ends_in_order(again, folder, signal.SIGINT)


def test_an_interrupted_start_leaves_nothing(folder: Path) -> None:
    import subprocess

    process = subprocess.Popen(
        [*myself().command("up", "--port", "0")],
        env={**os.environ, "PENSTOCK_HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    watched = psutil.Process(process.pid)
    assert eventually(lambda: len(watched.children(recursive=True)) >= 2)
    pids = [child.pid for child in watched.children(recursive=True)]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert not alive(pids)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"PENSTOCK_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"}, "the database cannot be used"),
        ({"PENSTOCK_REDIS_URL": "redis://127.0.0.1:1/0"}, "Redis does not answer"),
        ({"PENSTOCK_API_HOST": "256.1.1.1"}, "cannot listen"),
        ({"PENSTOCK_SERVERS": "nowhere"}, "not installed"),
    ],
)
def test_what_cannot_start_says_why_in_one_line(folder: Path, environment: dict[str, str], words: str) -> None:
    answer = run_up(myself(), folder, "--port", "0", **environment)
    assert answer.returncode == 1
    assert words in answer.stderr
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith("penstock: ")
    assert "Traceback" not in answer.stderr


def test_a_setting_that_is_none(folder: Path) -> None:
    answer = run_up(myself(), folder, PENSTOCK_API_PORT="http")
    assert answer.returncode == 2
    assert "PENSTOCK_API_PORT" in answer.stderr


def test_an_ordinary_user(public_folder: Path) -> None:
    caller = other_user(NOBODY)
    with up(caller, public_folder / "home") as running:
        owners = set[int]()
        for pid in running.pids():
            with suppress(psutil.NoSuchProcess):  # one that a server had begun for a moment
                owners.add(psutil.Process(pid).uids().real)
        assert owners == {NOBODY}
        pids = running.pids()
        code, _ = running.stop()
        assert code == 0
        assert not alive(pids)


def test_an_unwritable_folder(folder: Path) -> None:
    caller: Caller = other_user(NOBODY)
    answer = run_up(caller, folder / "home")
    assert answer.returncode == 1
    assert f"{folder / 'home'}: cannot use the data folder: Permission denied" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_uid_without_an_entry(public_folder: Path) -> None:
    answer = run_up(other_user(54321), public_folder / "home", "--port", "0")
    assert answer.returncode == 1
    assert "uid 54321 has no entry in the user database" in answer.stderr
    assert "Traceback" not in answer.stderr
