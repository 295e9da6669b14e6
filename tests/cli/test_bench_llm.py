"""The benchmark of language models: rows that fail alone, what is made of them, and the page that shows a kept run."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path

import pytest

from benchmarks import llm
from benchmarks.language import page, part, rows
from benchmarks.language.cards import cut, exchange_ms, transfer_ms
from benchmarks.language.part import TEXTS as OWN_TEXTS
from benchmarks.language.part import names
from benchmarks.language.published import TEXTS
from benchmarks.language.whole import LAYERS, START_US, text_row
from penstock.compiler.errors import PenstockError
from tests.cli.written_pages import kept_run

LAYER = {"part": "layer", "name": "layer/64", "cycles": 5000, "clock_mhz": 250.0, "bound_cycles": 4000.0,
         "energy_uj": 100.0, "of_run_pct": 80.0, "dsp_used": 1000, "dsp_available": 9024}  # fmt: skip
HEAD = {"part": "head", "name": "head/gpt2", "cycles": 25000, "clock_mhz": 250.0, "energy_uj": 600.0,
        "dsp_used": 500, "dsp_available": 9024}  # fmt: skip
SHARES = {f"share/{n}": {"part": "share", "name": f"share/{n}", "cycles": 5000 // n, "clock_mhz": 250.0}
          for n in (2, 4)}  # fmt: skip


def test_a_text_is_calls_of_all_layers_and_a_head_a_token_that_is_written() -> None:
    row = text_row(LAYER, HEAD, 32, 4)
    layer_ms, head_ms = 0.02, 0.1
    assert row["first_ms"] == pytest.approx(8 * LAYERS * layer_ms + head_ms)
    assert row["latency_ms"] == pytest.approx((8 + 31) * LAYERS * layer_ms + 32 * head_ms)
    assert row["tokens_per_second"] == pytest.approx(1e3 / (LAYERS * layer_ms + head_ms), abs=0.1)
    assert row["dsp_together"] == 1500
    assert row["streamtensor_latency_ms"] == TEXTS["streamtensor"][32].latency_ms
    assert (row["codo_first_ms"], text_row(LAYER, HEAD, 256, 4)["codo_first_ms"]) == (20.4, None)


def test_all_layers_of_a_token_are_one_start_where_they_feed_each_other() -> None:
    alone, row = (text_row({**LAYER, "by_list": by_list, "memories": 30}, HEAD, 32, 4) for by_list in (False, True))
    assert (alone["starts_a_token"], row["starts_a_token"]) == (LAYERS + 1, 2)
    sequencer = (LAYERS * (30 + 63 + 4) + 64 + 1) / 250.0  # cycles: read latency 64, a word each, and gaps
    assert (alone["list_overhead_us"], row["list_overhead_us"]) == (None, pytest.approx(sequencer, abs=0.01))
    calls, latency = 8 + 31, float(str(row["latency_ms"]))
    assert row["with_starts_latency_ms"] == pytest.approx(
        latency + 1e-3 * (calls * (START_US + sequencer) + 32 * START_US), abs=0.001
    )
    each = latency + 1e-3 * START_US * (calls * LAYERS + 32)
    assert alone["with_starts_latency_ms"] == alone["each_started_latency_ms"] == row["each_started_latency_ms"]
    assert row["each_started_latency_ms"] == pytest.approx(each, abs=0.001)


def test_cards_share_layers_as_evenly_as_they_can() -> None:
    costs = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0]
    for cards in (1, 2, 3, 4):
        every = [
            max(sum(costs[a:b]) for a, b in pairwise((0, *sorted(ends), len(costs))))
            for ends in product(range(len(costs) + 1), repeat=cards - 1)
        ]
        found = cut(costs, cards)
        assert found.slowest == min(every)
        assert sum(found.stages) == sum(costs)
        assert len(found.stages) == cards
    assert exchange_ms(1024, 4) == 2 * exchange_ms(1024, 2) == 2 * transfer_ms(1024)


def test_figures_are_made_of_the_rows_that_are_there() -> None:
    two = {**LAYER, "name": "layer/64/2", "cycles": 6000, "of_run_pct": 67.0}
    parts: dict[str, rows.Row] = {"layer/64": LAYER, "layer/64/2": two, "head/gpt2": HEAD, **SHARES}
    made = llm.figures(parts, ["text/32", "text/32/one", "devices/2"])
    text, one, cards = made.rows
    assert made.summary["ttft_32_ms"] == text["first_ms"] == pytest.approx(16 * LAYERS * 0.024 + 0.1)
    assert one["first_ms"] == pytest.approx(32 * LAYERS * 0.02 + 0.1)
    assert made.summary["decode_pct_of_bandwidth_bound"] == 80.0
    assert made.summary["scaling_2"] == cards["scaling"]
    assert 1.8 < float(str(cards["scaling"])) <= 2.0
    assert float(str(cards["one_text_scaling"])) < 2.0
    assert made.summary["max_compile_s"] is None
    alone = llm.figures({"layer/64": LAYER}, ["text/32", "devices/4"])
    assert all("reason" in row for row in alone.rows)
    assert alone.summary["ttft_32_ms"] is None
    assert alone.summary["rows_without_figures"] == 2


def test_what_a_row_is_made_of_runs_with_it() -> None:
    assert llm.needed(["text/64"]) == ["layer/512/2", "head/gpt2"]
    assert llm.needed(["text/32"]) == ["layer/64/2", "head/gpt2"]
    assert set(llm.needed(["devices/4"])) == {"layer/64", "head/gpt2", "share/4"}
    assert llm.needed(llm.all_names()) == names()


def test_a_row_that_fails_is_a_row_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[str] = []

    def run_row(name: str) -> rows.Row:
        ran.append(name)
        return {"part": name.split("/")[0], "name": name, "wall_s": 1.0, "reason": "it failed"}

    monkeypatch.setattr(rows, "run_row", run_row)
    keep = tmp_path / "rows.jsonl"
    figures = llm.run(only="text", keep=keep)
    assert [row["reason"] for row in figures.rows] == ["it failed"] * len(OWN_TEXTS)
    assert sorted(ran) == sorted(["layer/64", "layer/64/2", "layer/512/2", "head/gpt2"])
    llm.run(only="text/32", keep=keep)
    assert len(ran) == 4


def test_a_model_that_eight_bits_spoil_makes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As no user gets a design of it: its answers would be worth nothing, however fast they came."""
    model = tmp_path / "unlike.py"
    model.write_text(
        "import torch\n"
        "def model():\n"
        "    torch.manual_seed(0)\n"
        "    first, last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)\n"
        "    with torch.no_grad():\n"
        "        first.weight[0] *= 1e5\n"
        "        last.weight[:, 0] = 0\n"
        "    return torch.nn.Sequential(first, torch.nn.Tanhshrink(), last).eval(), (torch.ones(1, 8),)\n"
    )
    monkeypatch.setattr(part, "model_of", lambda _: f"{model}:model")
    with pytest.raises(PenstockError) as refused:
        part.row_of("layer/64")
    assert refused.value.code == "eight-bits-too-few"


