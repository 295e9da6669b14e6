"""A worker on a second host, which is a network namespace: it has URLs and a token, and no folder of the first one.

Its network is cut in the middle of its work for longer than a lease: for six seconds, or as many as
PENSTOCK_TEST_CUT_SECONDS says. Nothing is lost, nothing is done twice.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.db.schema.records import NewStep
from penstock.db.schema.states import RunState, StepState
from penstock.services.api.plumbing.accounts import create
from penstock.services.settings import Settings
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.process import dying_with_us
from tests.fixtures.service import Service, assert_legal

pytestmark = pytest.mark.slow

BODIES = "tests.worker.bodies"
FORWARD = Path(__file__).with_name("forward.py")
CUT_SECONDS = float(os.environ.get("PENSTOCK_TEST_CUT_SECONDS", "6"))
PARTS, FREE_PARTS = 30, 6
"""The others wait to be released, so that the cut is sure to meet some."""


class SecondHost:
    """A namespace with one wire to this one."""

    def __init__(self) -> None:
        name = secrets.token_hex(3)
        self.name, self.wire = f"penstock-{name}", f"pv{name}"
        subnet = f"10.231.{secrets.randbelow(250)}"
        self.here, self.there = f"{subnet}.1", f"{subnet}.2"

    def make(self) -> None:
        far = f"{self.wire}b"
        self._ip("netns", "add", self.name)
        self._ip("link", "add", self.wire, "type", "veth", "peer", "name", far, "netns", self.name)
        self._ip("addr", "add", f"{self.here}/24", "dev", self.wire)
        self._ip("link", "set", self.wire, "up")
        for words in (("addr", "add", f"{self.there}/24", "dev", far), ("link", "set", far, "up")):
            self._ip("-n", self.name, *words)

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Packets go nowhere, in both directions; the addresses stay, and nobody is told."""
        self._ip("-n", self.name, "route", "replace", "blackhole", f"{self.here}/32")
        self._ip("route", "replace", "blackhole", f"{self.there}/32")
        yield
        self._ip("route", "del", "blackhole", f"{self.there}/32")
        self._ip("-n", self.name, "route", "del", "blackhole", f"{self.here}/32")

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", self.wire], check=False, capture_output=True)

    @staticmethod
    def _ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def host() -> Iterator[SecondHost]:
    if shutil.which("ip") is None:
        pytest.skip("there is no program `ip` to make a second host with")
    made = SecondHost()
    try:
        made.make()
    except subprocess.CalledProcessError as error:
        made.remove()
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
    yield made
    made.remove()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


def test_a_cut_network_loses_nothing_and_doubles_nothing(
    service: Service, postgres: EmbeddedPostgres, host: SecondHost, listener: socket.socket, tmp_path: Path
) -> None:
    token = create(service.database, Settings(home=service.home), "second host", scope="admin").secret
    api_port = listener.getsockname()[1]
    service.start(
        "penstock.services.supervisor.serve_api", str(listener.fileno()), files=(listener.fileno(),),
        PENSTOCK_AUTH="on", PENSTOCK_ALLOWED_HOSTS="*",
    )  # fmt: skip
    redis_socket = service.environment["PENSTOCK_REDIS_URL"].removeprefix("unix://")
    ways = [f"5432={postgres.socket_dir}/.s.PGSQL.5432", f"6379={redis_socket}", f"8750=127.0.0.1:{api_port}"]
    forward = subprocess.Popen(dying_with_us([sys.executable, str(FORWARD), host.here, *ways]))
    service.processes.append(forward)
    service.dispatcher()
    home = tmp_path / "second"
    home.mkdir()
    name = service.database.url.partition("?")[0].rpartition("/")[2]
    far = service.environment | {
        "PENSTOCK_HOME": str(home),
        "PENSTOCK_DATABASE_URL": f"postgresql://penstock@{host.here}:5432/{name}",
        "PENSTOCK_REDIS_URL": f"redis://{host.here}:6379/0",
        "PENSTOCK_STORE_URL": f"http://{host.here}:8750",
        "PENSTOCK_STORE_TOKEN": token,
        "PENSTOCK_QUEUES": "explore",
    }
    log = (service.home / "second-host.log").open("ab")
    command = [shutil.which("ip") or "ip", "netns", "exec", host.name, sys.executable, "-m", "penstock.services.worker"]
    second = subprocess.Popen(
        dying_with_us(command), env=far, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        start_new_session=True,
    )  # fmt: skip
    log.close()
    service.processes.append(second)
    service.worker(PENSTOCK_QUEUES="import,build")

    released = tmp_path / "released"
    parts = {"parts": "make_part", "count": PARTS, "each": {"held_from": FREE_PARTS, "until": str(released)}}
    run = service.submit(
        NewStep("make", "make", "import", {"say": "from the first host"}),
        NewStep("fan", "fan", "explore", parts, needs=("make",)),
        NewStep("read_parts", "sum", "build", {"count": PARTS}, needs=("fan",)),
    )

    def held() -> bool:
        parts = [step for step in service.steps(run).values() if step.kind == "make_part"]
        done = sum(step.state == StepState.SUCCEEDED for step in parts)
        return done == FREE_PARTS and any(step.state == StepState.RUNNING for step in parts)

    def lost() -> bool:
        return any(event.kind == "step.lose" for event in service.events(run))

    service.until(held, lambda: service.explain(run))
    with host.cut():
        begun = time.monotonic()
        service.until(lost, lambda: service.explain(run))
        released.touch()  # what was lost is done over there all the same, and told too late
        time.sleep(max(1.0, CUT_SECONDS - (time.monotonic() - begun)))
    ended = service.wait(run)
    assert ended.state == RunState.SUCCEEDED, service.explain(run)
    events = service.events(run)
    assert_legal(events)
    succeeded = [event.data["key"] for event in events if event.kind == "step.succeed"]
    assert len(succeeded) == len(set(succeeded)) == PARTS + 3
    assert second.poll() is None, "the worker outlived the cut"


def test_a_worker_of_another_version_says_so_and_ends(service: Service) -> None:
    with service.database.begin() as tx:
        tx.connection.exec_driver_sql("UPDATE penstock.alembic_version SET version_num = '9999'")
    process = service.worker()
    assert process.wait(120) == 2
    said = (service.home / "penstock.services.worker.log").read_text()
    assert "the database has schema 9999" in said
    assert "install the version that the API has" in said
    assert "Traceback" not in said
