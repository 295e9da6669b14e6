"""The study: ask and tell, one answer a trial, several processes, and a killed one that costs its own trial only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from penstock.compiler.errors import PenstockError
from penstock.db import Database
from penstock.dse.search.forgetting import forget_study
from penstock.dse.search.sampler_kinds import SAMPLERS
from penstock.dse.search.samplers import is_ordered
from penstock.dse.search.study import Study
from penstock.dse.space.tiling import Params
from tests.dse.study_worker import CHOICES, answer

ROOT = Path(__file__).resolve().parents[2]


def local(sampler: str = "tpe", seed: int = 0) -> Study:
    return Study.create_or_load("s", CHOICES, sampler=sampler, seed=seed)


def run(study: Study, count: int) -> list[dict[str, object]]:
    seen: list[dict[str, object]] = []
    for _ in range(count):
        asked = study.ask()
        seen.append(dict(asked.params))
        assert study.tell(asked.number, *answer(asked.params))
    return seen


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_equal_seeds_give_equal_searches(sampler: str):
    first, again, other = run(local(sampler), 30), run(local(sampler), 30), run(local(sampler, seed=1), 30)
    assert first == again
    assert first != other
    for params in first:
        assert set(params) == set(CHOICES)
        assert all(value in CHOICES[name] for name, value in params.items())


def test_trials_remember_values_and_constraints():
    study = local("random")
    run(study, 20)
    trials = study.trials()
    assert [t.number for t in trials] == list(range(20))
    for trial in trials:
        values, constraints = answer(trial.params)
        assert trial.values == values
        assert trial.constraints == constraints
        assert trial.feasible == (int(trial.params["lanes"]) <= 16)


def test_the_search_learns_its_constraints():
    study = local()
    run(study, 120)
    late = study.trials()[60:]
    assert sum(t.feasible for t in late) / len(late) > 5 / 6


def test_queued_settings_come_first():
    chosen = {"size": 8, "lanes": 4, "order": "out", "connect": False}
    study = Study.create_or_load("s", CHOICES, first=[chosen])
    assert study.ask().params == chosen
    study.enqueue({"size": 16})
    partly = study.ask().params
    assert partly["size"] == 16
    assert set(partly) == set(CHOICES)


def test_the_first_answer_stands():
    study = local()
    asked = study.ask()
    assert study.tell(asked.number, (1.0, 2.0), {"dsp": 0.0})
    assert not study.tell(asked.number, (9.0, 9.0), {"dsp": 9.0})
    assert not study.fail(asked.number, retry=True)
    told = study.trial(asked.number)
    assert (told.values, told.constraints, told.state) == ((1.0, 2.0), {"dsp": 0.0}, "complete")
    assert len(study.trials()) == 1


def test_a_failed_trials_setting_is_tried_again():
    study = local()
    asked = study.ask()
    assert study.fail(asked.number, retry=True)
    again = study.ask()
    assert again.number != asked.number
    assert again.params == asked.params
    assert study.fail(again.number, retry=False)
    assert study.ask().params != asked.params
    assert [t.state for t in study.trials()] == ["fail", "fail", "running"]


def test_orphans_are_running_trials_without_a_lease():
    study = local()
    numbers = [study.ask().number for _ in range(3)]
    study.tell(numbers[0], (1.0, 1.0), {})
    assert study.orphans(leased=[numbers[2]]) == (numbers[1],)


def test_mistakes_are_named():
    study = local()
    with pytest.raises(PenstockError, match="there is no trial 7"):
        study.tell(7, (1.0, 1.0), {})
    with pytest.raises(PenstockError, match="1 values for 2 objectives"):
        study.tell(study.ask().number, (1.0,), {})
    with pytest.raises(PenstockError, match="size cannot be 3"):
        study.enqueue({"size": 3})
    with pytest.raises(PenstockError, match="tpe, nsga2, random"):
        local("bayes")


def test_numbers_are_ordered_and_truths_are_not():
    assert is_ordered((1, 2, 4))
    assert not is_ordered((True, False))
    assert not is_ordered(("a", "b"))


# -- several processes on one study in Postgres


def start(url: str, name: str, worker: int, count: int, *rest: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.dse.study_worker", url, name, str(worker), str(count), *rest]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.fixture
def study_url(database: Database) -> str:
    return database.study_url()


@pytest.fixture
def shared(study_url: str) -> Iterator[Study]:
    study = Study.create_or_load("shared", CHOICES, storage_url=study_url)
    yield study
    study.close()


def execute(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_processes_share_one_study_from_the_very_start(study_url: str):
    """All of them find an empty schema and make its tables, the study, and different trials."""
    workers = [start(study_url, "fresh", w, 5) for w in range(3)]
    numbers = [int(line) for w in workers for line in w.communicate(timeout=600)[0].split()]
    assert [w.returncode for w in workers] == [0, 0, 0]
    assert sorted(numbers) == list(range(15))
    study = Study.create_or_load("fresh", CHOICES, storage_url=study_url)
    trials = study.trials()
    study.close()
    assert [t.state for t in trials] == ["complete"] * 15
    assert len({str(sorted(t.params.items())) for t in trials}) > 5


def test_a_killed_process_costs_its_own_trial_only(study_url: str, shared: Study):
    victim = start(study_url, "shared", 1, 1, "hang")
    assert victim.stdout is not None
    lost = int(victim.stdout.readline())
    held = shared.ask()
    victim.kill()
    victim.wait()
    victim.stdout.close()
    assert shared.orphans(leased=[held.number]) == (lost,)
    params = shared.trial(lost).params
    assert shared.fail(lost, retry=True)
    assert shared.orphans(leased=[held.number]) == ()
    assert shared.tell(held.number, *answer(held.params))
    again = shared.ask()
    assert again.params == params
    assert shared.tell(again.number, *answer(again.params))
    states = sorted(t.state for t in shared.trials())
    assert states == ["complete", "complete", "fail"]


def test_what_one_process_asked_another_may_tell(study_url: str, shared: Study):
    asked = shared.ask()
    other = Study.create_or_load("shared", CHOICES, storage_url=study_url, worker=5)
    assert other.tell(asked.number, *answer(asked.params))
    other.close()
    assert not shared.tell(asked.number, (0.0, 0.0), {})
    assert shared.trial(asked.number).values == answer(asked.params)[0]


def test_what_a_setting_means_is_found_out_once(study_url: str):
    """By the process that asked for it; the others read it beside the setting."""

    class Meanings(dict[str, dict[str, object]]):
        def of(self, params: Params) -> str:
            name = str(sorted(params.items()))
            self[name] = dict(params)
            return name

    mine, others = Meanings(), Meanings()
    with closing(Study.create_or_load("meant", CHOICES, storage_url=study_url, meaning=mine.of)) as study:
        asked = [study.ask() for _ in range(6)]
        for one in asked:
            study.tell(one.number, *answer(one.params))
    with closing(Study.create_or_load("meant", CHOICES, storage_url=study_url, worker=1, meaning=others.of)) as study:
        found = study.ask().params
    settings = [one.params for one in asked]
    assert found in others.values()
    assert found not in settings
    assert all(params in mine.values() for params in settings)
    assert not any(params in settings for params in others.values())


def test_an_answer_is_not_for_whoever_got_the_number_of_a_lost_trial(study_url: str, shared: Study):
    """A crash of the server may lose a trial without an answer; its number is then given again."""
    asked = shared.ask()
    execute(study_url, "UPDATE trials SET datetime_start = datetime_start + interval '1 second'")
    assert not shared.tell(asked.number, *answer(asked.params))
    assert shared.trial(asked.number).state == "running"


def test_a_connection_that_was_cut_is_found_out(study_url: str, shared: Study, monkeypatch: pytest.MonkeyPatch):
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    asked = shared.ask()
    execute(study_url, cut)
    with pytest.raises(OperationalError):
        shared.ask()
    assert shared.tell(asked.number, *answer(asked.params)), "a new one was made"
    execute(study_url, cut)
    monkeypatch.setattr("penstock.dse.search.rows._TRUSTED_SECONDS", 0.0)
    assert shared.ask().number == 1, "it was tried before it was used"


def test_a_deleted_study_is_gone_and_may_be_deleted_again(study_url: str, shared: Study):
    shared.ask()
    for _ in range(2):
        with create_engine(study_url).begin() as connection:
            forget_study(connection, "optuna", "shared")
        connection.engine.dispose()
    with pytest.raises(PenstockError, match="deleted"):
        shared.tell(0, (1.0, 1.0), {})


def test_studies_live_in_a_schema_of_their_own(study_url: str, shared: Study):
    assert "search_path" in make_url(study_url).query["options"]
    assert shared.name == "shared"
