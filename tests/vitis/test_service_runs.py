"""Runs of the whole service by REST, against the stand-in: five generations of the tools, and every typed failure once.

What went wrong is asserted where people meet it: in the API's answer and on the run's page.
"""

from __future__ import annotations

import html
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.vitis.service import Document, Lab, lab, step_of
from tests.vitis.standins import RELEASES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running() -> Iterator[Lab]:
    with lab() as found:
        yield found


def package_of(running: Lab, run: Document) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(running.artifact(run, ".penstock.zip"))) as package:
        return {name: package.read(name) for name in package.namelist()}


def report_of(running: Lab, run: Document) -> Document:
    return json.loads(package_of(running, run)["report.json"])


@pytest.mark.parametrize("release", RELEASES)
def test_a_model_becomes_a_bitstream_in_every_generation(running: Lab, release: str) -> None:
    """Submit, explore, measure by csynth, link, package: figures are the release's report's, the xclbin is inside."""
    installation = running.install(release)
    run = running.run(fresh=True, trials=3)
    assert run["state"] == "succeeded", run["error"]
    assert {step["state"] for step in run["steps"]} == {"succeeded"}
    assert run["summary"]["evidence"] == "csynth"
    calls = [" ".join(call) for call in installation.calls()]
    started = "vitis_hls -f" if release < "2024.1" else "v++ -c --mode hls"
    assert any(call.startswith(started) for call in calls)
    assert [sum(f" {option} " in call for call in calls) for option in ("-l", "-p")] == [1, 1]
    files = package_of(running, run)
    assert files["bitstream/penstock_top.xclbin"].startswith(b"xclbin2")
    report = json.loads(files["report.json"])
    assert report["timing"]["evidence"] == "csynth"
    assert (report["bitstream"]["failure"], report["bitstream"]["evidence"]) == ("", "implemented")
    page = html.unescape(running.page(run))
    assert "csynth" in page
    assert "link" in page


def test_an_emulation_is_packaged_with_its_configuration(running: Lab) -> None:
    """hw_emu: the same way, with what the emulator reads, and no figures of a chip."""
    running.install("2023.2")
    run = running.run(fresh=True, bitstream="hw_emu")
    assert run["state"] == "succeeded", run["error"]
    files = package_of(running, run)
    assert {"bitstream/penstock_top.xclbin", "bitstream/emconfig.json"} <= files.keys()
    bitstream = json.loads(files["report.json"])["bitstream"]
    assert (bitstream["target"], bitstream["evidence"]) == ("hw_emu", None)


# What goes wrong -> behaviour of the stand-in, options of the run, the failure's code, words of its message.
MEASURED: dict[str, tuple[dict[str, object], str, str, str]] = {
    "source error": ({"csynth": "source-error"}, "csynth", "profile-source-error", "Pointer to pointer"),
    "csim mismatch": ({"csim": "mismatch"}, "cosim", "profile-csim-mismatch", "output 0 is not what"),
    "cosim fails": ({"cosim": "fail"}, "cosim", "profile-cosim-failed", "post check failed"),
    "deadlock": ({"cosim": "deadlock"}, "cosim", "profile-deadlock", "load_x waits for load_x__"),
    "memory": ({"csynth": "spread:400"}, "csynth", "profile-out-of-memory", "together; at most 256 are allowed"),
    "killed child": ({"csynth": "child-killed-quietly"}, "csynth", "profile-out-of-memory", "was killed from outside"),
    "disk quota": ({"csynth": "fill:2000"}, "csynth", "profile-disk-full", "into its work folder; at most 64"),
    "full disk": ({"csynth": "no-space"}, "csynth", "profile-disk-full", "No space left"),
    "timeout": ({"csynth": "hang"}, "csynth", "profile-timeout", "at its time limit"),
    "no report": ({"csynth": "report-missing"}, "csynth", "profile-report-missing", "there is no report"),
    "cut report": ({"csynth": "report-garbage"}, "csynth", "profile-report-unreadable", ""),
    "binary garbage": ({"csynth": "babble:2"}, "csynth", "profile-tool-failed", "without saying that csynth finished"),
}  # fmt: skip


