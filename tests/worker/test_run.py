"""A whole run with the real bodies: a model in, a checked package out, on real workers."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save
from sqlalchemy import text

from penstock import IMPORT_ROOT
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.reference import parse_reference
from penstock.db import Transaction, lifecycle
from penstock.db.schema.records import Model, Run
from penstock.db.schema.states import RunState
from penstock.services.jobs.models import Intake, model_file, model_of_files
from penstock.services.jobs.runs import check_model
from penstock.services.steps.graph import run_steps
from penstock.services.store import ContentStore
from penstock.services.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.service import Service, assert_legal, fresh_service
from tests.frontend.onnx_files import export

MODEL = b"""
import torch
from torch import nn

class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))

def model():
    torch.manual_seed(1)
    return Tiny(), (torch.randn(1, 8),)
"""


PROGRAM = b"""
from penstock.tasks import Stream, float32, implements, matmul, program, task

K = 8


@implements("first")
@program
def layer(x: float32[K], weight: float32[16, K], bias: float32[16], y: float32[16]):
    s = Stream[float32, 8]

    @task
    def load():
        s.put(x[0:8])

    @task
    def work():
        held: float32[8] = 0
        for n in range(16):
            if n == 0:
                held = s.get()
            y[n] = matmul(weight[n, :], held) + bias[n]
"""
"""What computes the first layer, by its name."""
BODIES_REFUSED = "bodies written by hand are not taken from here"
UNLIKE = (
    MODEL.replace(b"torch.relu(self.first(x))", b"torch.tanh(self.first(x)) * torch.tensor([1e6] + [1.0] * 15)")
    .replace(b"    return Tiny()", b"    tiny = Tiny()\n    tiny.second.weight.data[:, 0] = 0\n    return tiny")
)  # fmt: skip
"""A number a million times the others, which the next layer does not want."""


def take_in(service: Service, tx: Transaction, source: bytes) -> Model:
    stored = ContentStore(service.home / "store").put_bytes(source)
    return tx.models.create(
        name="tiny", kind="python", source="tiny.py:model", sha256=stored.sha256, size=stored.size,
        details={"file": "tiny.py", "function": "model"},
    )  # fmt: skip


def submit(service: Service, source: bytes, **options: Any) -> Run:
    with service.database.begin() as tx:
        model = take_in(service, tx, source)
        asked = {"platform": "u55c", "trials": 4, "quantize": "w8a8"} | options
        return lifecycle.submit(
            tx, model_id=model.id, name="tiny", steps=run_steps(model, asked), options=asked, owner=None
        )


def check(service: Service, source: bytes, quantize: str | None) -> Run:
    """As POST /v1/models/{id}/check starts it."""
    options = {"platform": "u55c", "quantize": quantize}
    with service.database.begin() as tx:
        return check_model(tx, take_in(service, tx, source), options, owner=None, most_waiting=100).run


def complete_in_study(service: Service, run: Run) -> int:
    """Trials with an answer, as Optuna's own tables have it."""
    count = text(
        "SELECT count(*) FROM optuna.trials JOIN optuna.studies USING (study_id) "
        "WHERE study_name = :name AND state = 'COMPLETE'"
    )
    with service.database.begin() as tx:
        return tx.connection.execute(count, {"name": run.id}).scalar_one()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, postgres: EmbeddedPostgres) -> Iterator[Service]:
    """One worker and one dispatcher with the bodies of the service, for runs beside each other's."""
    with fresh_service(tmp_path_factory.mktemp("home"), postgres, "penstock.services.steps.bodies") as service:
        service.worker()
        service.dispatcher()
        yield service


def test_a_model_becomes_a_package(running: Service) -> None:
    run = submit(running, MODEL)
    ended = running.wait(run)
    assert ended.state == RunState.SUCCEEDED, ended.error
    assert ended.summary["evidence"] == "simulated"
    with running.database.begin() as tx:
        trials = tx.trials.list(run.id).items
        artifacts = {artifact.name: artifact for artifact in tx.artifacts.list(run.id).items}
    assert [t.number for t in trials] == [0, 1, 2, 3]
    assert complete_in_study(running, run) == 4
    chosen = trials[ended.summary["chosen_trial"]]
    assert chosen.figures["latency_cycles"] == min(t.figures["latency_cycles"] for t in trials if t.state == "complete")
    [archive] = [artifact for name, artifact in artifacts.items() if name.endswith(".penstock.zip")]
    data = ContentStore(running.home / "store").read_bytes(archive.sha256)
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        report = json.loads(package.read("report.json"))
    assert report["verify"]["csim"]["equal"] is True
    assert len(report["exploration"]["trials"]) == 4
    assert_legal(running.events(run))

    again = submit(running, MODEL, trials=2)
    assert running.wait(again).state == RunState.SUCCEEDED
    assert running.steps(again)["import"].reused_from == running.steps(run)["import"].id


