"""The table of steps: every kind has its body, and what cannot import the table says the same."""

from __future__ import annotations

import importlib

import pytest

from penstock.db.repositories.queues import HELD_BY_PAUSE
from penstock.services.step_kinds import STEP_KINDS, StepKey
from penstock.services.steps import registry


def test_every_kind_has_a_body() -> None:
    importlib.import_module("penstock.services.steps.bodies")
    assert all(registry.find(name) is not None for name in STEP_KINDS)


def test_the_database_holds_back_what_the_table_says() -> None:
    assert set(HELD_BY_PAUSE) == {name for name, kind in STEP_KINDS.items() if kind.held_by_pause}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("import", StepKey("import")),
        ("trial/0007", StepKey("trial", 7)),
        ("trial/12345", StepKey("trial", 12345)),
        ("select@2", StepKey("select", turn=2)),
        ("measure/0003@12", StepKey("measure", 3, 12)),
    ],
)
def test_a_key_is_printed_as_it_is_read(text: str, key: StepKey) -> None:
    assert StepKey.parse(text) == key
    assert str(key) == text


def test_only_what_comes_after_a_choice_is_done_once_more() -> None:
    again = {name for name in STEP_KINDS if StepKey(name).in_turn(2).turn == 2}
    assert again == {"shortlist", "measure", "select", "verify", "link", "package"}


def test_what_is_no_number_is_none() -> None:
    assert StepKey.parse("thing/of/others@x") == StepKey("thing")
