"""The page of a C++ kernel: figures before and after, who waits for whom, and what limits which line."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.profiling.kernels.analysis import Analysis, analyse_kernel
from penstock.profiling.kernels.page import comparison_page
from penstock.web.kernel_view import view_kernel_run
from tests.web.reports import KERNEL, kernel_record


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return kernel_record()


def test_what_limits_a_loop_stands_at_its_line(record: dict[str, Any]) -> None:
    view = view_kernel_run(record)
    slow = next(loop for loop in record["before"]["loops"] if loop["ii"] > 1)
    number = int(slow["limit_at"].split(":")[1])
    line = view.before.lines[number - 1]
    assert line.limits
    assert f"II = {slow['ii']}: {slow['limit']}" in line.notes
    assert [row.ii for row in view.before.loops] == sorted((row.ii for row in view.before.loops), reverse=True)
    assert sum(row.limits for row in view.before.lines) == view.before.slow


def test_tasks_say_whom_they_wait_for(record: dict[str, Any]) -> None:
    view = view_kernel_run(record)
    waits = {task.name: task.waits for task in view.before.tasks}
    told = [task for task in record["before"]["tasks"] if task["waits"]]
    assert told
    for task in told:
        channel, _, cycles = task["waits"][0]
        assert waits[task["name"]][0].startswith(f"{cycles:,} cycles for {channel}")
    assert all(0 <= bar.start + bar.width <= 100.5 for bar in view.before.tasks)


def test_figures_stand_side_by_side(record: dict[str, Any]) -> None:
    view = view_kernel_run(record)
    latency = view.changes[0]
    assert latency.before == f"{record['before']['latency']:,} cycles"
    assert latency.better is True
    assert latency.ratio.endswith("times as fast")
    assert view.done == ("chain.cpp:15:1: depth of between 32 -> 44",)
    undone = view_kernel_run({**record, "exploration": {**record["exploration"], "values": {"not": "no reason"}}})
    assert not undone.values_known
    assert "not tried: no reason" in undone.values


def test_the_page_to_take_home_has_both_and_no_markup_of_the_source(record: dict[str, Any]) -> None:
    before = Analysis.read({**record["before"], "notes": ["<script>alert(1)</script>"]})
    page = comparison_page(before, Analysis.read(record["after"]), record["exploration"])
    assert "<script>" not in page
    assert len(re.findall(r"<h2>(?:Now|As sent): Loops</h2>", page)) == 2
    assert "32 -> 44" in html.unescape(page)


def test_an_analysis_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "chain.cpp"
    path.write_text(KERNEL)
    found = analyse_kernel(path, "chain")
    assert Analysis.read(json.loads(json.dumps(found.to_json()))) == found
