"""`penstock pause | resume | extend | replay`, and options of a search that are refused."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import Run as RunRow
from tests.api.seeding import Seeder
from tests.cli.conftest import Run
from tests.fixtures.waiting import wait_until


def test_pause_and_resume(run: Run, seeder: Seeder) -> None:
    started = seeder.run(trials=3)
    seeder.explore(started, 3)
    assert run("pause", "latest").out == f"{started.id}: paused, 0 of 3 trials done\n"
    assert json.loads(run("pause", started.id, "--json").out)["paused"] is True
    assert run("runs").out.splitlines()[1].split()[1] == "paused"
    assert run("resume", started.id).out == f"{started.id}: running, 0 of 3 trials done\n"


def test_extend(run: Run, seeder: Seeder) -> None:
    done = seeder.finished_run(2)
    refused = run("pause", done.id)
    assert (refused.code, "succeeded" in refused.err) == (1, True)
    assert run("extend", done.id, "--trials", "2").out == f"{done.id}: running, 2 of 4 trials done\n"
    assert run("extend", done.id, "--trials", "0").code == 2


@pytest.mark.parametrize("equal", [True, False])
def test_replay(run: Run, seeder: Seeder, equal: bool) -> None:
    done = seeder.finished_run(2)
    differs = [] if equal else [{"figure": "energy_uj", "then": 1.5, "now": 2.5}]
    changed = [] if equal else ["the tables of operators were a, now b"]
    found: dict[str, Any] = {
        "run": done.id, "trial": 1, "equal": equal, "differs": differs, "changed": changed, "evidence": "modelled",
    }  # fmt: skip

    def work() -> None:
        asked: list[RunRow] = []

        def look() -> list[RunRow]:
            with seeder.database.begin() as tx:
                asked.extend(r for r in tx.runs.list(limit=5).items if r.name.startswith("replay"))
            return asked

        wait_until(look)
        seeder.finish(asked[0], "replay", StepOutcome(result={}, run_summary={"replay": found}))

    worker = threading.Thread(target=work)
    worker.start()
    ended = run("replay", done.id, "1")
    worker.join()
    if equal:
        assert (ended.code, ended.out) == (0, f"trial 1 of {done.id}: every figure is what it was [modelled]\n")
    else:
        assert ended.code == 1
        assert "energy_uj: 1.5 then, 2.5 now" in ended.out
        assert "changed since: the tables of operators were a, now b" in ended.out
    assert run("replay", done.id, "9").code == 2


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--objective", "latancy"], 2, ("no objective 'latancy'", "did you mean 'latency'")),
        (["--limit", "dsp<=0.2", "--limit", "dsp>=0.4"], 3, ("dsp>=0.4 and dsp<=0.2 cannot both be met",)),
        (["--limit", "dps<=0.2"], 2, ("no limit 'dps'", "did you mean 'dsp'")),
        (["--sampler", "bayes"], 2, ("sampler", "nsga2")),
    ],
)
def test_what_a_search_cannot_be_asked(run: Run, options: list[str], code: int, words: tuple[str, ...]) -> None:
    ended = run("submit", "zoo:mlp", *options)
    assert ended.code == code
    assert ended.err.count("\n") == 1
    for word in words:
        assert word in ended.err
