"""A C++ kernel through the service: sent over REST, read behind the fence, tried, compared, packed and shown."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.compiler.errors import PenstockError
from penstock.db.schema.states import RunState
from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from penstock.services.steps.bodies.kernel import MOST_ANSWER_BYTES, read_answer
from penstock.services.supervisor.postgres import EmbeddedPostgres
from tests.api.conftest import served
from tests.fixtures.service import Service, fresh_service

PRODUCT = """#include "sizes/n.h"
void product(float a[N][N], float b[N][N], float c[N][N]) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            c[i][j] = 0;
            for (int k = 0; k < N; k++) c[i][j] += a[i][k] * b[k][j];
        }
}
"""
STREAMS = """#include <hls_stream.h>
static void first(int a[64], hls::stream<int> &out) {
    for (int i = 0; i < 64; i++) out.write(a[i] * 3);
}
static void second(hls::stream<int> &in, int b[64]) {
    for (int i = 0; i < 64; i++) b[i] = in.read() + 1;
}
void chain(int a[64], int b[64]) {
#pragma HLS dataflow
    hls::stream<int> between;
#pragma HLS stream variable=between depth=512
    first(a, between);
    second(between, b);
}
"""
HOSTILE = {
    '#include "/etc/passwd"\nvoid top(int a[4]) { a[0] = 1; }': "outside",
    'const char *s = R"(" /* )";\n#include "/etc/passwd"\n/* */\nvoid top(int a[4]) { a[0] = 1; }': "raw string",
    "#embed </etc/passwd>\nvoid top(int a[4]) { a[0] = 1; }": "embed",
    '#pragma GCC dependency "/etc/passwd"\nvoid top(int a[4]) { a[0] = 1; }': "asks about files",
    "template <int N> struct T { static const int v = T<N + 1>::v + 1; };\n"
    "void top(int a[4]) { for (int i = 0; i < T<0>::v; i++) a[0] += 1; }": "template",
    "void top(int a[4]) { a[0] = " + "(" * 20000 + "1" + ")" * 20000 + "; }": "bracket nesting",
}  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, postgres: EmbeddedPostgres) -> Iterator[Service]:
    with fresh_service(tmp_path_factory.mktemp("home"), postgres, "penstock.services.steps.bodies") as service:
        service.worker()
        service.dispatcher()
        yield service


@pytest.fixture(scope="module")
def client(running: Service) -> Iterator[httpx.Client]:
    settings = Settings(home=running.home, database_url=running.database.url, allow_python_models=True)
    with served(create_app(settings, ApiOptions())) as url, httpx.Client(base_url=url, timeout=60.0) as found:
        yield found


def start(client: httpx.Client, files: dict[str, str], top: str, **options: Any) -> Any:
    sent = [("file", (name, text)) for name, text in files.items()]
    model = client.post("/v1/models", files=sent, data={"entry": top})
    assert model.status_code == 201, model.text
    assert model.json()["kind"] == "kernel"
    run = client.post("/v1/runs", json={"model": model.json()["id"], "platform": "u280", **options})
    assert run.status_code == 202, run.text
    return run.json()


def ended(service: Service, client: httpx.Client, run: Any) -> Any:
    service.until(lambda: client.get(run["url"]).json()["state"] in ("succeeded", "failed"))
    return client.get(run["url"]).json()


def artifact(client: httpx.Client, run: Any, name: str) -> bytes:
    items = client.get(f"{run['url']}/artifacts").json()["items"]
    return client.get(next(one["url"] for one in items if one["name"] == name)).content


def test_loops_are_built_anew_and_hold_their_values(running: Service, client: httpx.Client) -> None:
    files = {"product.cpp": PRODUCT, "sizes/n.h": "#define N 8\n"}
    run = ended(running, client, start(client, files, "product", trials=12, limits=["dsp<=60"]))
    assert run["state"] == RunState.SUCCEEDED, run["error"]
    record = json.loads(artifact(client, run, "kernel.json"))
    before, after, explored = record["before"], record["after"], record["exploration"]
    assert after["latency"] * 4 < before["latency"]
    assert explored["values"]["compared"] == 3 * 64
    assert explored["values"]["different"] == 0
    trials = client.get(f"{run['url']}/trials").json()["items"]
    assert [one["number"] for one in trials] == list(range(explored["trials"]))
    assert run["progress"]["trials_total"] == run["progress"]["trials_done"] == len(trials) <= 12, "no more than asked"
    assert trials[0]["figures"]["latency_cycles"] == before["latency"]
    [chosen] = [one for one in trials if one["chosen"]]
    assert chosen["figures"]["latency_cycles"] == after["latency"] == run["chosen"]["latency"]
    assert chosen["figures"]["latency_cycles"] == min(
        one["figures"]["latency_cycles"] for one in trials if one["state"] == "complete"
    )
    assert all(one["figures"]["dsp_share"] <= 1 for one in trials if one["state"] == "complete")
    with zipfile.ZipFile(io.BytesIO(artifact(client, run, "product.penstock.zip"))) as package:
        names = set(package.namelist())
        assert package.read("sent/product.cpp").decode() == PRODUCT
        assert b"#pragma HLS pipeline" in package.read("kernel/product.cpp")
    assert {"kernel/sizes/n.h", "sent/sizes/n.h", "kernel.json", "report.html"} <= names

    page = client.get(f"{run['page']}/design").text
    assert f"{before['latency']:,} cycles" in page
    assert f"{after['latency']:,} cycles" in page
    slow = next(loop for loop in before["loops"] if loop["ii"] > 1)
    assert slow["limit"] in page
    assert slow["limit_at"] in page
    assert "192 words" in page
    assert "Source that was tried" in client.get(f"{run['page']}/trials/1").text
    for path in ("", "/trials", "/log", "/trials/0", "/slices", "/over-time"):
        assert client.get(run["page"] + path).status_code == 200, path
    for path, body in (
        ("/extend", {"trials": 3}), ("/what-if", {}), ("/take", None), ("/trials/1/replay", None), ("/pause", None),
        ("/ask", {"trials": 1}),
    ):  # fmt: skip
        refused = client.post(run["url"] + path, json=body)
        assert refused.status_code in (409, 422), (path, refused.text)


def test_a_kernel_of_tasks_gets_better_pragmas(running: Service, client: httpx.Client) -> None:
    run = ended(running, client, start(client, {"chain.cpp": STREAMS}, "chain"))
    assert run["state"] == RunState.SUCCEEDED, run["error"]
    record = json.loads(artifact(client, run, "kernel.json"))
    assert record["exploration"]["way"] == "pragmas"
    [fifo] = record["after"]["fifos"]
    assert fifo["depth"] < 512
    text = artifact(client, run, "chain.cpp").decode()
    assert text == STREAMS.replace("depth=512", f"depth={fifo['depth']}")
    page = client.get(f"{run['page']}/design").text
    assert "<h2>Tasks</h2>" in page
    assert "<h2>Tasks as sent</h2>" in page
    assert "pragmas alone were changed" in page


def test_mistakes_are_told_with_their_places(running: Service, client: httpx.Client) -> None:
    text = "void top(int a[4], int n) {\n    while (n) n--;\n    goto out;\nout:\n    a[0] = virtual_thing(1);\n}\n"
    run = ended(running, client, start(client, {"bad.cpp": text}, "top"))
    assert run["state"] == RunState.FAILED
    assert run["error"]["where"].startswith("bad.cpp:")
    assert str(running.home) not in json.dumps(run)


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[pytest.mark.slow] if at > 1 else []) for at, text in enumerate(HOSTILE)]
)
def test_hostile_sources_are_refused_behind_the_fence(running: Service, client: httpx.Client, text: str) -> None:
    run = ended(running, client, start(client, {"k.cpp": text}, "top"))
    assert run["state"] == RunState.FAILED
    said = json.dumps(run["error"])
    assert HOSTILE[text] in said
    assert "root:" not in said
    assert run["error"]["where"].startswith("k.cpp:")


@pytest.mark.parametrize(
    ("left", "why"),
    [
        ("[" * 100_000, "no JSON"), ("", "no JSON"), ("[]", "no object"), ('{"compared": 3}', "different is no count"),
        ('{"compared": "3", "different": []}', "compared is no count"), (" " * (MOST_ANSWER_BYTES + 1), "bytes"),
    ],
    ids=str.split("nested empty list half words long"),
)  # fmt: skip
def test_what_a_kernel_leaves_in_the_place_of_an_answer_is_none(tmp_path: Path, left: str, why: str) -> None:
    (tmp_path / "values.json").write_text(left)
    with pytest.raises(PenstockError, match=why) as raised:
        read_answer(tmp_path / "values.json", "the comparison of both sources", "k.cpp", ("compared", "different"))
    assert raised.value.code == "kernel-answer"
