"""An array of cores through the service: a kernel sent over REST, read behind the fence, its array found and shown."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from penstock.compiler.mesh.shipped import FOLDER
from penstock.db.schema.states import RunState
from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.client.blocking import Client
from penstock.services.settings import Settings
from penstock.services.supervisor.postgres import EmbeddedPostgres
from tests.api.conftest import check_problem, served
from tests.fixtures.service import Service, fresh_service
from tests.mesh.answers import EXAMPLES

LINEAR = (EXAMPLES / "linear_int8.py").read_text()
BLOCKS = {f"BLOCK_{dim}": 4 for dim in "MNK"}
SHAPES = [{"ROWS": 16, "INNER": 16, "WIDE": 16, **BLOCKS}, {"ROWS": 8.0, "INNER": 24, "WIDE": 16, **BLOCKS}]
MARKED = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, postgres: EmbeddedPostgres) -> Iterator[Service]:
    with fresh_service(tmp_path_factory.mktemp("home"), postgres, "penstock.services.steps.bodies") as service:
        service.worker()
        service.dispatcher()
        yield service


@pytest.fixture(scope="module")
def client(running: Service) -> Iterator[httpx.Client]:
    """A service that executes nobody's Python."""
    settings = Settings(home=running.home, database_url=running.database.url, allow_python_models=False)
    with served(create_app(settings, ApiOptions(auth=False))) as url, httpx.Client(base_url=url, timeout=60.0) as found:
        yield found


def model_of(client: httpx.Client, text: str, file: str = "linear.py") -> Any:
    made = client.post("/v1/models", files={"file": (file, text)})
    assert made.status_code == 201, made.text
    return made.json()


def ended(service: Service, client: httpx.Client, run: Any) -> Any:
    service.until(lambda: client.get(run["url"]).json()["state"] in ("succeeded", "failed"))
    return client.get(run["url"]).json()


def artifact(client: httpx.Client, run: Any, name: str) -> bytes:
    items = client.get(f"{run['url']}/artifacts").json()["items"]
    return client.get(next(one["url"] for one in items if one["name"] == name)).content


def test_an_array_is_found_for_shapes_and_taken_up_again(running: Service, client: httpx.Client) -> None:
    model = model_of(client, LINEAR)
    asked = {"platform": "ecp5-85k", "limits": {"dsp": 16}, "shapes": SHAPES, "top": 2, "run": ["cpp"]}
    answer = client.post(f"{model['url']}/array", json=asked, headers={"Idempotency-Key": "array"})
    assert answer.status_code == 202, answer.text
    run = answer.json()
    assert answer.headers["location"] == run["url"]
    assert (
        client.post(f"{model['url']}/array", json=asked, headers={"Idempotency-Key": "array"}).json()["id"] == run["id"]
    )
    run = ended(running, client, run)
    assert run["state"] == RunState.SUCCEEDED, run["error"]
    found = run["summary"]["array"]
    assert found["multipliers"] <= 16
    assert found["found"]["area"]["dsp"][1] == 16
    names = [one["name"].partition(",BLOCK")[0] for one in found["programs"]]
    assert names == ["ROWS=16,INNER=16,WIDE=16", "ROWS=8,INNER=24,WIDE=16"]
    assert all(one["cpp_equal"] and one["cycles"] > one["bound_cycles"] > 0 for one in found["programs"])
    assert found["found"]["cycles"] == sum(one["cycles"] for one in found["programs"]) >= found["found"]["bound"]
    with zipfile.ZipFile(io.BytesIO(artifact(client, run, "array.zip"))) as archive:
        names = set(archive.namelist())
    assert {"rtl/penstock_array.sv", "hls/penstock_array.cpp", "programs/0.load", "programs/1.txt"} <= names

    page = client.get(run["page"]).text
    assert found["array"] in page
    assert "equal in C++" in page
    for designs in (
        f'href="{run["page"]}/trials"',
        f'href="{run["page"]}/design"',
        "Best latency",
        "Again with changes",
    ):
        assert designs not in page, designs
    assert all(f"{one['cycles']:,}" in page for one in found["programs"])
    for path in ("/trials", "/design", "/log"):
        assert client.get(run["page"] + path).status_code == 200, path
    for path, body in (("/extend", {"trials": 3}), ("/what-if", {}), ("/take", None), ("/ask", {"trials": 1})):
        assert client.post(run["url"] + path, json=body).status_code in (404, 409, 422), path

    text = artifact(client, run, "array.toml").decode()
    with Client(str(client.base_url)) as speaking:
        again = speaking.wait(speaking.make_array(model["id"], description=text, shapes=SHAPES, top=2).id)
    assert again.summary["array"]["array"] == found["array"]
    assert again.summary["array"]["found"] is None
    assert [one["cycles"] for one in again.summary["array"]["programs"]] == [one["cycles"] for one in found["programs"]]


