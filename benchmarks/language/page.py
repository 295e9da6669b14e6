"""docs/llm.md and its pictures: tables 4 to 7 and figure 10 of StreamTensor's paper, from the figures of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.language.cards import GBIT_S, HOP_US
from benchmarks.language.models import TOKENS
from benchmarks.language.part import MANY_RUNS, QUANTISED, SLACK
from benchmarks.language.part import TEXTS as OWN_TEXTS
from benchmarks.language.pictures import grouped_bars, piled_bars, short
from benchmarks.language.published import (
    COMPILE_S,
    FAMILIES,
    FPGAS,
    GPUS,
    MEMORY_PCT,
    NAMES,
    NOTES,
    PLATFORMS,
    TEXTS,
    PublishedText,
)
from benchmarks.language.whole import START_US, Row, number
from benchmarks.written_page import ROOT, WrittenPage
from penstock.compiler.platforms import RESOURCE_NAMES, load_platform

PAGE = Path("docs") / "llm.md"
_OURS = "Penstock"
_WHAT: tuple[tuple[str, str, Callable[[PublishedText], float | None], str], ...] = (
    ("latency", "latency_ms", lambda text: text.latency_ms, "ms"),
    ("first token", "first_ms", lambda text: text.first_ms, "ms"),
    ("speed", "tokens_per_second", lambda text: text.tokens_per_second, "tokens/s"),
)
_STAGES_LEFT_OUT = ("total_s", "cpu_s", "warm_up_s", "wall_s")


def files(run: Mapping[str, Any]) -> dict[Path, str]:
    """Everything that is written, by its place in the repository, from one object of `penstock bench llm --json`."""
    rows: dict[str, Row] = {str(row["name"]): row for row in run["rows"]}
    drawn = {PAGE.parent / f"llm-{name}.svg": text for name, text in _pictures(rows).items()}
    return {PAGE: _page(run, rows), **drawn}


WRITTEN = WrittenPage(ROOT / "benchmarks" / "data" / "llm.json", files)


def _pictures(rows: Mapping[str, Row]) -> dict[str, str]:
    def beside(figure: str, of: Callable[[PublishedText], float | None]) -> dict[str, dict[str, float | None]]:
        return {
            _title(name): {
                f"{_OURS} (simulated)": number(rows.get(name, {}), figure),
                **{NAMES[rival]: of(TEXTS[rival].get(text.tokens, PublishedText())) for rival in (*FPGAS, *GPUS)},
            }
            for name, text in OWN_TEXTS.items()
        }

    compiled = {
        f"{FAMILIES_NAMED[family]} {mode}": {stage: value for stage, value in _stages(row).items() if value >= 0.02}
        for family in FAMILIES for mode in ("prefill", "decode") if (row := rows.get(f"compile/{family}/{mode}"))
    }  # fmt: skip
    memory: dict[str, dict[str, float | None]] = {
        FAMILIES_NAMED[family]: {
            f"{_OURS} (simulated)": number(rows.get(f"memory/{family}", {}), "memory_pct"),
            "StreamTensor, least": MEMORY_PCT[0], "StreamTensor, most": MEMORY_PCT[1],
        }
        for family in FAMILIES
    }  # fmt: skip
    pictures = {
        what.replace(" ", "-"): grouped_bars(f"GPT-2-medium, {what}", beside(figure, of), unit)
        for what, figure, of, unit in _WHAT
    }
    return pictures | {
        "memory": grouped_bars("Intermediate memory that fusion leaves", memory, "% of before"),
        "seconds": piled_bars("From PyTorch to HLS C++ (wall-clock)", compiled, "s"),
    }


FAMILIES_NAMED = {"gpt2": "GPT-2", "qwen": "Qwen", "llama": "Llama", "gemma": "Gemma"}


def _stages(row: Row) -> dict[str, float]:
    """Seconds by stage, without sums."""
    names = [name for name in row if name.endswith("_s") and name not in _STAGES_LEFT_OUT]
    return {name.removesuffix("_s").replace("_", " "): number(row, name) or 0.0 for name in names}


def _page(run: Mapping[str, Any], rows: Mapping[str, Row]) -> str:
    machine = run["machine"]
    parts = [
        f"""# Language models beside StreamTensor's tables
