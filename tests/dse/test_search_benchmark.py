"""The search's benchmark says which of its goals it reached: any figure on the wrong side of its goal is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import explore
from benchmarks.dse import AT_LEAST, AT_MOST, goal_rows
from penstock.dse.search.second import SecondProcess


def test_a_goal_is_met_on_its_own_side_only():
    """What is exactly at its goal has reached it."""
    reached = {**AT_LEAST, **AT_MOST}
    assert all(row["met"] for row in goal_rows(reached))
    for name in AT_LEAST:
        assert [row["figure"] for row in goal_rows({**reached, name: AT_LEAST[name] - 0.1}) if not row["met"]] == [name]
    for name in AT_MOST:
        assert [row["figure"] for row in goal_rows({**reached, name: AT_MOST[name] + 0.1}) if not row["met"]] == [name]


def test_a_case_whose_row_is_kept_is_not_searched_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    searched: list[str] = []

    def found(case: explore.ExploreCase, _: SecondProcess | None) -> explore.Row:
        searched.append(case.label)
        row: explore.Row = {"case": case.name, "dsp_allowed": case.dsp, "cycles": 120, "kept_cycles": 110}
        return {**row, "gap_pct": 20.0, "trials": 4, "infeasible": 1, "seconds": 3.5, "cpu_s": 2.5}

    monkeypatch.setattr(explore, "_row", found)
    keep = tmp_path / "rows.jsonl"
    first = explore.run(only="gemm/*", limit=2, keep=keep)
    assert searched == ["gemm/100", "gemm/320"]
    again = explore.run(only="gemm/*", keep=keep)
    assert searched[2:] == ["gemm/1000", "gemm/3000", "gemm/9000"]
    assert again.rows[:2] == first.rows
    assert first.summary["max_cpu_s"] == 2.5
    assert first.summary["worse_than_kept"] == 2
