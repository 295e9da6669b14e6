"""Every option of a run reaches the command line, the API and the page from its one line in the table."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.services.api.answers.schemas import NewRun
from penstock.services.cli.compile import compile
from penstock.services.cli.explore import explore
from penstock.services.cli.runs import submit
from penstock.services.jobs.search_settings import SearchSettings
from penstock.services.run_options import RunOptions, option_labels, said
from penstock.services.step_kinds import STEP_KINDS
from penstock.web.run_view import view_run
from penstock.web.trials_view import KnownTrials
from tests.cli.test_compile import penstock

COMMANDS = {"compile": compile, "explore": explore, "submit": submit}
EMPTY_RUN = {
    "id": "run_1", "name": "a run", "state": "queued", "paused": False, "summary": {}, "steps": [], "waiting_for": "",
    "model": {"id": "mdl_1", "name": "m", "kind": "zoo", "url": ""}, "best": None, "chosen": None, "error": None,
    "progress": dict.fromkeys(
        ("steps_done", "steps_total", "trials_done", "trials_failed", "trials_running", "trials_total"), 0
    ),
    "created_at": "2026-01-01T00:00:00Z", "started_at": None, "finished_at": None, "last_event_id": 0, "page": "",
}  # fmt: skip


@pytest.mark.parametrize("name", list(RunOptions.model_fields))
def test_an_option_is_taken_by_its_commands_and_the_api(name: str) -> None:
    assert name in NewRun.model_json_schema()["properties"]
    assert said(name).commands
    for command, function in COMMANDS.items():
        assert (name in inspect.signature(function).parameters) == (command in said(name).commands)


@pytest.mark.parametrize(("option", "value"), [("--fifo-slack", 101), ("--gap", 1001), ("--fifo-simulations", 100_001)])
def test_a_command_refuses_what_the_api_would(option: str, value: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert penstock("compile", "zoo:mlp", option, str(value)) == 2
    assert f"less than or equal to {value - 1}" in " ".join(capsys.readouterr().err.split())


def test_the_page_shows_options_in_the_tables_order() -> None:
    stored = RunOptions.model_validate({}).model_dump(mode="json")
    view = view_run(
        {**EMPTY_RUN, "options": dict(sorted(stored.items()))}, trials=KnownTrials(), artifacts=(), last_news=None,
        service={"workers_alive": 1, "disk": {"status": "ok", "detail": ""}}, option_labels=option_labels(),
        step_kinds=STEP_KINDS, now=datetime.now(UTC),
    )  # fmt: skip
    shown = dict(view.options)
    assert list(shown) == [label for name, (label, absent) in option_labels().items()
                           if name in stored and (stored[name] is not None or absent)]  # fmt: skip
    assert shown["quantize"] == "as the model is"
    assert shown["limits"] == "those of the platform"
    assert shown["fixed"] == "nothing"


def test_what_a_run_does_not_say_is_as_by_default() -> None:
    found = RunOptions.stored({"platform": "u280", "seed": None, "extended": 8})
    assert found == RunOptions.model_validate({"platform": "u280"})


@pytest.mark.parametrize(
    ("name", "value"),
    [("sampler", "random"), ("seed", 3), ("fix", ["order=parallel-outer"]), ("fifo_simulations", 7),
     ("fifo_slack", 1.0), ("gap", 5.0), ("max_lanes", 8), ("objectives", ["throughput"])],
)  # fmt: skip
def test_a_command_searches_as_a_run_does(name: str, value: Any) -> None:
    """Both read the options in one place, and a search that is asked for otherwise is another one."""
    asked = {one: field.get_default(call_default_factory=True) for one, field in RunOptions.model_fields.items()}
    run, usual = RunOptions.model_validate({name: value}), RunOptions.model_validate({})
    of_run = SearchSettings.of(dict(run), run.goal)
    assert SearchSettings.of({**asked, name: value}, run.goal) == of_run
    assert of_run != SearchSettings.of(dict(usual), usual.goal)