Tables 4 to 7 and figure 10 of StreamTensor's paper, with what Penstock's designs of the same models come to. Written by
`python -m benchmarks.language`, from one run of `penstock bench llm --json` on {machine["processor"]},
{machine["cores"]} cores; a test holds that it is what that command writes. Nothing here was measured on a board: cycles
are *simulated*, areas and energy *modelled*, seconds of compiling *wall-clock*. Published figures are as their
papers print them ({"; ".join(NOTES.values())}).
""",
        *_table_4(rows), *_table_5(rows), *_table_6(rows), *_table_7(rows), *_figure_10(rows), *_devices(rows),
        *_goals(run["summary"]),
    ]  # fmt: skip
    return "\n".join(parts)


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: float | None, own: float | None = None) -> str:
    """A figure; a published one with our own as a share of it."""
    if value is None:
        return "–"
    return short(value) if own is None else f"{short(value)} ({own / value:.2f}x)"


def _said(row: Row, figure: str, evidence: str = "simulated") -> str:
    value = number(row, figure)
    if value is None:
        return "not found" if "reason" in row else "not run"
    return f"**{short(value)}** *{evidence}*"


def _table_4(rows: Mapping[str, Row]) -> list[str]:
    note = f"""
GPT-2-medium, {QUANTISED.upper()}, U55C at 250 MHz. `[n:n]`: a prompt of n tokens, and n that are written. In brackets
Penstock's figure as a share of the published one. A layer's accelerator is called for all 24 layers, and each call
attends to every place of its cache: 64 places at [32:32], 512 for longer texts. The last norm and the head (of
{TOKENS:,} tokens, padded from 50,257) are an accelerator beside it on the same card. A prompt is read two tokens a
call, and each token that is written is a call that has room for two; in the row *one a call* the accelerator has room
for one, which takes fewer DSPs, and is nearer to what memory sustains. Embedding and choosing tokens are the host's,
and not counted; neither is what it sends with a call, nor what starting one takes: the columns *with starts* have
{START_US:g} µs for each, an assumption. One start runs all layers of a call by a list, and its sequencer's cycles are
in them, *modelled*; hosts without lists start every layer (the last column). The published designs on FPGAs are W4A8
(DFX: FP16): weights of eight bits are twice as many bytes a token, and the more exact arithmetic. What layers add up
from one to the next grows too much for eight bits of one scale; it is f32 from layer to layer and up to its norms.
"""
    pictures = "\n".join(f"![{what}](llm-{what.replace(' ', '-')}.svg)" for what, *_ in _WHAT)
    return ["## Table 4: GPT-2 on FPGAs", note, *_lengths(rows, FPGAS), _shares(rows), pictures, ""]


def _lengths(rows: Mapping[str, Row], rivals: Sequence[str]) -> list[str]:
    found: list[str] = []
    for what, figure, of, unit in _WHAT:
        body: list[list[str]] = []
        for name, text in OWN_TEXTS.items():
            row, n = rows.get(name, {}), text.tokens
            theirs = [_cell(of(TEXTS[r].get(n, PublishedText())), number(row, figure)) for r in rivals]
            body.append([_title(name), _said(row, figure), *theirs])
        found.append(_table([f"{what}, {unit}", _OURS, *(NAMES[rival] for rival in rivals)], body))
    return found


def _title(name: str) -> str:
    text = OWN_TEXTS[name]
    return f"[{text.tokens}:{text.tokens}]{', one a call' if text.chunk == 1 else ''}"


def _shares(rows: Mapping[str, Row]) -> str:
    columns = {
        "a layer's call, cycles": ("cycles", "simulated"), "its bound": ("bound_cycles", "modelled"),
        "share of bandwidth, %": ("of_run_pct", "simulated"), "while loads run, %": ("bandwidth_pct", "simulated"),
        "share of DSPs' time, % (LUTs multiply too)": ("compute_pct", "simulated"),
        "tokens/J": ("tokens_per_joule", "modelled"),
        "starts a token": ("starts_a_token", "counted"),
        "first token with starts, ms": ("with_starts_first_ms", "assumed"),
        "latency with starts, ms": ("with_starts_latency_ms", "assumed"),
        "latency, a start a layer, ms": ("each_started_latency_ms", "assumed"),
    }  # fmt: skip
    body = [
        [_title(name), *(_said(rows.get(name, {}), figure, kind) for figure, kind in columns.values())]
        for name in OWN_TEXTS
    ]
    resources = [
        [_title(name), *(
            f"{number(row, f'{area}_together') or 0:,.0f} of {number(row, f'{area}_available') or 0:,.0f}"
            if f"{area}_together" in row else "–" for area in RESOURCE_NAMES
        )]
        for name in OWN_TEXTS for row in [rows.get(name, {})]
    ]  # fmt: skip
    return (
        _table(["", *columns], body)
        + "\nWhat all accelerators of a row take of what the card gives a design, *modelled*; each was placed on the "
        "dies by itself:\n\n" + _table(["", *(area.upper() for area in RESOURCE_NAMES)], resources)
    )


def _table_5(rows: Mapping[str, Row]) -> list[str]:
    return ["## Table 5: GPT-2 on GPUs", "", *_lengths(rows, GPUS)]


def _table_6(rows: Mapping[str, Row]) -> list[str]:
    card, text = load_platform("u55c"), rows.get("text/32", {})
    memory = card.fastest_memory
    assert memory is not None
    own = {
        "platform": card.title, "clock, MHz": f"{number(text, 'clock_mhz') or card.clock_mhz:g} *modelled*",
        "quantisation": str(text.get("quantize", "")).upper(),
        "memory": f"{memory.gigabytes:g} GB, {memory.gb_s:g} GB/s; {memory.sustained_gb_s:g} are counted on",
    }  # fmt: skip
    names = (_OURS, "StreamTensor", "Allo", "DFX", "A100", "2080Ti")
    body = [[what, own.get(what, "as StreamTensor's"), *values] for what, values in PLATFORMS]
    return ["## Table 6: platforms", "", _table(["", *names], body)]


def _table_7(rows: Mapping[str, Row]) -> list[str]:
    head = ["", *(FAMILIES_NAMED[f] for f in FAMILIES)]
    values = FAMILIES.values()
    body = [
        ["layers", *(str(f.layers) for f in values)],
        ["hidden size", *(str(f.width) for f in values)],
        ["FFN hidden size", *(str(f.ffn) for f in values)],
        ["attention heads", *(str(f.heads) for f in values)],
        ["KV heads", *("–" if f.kv_heads is None else str(f.kv_heads) for f in values)],
        ["activation", *(f.activation for f in values)],
        ["weights of a layer", *(_count(rows.get(f"compile/{name}/prefill", {}), "weights") for name in FAMILIES)],
    ]
    return ["## Table 7: models", "As published; the last row is what Penstock's import counts.\n", _table(head, body)]


def _count(row: Row, figure: str) -> str:
    value = number(row, figure)
    return "not run" if value is None else f"{value:,.0f}"


def _figure_10(rows: Mapping[str, Row]) -> list[str]:
    memory = [
        [FAMILIES_NAMED[name], _kib(row, "between_bits"), _kib(row, "fifo_and_converter_bits"),
         _said(row, "memory_pct"), f"{MEMORY_PCT[0]} to {MEMORY_PCT[1]}", _said(row, "cycles"),
         str(row.get("objectives", "the usual")), str(row.get("largest_buffers", "–"))]
        for name in FAMILIES for row in [rows.get(f"memory/{name}", {})]
    ]  # fmt: skip
    asked = [rows.get(f"memory/{name}", {}) for name in FAMILIES]
    longer = [
        name for name, row in zip(FAMILIES, asked, strict=True)
        if (row.get("fifo_simulations"), row.get("fifo_slack")) == (MANY_RUNS, SLACK)
    ]  # fmt: skip
    said = ", ".join(FAMILIES_NAMED[name] for name in longer) or "none"
    seconds = [
        [FAMILIES_NAMED[name], mode, _said(row, "total_s", "wall-clock"), _said(row, "cpu_s", "processor"),
         f"{COMPILE_S[0]} to {COMPILE_S[1]}", _count(row, "cpp_lines")]
        for name in FAMILIES for mode in ("prefill", "decode")
        for row in [rows.get(f"compile/{name}/{mode}", {})]
    ]  # fmt: skip
    return [
        "## Figure 10(a): on-chip memory",
        "A block's prefill of 128 tokens: the tensors between its operations, and what FIFOs and converters hold of\n"
        "them in the design. In neither are parameters, as in the paper, caches and inputs until something is\n"
        "computed of them, results, and what a kernel keeps inside itself of operands or sums. Cycles are the same\n"
        "design's. Where `fifo_bits` are an objective, FIFOs hold what one input needs, and no more so that the next\n"
        "one follows sooner; rows for a residual sum may be loaded once more instead of waiting, and what a load\n"
        f"fetches ahead is not counted. `--fifo-simulations {MANY_RUNS} --fifo-slack {SLACK:g}` was asked for by:\n"
        f"{said}; with the second one, cycles are up to so many percent more than FIFOs alone would ask for.\n",
        _table(
            ["", "before, KiB", "after, KiB", "left, %", "StreamTensor, %", "cycles", "objectives", "largest buffers"],
            memory,
        ),
        "![memory](llm-memory.svg)\n",
        "## Figure 10(b): seconds to RTL",
        "Not reproduced: HLS and its profiling are the vendor's tools, which this machine has not.\n",
        "## Figure 10(c): seconds of compiling",
        "From PyTorch to HLS C++, a block at a time; weights are not packed.\n",
        _table(["", "", "seconds", "of the processor", "StreamTensor, s", "lines of C++"], seconds),
        "![seconds](llm-seconds.svg)\n",
    ]


def _kib(row: Row, figure: str) -> str:
    value = number(row, figure)
    return "–" if value is None else f"{value / 8 / 1024:,.0f}"


def _devices(rows: Mapping[str, Row]) -> list[str]:
    body = [
        [str(row.get("cards")), _said(row, "tokens_per_second"), _said(row, "scaling"), str(row.get("cut_ms", "–")),
         _said(row, "one_text_tokens_per_second"), _said(row, "one_text_scaling"),
         _said(row, "dfx_scaling", "published")]
        for cards in (2, 4) for row in [rows.get(f"devices/{cards}", {"cards": cards})]
    ]  # fmt: skip
    head = ["cards", "tokens/s", "times one", "ms a card", "one text, tokens/s", "times one", "DFX, times one"]
    return [
        "## Several cards",
        "At [32:32]. Layers cut: as many texts as cards are under way at once. One text: every card has a share of\n"
        "each layer, and sums are exchanged twice a layer. The link is *modelled*: "
        f"{GBIT_S:g} Gbit/s to each neighbour of a\nring, and {HOP_US:g} µs a transfer, which is assumed. "
        "DFX is one text.\n",
        _table(head, body),
    ]


_GOALS: Mapping[str, tuple[str, str]] = {
    "max_compile_s": ("at most 5", "slowest block from PyTorch to C++, seconds of the processor"),
    "max_memory_pct": ("at most 5", "intermediate memory that is left, %"),
    "ttft_32_ms": ("below 20.4", "first token behind a prompt of 32, two tokens a call, ms"),
    "latency_32_32_ms": ("below 158.6", "[32:32], two tokens a call, ms"),
    "decode_pct_of_bandwidth_bound": ("at least 93", "share of what memory sustains, over a call of one token, %"),
    "prefill_pct_of_compute_bound": ("at least 60", "share of the DSPs' time that products take, %"),
    "scaling_2": ("1.9", "tokens/s of two cards, layers cut, times one card's"),
    "scaling_4": ("3.6", "of four cards"),
    "one_text_scaling_2": ("1.9", "one text on two cards, times one card"),
    "one_text_scaling_4": ("3.6", "on four cards"),
}


def _goals(summary: Mapping[str, Any]) -> list[str]:
    body = [
        [f"`{name}`", meaning, "not measured" if summary.get(name) is None else short(summary[name]), goal]
        for name, (goal, meaning) in _GOALS.items()
    ]
    return ["## The summary, beside its goals", "", _table(["figure", "what", "found", "goal"], body)]
