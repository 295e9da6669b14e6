"""What somebody with a token of their own tried, to bring the service down, to starve the others, or to see more."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.db import Database
from penstock.services.api.plumbing import middleware
from penstock.services.api.plumbing.accounts import create
from penstock.services.api.plumbing.logs import get_logger
from penstock.services.jobs import python_names
from penstock.services.jobs.quotas import Quotas
from penstock.services.settings import Settings
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder
from tests.api.test_models import ONNX, SOURCE
from tests.fixtures.waiting import wait_until

HALF = "\\ud800"
FORTY_AND_MORE = 48
"""There are forty threads for all that a process answers."""


@pytest.fixture
def people(database: Database, settings: Settings) -> dict[str, dict[str, str]]:
    scopes = {"mal": "submit", "ben": "submit", "ann": "admin"}
    return {
        name: {"Authorization": f"Bearer {create(database, settings, name, scope=scope).secret}"}  # pyright: ignore[reportArgumentType]
        for name, scope in scopes.items()
    }


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/models", '{"zoo": "mlp", "arguments": {"hidden": NaN}}', "zoo-reference-invalid"),
        ("/v1/models", '{"zoo": "mlp", "arguments": {"hidden": 1e400}}', "zoo-reference-invalid"),
        ("/v1/models", '{"zoo": "mlp", "arguments": {"hidden": -Infinity}}', "zoo-reference-invalid"),
        ("/v1/views", f'{{"name": "{HALF}"}}', "invalid-request"),
        ("/v1/views", f'{{"name": "v", "tag": "{HALF}"}}', "invalid-request"),
        ("/v1/views", '{"name": "v", "tag": "a\\u0000"}', "invalid-request"),
        ("/v1/runs/run_x/what-if", f'{{"fifo_depths": {{"{HALF}": 3}}}}', "invalid-request"),
    ],
)
def test_what_no_database_takes_is_refused(shared_client: httpx.Client, path: str, body: str, code: str) -> None:
    answer = shared_client.post(path, content=body, headers={"Content-Type": "application/json"})
    check_problem(answer, code, 422)


@pytest.mark.parametrize("address", ["/v1/audit?actor=a%00", "/v1/runs?model=mdl%00"])
def test_what_no_database_looks_for_is_refused(shared_client: httpx.Client, address: str) -> None:
    check_problem(shared_client.get(address), "invalid-request", 422, "control character")


@pytest.mark.parametrize(
    "named",
    [
        {"zoo": "gpt2_text", "arguments": {"weights": "/var/lib/penstock"}},
        {"reference": "hf:gpt2?weights=/etc/passwd"},
        {"reference": "torchvision:resnet18?weights=DEFAULT"},
    ],
)
def test_weights_are_sent_and_never_a_path_of_the_workers_machine(
    shared_client: httpx.Client, named: dict[str, Any]
) -> None:
    code = "zoo-reference-invalid" if "zoo" in named else "model-reference-invalid"
    check_problem(shared_client.post("/v1/models", json=named), code, 422, "'weights'")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("x.py:model?weights=%2Fetc&b=.py", "x.py_model_weights=_2Fetc_b=.py"),
        ("tasks:x#y.PY", "tasks_x_y.py"),
        (".py", "unnamed.py"),
    ],
)
def test_the_name_of_a_file_is_no_part_of_a_reference(client: httpx.Client, sent: str, kept: str) -> None:
    said = f'form-data; name="file"; filename="{sent}"'
    body = f"--x\r\nContent-Disposition: {said}\r\n\r\n{SOURCE.decode()}\r\n"
    body += '--x\r\nContent-Disposition: form-data; name="entry"\r\n\r\nmodel\r\n--x--\r\n'
    answer = client.post("/v1/models", content=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.json()["source"] == f"{kept}:model"


def test_bodies_in_other_languages_are_an_administrators(make_client: MakeClient, people: dict[str, Any]) -> None:
    """They are built and run outside of the fence, which a service that takes Python models promises of all else."""
    client = make_client(auth=True)
    program = {"file": ("net.py", b"from penstock.tasks import *\n\n@program\ndef p():\n    inject(t, 'x', cpp='')\n")}
    refused = client.post("/v1/models", files=program, headers=people["mal"])
    check_problem(refused, "bodies-refused", 403, "rights of this service", "scope admin")
    assert client.post("/v1/models", files=program, headers=people["ann"]).status_code == 201


def test_files_that_take_long_to_look_at_hold_up_nobody_else(
    make_client: MakeClient, people: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, go_on = tmp_path / "looking", tmp_path / "go-on"
    looking.mkdir()
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import json, os, time\n"
        f"open(os.path.join({str(looking)!r}, str(os.getpid())), 'w').close()\n"
        f"while not os.path.exists({str(go_on)!r}): time.sleep(0.02)\n"
        "print(json.dumps({'names': ['model'], 'tasks': False, 'kernels': [], 'injects': False}))\n"
    )
    client = make_client(auth=True)
    with ThreadPoolExecutor(FORTY_AND_MORE + 1) as pool, monkeypatch.context() as patched:
        patched.setattr(python_names, "__file__", str(slow))
        sent = {"files": {"file": ("net.py", SOURCE)}, "data": {"entry": "model"}, "headers": people["mal"]}
        asked = [pool.submit(client.post, "/v1/models", **sent) for _ in range(FORTY_AND_MORE)]
        try:
            wait_until(lambda: len(list(looking.iterdir())) >= 2)
            assert client.get("/v1/me", headers=people["ben"], timeout=20).json()["owner"] == "ben"
            other = pool.submit(client.post, "/v1/models", **{**sent, "headers": people["ben"]})
            wait_until(lambda: len(list(looking.iterdir())) >= 3)
            assert len(list(looking.iterdir())) == 3, "two of one owner, and one of the other"
        finally:
            go_on.touch()
        assert {one.result().status_code for one in [*asked, other]} == {201}


def test_files_beyond_a_quota_are_not_kept(make_client: MakeClient, people: dict[str, Any], settings: Settings) -> None:
    """They would fill the disk until they are swept, and then nobody's are taken."""
    client = make_client(auth=True, quotas=Quotas(gb=0.0))
    refused = client.post("/v1/models", files={"file": ("m.onnx", ONNX)}, headers=people["mal"])
    check_problem(refused, "quota-exceeded", 429, "GB of files")
    assert not [one for one in settings.store_folder.rglob("*") if one.is_file()]


