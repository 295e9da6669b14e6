"""Taking models in: files by their hash, zoo models by name, and everything that is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

import httpx
import pytest

from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from tests.api.conftest import MakeClient, check_problem

SOURCE = b"def model():\n    return None\n"
ONNX = b"\x08\x08\x12\x07pytorch"


def upload(client: httpx.Client, content: bytes = SOURCE, file: str = "net.py", **fields: str) -> httpx.Response:
    return client.post("/v1/models", files={"file": (file, content)}, data=fields)


def test_a_python_file_is_stored_by_its_hash(client: httpx.Client, settings: Settings) -> None:
    response = upload(client, entry="model")
    assert response.status_code == 201
    model = response.json()
    assert response.headers["location"] == model["url"]
    assert (model["name"], model["kind"], model["source"]) == ("net", "python", "net.py:model")
    assert ContentStore(settings.store_folder).read_bytes(model["sha256"]) == SOURCE
    assert client.get(model["url"]).json() == model


def test_a_model_of_a_library_is_named(client: httpx.Client) -> None:
    reference = "hf:gpt2?n_layer=2&part=h.0"
    made = client.post("/v1/models", json={"reference": reference}).json()
    assert (made["kind"], made["source"], made["name"], made["sha256"]) == ("library", reference, "gpt2.h.0", None)


@pytest.mark.parametrize("layers", ["h", ""])
def test_layers_of_a_zoo_model_are_named(client: httpx.Client, layers: str) -> None:
    reference = f"zoo:gpt2_text?cache=8&chunk=2#{layers}"
    made = client.post("/v1/models", json={"reference": reference}).json()
    assert (made["kind"], made["source"], made["name"], made["sha256"]) == ("zoo", reference, "gpt2_text", None)


def test_an_onnx_file_and_a_zoo_model_are_taken(client: httpx.Client) -> None:
    onnx = upload(client, ONNX, "tagger.onnx", name="jet tagger").json()
    assert (onnx["name"], onnx["kind"], onnx["size"]) == ("jet tagger", "onnx", len(ONNX))
    zoo = client.post("/v1/models", json={"zoo": "mlp", "arguments": {"hidden": 64, "bias": True}}).json()
    assert (zoo["kind"], zoo["source"], zoo["sha256"]) == ("zoo", "zoo:mlp?hidden=64&bias=true", None)
    listed = client.get("/v1/models").json()["items"]
    assert [model["id"] for model in listed] == [zoo["id"], onnx["id"]]


LAYER = b"""from penstock.tasks import implements, program, task


