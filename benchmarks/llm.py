"""Language models at the sizes of StreamTensor's table 7 on its card, in W8A8, beside the published figures.

Rows by `part`. `compile`: seconds a stage from PyTorch to HLS C++ (benchmark `compile`). `memory`: what a block's
design leaves of the intermediate memory (`searched.py`), for prefills of 128 tokens, its resources beside the card's,
and its largest buffers. `text`: GPT-2-medium with all layers, each of which one accelerator computes in turn
(`zoo:gpt2_text?size=medium&cache=64&chunk=2#h`), with the head beside it on the card: `layer`, `head`. `prefill`: a
block that reads a prompt of 32 at once; `share` is a layer's part on one of several cards. `devices`: several cards.
How whole texts and several cards are put together is in `language/whole.py` and `language/cards.py`.

Every row is a process that may take ten minutes of a processor; one that fails is a row with its reason.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.asked import is_asked_for
from benchmarks.kept_rows import keep_row, kept_rows
from benchmarks.language.part import TEXTS, names
from benchmarks.language.rows import Row, run_rows
from benchmarks.language.whole import cards_row, number, text_row
from benchmarks.registry import Figures, Value

CARDS = (2, 4)
HEAD, SHORT, SHORT_ONE = "head/gpt2", "text/32", "text/32/one"


def run(only: str = "", limit: int | None = None, keep: Path | None = None) -> Figures:
    """`only` is a part of a row's name, as `memory/llama` or `text`, or a pattern; what it is made of runs as well.

    Rows go to the end of the file `keep` when they are there, and those that it has are not run again.
    """
    asked = [name for name in all_names() if is_asked_for(name, only)][:limit]
    rows: dict[str, Row] = {row["name"]: row for row in kept_rows(keep)}
    wanted = [name for name in needed(asked) if name not in rows]

    def found(name: str, row: Row) -> None:
        rows[name] = row
        print(f"llm: {name}: {row.get('reason') or 'done'}, {row['wall_s']} s", file=sys.stderr, flush=True)
        keep_row(keep, row)

    run_rows(wanted, found)
    return figures(rows, asked)


def figures(rows: dict[str, Row], asked: Sequence[str]) -> Figures:
    """The rows that were asked for, from those that were run, with what is known of them together."""
    nothing: Row = {}
    made = dict(rows)
    for name, text in TEXTS.items():
        layer, head = rows.get(text.layer, nothing), rows.get(HEAD, nothing)
        made[name] = {**text_row(layer, head, text.tokens, text.chunk), "part": "text", "name": name}
    for cards in CARDS:
        share = rows.get(f"share/{cards}", nothing)
        made[f"devices/{cards}"] = cards_row(
            cards, rows.get(TEXTS[SHORT_ONE].layer, nothing), rows.get(HEAD, nothing), share
        )
    answer = [made[name] for name in asked]
    return Figures("simulated", answer, summary(answer))


def all_names() -> list[str]:
    return [*TEXTS, *names(), *(f"devices/{cards}" for cards in CARDS)]


def needed(asked: Sequence[str]) -> list[str]:
    """The rows that must be run for those that are asked for."""
    wanted = set(asked)
    for name in asked:
        if name in TEXTS:
            wanted.update(TEXTS[name].needs)
        elif name.startswith("devices/"):
            wanted.update((*TEXTS[SHORT_ONE].needs, f"share/{name.removeprefix('devices/')}"))
    return [name for name in names() if name in wanted]


def summary(rows: Sequence[Row]) -> dict[str, Value]:
    by_name = {str(row["name"]): row for row in rows}

    def of(part: str, figure: str) -> list[float]:
        return [value for row in rows if row["part"] == part and (value := number(row, figure)) is not None]

    def figure(name: str, which: str) -> Value:
        return by_name.get(name, {}).get(which)

    return {
        "max_compile_s": max(of("compile", "cpu_s"), default=None),  # of the processor: a busy machine says less
        "max_memory_pct": max(of("memory", "memory_pct"), default=None),
        "ttft_32_ms": figure(SHORT, "first_ms"),
        "latency_32_32_ms": figure(SHORT, "latency_ms"),
        "decode_pct_of_bandwidth_bound": figure(SHORT_ONE, "of_run_pct"),
        "prefill_pct_of_compute_bound": min(of("prefill", "compute_pct"), default=None),
        "scaling_2": figure("devices/2", "scaling"),
        "scaling_4": figure("devices/4", "scaling"),
        "one_text_scaling_2": figure("devices/2", "one_text_scaling"),
        "one_text_scaling_4": figure("devices/4", "one_text_scaling"),
        "rows_without_figures": sum("reason" in row for row in rows),
    }