def test_one_owner_leaves_places_for_streams_to_the_others(
    make_client: MakeClient, people: dict[str, Any], seeder: Seeder
) -> None:
    client, run = make_client(auth=True, max_streams=4), seeder.run()

    def follow(stack: ExitStack, who: str) -> int:
        address = f"/v1/runs/{run.id}/events"
        return stack.enter_context(client.stream("GET", address, headers=people[who])).status_code

    with ExitStack() as stack:
        assert [follow(stack, "mal") for _ in range(4)] == [200, 200, 200, 429]
        assert follow(stack, "ben") == 200
        assert follow(stack, "ben") == 429, "all are taken"
    wait_until(lambda: client.get("/v1/me", headers=people["mal"]).status_code == 200)
    with ExitStack() as stack:
        wait_until(lambda: follow(stack, "mal") == 200)  # places are given back
        seeder.cancel(run)


def test_one_owner_leaves_room_for_runs_to_the_others(
    make_client: MakeClient, people: dict[str, Any], seeder: Seeder
) -> None:
    client = make_client(auth=True, max_waiting_runs=5)
    over = seeder.finished_run(2)
    asked = {"model": seeder.model().id}

    def start(who: str) -> int:
        return client.post("/v1/runs", json=asked, headers=people[who]).status_code

    assert [start("mal") for _ in range(5)] == [202] * 4 + [429]
    for way in ("trials/0/replay", "take"):
        check_problem(client.post(f"/v1/runs/{over.id}/{way}", headers=people["mal"]), "too-many-runs", 429, "4 of one")
    assert [start("ben"), start("ben")] == [202, 429]


def test_a_link_that_lets_a_browser_in_is_not_logged(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is good once; what could not be done of it leaves it good."""
    written = io.StringIO()
    monkeypatch.setattr(middleware, "log", get_logger(written))
    make_client(auth=True, access_log=True).get("/enter/SomethingThatLetsIn")
    wait_until(lambda: "/enter/" in written.getvalue())
    assert "LetsIn" not in written.getvalue()


@pytest.mark.parametrize("said", ["cross-site", "same-site", "SAME-SITE", "somewhere"])
def test_a_browser_acts_from_our_own_pages_only(shared_client: httpx.Client, said: str) -> None:
    answer = shared_client.post("/v1/runs/run_x/cancel", headers={"Sec-Fetch-Site": said})
    check_problem(answer, "cross-site-request", 403)
