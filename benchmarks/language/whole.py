"""GPT-2-medium as a whole, of its parts: what texts take on one card, and on several.

A prompt is read `chunk` tokens a call of all layers; then each token that is written is a call, with room for more. The
head is wanted once a token that is written. All of these lie on the card together: each was found under its share of it
(`SHARES` in `part.py`).

Cycles are simulated, of a call that attends to every place of the cache, so a text's first tokens take as long as its
last. Embedding and choosing tokens are the host's and no part of it, and neither is what the runtime takes to start a
call: `with_starts_` figures count `START_US` for each, an assumption. Where one start runs all layers (`by_list`), it
is counted once for them, with the sequencer's cycles, which are modelled; `each_started_` figures are of hosts that
start every layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from benchmarks.language.cards import CODING, EXCHANGES, GBIT_S, HOP_US, cut, exchange_ms, transfer_ms
from benchmarks.language.published import DFX_CARDS, FAMILIES, FPGAS, TEXTS, PublishedText
from benchmarks.registry import Value
from penstock.compiler.schedule import load_library
from penstock.compiler.simulator import VITIS
from penstock.compiler.simulator.call_list import cycles_of_list

Row = Mapping[str, Value]
START_US = 5.0
READ_LATENCY = load_library("vitis-ultrascale-plus", 300.0).memory.external_load_latency
LAYERS, WIDTH = FAMILIES["gpt2"].layers, FAMILIES["gpt2"].width
_NO_FIGURES = PublishedText()


def number(row: Row, name: str) -> float | None:
    """A figure of a row, if it is there."""
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else None


def call_ms(row: Row) -> float | None:
    """One call of a row's accelerator."""
    cycles, clock = number(row, "cycles"), number(row, "clock_mhz")
    return None if cycles is None or clock is None else 1e-3 * cycles / clock


def text_row(row: Row, head: Row, tokens: int, chunk: int) -> Row:
    """`tokens` of a prompt, and as many written, by the rows of a layer and of the head."""
    rivals: dict[str, Value] = {}
    for rival in FPGAS:
        theirs = TEXTS[rival].get(tokens, _NO_FIGURES)
        rivals |= {
            f"{rival}_latency_ms": theirs.latency_ms, f"{rival}_first_ms": theirs.first_ms,
            f"{rival}_tokens_per_second": theirs.tokens_per_second,
        }  # fmt: skip
    lengths: dict[str, Value] = {"tokens_in": tokens, "tokens_out": tokens, "layers": LAYERS, "chunk": chunk}
    layer_ms, head_ms = call_ms(row), call_ms(head)
    if layer_ms is None or head_ms is None:
        reason = row.get("reason") or ("it was not run" if layer_ms is None else f"no head: {head.get('reason', '')}")
        return {**row, **lengths, "reason": reason, **rivals}
    reads, writes = ceil(tokens / chunk), tokens - 1
    first, each = reads * LAYERS * layer_ms + head_ms, LAYERS * layer_ms + head_ms
    latency, starts, start, bound = (
        first + writes * each,
        1e-3 * START_US,
        1e-3 * _start_us(row),
        LAYERS * bound_ms(row),
    )
    joules = 1e-6 * (LAYERS * (number(row, "energy_uj") or 0.0) + (number(head, "energy_uj") or 0.0))
    return {
        **row, **lengths,
        "layer_ms": round(layer_ms, 5), "head_ms": round(head_ms, 5),
        "first_ms": round(first, 3), "latency_ms": round(latency, 3),
        "tokens_per_second": round(1e3 / each, 1),
        "with_starts_first_ms": round(first + reads * start + starts, 3),
        "with_starts_latency_ms": round(latency + (reads + writes) * start + tokens * starts, 3),
        "each_started_latency_ms": round(latency + ((reads + writes) * LAYERS + tokens) * starts, 3),
        "start_us_assumed": START_US, "starts_a_token": 1 + (1 if row.get("by_list") else LAYERS),
        "list_overhead_us": round(_sequencer_us(row), 2) if row.get("by_list") else None,
        "bound_first_ms": round(reads * bound, 3), "bound_latency_ms": round((reads + writes) * bound, 3),
        "tokens_per_joule": round(1 / joules, 1) if joules else None,
        **_together(row, head), **rivals,
    }  # fmt: skip


def _start_us(row: Row) -> float:
    """What starting all layers of a call takes."""
    return START_US + _sequencer_us(row) if row.get("by_list") else LAYERS * START_US


def _sequencer_us(row: Row) -> float:
    """What the sequencer of a list of all layers takes besides them."""
    cycles = cycles_of_list(0, LAYERS, int(number(row, "memories") or 0), VITIS, READ_LATENCY).overhead
    return cycles / (number(row, "clock_mhz") or 1.0)


def bound_ms(row: Row) -> float:
    """What no design of a row's accelerator is faster than."""
    return 1e-3 * (number(row, "bound_cycles") or 0.0) / (number(row, "clock_mhz") or 1.0)


def _together(*parts: Row) -> dict[str, Value]:
    """What the accelerators take of the card together."""
    names = [name.removesuffix("_used") for name in parts[0] if name.endswith("_used")]
    sums = {name: sum(number(part, f"{name}_used") or 0 for part in parts) for name in names}
    shares = {name: sums[name] / (number(parts[0], f"{name}_available") or 1) for name in names}
    return {
        **{f"{name}_together": int(sums[name]) for name in names},
        "largest_share_together_pct": round(100 * max(shares.values(), default=0.0), 1),
    }


def cards_row(cards: int, text: Row, head: Row, share: Row) -> Row:
    """[32:32] on several cards: texts beside each other with layers cut, and one text with shares of every layer."""
    layer_ms, head_ms, share_ms = call_ms(text), call_ms(head), call_ms(share)
    row: dict[str, Value] = {
        "part": "devices", "name": f"devices/{cards}", "evidence": "simulated, and modelled of the link",
        "cards": cards, "link": f"{GBIT_S:g} Gbit/s x {CODING:.3f}, {HOP_US:g} us a transfer (assumed)",
    }  # fmt: skip
    if layer_ms is None or head_ms is None:
        return {**row, "evidence": None, "reason": "no design of the layer or the head on one card"}
    each = LAYERS * layer_ms + head_ms
    parts = cut([layer_ms] * LAYERS + [head_ms], cards)
    row |= {
        "cut_ms": ", ".join(f"{stage:.3f}" for stage in parts.stages), "cut_s": round(parts.seconds, 4),
        "one_card_tokens_per_second": round(1e3 / each, 1),
        "texts": cards, "tokens_per_second": round(1e3 / (parts.slowest + transfer_ms(WIDTH)), 1),
        "scaling": round(each / (parts.slowest + transfer_ms(WIDTH)), 3),
        "dfx_scaling": round(DFX_CARDS[cards] / DFX_CARDS[1], 3),
    }  # fmt: skip
    if share_ms is None:
        return {**row, "one_text_scaling": None, "reason": share.get("reason", f"share/{cards} was not run")}
    one = LAYERS * (share_ms + EXCHANGES * exchange_ms(WIDTH, cards)) + head_ms / cards + exchange_ms(1, cards)
    return {
        **row, "share_cycles": share.get("cycles"), "exchange_us": round(1e3 * exchange_ms(WIDTH, cards), 3),
        "one_text_tokens_per_second": round(1e3 / one, 1), "one_text_scaling": round(each / one, 3),
    }  # fmt: skip
