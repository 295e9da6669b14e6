"""The benchmark `blocks`: a page that is what the command writes of the kept run, and what it says of a row."""

from __future__ import annotations

from benchmarks import blocks_page as page
from benchmarks.blocks import BlockCase, cases
from tests.cli.written_pages import kept_run


def test_the_page_is_what_the_command_writes_of_the_kept_run() -> None:
    run = kept_run(page.WRITTEN, "blocks", "benchmarks.blocks_page")
    assert [BlockCase(row["block"], row["mode"], row["tokens"]) for row in run["rows"]] == cases()


def test_what_misses_a_goal_is_bold_and_what_has_no_figures_says_why() -> None:
    row = {
        "block": "gemma", "mode": "decode", "tokens": 64, "cycles": 1500, "bound": 1000, "bandwidth_pct": 84.9,
        "memory_pct": 15.0, "dsp": 9, "explore_s": 120.5,
    }  # fmt: skip
    stuck = {"block": "qwen", "mode": "decode", "tokens": 32, "cycles": None, "reason": "it stops"}
    run = {"machine": {"processor": "P", "cores": 2}, "rows": [row, stuck]}
    text = page.files(run)[page.PAGE]
    assert "| Gemma, 64 | 1,500 | 1.50 x | **84.9 %** | 15 % | 9 | **120.5 s** |" in text
    assert "No figures for Qwen, 32: it stops." in text
