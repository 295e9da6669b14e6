"""Moves of what is fed from outside: settings of the space, in which what goes together is changed at once."""

from __future__ import annotations

from penstock.dse.lanes.binding import MULTIPLIERS
from penstock.dse.search.outside import fed_otherwise, loaded_late, loaded_once, run_ahead, shared_out, striped
from penstock.dse.space.external import PREFETCH, STRIPES
from penstock.dse.space.fitted import IN_TURN
from penstock.dse.space.reloading import RELOAD
from penstock.dse.space.tiling import Choices, Value

CHOICES: Choices = {
    MULTIPLIERS: ("dsp", "fabric", "paired"), STRIPES: (1, 2, 4, 8), PREFETCH: (0, 16, 128, 256, 512, 1024),
    IN_TURN: (False, True), "walk.a": ("0", "1"),
}  # fmt: skip
HERE: dict[str, Value] = {MULTIPLIERS: "dsp", STRIPES: 8, PREFETCH: 128, IN_TURN: True, "walk.a": "1"}


def test_multipliers_banks_and_loads_change_together() -> None:
    found = fed_otherwise(CHOICES, HERE)
    met = {(state[MULTIPLIERS], state[STRIPES], state[PREFETCH]) for state in found}
    assert met == {(m, s, p) for m in CHOICES[MULTIPLIERS] for s in (4, 8) for p in (128, 1024)} - {("dsp", 8, 128)}
    assert len(found) == len(met)
    assert all(state["walk.a"] == "1" and state[IN_TURN] is True for state in found)


def test_at_the_ends_of_what_there_is_fewer_are_tried() -> None:
    far = fed_otherwise(CHOICES, {**HERE, STRIPES: 1, PREFETCH: 1024})
    assert {(state[STRIPES], state[PREFETCH]) for state in far} == {(1, 1024)}
    assert [state[MULTIPLIERS] for state in far] == ["fabric", "paired"]
    no_kinds = {name: values for name, values in CHOICES.items() if name != MULTIPLIERS}
    assert [MULTIPLIERS in state for state in fed_otherwise(no_kinds, {STRIPES: 2, PREFETCH: 0})] == [False] * 3
    assert fed_otherwise(CHOICES, {MULTIPLIERS: "dsp"}) == []


def test_loads_that_run_ahead_by_nothing_are_another_setting_only_where_they_did() -> None:
    assert loaded_late(CHOICES, [HERE, {**HERE, PREFETCH: 0}]) == [{**HERE, PREFETCH: 0}]
    assert loaded_late({}, [{"walk.a": "1"}]) == []


def test_what_somebody_fixed_stays() -> None:
    fixed: Choices = {MULTIPLIERS: ("dsp",), STRIPES: (8,), PREFETCH: (128,), IN_TURN: (True,)}
    assert loaded_late(fixed, [HERE]) == []
    assert fed_otherwise(fixed, HERE) == []
    assert list(striped(fixed, HERE)) == []
    assert list(shared_out(fixed, HERE)) == []
    assert list(run_ahead(fixed, HERE, far=True)) == []


def test_banks_are_halved_and_doubled() -> None:
    assert [state[STRIPES] for state in striped(CHOICES, {**HERE, STRIPES: 4})] == [2, 8]
    assert [state[STRIPES] for state in striped(CHOICES, HERE)] == [4]
    assert list(striped(CHOICES, {"walk.a": "1"})) == []


def test_loads_run_ahead_by_a_little_or_by_far() -> None:
    assert [state[PREFETCH] for state in run_ahead(CHOICES, HERE)] == [16, 256]
    assert [state[PREFETCH] for state in run_ahead(CHOICES, HERE, far=True)] == [0, 16, 256, 512, 1024]
    assert [state[IN_TURN] for state in shared_out(CHOICES, HERE)] == [False]


def test_inputs_are_loaded_once_or_once_more_where_that_is_asked() -> None:
    asked = {**CHOICES, RELOAD: (True, False)}
    assert [state[RELOAD] for state in loaded_once(asked, {**HERE, RELOAD: True})] == [False]
    assert list(loaded_once(CHOICES, HERE)) == []
