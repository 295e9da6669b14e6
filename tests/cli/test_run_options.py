"""Every option of a run reaches the command line, the API and the page from its one line in the table."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import pytest

from penstock.services.api.answers.schemas import NewRun
from penstock.services.cli.compile import compile
from penstock.services.cli.explore import explore
from penstock.services.cli.runs import submit
from penstock.services.run_options import RunOptions, option_labels, said
from penstock.services.step_kinds import STEP_KINDS
from penstock.web.run_view import view_run
from penstock.web.trials_view import KnownTrials

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


def test_the_page_shows_options_in_the_tables_order() -> None:
    stored = RunOptions.model_validate({}).model_dump(mode="json")
    view = view_run(
        {**EMPTY_RUN, "options": dict(sorted(stored.items()))}, trials=KnownTrials(), artifacts=(), last_news=None,
        workers_alive=1, option_labels=option_labels(), step_kinds=STEP_KINDS, now=datetime.now(UTC),
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
