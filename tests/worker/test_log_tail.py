"""What a running tool says is on its run's page: its last lines as plain text, of this attempt, without our paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx

from penstock.db.repositories.step_logs import LONGEST_TAIL
from penstock.profiling.tool_runner import ToolCommand, ToolRunner
from penstock.services.settings import Settings
from penstock.services.worker.claimed import Claimed
from penstock.services.worker.heartbeat import Heartbeat, last_lines
from tests.api.conftest import client, make_client, seeder, settings
from tests.api.seeding import Seeder
from tests.fixtures.waiting import wait_until

__all__ = ["client", "make_client", "seeder", "settings"]


def test_a_tool_that_runs_has_a_log(tmp_path: Path) -> None:
    runner = ToolRunner()
    seen: list[str] = []

    def watch(process: Any) -> None:
        seen.append(last_lines(runner.logs()))
        if "one\ntwo" in seen[-1]:
            process.cancel()

    script = "echo one; printf 'two\\033[31m\\n'; sleep 60"
    runner.run(ToolCommand(("sh", "-c", script), tmp_path, tmp_path / "logs"), watch)
    assert seen[-1] == "one\ntwo[31m", "no control character reaches a page"
    assert runner.logs() == (), "what is over says nothing"


def test_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "stdout.log"
    log.write_bytes(b"x" * 9_000_000 + b"\n" + b"".join(b"line %d\xff\n" % n for n in range(500)))
    lines = last_lines([tmp_path / "gone.log", log]).splitlines()
    assert (len(lines), lines[-1]) == (40, "line 499\N{REPLACEMENT CHARACTER}")
    assert last_lines([tmp_path / "gone.log"]) == ""


def test_signs_of_life_carry_it_to_the_page(client: httpx.Client, seeder: Seeder, settings: Settings) -> None:
    run = seeder.run()
    step = seeder.claim(run, "import")
    folder = settings.home / "work" / step.id
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text(f"reads {folder}/<b>top</b>.cpp\n")
    tools = SimpleNamespace(logs=lambda: (folder / "stdout.log",))
    held = Claimed([step])
    held.next()
    held.context = cast(
        Any, SimpleNamespace(step=step, folder=folder, tools=tools, stop_reason=None, stop=lambda reason: None)
    )
    often = replace(settings, heartbeat_seconds=0.05)
    with Heartbeat(seeder.database, often, held, lambda step, reason: None, lambda claimed, reason: None):
        wait_until(lambda: client.get(f"/v1/runs/{run.id}").json()["logs"] != [])
    page = client.get(f"/runs/{run.id}").text
    assert "reads …/&lt;b&gt;top&lt;/b&gt;.cpp" in page
    assert str(settings.home) not in page
    with seeder.database.begin() as tx:
        tx.step_logs.write(step.id, step.fence - 1, "of an attempt before")
    assert client.get(f"/v1/runs/{run.id}").json()["logs"] == []
    with seeder.database.begin() as tx:
        tx.step_logs.write(step.id, step.fence, "\0" + "z" * 2 * LONGEST_TAIL)
    assert len(client.get(f"/v1/runs/{run.id}").json()["logs"][0]["tail"]) == LONGEST_TAIL
