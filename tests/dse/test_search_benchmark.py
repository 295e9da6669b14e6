"""The search's benchmark says which of its goals it reached: any figure on the wrong side of its goal is named."""

from __future__ import annotations

from benchmarks.dse import AT_LEAST, AT_MOST, goal_rows


def test_a_goal_is_met_on_its_own_side_only():
    """What is exactly at its goal has reached it."""
    reached = {**AT_LEAST, **AT_MOST}
    assert all(row["met"] for row in goal_rows(reached))
    for name in AT_LEAST:
        assert [row["figure"] for row in goal_rows({**reached, name: AT_LEAST[name] - 0.1}) if not row["met"]] == [name]
    for name in AT_MOST:
        assert [row["figure"] for row in goal_rows({**reached, name: AT_MOST[name] + 0.1}) if not row["met"]] == [name]
