"""`penstock submit | watch | runs | fetch | cancel`: what they print, and every documented exit code."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest

from penstock.client import Client, ModelSource, ServiceError, UsageError
from penstock.services.api.answers.schemas import ArtifactOut
from penstock.services.cli.client import exit_code_for
from penstock.services.client.downloads import safe_name
from penstock.services.settings import Settings
from tests.api.conftest import MakeClient
from tests.api.seeding import Seeder
from tests.cli.conftest import Run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text("def model():\n    return None\n")
    return path


def test_submit_prints_the_run_and_its_page(run: Run, client: httpx.Client, source: Path) -> None:
    ended = run(
        "submit", f"{source}:model", "--platform", "zcu104", "--trials", "5", "--quantize", "w8a8", "--seed", "2"
    )
    assert ended.code == 0
    started = client.get("/v1/runs").json()["items"][0]
    assert ended.out == f"{started['id']}\n"
    assert ended.err.strip().endswith(f"/runs/{started['id']}")
    asked = {"platform": "zcu104", "trials": 5, "quantize": "w8a8", "seed": 2}
    assert started["options"] == started["options"] | asked | {"objectives": ["latency", "resources"], "limits": []}
    as_json = run("submit", "zoo:mlp?hidden=32", "--objective", "latency", "--name", "small", "--json")
    document = json.loads(as_json.out)
    assert (document["name"], document["options"]["objectives"]) == ("small", ["latency"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["submit", "net.pkl"], ("net.pkl", "zoo:NAME")),
        (["submit", "nowhere.py:model"], ("there is no file nowhere.py",)),
        (["submit", "nowhere.py"], ("entry function", "nowhere.py:FUNCTION")),
        (["submit", "zoo:"], ("zoo:NAME",)),
        (["submit", "zoo:mlpp"], ("no model 'mlpp'", "did you mean 'mlp'")),
        (["submit", "zoo:mlp", "--platform", "u55x"], ("no platform 'u55x'", "did you mean 'u55c'")),
        (["submit", "zoo:mlp", "--trials", "0"], ("body.trials",)),
        (["submit", "zoo:mlp", "--trials", "many"], ("--trials",)),
        (["submit", "zoo:mlp", "--quantize", "w1"], ("w8a8",)),
        (["submit", "zoo:mlp", "--colour", "red"], ("--colour",)),
        (["submit"], ("MODEL",)),
        (["watch", "run_nope"], ("there is no run 'run_nope'",)),
        (["watch", "latest"], ("there is no run yet",)),
        (["cancel", "run_nope"], ("there is no run",)),
        (["fetch", "run_nope"], ("there is no run",)),
        (["runs", "--state", "lost"], ("query.state",)),
    ],
)
def test_mistakes_are_one_line_and_code_2(run: Run, arguments: list[str], words: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert ended.code == 2, ended
    assert ended.out == ""
    assert ended.err.startswith("penstock: ")
    assert ended.err.count("\n") == 1
    for word in words:
        assert word in ended.err


def test_no_service_is_one_line_and_code_6(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("PENSTOCK_URL", f"http://127.0.0.1:{port}")
    for command in (["runs"], ["submit", "zoo:mlp"], ["cancel", "run_x"], ["watch", "run_x"]):
        ended = run(*command)
        assert ended.code == 6
        assert ended.err == (
            f"penstock: no service answers at http://127.0.0.1:{port}: is it up? "
            "run `penstock up`, or set PENSTOCK_URL\n"
        )


def test_another_service_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for nonsense in ("http://127.0.0.1:port", "127.0.0.1:8750", "ftp://x"):
        monkeypatch.setenv("PENSTOCK_URL", nonsense)
        ended = run("runs")
        assert ended.code == 2, ended
        assert nonsense in ended.err
    for status in (200, 404):
        transport = httpx.MockTransport(lambda _, status=status: httpx.Response(status, text="<html>"))
        service = Client("http://127.0.0.1:1", transport=transport)
        with pytest.raises(ServiceError, match="not a Penstock service") as error:
            service.run("run_x")
        assert exit_code_for(error.value) == 6


def test_a_token_is_asked_for(run: Run, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = make_client(auth=True)
    monkeypatch.setenv("PENSTOCK_URL", str(closed.base_url))
    ended = run("runs")
    assert ended.code == 2
    assert "set PENSTOCK_TOKEN" in ended.err


def test_runs_lists_states_and_labelled_figures(run: Run, seeder: Seeder) -> None:
    assert run("runs").err == "no runs\n"
    done = seeder.finished_run(4)
    ended = run("runs")
    assert ended.code == 0
    assert done.id in ended.out
    assert "succeeded" in ended.out
    assert "[modelled]" in ended.out
    listed = json.loads(run("runs", "--json").out)["runs"]
    assert [one["id"] for one in listed] == [done.id]
    assert run("runs", "--state", "failed").err == "no failed runs\n"


def test_watch_ends_with_the_code_of_the_run(run: Run, seeder: Seeder) -> None:
    done = seeder.finished_run(4)
    model = seeder.model()
    failed, unmet, stopped = (seeder.run(model) for _ in range(3))
    seeder.fail(
        failed, "import", code="export-failed", what="torch cannot export it", where="net.py:3", hint="unroll it"
    )
    seeder.fail(unmet, "import", code="nothing-fits", what="none of the 24 designs fits the platform")
    seeder.cancel(stopped)
    for known, code in ((done, 0), (failed, 1), (unmet, 3), (stopped, 4)):
        ended = run("watch", known.id, "--exit-status")
        assert ended.code == code, ended
        assert run("watch", known.id).code == 0, "without --exit-status only the watching itself counts"
    told = run("watch", failed.id).out
    assert told == f"{failed.id}: failed: net.py:3: torch cannot export it - unroll it\n"
    assert json.loads(run("watch", done.id, "--json").out)["state"] == "succeeded"


def test_watch_tells_what_happens_as_it_happens(run: Run, seeder: Seeder) -> None:
    started = seeder.run(trials=2)

    def work() -> None:
        seeder.lose(started, "import")
        seeder.explore(started, 2)
        time.sleep(1.0)  # the watcher asks again and sees the run in the middle
        seeder.trial(started, 0)
        seeder.fail(started, "trial/0001", code="x", what="g++ ended with code 1")
        seeder.complete(started, 0)

    later = threading.Timer(0.3, work)
    later.start()
    ended = run("watch", "latest", "--exit-status")
    later.join()
    assert ended.code == 0
    assert f"run {started.id}: running" in ended.err
    assert ended.err.rstrip().endswith(f"run {started.id}: succeeded")
    assert "import: succeeded (attempt 2 of 3)" in ended.err
    assert "2/2, 1 failed" in ended.err
    assert "[modelled]" in ended.out


def test_watch_gives_up_with_code_5_and_leaves_the_run_alone(run: Run, seeder: Seeder) -> None:
    waiting = seeder.run()
    ended = run("watch", waiting.id, "--timeout", "1")
    assert ended.code == 5
    assert f"{waiting.id} is still queued" in ended.err
    assert seeder.reload(waiting).state == "queued"


def test_cancel(run: Run, seeder: Seeder) -> None:
    waiting = seeder.run()
    assert run("cancel", waiting.id).out == f"{waiting.id}: cancelled\n"
    assert json.loads(run("cancel", waiting.id, "--json").out)["state"] == "cancelled"
    done = seeder.finished_run(1)
    refused = run("cancel", done.id)
    assert refused.code == 1
    assert "already succeeded" in refused.err


def test_fetch_gets_whole_files_and_nothing_twice(run: Run, seeder: Seeder, tmp_path: Path) -> None:
    done = seeder.finished_run(2)
    folder = tmp_path / "new" / "out"
    ended = run("fetch", done.id, "-o", folder, "--json")
    assert ended.code == 0
    files = json.loads(ended.out)["files"]
    assert sorted(file["name"] for file in files) == ["digits_mlp.penstock.zip", "report.html", "report.json"]
    for file in files:
        assert hashlib.sha256(Path(file["path"]).read_bytes()).hexdigest() == file["sha256"]
    before = (folder / "report.json").stat().st_mtime_ns
    (folder / "report.html").write_text("damaged")
    assert run("fetch", "latest", "-o", folder).out.count("\n") == 3
    assert (folder / "report.json").stat().st_mtime_ns == before
    assert (folder / "report.html").read_text() != "damaged"
    assert run("fetch", done.id, "-o", folder, "--all").code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "dies.svg", "digits_mlp.penstock.zip", "memories.svg", "program.tar", "report.html", "report.json", "why.svg",
    ]  # fmt: skip


def test_fetch_tells_why_there_is_nothing(run: Run, seeder: Seeder, tmp_path: Path) -> None:
    waiting = seeder.run()
    ended = run("fetch", waiting.id, "-o", tmp_path / "out")
    assert ended.code == 1
    assert "is still queued: no package to fetch" in ended.err
    assert not (tmp_path / "out").exists()
    done = seeder.finished_run(1)
    blocked = tmp_path / "file"
    blocked.write_text("")
    refused = run("fetch", done.id, "-o", blocked)
    assert refused.code == 2
    assert "cannot write to" in refused.err


def test_a_damaged_download_is_noticed(settings: Settings, tmp_path: Path, seeder: Seeder) -> None:
    good = hashlib.sha256(b"good").hexdigest()
    artifact = ArtifactOut(
        id="art_1", name="report.json", step="package", sha256=good, size=4, media_type="x/y",
        created_at=seeder.run().created_at, url="/v1/artifacts/art_1",
    )  # fmt: skip
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=b"evil"))
    with Client("http://127.0.0.1:1", transport=transport) as service, pytest.raises(ServiceError, match="damaged"):
        service.download(artifact, tmp_path)
    assert list(tmp_path.glob("*report*")) == []


def test_names_of_artifacts_cannot_lead_elsewhere() -> None:
    assert safe_name("../../etc/passwd") == "passwd"
    assert safe_name("a\\b\\c.zip") == "c.zip"
    for name in ("", "..", "a/..", "x\n"):
        with pytest.raises(ServiceError, match="no file name"):
            safe_name(name)


def test_a_busy_service_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [503, 429, 200]
    monkeypatch.setattr("penstock.services.client.blocking.time.sleep", lambda _: None)

    def answer(_: httpx.Request) -> httpx.Response:
        status = answers.pop(0)
        return httpx.Response(status, json={"items": [], "next_cursor": None}, headers={"Retry-After": "1"})

    with Client("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as service:
        assert list(service.runs()) == []
    assert answers == []


def test_models_are_named_as_for_the_compiler(tmp_path: Path, source: Path) -> None:
    parsed = ModelSource.parse(f"{source}:model")
    assert (parsed.path, parsed.entry) == (source, "model")
    zoo = ModelSource.parse("zoo:mlp?hidden=64&rate=0.5&bias=true&name=a%20b&x=nan")
    assert zoo.arguments == {"hidden": 64, "rate": 0.5, "bias": True, "name": "a b", "x": "nan"}
    assert ModelSource.parse("torch.nn:LSTM?input_size=8").reference == "torch.nn:LSTM?input_size=8"
    assert ModelSource.parse("zoo:gpt2_text?cache=8#h").reference == "zoo:gpt2_text?cache=8#h"
    with pytest.raises(UsageError, match="there is no file"):
        ModelSource.parse(str(tmp_path / "x.onnx"))


def test_weights_are_sent_along(tmp_path: Path, source: Path) -> None:
    names = ("config.json", "m-1.safetensors", "m-2.safetensors", "m.safetensors.index.json", "notes.txt")
    for name in names:
        (tmp_path / name).write_text("x")
    layer = tmp_path / "layer.py"
    layer.write_text("from penstock.tasks import task\n")
    beside = ModelSource.parse(f"{source}:model#{layer}?N=4")
    assert (beside.path, beside.entry, beside.program, beside.options) == (source, "model", layer, "N=4")
    assert ModelSource.parse(f"zoo:mlp?hidden=4#{layer}").entry == "zoo:mlp?hidden=4"
    with pytest.raises(UsageError, match="one of several programs"):
        ModelSource.parse(f"{source}:model#{layer}:one")
    whole = ModelSource.parse(f"hf:gpt2?weights={tmp_path}&cache=8#")
    assert (whole.entry, [x.name for x in whole.weights]) == ("hf:gpt2?cache=8#", list(names[:4]))
    assert ModelSource.parse(f"hf:gpt2?weights={tmp_path}/m.safetensors.index.json").weights == whole.weights
    python = ModelSource.parse(f"{source}:model?weights={tmp_path}/m-1.safetensors")
    assert (python.path, python.entry, [x.name for x in python.weights]) == (source, "model", ["m-1.safetensors"])
    with pytest.raises(UsageError, match="no safetensors files"):
        ModelSource.parse("zoo:mlp?weights=gone.safetensors")


def test_typical_inputs_are_sent_along(tmp_path: Path, source: Path) -> None:
    onnx, inputs, weights = tmp_path / "net.onnx", tmp_path / "in.npz", tmp_path / "m.safetensors"
    for path in (onnx, inputs, weights):
        path.write_bytes(b"\x08")
    sent = ModelSource.parse(f"{onnx}?batch=4&calibration={inputs}&x.2=48")
    assert (sent.path, sent.options, sent.weights) == (onnx, "batch=4&x.2=48", (inputs,))
    python = ModelSource.parse(f"{source}:model?calibration={inputs}")
    assert (python.path, python.entry, python.weights) == (source, "model", (inputs,))
    named = ModelSource.parse(f"hf:gpt2?weights={weights}&calibration={inputs}&cache=8#")
    assert (named.entry, named.weights) == ("hf:gpt2?cache=8#", (weights, inputs))
    with pytest.raises(UsageError, match="of typical inputs"):
        ModelSource.parse(f"{onnx}?calibration=gone.npz")


def test_options_of_a_file_are_sent_along(tmp_path: Path) -> None:
    onnx = tmp_path / "open.onnx"
    onnx.write_bytes(b"\x08")
    sent = ModelSource.parse(f"{onnx}?batch=1")
    assert (sent.path, sent.entry, sent.options) == (onnx, "", "batch=1")
    kernel = tmp_path / "kernel.py"
    kernel.write_text("from penstock.tasks import program\n")
    sent = ModelSource.parse(f"{kernel}:add?M=8&N=8")
    assert (sent.path, sent.entry, sent.options) == (kernel, "add", "M=8&N=8")