def test_a_model_is_looked_at_before_any_search(running: Service) -> None:
    fine, refused = check(running, MODEL, "w8a8"), check(running, UNLIKE, "w8a8")
    for run in (fine, refused):
        assert running.wait(run).state == RunState.SUCCEEDED, running.explain(run)
    found = running.wait(fine).summary["check"]
    assert found["compiles"] is True
    assert found["refusals"] == []
    assert found["size"]["parameters"] >= 8 * 16 + 16 + 16 * 4 + 4
    assert found["estimate"]["latency_cycles"] > 0
    found = running.wait(refused).summary["check"]
    assert found["compiles"] is False
    assert [refusal["code"] for refusal in found["refusals"]] == ["eight-bits-too-few"]


@pytest.mark.parametrize(
    ("tokens", "ends"), [pytest.param(32, RunState.SUCCEEDED, marks=pytest.mark.slow), (33, RunState.FAILED)]
)
def test_sent_weights_are_those_of_the_model(running: Service, tokens: int, ends: RunState) -> None:
    """Through intake, store and fence: from two shards into the model that the reference names."""
    entry = f"zoo:gpt2_text?layers=2&d=16&heads=2&cache=8&tokens={tokens}#h"
    weights = load_model(parse_reference("zoo:gpt2_text?layers=2&d=16&heads=2&cache=8&tokens=32&seed=9")).module
    tensors = {name: value.contiguous() for name, value in weights.state_dict().items()}
    shards = [dict(list(tensors.items())[n::2]) for n in range(2)]
    named = [(f"m-{n}.safetensors", shard) for n, shard in enumerate(shards)]
    index = {"weight_map": {name: file for file, shard in named for name in shard}}
    files = [("m.safetensors.index.json", io.BytesIO(json.dumps(index).encode()))]
    files += [(file, io.BytesIO(save(shard))) for file, shard in named]
    intake = Intake(ContentStore(running.home / "store"), running.home, True, 1 << 20, 1 << 20, 0)
    new = model_of_files(intake, files, entry, "")
    with running.database.begin() as tx:
        model = new.create(tx, None)
        run = check_model(tx, model, {"platform": "u55c", "quantize": None}, owner=None, most_waiting=5).run
    over = running.wait(run)
    assert over.state == ends, running.explain(run)
    if ends is RunState.FAILED:
        step = running.steps(run)["import"]
        assert step.error is not None
        assert step.error["code"] == "weights-file"
        assert step.error["where"] == "weights"
        assert "of shape (32, 16) where the model has (33, 16): wte.weight" in step.error["what"]


@pytest.mark.parametrize("calls", [3, 0])
def test_sent_inputs_are_the_typical_ones_of_an_onnx_file(running: Service, tmp_path: Path, calls: int) -> None:
    """Through intake, store and fence: eight bits are measured on them, and what is wrong with them is said."""
    sizes = {"x": {1: "wide.1"}}
    one = (torch.ones(2, 3),)
    path = export(torch.nn.Linear(3, 2), one, tmp_path / "net.onnx", input_names=["x"], dynamic_axes=sizes)
    np.savez(tmp_path / "in.npz", x=np.full((calls, 2, 3), 7.0))
    files = [(one.name, io.BytesIO(one.read_bytes())) for one in (path, tmp_path / "in.npz")]
    intake = Intake(ContentStore(running.home / "store"), running.home, False, 1 << 20, 1 << 20, 0)
    new = model_of_files(intake, files, "", "", "wide.1=3")
    with running.database.begin() as tx:
        model = new.create(tx, None)
        run = check_model(tx, model, {"platform": "u55c", "quantize": "w8a8"}, owner=None, most_waiting=5).run
    over = running.wait(run)
    if calls:
        assert over.state == RunState.SUCCEEDED, running.explain(run)
        return
    error = running.steps(run)["import"].error
    assert error is not None
    assert (error["code"], error["where"]) == ("calibration-values", "input 'x' in inputs.npz of net")


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["first", "first_"])
def test_a_task_program_computes_a_layer_of_a_sent_model(running: Service, layer: str) -> None:
    """Through intake, store and fence: explored, packaged, and the whole model held to PyTorch."""
    intake = Intake(ContentStore(running.home / "store"), running.home, True, 1 << 20, 1 << 20, 0)
    program = PROGRAM.replace(b'"first"', f'"{layer}"'.encode())
    new = model_of_files(intake, [("l.py", io.BytesIO(program)), ("tiny.py", io.BytesIO(MODEL))], "model", "", "K=8")
    options = {"platform": "ecp5-85k", "trials": 2}
    with running.database.begin() as tx:
        model = new.create(tx, None)
        run = lifecycle.submit(
            tx, model_id=model.id, name="tiny", steps=run_steps(model, options), options=options, owner=None
        )
    over = running.wait(run)
    if layer != "first":
        step = running.steps(run)["import"]
        assert step.error is not None
        assert step.error["code"] == "no-layers"
        assert step.error["what"] == "the model has no layer 'first_'"
        return
    assert over.state == RunState.SUCCEEDED, running.explain(run)
    with running.database.begin() as tx:
        files = tx.artifacts.list(run.id, limit=500).items
    [package] = [one for one in files if one.name.endswith(".penstock.zip")]
    with zipfile.ZipFile(io.BytesIO(ContentStore(running.home / "store").read_bytes(package.sha256))) as archive:
        report = json.loads(archive.read("report.json"))
        assert json.loads(archive.read("layers/graph.json"))["layers"][0]["name"] == "first"
    assert report["verify"]["whole"]["ok"]


