"""Designs too large for the stream interpreter are checked without it, and the report says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock.services.jobs.check as check
from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.verify import stream_values, stream_work
from penstock.profiling.tool_runner import ToolRunner


def test_a_level_that_was_not_run_is_not_called_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canonical = prepare(import_model("zoo:mlp?inputs=4&hidden=3&outputs=2"))
    lowered = lower(canonical, default_design(read_graph(canonical.module), "u55c", 300.0))
    emit(lowered, tmp_path, part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    whole = check.check_design(lowered, tmp_path, ToolRunner())
    assert [level.level for level in whole.verify.levels] == ["itensor", "stream"]

    monkeypatch.setattr(check, "MOST_STREAM_SLOTS", stream_work(lowered))
    short = check.check_design(lowered, tmp_path, ToolRunner())
    (level,) = short.verify.levels
    assert level.level == "itensor"
    assert f"{3 * stream_work(lowered)} pipeline slots" in level.note
    assert short.passed

    monkeypatch.setattr(check, "MOST_STREAM_SLOTS", 3 * stream_work(lowered))
    monkeypatch.setattr(check, "MOST_STREAM_VALUES", 3 * stream_values(lowered))
    assert [level.level for level in check.check_design(lowered, tmp_path, ToolRunner()).verify.levels][1:] == [
        "stream"
    ]
    monkeypatch.setattr(check, "MOST_STREAM_VALUES", 3 * stream_values(lowered) - 1)
    (wide,) = check.check_design(lowered, tmp_path, ToolRunner()).verify.levels
    assert "values in lanes" in wide.note