@implements("fc1")
@program
def layer(): ...
"""


def test_a_task_program_comes_with_the_model_that_it_is_for(
    client: httpx.Client, settings: Settings, tmp_path: Path
) -> None:
    form = [("file", ("net.py", SOURCE)), ("file", ("layer.py", LAYER))]
    made = client.post("/v1/models", files=form, data={"entry": "model", "options": "N=4"}).json()
    assert (made["kind"], made["source"]) == ("python", "net.py:model#layer.py?N=4")
    ContentStore(settings.store_folder).extract_tree(made["sha256"], tmp_path)
    kept = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*.py")}
    assert kept == {"net.py": SOURCE, "program/layer.py": LAYER}
    zoo = upload(client, LAYER, "layer.py", entry="zoo:mlp?hidden=8").json()
    assert (zoo["kind"], zoo["source"]) == ("zoo", "zoo:mlp?hidden=8#layer.py")


@pytest.mark.parametrize(
    ("files", "fields", "code"),
    [
        ({"net.py": SOURCE, "other.py": SOURCE}, {"entry": "model"}, "model-file-unsupported"),
        ({"a.py": LAYER, "b.py": LAYER}, {"entry": "layer"}, "model-file-unsupported"),
        ({"net.py": SOURCE, "layer.py": LAYER}, {"entry": "model#blocks"}, "entry-not-found"),
        ({"net.py": SOURCE, "layer.py": LAYER}, {"entry": "gone"}, "entry-not-found"),
        ({"layer.py": LAYER}, {"entry": "zoo:mlpp"}, "model-reference-invalid"),
        ({"layer.py": LAYER + b"inject()\n"}, {"entry": "zoo:mlp"}, "bodies-refused"),
        ({"net.py": SOURCE, "layer.py": LAYER}, {"entry": "model", "options": "P=/etc"}, "file-options-invalid"),
    ],
)
def test_what_cannot_stand_beside_a_model_is_refused(
    client: httpx.Client, files: dict[str, bytes], fields: dict[str, str], code: str
) -> None:
    form = [("file", (name, content)) for name, content in files.items()]
    check_problem(client.post("/v1/models", files=form, data=fields), code, 403 if code == "bodies-refused" else 422)


def test_a_model_is_checked_by_a_small_run(client: httpx.Client) -> None:
    model = client.post("/v1/models", json={"zoo": "mlp"}).json()
    headers = {"Idempotency-Key": "look"}
    asked = client.post(f"{model['url']}/check", json={"quantize": "w8a8"}, headers=headers)
    assert asked.status_code == 202
    run = asked.json()
    assert asked.headers["location"] == run["url"]
    assert [(step["kind"], step["state"]) for step in run["steps"]] == [("import", "queued"), ("check", "blocked")]
    asked = {"platform": "u55c", "quantize": "w8a8", "dims": []}
    assert (run["name"], run["options"]) == ("check of mlp", asked)
    assert client.post(f"{model['url']}/check", json={"quantize": "w8a8"}, headers=headers).json() == run
    check_problem(client.post(f"{model['url']}/check", json={"platform": "u56c"}), "unknown-platform", 422, "u55c")
    check_problem(client.post(f"{model['url']}/check", json={"trials": 3}), "unknown-option", 422, "trials")
    check_problem(client.post("/v1/models/mdl_none/check", json={}), "model-not-found", 404)


def test_layers_that_share_an_accelerator_are_named_behind_a_mark(client: httpx.Client) -> None:
    model = upload(client, entry="model#blocks").json()
    assert (model["name"], model["source"]) == ("net", "net.py:model#blocks")
    library = client.post("/v1/models", json={"reference": "hf:gpt2?cache=64#"}).json()
    assert (library["name"], library["source"]) == ("gpt2", "hf:gpt2?cache=64#")


def test_linalg_text_is_taken(client: httpx.Client) -> None:
    model = upload(client, b"func.func @main() { return }", "net.mlir").json()
    assert (model["name"], model["kind"], model["source"]) == ("net", "linalg", "net.mlir")


def test_a_task_program_is_taken_where_python_is_not(make_client: MakeClient, settings: Settings) -> None:
    """It is read and never executed; what only mentions the language is Python all the same."""
    client = make_client(replace(settings, allow_python_models=False))
    program = b"from penstock.tasks import program\n\n@program\ndef p(): pass\n"
    model = upload(client, program, "net.py").json()
    assert (model["name"], model["kind"], model["source"]) == ("net", "tasks", "net.py")
    check_problem(
        upload(client, b"# penstock.tasks\n" + b"import os\n", "net.py"), "python-models-refused", 403, "net.py"
    )


@pytest.mark.parametrize("word", [b"inject", "ｉnject".encode()])
def test_bodies_in_other_languages_are_taken_only_where_python_is(
    word: bytes, make_client: MakeClient, settings: Settings
) -> None:
    """They would be built and run. Python knows letters of another width as the same word."""
    program = b"from penstock.tasks import *\n\n@program\ndef p():\n    " + word + b"(t, 'x', cpp='')\n"
    fenced = make_client(replace(settings, allow_python_models=False))
    check_problem(upload(fenced, program, "net.py"), "python-models-refused", 403, "inject", "net.py")
    assert upload(make_client(settings), program, "net.py").json()["kind"] == "tasks"


PROGRAM = b"from penstock.tasks import program\n\nP = 4\n\n@program\ndef p(): pass\n"


def test_constants_and_sizes_are_sent_as_options(client: httpx.Client) -> None:
    model = upload(client, PROGRAM, "net.py", options="P=8&Q=9").json()
    assert (model["name"], model["kind"], model["source"]) == ("net", "tasks", "net.py?P=8&Q=9")
    assert upload(client, ONNX, "m.onnx", options="batch=1").json()["source"] == "m.onnx?batch=1"


@pytest.mark.parametrize(
    "options",
    [
        "P",
        "P=8&P=9",
        "P=",
        "1=8",
        "P=8 9",
        "P=%00",
        "P=" + "8" * 201,
        "=8",
        "a-b=1",
        "on=/etc/passwd",
        "on=../m.toml",
        "P=8;9",
    ],
)
def test_options_that_cannot_be_are_refused(client: httpx.Client, options: str) -> None:
    check_problem(upload(client, PROGRAM, "net.py", options=options), "file-options-invalid", 422)


def test_only_what_is_read_takes_options(client: httpx.Client) -> None:
    for content, name, fields in (
        (SOURCE, "net.py", {"entry": "model"}), (b"func.func @main() { return }", "net.mlir", {}),
        (b"x", "w.safetensors", {"entry": "hf:gpt2"}),
    ):  # fmt: skip
        said = upload(client, content, name, options="P=8", **fields)
        check_problem(said, "file-options-invalid", 422, "takes no options")


KERNEL = b"import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n\n\ndef model():\n    pass\n"


@pytest.mark.parametrize("entry", ["", "kernel"])
def test_a_tile_program_is_taken_where_python_is_not(make_client: MakeClient, settings: Settings, entry: str) -> None:
    """A Triton kernel is read and never executed; a model with a kernel beside it is Python."""
    client = make_client(replace(settings, allow_python_models=False))
    model = upload(client, KERNEL, "net.py", entry=entry).json()
    assert (model["kind"], model["source"]) == ("tasks", "net.py:kernel" if entry else "net.py")
    check_problem(upload(client, KERNEL, "net.py", entry="model"), "python-models-refused", 403, "net.py")


def test_python_is_refused_where_settings_do_not_allow_it(make_client: MakeClient, settings: Settings) -> None:
    client = make_client(replace(settings, allow_python_models=False))
    check_problem(upload(client, entry="model"), "python-models-refused", 403, "net.py", "mlp")


@pytest.mark.parametrize(
    ("content", "file", "fields", "code", "status", "words"),
    [
        (SOURCE, "net.py", {}, "entry-missing", 422, ("net.py", "file.py:FUNCTION")),
        (SOURCE, "net.py", {"entry": "modle"}, "entry-not-found", 422, ("modle", "'model'")),
        (SOURCE, "net.py", {"entry": "a b"}, "entry-not-found", 422, ("a b",)),
        (SOURCE, "net.py", {"entry": "model#a b"}, "entry-not-found", 422, ("'a b'", "path of layers")),
        (SOURCE, "net.py", {"entry": "modle#blocks"}, "entry-not-found", 422, ("'modle'",)),
        (b"def (", "net.py", {"entry": "model"}, "model-file-invalid", 422, ("not Python", "line 1")),
        (b"\xff\xfe\x00", "net.py", {"entry": "model"}, "model-file-invalid", 422, ("not Python",)),
        (b"(" * 5000, "net.py", {"entry": "model"}, "model-file-invalid", 422, ("not Python",)),
        (b"<html>", "net.onnx", {}, "model-file-invalid", 422, ("not an ONNX model",)),
        (b"", "net.onnx", {}, "model-file-invalid", 422, ("not an ONNX model",)),
        (b"\x00\x01", "net.mlir", {}, "model-file-invalid", 422, ("not linalg text",)),
        (b"", "net.mlir", {}, "model-file-invalid", 422, ("empty",)),
        (b"x", "net.pkl", {}, "model-file-unsupported", 422, ("net.pkl", ".onnx")),
        (b"x", "../../etc/passwd", {}, "model-file-unsupported", 422, ("'passwd'",)),
        (SOURCE, "net.py", {"entry": "model", "colour": "red"}, "unknown-option", 422, ("colour", "entry")),
        (SOURCE, "net.py", {"entry": "m\x00"}, "invalid-request", 422, ("entry",)),
    ],
)  # fmt: skip
def test_files_that_are_no_models(
    shared_client: httpx.Client, content: bytes, file: str, fields: dict[str, str], code: str, status: int,
    words: tuple[str, ...],
) -> None:  # fmt: skip
    check_problem(upload(shared_client, content, file, **fields), code, status, *words)


@pytest.mark.slow
def test_a_small_file_that_takes_minutes_to_parse(shared_client: httpx.Client) -> None:
    source = b"x = f'" + b"{1}" * 300_000 + b"'\ndef model(): pass\n"
    refused = shared_client.post("/v1/models", files={"file": ("net.py", source)}, data={"entry": "model"})
    check_problem(refused, "model-file-invalid", 422, "too long")
    assert shared_client.get("/v1/models").status_code == 200


def test_requests_that_carry_no_model(shared_client: httpx.Client) -> None:
    check_problem(shared_client.post("/v1/models", data={"entry": "m"}, files={"x": b""}), "unknown-option", 422, "'x'")
    check_problem(shared_client.post("/v1/models"), "unsupported-media-type", 415, "multipart/form-data")
    check_problem(shared_client.post("/v1/models", content=b"x", headers={"Content-Type": "text/plain"}),
                  "unsupported-media-type", 415, "text/plain")  # fmt: skip
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    check_problem(shared_client.post("/v1/models", content=b"garbage\r\n\r\n", headers=form), "malformed-body", 400)
    check_problem(shared_client.post("/v1/models", content=b"--x--", headers=form), "model-file-missing", 422, "file=@")
    nameless = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nabc\r\n' * 20 + b"--x--"
    check_problem(shared_client.post("/v1/models", content=nameless, headers=form), "model-file-missing", 422, "file=@")
    many = nameless.removesuffix(b"--x--") * 20 + b"--x--"
    check_problem(shared_client.post("/v1/models", content=many, headers=form), "malformed-body", 400, "260")
    plain = {"Content-Type": "multipart/form-data"}
    check_problem(shared_client.post("/v1/models", content=b"", headers=plain), "malformed-body", 400)


@pytest.mark.parametrize(
    ("body", "code", "status", "word"),
    [
        (b'{"zoo": "mpl"}', "model-not-found", 404, "'mlp'"),
        (b'{"zoo": "mlp", "argumants": {}}', "unknown-option", 422, "argumants"),
        (b'{"zoo": "mlp", "arguments": {"hiden": 1}}', "zoo-reference-invalid", 422, "hidden"),
        (b'{"zoo": "mlp", "arguments": {"a b": 1}}', "zoo-reference-invalid", 422, "a b"),
        (b'{"zoo": "mlp", "arguments": {"a": "\\u0000"}}', "zoo-reference-invalid", 422, "'a'"),
        (b'{"zoo": "mlp", "name": "\\u0000"}', "invalid-request", 422, "control character"),
        (b'{"zoo": 3}', "invalid-request", 422, "zoo"),
        (b'{"reference": "hf:"}', "model-reference-invalid", 422, "no name"),
        (b'{"reference": "/etc/passwd.onnx"}', "model-reference-invalid", 422, "no model of a library"),
        (b'{"reference": "zoo:mlpp"}', "model-not-found", 404, "'mlp'"),
        (b'{"reference": "zoo:mlp?hiden=1#"}', "zoo-reference-invalid", 422, "hidden"),
        (b'{"reference": "zoo:gpt2_text?weights=/etc#h"}', "zoo-reference-invalid", 422, "weights"),
        (b'{"reference": "zoo:gpt2_text#h;rm"}', "model-not-found", 404, "did you mean 'gpt2_text'"),
        (b'{"reference": "hf:gpt2?a%20b=1"}', "model-reference-invalid", 422, "a b"),
        (b'{"reference": "hf:gpt2?a=%00"}', "model-reference-invalid", 422, "'a'"),
        (b'{"reference": "hf:gpt2", "zoo": "mlp"}', "unknown-option", 422, "zoo"),
        (b'{"reference": 3}', "invalid-request", 422, "reference"),
        (b"[]", "invalid-request", 422, "body"),
        (b"{", "malformed-body", 400, "JSON"),
        (b"\xff", "malformed-body", 400, "JSON"),
    ],
)
def test_zoo_references_that_are_refused(
    shared_client: httpx.Client, body: bytes, code: str, status: int, word: str
) -> None:
    response = shared_client.post("/v1/models", content=body, headers={"Content-Type": "application/json"})
    check_problem(response, code, status, word)


def test_sizes_are_limited_by_header_and_while_streaming(make_client: MakeClient) -> None:
    client = make_client(max_model_bytes=100_000, max_source_bytes=1000, max_body_bytes=2000)
    check_problem(upload(client, b"#" * 1001, entry="model"), "too-large", 413, "1000 bytes")
    check_problem(upload(client, ONNX + bytes(200_000), "a.onnx"), "too-large", 413)
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.onnx"\r\n\r\n'
    body = chain([head], (bytes(50_000) for _ in range(10)))  # no Content-Length: counted as it comes
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    check_problem(client.post("/v1/models", content=body, headers=headers), "too-large", 413, "over")
    check_problem(client.post("/v1/runs", json={"model": "x" * 3000}), "too-large", 413, "2000 bytes")


def test_nothing_is_taken_in_when_the_disk_is_nearly_full(make_client: MakeClient) -> None:
    client = make_client(low_disk_bytes=2**62)
    response = upload(client, entry="model")
    check_problem(response, "storage-full", 503, "bytes are free")
    assert response.headers["retry-after"] == "300"


def test_a_model_that_does_not_exist(shared_client: httpx.Client) -> None:
    for model in ("mdl_0", "mdl_01m7xngjf73j71t75hyx4msfc9", "%00", "run_01m7xngjf73j71t75hyx4msfc9"):
        check_problem(shared_client.get(f"/v1/models/{model}"), "model-not-found", 404, "POST /v1/models")


CPP = b"void top(int a[4]) { for (int i = 0; i < 4; i++) a[i] = i; }\n"


def send(client: httpx.Client, files: dict[str, bytes], top: str = "top") -> httpx.Response:
    return client.post("/v1/models", files=[("file", item) for item in files.items()], data={"entry": top})


def test_a_kernel_is_taken_with_its_headers(make_client: MakeClient, settings: Settings) -> None:
    """Nothing of it is executed to read it: also where Python is not taken."""
    client = make_client(replace(settings, allow_python_models=False))
    model = send(client, {"k.cpp": CPP, "inc/sizes.h": b"#define N 4\n"}).json()
    assert (model["name"], model["kind"], model["source"]) == ("k.top", "kernel", "k.cpp:top")


@pytest.mark.parametrize(
    ("files", "top", "code"),
    [
        ({"k.cpp": CPP}, "", "entry-missing"),
        ({"k.cpp": CPP}, "a b", "entry-not-found"),
        ({"k.cpp": CPP, "l.cpp": CPP}, "top", "model-file-unsupported"),
        ({"k.cpp": CPP, "../up.h": b"x"}, "top", "model-file-unsupported"),
        ({"k.cpp": CPP, "/etc/x.h": b"x"}, "top", "model-file-unsupported"),
        ({"k.cpp": CPP, "a\\..\\x.h": b"x"}, "top", "model-file-unsupported"),
        ({"k.cpp": CPP, ".hidden.h": b"x"}, "top", "model-file-unsupported"),
        ({"k.cpp": CPP, "data.bin": b"x"}, "top", "model-file-unsupported"),
        ({"k.cpp": b""}, "top", "model-file-invalid"),
        ({"k.cpp": b"\x00\x01"}, "top", "model-file-invalid"),
        ({"k.cpp": b"\xff\xfe"}, "top", "model-file-invalid"),
        ({"k.cpp": b"//" + b"x" * (1 << 20)}, "top", "too-large"),
    ],
)
def test_what_is_no_kernel_is_refused(
    shared_client: httpx.Client, files: dict[str, bytes], top: str, code: str
) -> None:  # fmt: skip
    refused = send(shared_client, files, top)
    assert refused.json()["code"] == code, refused.text
    assert 400 <= refused.status_code < 500


@pytest.mark.parametrize(
    "options",
    [
        {"quantize": "w8a8"}, {"evidence": "open-rtl"}, {"objectives": ["energy"]}, {"limits": ["latency_us<=3"]},
        {"platform": "ecp5-25k"}, {"bitstream": "hw"}, {"fix": ["order=parallel-outer"]}, {"sampler": "grid"},
    ],
)  # fmt: skip
def test_options_that_kernels_do_not_take_are_refused(client: httpx.Client, options: dict[str, object]) -> None:
    model = send(client, {"k.cpp": CPP}).json()
    refused = client.post("/v1/runs", json={"model": model["id"], **options})
    check_problem(refused, "not-of-kernels", 422)
    check_problem(client.post(f"/v1/models/{model['id']}/check", json={}), "not-of-kernels", 422)