@pytest.mark.slow
def test_a_task_program_with_a_models_block_is_explored_over_mappings_and_packaged(running: Service) -> None:
    """The program is fenced, the zoo's model is built within the fence, and the design's elements are reported."""
    text = (IMPORT_ROOT / "examples" / "tasks" / "model_block.py").read_text()
    text += "    fit(elements=6)\n"
    intake = Intake(ContentStore(running.home / "store"), running.home, False, 1 << 20, 1 << 20, 0)
    sent = io.BytesIO(text.replace("block,", "block, fit,").encode())
    new = model_file(intake, sent, "margin.py", "", "")
    options = {"platform": "ecp5-85k", "trials": 4}
    with running.database.begin() as tx:
        model = new.create(tx, None)
        run = lifecycle.submit(
            tx, model_id=model.id, name="margin", steps=run_steps(model, options), options=options, owner=None
        )
    assert running.wait(run).state == RunState.SUCCEEDED, running.explain(run)
    with running.database.begin() as tx:
        files = tx.artifacts.list(run.id, limit=500).items
    [package] = [one for one in files if one.name.endswith(".penstock.zip")]
    with zipfile.ZipFile(io.BytesIO(ContentStore(running.home / "store").read_bytes(package.sha256))) as archive:
        report = json.loads(archive.read("report.json"))
    assert len(report["design"]["elements"]) <= 6
    assert "mlp_head" in {name for one in report["design"]["elements"] for name in one["instances"]}


def test_no_body_in_another_language_is_built_of_who_may_not_send_it(running: Service) -> None:
    """The fence ends with the import. A Python model may leave any program in it, and a task program may hide its
    bodies from whoever took it in."""
    program = (IMPORT_ROOT / "examples" / "tasks" / "dot.py").read_text()
    forges = (
        "import os, pathlib\nfrom penstock.compiler.frontend import import_model\ndef model():\n"
        f" open('/tmp/dot.py', 'w').write({program!r})\n import_model('tasks:/tmp/dot.py')"
        ".save(pathlib.Path('/out'))\n os._exit(0)\n"
    )
    runs = [check(running, forges.encode(), None)]
    stored = ContentStore(running.home / "store").put_bytes(program.encode())
    with running.database.begin() as tx:
        model = tx.models.create(
            name="dot", kind="tasks", source="dot.py", sha256=stored.sha256, size=stored.size,
            details={"file": "dot.py", "function": ""},
        )  # fmt: skip
        options = {"platform": "u55c", "quantize": None}
        runs.append(check_model(tx, model, options, owner=None, most_waiting=5).run)
    for run in runs:
        assert running.wait(run).state == RunState.FAILED
        step = running.steps(run)["import"]
        assert step.error is not None
        assert (step.error["code"], step.error["what"]) == ("python-models-off", BODIES_REFUSED), step.error


def test_a_file_that_is_no_model_fails_with_a_sentence(running: Service) -> None:
    run = submit(running, b"def model():\n    return 42\n")
    ended = running.wait(run)
    assert ended.state == RunState.FAILED
    assert ended.error is not None
    assert ended.error["step"] == "import"
    assert ended.error["code"] not in ("internal-error", "poison")
    assert str(running.home) not in json.dumps(dict(ended.error)), "no path of the server reaches the user"


def test_python_models_are_refused_where_they_are_switched_off(service: Service) -> None:
    service.dispatcher()
    service.worker(PENSTOCK_ALLOW_PYTHON_MODELS="0")
    ended = service.wait(submit(service, MODEL))
    assert ended.error is not None
    assert ended.error["code"] == "python-models-off"
