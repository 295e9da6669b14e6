"""Whole runs by the Vitis route, against the stand-in for AMD's tools: measured in steps, linked, packaged."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.db.schema.records import Run
from penstock.db.schema.states import RunState, StepState
from penstock.services.store import ContentStore
from tests.fixtures.service import Service, assert_legal
from tests.standin.install import Installation
from tests.worker.test_run import MODEL, submit

pytestmark = pytest.mark.slow


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "tools", "2023.2")


@pytest.fixture
def serving(service: Service, installation: Installation) -> Service:
    """A worker on a machine that has the tools, and the dispatcher."""
    variables = installation.environment | {
        "PENSTOCK_VITIS": str(installation.root), "PENSTOCK_LICENCE_SECONDS": "1", "HOME": str(service.home),
    }  # fmt: skip
    service.worker(**variables)
    service.dispatcher()
    return service


def package_of(service: Service, run: Run) -> dict[str, bytes]:
    with service.database.begin() as tx:
        [archive] = [a for a in tx.artifacts.list(run.id, limit=500).items if a.name.endswith(".penstock.zip")]
    with zipfile.ZipFile(io.BytesIO(ContentStore(service.home / "store").read_bytes(archive.sha256))) as package:
        return {name: package.read(name) for name in package.namelist()}


def report_of(service: Service, run: Run) -> dict[str, Any]:
    return json.loads(package_of(service, run)["report.json"])


def test_a_model_becomes_a_bitstream(serving: Service) -> None:
    """Every shortlisted design is measured in a step of its own; the verified one is linked and packaged."""
    run = submit(serving, MODEL, evidence="csynth")
    ended = serving.wait(run)
    assert ended.state == RunState.SUCCEEDED, ended.error
    assert (ended.summary["evidence"], ended.summary["bitstream"]) == ("csynth", "bitstream/penstock_top.xclbin")
    steps = serving.steps(run)
    measured = {key for key in steps if key.startswith("measure/")}
    assert measured == {f"measure/{n:04d}" for n in steps["shortlist"].result["trials"]}
    assert {steps[key].queue for key in measured} == {"profile"}
    assert [steps[key].queue for key in ("shortlist", "select", "verify", "link", "package")] == [
        "explore", "profile", "build", "build", "build",
    ]  # fmt: skip
    assert_legal(serving.events(run))
    files = package_of(serving, run)
    assert files["bitstream/penstock_top.xclbin"].startswith(b"xclbin2\0")
    report = json.loads(files["report.json"])
    by = [(m["evidence"], bool(m["basis"])) for m in report["timing"]["measured"]]
    assert by == [("modelled", False), ("simulated", False), ("simulated", True), ("csynth", True)]
    assert report["timing"]["evidence"] == report["resources"]["evidence"] == "csynth"
    assert (report["bitstream"]["target"], report["bitstream"]["path"]) == ("hw", "bitstream/penstock_top.xclbin")
    serving.until(lambda: not any((serving.home / "work").iterdir()))  # a worker says first that a step is over


def test_licences_are_waited_for_and_cost_no_attempt(serving: Service, installation: Installation) -> None:
    installation.behave({"csynth": "licence-missing", "link": "licence-lost"})
    run = submit(serving, MODEL, evidence="csynth", trials=2)

    def put_off(key: str) -> bool:
        return any(e.kind == "step.hand_back" and e.data["key"].startswith(key) for e in serving.events(run))

    serving.until(lambda: put_off("measure/"))
    installation.behave({"link": "licence-lost"})
    serving.until(lambda: put_off("link"))
    installation.behave({})
    ended = serving.wait(run)
    assert ended.state == RunState.SUCCEEDED, ended.error
    assert all(step.attempt == 1 for step in serving.steps(run).values())
    reasons = {e.data["error"]["code"] for e in serving.events(run) if e.kind == "step.hand_back"}
    assert reasons == {"profile-licence"}


def test_where_every_measurement_fails_the_run_fails_with_their_cause(
    serving: Service, installation: Installation
) -> None:
    installation.behave({"csynth": "source-error"})
    run = submit(serving, MODEL, evidence="csynth", trials=2)
    ended = serving.wait(run)
    assert ended.state == RunState.FAILED
    assert ended.error is not None
    assert ended.error["code"] == "profile-source-error"
    assert ended.error["step"] == "select"
    assert ended.error["log_tail"]
    assert str(serving.home) not in json.dumps(dict(ended.error)), "no path of the server reaches the user"


def test_a_link_that_fails_costs_the_package_nothing_and_goes_on_in_the_next_run(
    serving: Service, installation: Installation
) -> None:
    installation.behave({"link": "once:impl"})
    first = submit(serving, MODEL, evidence="csynth", trials=2)
    ended = serving.wait(first)
    assert ended.state == RunState.SUCCEEDED, ended.error
    steps = serving.steps(first)
    assert steps["link"].state == StepState.FAILED
    assert steps["link"].error is not None
    cause = steps["link"].error["what"]
    report = report_of(serving, first)
    assert cause in report["bitstream"]["failure"]
    assert cause in ended.summary["bitstream"]
    assert any(cause in note for note in report["notes"])
    again = submit(serving, MODEL, evidence="csynth", trials=2)
    assert serving.wait(again).state == RunState.SUCCEEDED
    assert "the link went on at impl" in report_of(serving, again)["bitstream"]["notes"]
    calls = [call[0] for call in installation.calls()]
    assert calls.count("vitis_hls") <= 3, "the second run measures nothing anew"


def test_a_cancel_reaches_the_tool(serving: Service, installation: Installation) -> None:
    installation.behave({"csynth": "hang"})
    run = submit(serving, MODEL, evidence="csynth", trials=2)

    def tools() -> list[psutil.Process]:
        found = psutil.process_iter(["cmdline"])
        return [p for p in found if any(str(installation.root) in word for word in p.info["cmdline"] or ())]

    serving.until(tools, lambda: serving.explain(run))
    serving.cancel(run)
    assert serving.wait(run).state == RunState.CANCELLED
    serving.until(lambda: not tools())


def test_without_vitis_the_run_is_simulated_and_says_why(service: Service, tmp_path: Path) -> None:
    service.worker(PENSTOCK_VITIS=str(tmp_path))
    service.dispatcher()
    run = submit(service, MODEL, evidence="cosim", trials=2)
    ended = service.wait(run)
    assert ended.state == RunState.SUCCEEDED, ended.error
    assert ended.summary["evidence"] == "simulated"
    report = report_of(service, run)
    assert (report["timing"]["evidence"], report["synthesis"]) == ("simulated", None)
    assert any("cosim figures were asked for, but Vitis was not found" in note for note in report["notes"])
    assert "v++ was not found" in report["bitstream"]["failure"]
