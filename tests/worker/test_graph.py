"""The steps that a run begins with, by what was asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.db.schema.records import Model, NewStep
from penstock.services.steps.graph import measure_steps, run_steps, trial_steps

MODEL = Model("mod_1", "m", "zoo", "zoo:m", None, None, {}, None, datetime.now(UTC))
PLAIN = ["import explore", "explore select", "select verify", "verify package"]


def edges(**options: Any) -> list[str]:
    return [f"{need} {step.key}" for step in run_steps(MODEL, options) for need in step.needs]


@pytest.mark.parametrize("evidence", ["modelled", "simulated", "open-rtl"])
def test_what_takes_minutes_at_most_is_measured_where_it_is_chosen(evidence: str) -> None:
    assert edges(platform="u55c", evidence=evidence) == PLAIN
    [trial] = trial_steps(1, {"evidence": evidence})
    assert trial.needed_by == ("select",)


@pytest.mark.parametrize("evidence", ["csynth", "cosim"])
def test_tools_measure_each_design_in_a_step_of_its_own(evidence: str) -> None:
    options = {"platform": "u55c", "evidence": evidence}
    assert edges(**options) == [
        "import explore", "explore shortlist", "shortlist select", "select verify", "verify link", "verify package",
        "link package",
    ]  # fmt: skip
    steps = {step.key: step for step in run_steps(MODEL, options)}
    assert {key: step.queue for key, step in steps.items()} == {
        "import": "import", "explore": "explore", "shortlist": "explore", "select": "profile", "verify": "build",
        "link": "build", "package": "build",
    }  # fmt: skip
    assert [key for key, step in steps.items() if step.may_fail] == ["link"]
    [trial] = trial_steps(1, options)
    assert trial.needed_by == ("shortlist",)
    assert measure_steps([7])[0] == NewStep(
        "measure",
        "measure/0007",
        "profile",
        {"number": 7, "turn": 1},
        needed_by=("select",),
        may_fail=True,
        licence="vitis_hls",
    )


@pytest.mark.parametrize(
    ("options", "linked"),
    [
        ({"platform": "u55c", "evidence": "csynth", "bitstream": "none"}, False),
        ({"platform": "u55c", "evidence": "simulated", "bitstream": "hw_emu"}, True),
        ({"platform": "u280", "bitstream": "hw"}, True),
        ({"platform": "zcu104", "evidence": "csynth"}, False),
        ({"platform": "ulx3s-85f", "evidence": "open-rtl", "bitstream": "hw"}, False),
    ],
)
def test_only_what_has_a_shell_of_amds_is_linked(options: dict[str, Any], linked: bool) -> None:
    assert ("verify link" in edges(**options)) is linked