def test_a_row_in_its_process_ends_in_time_and_says_what_was_wrong() -> None:
    assert rows.run_row("layer/64", 1)["reason"] == "ended after 1 s of processor time"


def test_the_page_is_what_the_command_writes_of_the_kept_run() -> None:
    run = kept_run(page.WRITTEN, "llm", "benchmarks.language")
    kept = [row["name"] for row in run["rows"]]
    assert kept == [name for name in llm.all_names() if name in kept]
    assert set(OWN_TEXTS) <= set(kept)
    assert run["summary"] == llm.summary(run["rows"])
    assert all(row["chunk"] == OWN_TEXTS[row["name"]].chunk for row in run["rows"] if row["part"] == "text")


def test_a_run_with_nothing_found_is_a_page_as_well(tmp_path: Path) -> None:
    failed = [{"part": name.split("/")[0], "name": name, "reason": "as a test"} for name in llm.all_names()]
    (tmp_path / "docs").mkdir()
    page.WRITTEN.write({**page.WRITTEN.read(), "rows": failed, "summary": llm.summary(failed)}, tmp_path)
    text = (tmp_path / page.PAGE).read_text()
    assert "not found" in text
    assert "not measured" in text
    page.WRITTEN.write({**page.WRITTEN.read(), "rows": [], "summary": {}}, tmp_path)
    assert "not run" in (tmp_path / page.PAGE).read_text()
    assert json.loads(json.dumps(page.WRITTEN.read())) == page.WRITTEN.read()
