"""Files that come with a model: weights, and typical inputs."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from tests.api.conftest import check_problem
from tests.api.test_models import ONNX, SOURCE, upload


def test_weights_come_with_the_model_that_they_are_of(client: httpx.Client, settings: Settings, tmp_path: Path) -> None:
    names = ["a-00001-of-00002.safetensors", "a-00002-of-00002.safetensors", "a.safetensors.index.json", "config.json"]
    form = [("file", (name, name.encode())) for name in names]
    made = client.post("/v1/models", files=form, data={"entry": "hf:gpt2?cache=64#"}).json()
    assert (made["kind"], made["source"], made["name"]) == ("library", "hf:gpt2?cache=64#", "gpt2")
    ContentStore(settings.store_folder).extract_tree(made["sha256"], tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / "weights").iterdir()} == {n: n.encode() for n in names}
    python = client.post("/v1/models", files=[("file", ("net.py", SOURCE)), form[0]], data={"entry": "model"}).json()
    assert (python["kind"], python["source"]) == ("python", "net.py:model")
    zoo = upload(client, b"x", "w.safetensors", entry="zoo:gpt2_text?cache=8#h").json()
    assert (zoo["kind"], zoo["source"]) == ("zoo", "zoo:gpt2_text?cache=8#h")


def test_typical_inputs_come_with_their_model(client: httpx.Client, settings: Settings, tmp_path: Path) -> None:
    form = [("file", ("net.onnx", ONNX)), ("file", ("mine.npz", b"PK"))]
    made = client.post("/v1/models", files=form, data={"options": "batch=4&x.2=48"}).json()
    assert (made["kind"], made["source"], made["name"]) == ("onnx", "net.onnx?batch=4&x.2=48", "net")
    out = tmp_path / "out"
    ContentStore(settings.store_folder).extract_tree(made["sha256"], out)
    found = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert found == {"net.onnx": ONNX, "typical/inputs.npz": b"PK"}
    other = client.post("/v1/models", files=[form[0], ("file", ("mine.npz", b"PK2"))]).json()
    assert other["sha256"] != made["sha256"]
    named = upload(client, b"x", "rows.npy", entry="hf:gpt2?cache=8").json()
    assert (named["kind"], named["source"]) == ("library", "hf:gpt2?cache=8")
    python = client.post("/v1/models", files=[("file", ("net.py", SOURCE)), form[1]], data={"entry": "model"}).json()
    assert (python["kind"], python["source"]) == ("python", "net.py:model")


@pytest.mark.parametrize(
    ("files", "entry", "options", "code", "word"),
    [
        (("a.npz", "b.npz", "net.onnx"), "", "", "model-file-unsupported", "one file of typical inputs"),
        (("net.onnx", "w.safetensors"), "", "", "model-file-unsupported", "or an ONNX file"),
        (("net.onnx", "net.py", "a.npy"), "model", "", "model-file-unsupported", "or an ONNX file"),
        (("a.npz",), "", "", "model-file-unsupported", "a.npz"),
        (("net.onnx",), "", "calibration=in", "file-options-invalid", "beside their model"),
        (("net.onnx", "a.npz"), "", "calibration=in", "file-options-invalid", "beside their model"),
        (("net.onnx", "a.npz"), "", "x/y=1", "file-options-invalid", "x/y"),
    ],
)
def test_typical_inputs_that_are_of_nothing(
    shared_client: httpx.Client, files: tuple[str, ...], entry: str, options: str, code: str, word: str
) -> None:
    form = [("file", (name, ONNX if name.endswith(".onnx") else SOURCE)) for name in files]
    answer = shared_client.post("/v1/models", files=form, data={"entry": entry, "options": options})
    check_problem(answer, code, 422, word)


def test_a_named_model_names_no_file_of_typical_inputs(shared_client: httpx.Client) -> None:
    for body in ({"reference": "hf:gpt2?calibration=in.npz"}, {"zoo": "mlp", "arguments": {"calibration": "in.npz"}}):
        answer = shared_client.post("/v1/models", json=body)
        assert answer.status_code == 422
        assert "'calibration'" in answer.text


@pytest.mark.parametrize(
    ("files", "entry", "code", "word"),
    [
        (("w.safetensors",), "", "entry-missing", "hf:gpt2"),
        (("w.safetensors",), "model", "model-reference-invalid", "not a model reference"),
        (("w.safetensors",), "net.onnx", "model-reference-invalid", "no model of a library"),
        (("w.safetensors",), "zoo:gpt9", "model-reference-invalid", "gpt9"),
        (("w.safetensors",), "hf:gpt2?weights=/etc", "model-reference-invalid", "'weights'"),
        (("w.safetensors", "a/w.safetensors"), "hf:gpt2", "model-file-unsupported", "one name"),
        (("w.safetensors", "w.bin"), "hf:gpt2", "model-file-unsupported", "w.bin"),
        (("a.py", "b.py", "w.safetensors"), "model", "model-file-unsupported", "one Python file"),
        (("config.json", "a.py"), "model", "model-file-unsupported", "safetensors files"),
        (("net.py", "w.safetensors"), "modle", "entry-not-found", "modle"),
    ],
)
def test_weights_that_are_of_nothing(
    shared_client: httpx.Client, files: tuple[str, ...], entry: str, code: str, word: str
) -> None:
    form = [("file", (name, SOURCE)) for name in files]
    check_problem(shared_client.post("/v1/models", files=form, data={"entry": entry}), code, 422, word)