@pytest.mark.parametrize("case", MEASURED)
def test_a_measurement_that_fails_says_why(running: Lab, case: str) -> None:
    """The step has the cause, and so has the run, which has nothing else to choose from; the service goes on."""
    behaviour, evidence, code, words = MEASURED[case]
    running.install(RELEASES[list(MEASURED).index(case) % len(RELEASES)], behaviour)
    run = running.run(evidence=evidence)
    assert run["state"] == "failed"
    for error in (step_of(run, "measure")["error"], run["error"]):
        assert (error["code"], words in error["what"]) == (code, True), error
        assert error["where"]
    page = html.unescape(running.page(run))
    assert run["error"]["what"] in page
    assert run["error"]["hint"] in page
    if case == "source error":
        assert "penstock_top.cpp:" in page
        assert "(layer " in page
    assert running.tools_alive() == []


# A link that fails costs the run its bitstream and nothing else.
LINKED: dict[str, tuple[dict[str, object], str, str]] = {
    "timing": ({"link": "timing"}, "profile-timing-not-met", "did not meet timing"),
    "platform": ({"platform": "old"}, "profile-bad-target", "not supported"),
    "kernel": ({"compile": "source-error"}, "profile-source-error", "Pointer to pointer"),
}


@pytest.mark.parametrize("case", LINKED)
def test_a_link_that_fails_says_why_and_the_rest_is_packaged(running: Lab, case: str) -> None:
    behaviour, code, words = LINKED[case]
    running.install(RELEASES[1 + list(LINKED).index(case)], behaviour)
    run = running.run(fresh=True)
    assert run["state"] == "succeeded", run["error"]
    error = step_of(run, "link")["error"]
    assert (error["code"], words in error["what"]) == (code, True), error
    assert error["what"] in html.unescape(running.page(run))
    bitstream: dict[str, Any] = report_of(running, run)["bitstream"]
    assert bitstream["path"] is None
    assert words in bitstream["failure"]


@pytest.mark.parametrize(
    ("behaviour", "step", "words"),
    [
        ({"csynth": "licence-missing"}, "measure", "valid license was not found"),
        ({"csynth": "licence-lost"}, "measure", "Lost connection to license server"),
        ({"link": "licence-lost"}, "link", "Lost connection to license server"),
    ],
)
def test_a_licence_is_waited_for_and_costs_no_attempt(
    running: Lab, behaviour: dict[str, object], step: str, words: str
) -> None:
    """While it is away the step waits and says what for; it is tried again and again, and ends well once it is back."""
    installation = running.install("2023.2", behaviour)
    run = running.submit(fresh=True)

    def asked_twice(found: Document) -> bool:
        return sum(1 for attempt in _attempts(found, step) if attempt["outcome"]) >= 2

    waiting = running.wait(run, asked_twice)
    assert waiting["state"] == "running"
    assert words in json.dumps(_attempts(waiting, step))
    assert words in html.unescape(running.page(waiting))
    installation.behave({})
    ended = running.wait(run)
    assert ended["state"] == "succeeded", ended["error"]
    found = step_of(ended, step)
    assert (found["state"], found["attempt"]) == ("succeeded", 1)
    if step == "link":
        notes = report_of(running, ended)["bitstream"]["notes"]
        assert any("the link went on at impl" in note for note in notes)


def _attempts(run: Document, kind: str) -> list[Document]:
    return [attempt for step in run["steps"] if step["kind"] == kind for attempt in step["attempts"]]


def test_a_cancelled_run_ends_its_tools(running: Lab) -> None:
    running.install("2022.2", {"csynth": "hang"})
    run = running.submit()
    running.wait(run, lambda _: running.tools_alive())
    running.send(f"/v1/runs/{run}/cancel")
    ended = running.wait(run)
    assert ended["state"] == "cancelled"
    assert step_of(ended, "measure")["state"] == "cancelled"
    assert "cancelled" in running.page(ended)
    running.wait(run, lambda _: running.tools_alive() == [])