SHIPPED = (FOLDER / "ecp5-85-4x4.toml").read_text()
ON_MESH: dict[str, Any] = {"mesh": "ecp5-85-4x4", "shapes": SHAPES}
HUGE = [dict.fromkeys(("ROWS", "INNER", "WIDE"), 1 << 40)]
HOSTILE: dict[str, tuple[str, dict[str, Any], str]] = {
    "a kernel that is no product": (
        LINEAR.replace("    tl.store(", "    total = total + total\n    tl.store("), ON_MESH, "linear.py:",
    ),
    "shapes beyond any memory": (LINEAR, {**ON_MESH, "shapes": HUGE}, "linear.py:"),
    "names with markup": (
        LINEAR.replace("tl.trans(right)", f"tl.foo('{MARKED}')"), ON_MESH, "tl.foo is no function that is read",
    ),
    "an argument that there is not": (LINEAR, {**ON_MESH, "shapes": [{"NOT_THERE": 3}]}, "NOT_THERE"),
    "a description that is a path": (LINEAR, {"description": "/etc/passwd", "shapes": SHAPES}, "TOML"),
    "a description of a giant": (
        LINEAR, {"description": SHIPPED.replace("x = 4", "x = 1000000000"), "shapes": SHAPES}, "too many",
    ),
    "a description of nonsense": (LINEAR, {"description": "clock_mhz = []", "shapes": SHAPES}, "mesh description"),
    "a division by nothing": (
        LINEAR, {"description": SHIPPED.replace("(d0) -> (d0, 0)", "(d0) -> (d0 mod 0, 0)"), "shapes": SHAPES},
        "divide by numbers above 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_made_fails_with_its_reason(name: str, running: Service, client: httpx.Client) -> None:
    text, asked, said = HOSTILE[name]
    run = client.post(f"{model_of(client, text)['url']}/array", json=asked)
    assert run.status_code == 202, run.text
    run = ended(running, client, run.json())
    assert run["state"] == RunState.FAILED
    error = run["error"]
    assert error["code"] != "internal-error", error
    assert said in " ".join(str(error.get(part, "")) for part in ("what", "where", "limit", "hint")), error
    assert "Traceback" not in json.dumps(run)
    assert str(running.home) not in json.dumps(run)
    assert MARKED not in client.get(run["page"]).text


def test_what_is_asked_wrongly_is_refused_at_once(client: httpx.Client) -> None:
    model, other = model_of(client, LINEAR), client.post("/v1/models", json={"zoo": "mlp"}).json()
    address = f"{model['url']}/array"
    for body, code, word in (
        ({}, "invalid-request", "platform, mesh or description"),
        ({"platform": "ecp5-85k", "mesh": "u55c-8x8"}, "invalid-request", "one of them"),
        ({"mesh": "u55c-9x9"}, "invalid-request", "u55c-9x9"),
        ({"mesh": "../../etc/passwd"}, "invalid-request", "there is no mesh"),
        ({"platform": "u56c"}, "unknown-platform", "u55c"),
        ({"mesh": "u55c-8x8", "limits": {"dsp": 4}}, "invalid-request", "platform"),
        ({"platform": "u55c", "limits": {"gold": 4}}, "invalid-request", ""),
        ({"mesh": "u55c-8x8", "shapes": [{"M": 1}, {"M": 1.0}]}, "invalid-request", "the same"),
        ({"mesh": "u55c-8x8", "shapes": []}, "invalid-request", ""),
        ({"mesh": "u55c-8x8", "shapes": [{"M": "/etc/passwd"}]}, "invalid-request", ""),
        ({"mesh": "u55c-8x8", "shapes": [{"M M": 4}]}, "invalid-request", ""),
        ({"description": "\0"}, "invalid-request", "no text"),
        ({"mesh": "u55c-8x8", "run": ["rtl"]}, "invalid-request", ""),
        ({"mesh": "u55c-8x8", "trials": 4}, "unknown-option", "trials"),
    ):  # fmt: skip
        check_problem(client.post(address, json=body), code, 422, word)
    check_problem(client.post(f"{other['url']}/array", json={"mesh": "u55c-8x8"}), "not-a-tile-program", 422, "mlp")
    check_problem(client.post("/v1/models/mdl_none/array", json={"mesh": "u55c-8x8"}), "model-not-found", 404)
