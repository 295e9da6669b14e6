"""Language models at the sizes of StreamTensor's table 7 on its card, in W8A8, beside the published figures.

Rows by `part`. `compile`: seconds a stage from PyTorch to HLS C++ (benchmark `compile`); the published 26.8 to 63.4 s
are the same way. `memory`: what a block's search leaves of the intermediate memory (`searched.py`), for prefills of
128 tokens, its resources beside the card's, and its largest buffers. `prefill`: GPT-2's block for 32 tokens at once,
an accelerator of its own. `text`: GPT-2-medium with all layers, each of which the one accelerator computes in turn
(`zoo:gpt2_text?size=medium&cache=512#h`): a call takes one token, the prompt's too, and attends to all 512 places.
`card_` figures are simulated cycles of all layers. The embedding, last norm and LM head run on the host in float32:
`host_ms` is the time that they take on this machine, and counts in `latency_ms` and the figures beside it. What the
runtime and PCIe take is in neither. `devices`: what several cards would do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch

import numpy as np

from benchmarks.compile_blocks import FAMILIES, MODES, compile_block
from benchmarks.registry import WALL_CLOCK, Figures, Value
from benchmarks.searched import PLATFORM, Searched
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime.host import HostGraph

LAYERS, CACHE = 24, 512
MODEL = f"zoo:gpt2_text?size=medium&layers={LAYERS}&cache={CACHE}#h"
PARTS = ("compile", "memory", "prefill", "text", "devices")
LENGTHS = (32, 64, 128, 256)
_BUFFERS, _REPEATS = 5, 7
_ONE_CARD = "a package drives one device: layers are not cut over several"


@dataclass(frozen=True)
class PublishedText:
    """A row of StreamTensor's table 4; CODO's are a third party's notes, of a block that attends to one place only."""

    latency_ms: float | None
    first_ms: float | None
    tokens_per_second: float | None


PUBLISHED: dict[tuple[str, int], PublishedText] = {
    ("streamtensor", 32): PublishedText(194.99, 34.59, 199.51),
    ("streamtensor", 64): PublishedText(358.24, 61.27, 215.51),
    ("streamtensor", 128): PublishedText(696.65, 125.35, 224.05),
    ("streamtensor", 256): PublishedText(1387.76, 272.85, 229.61),
    ("allo", 32): PublishedText(238.32, 81.50, 204.05),
    ("allo", 64): PublishedText(476.64, 162.99, 204.05),
    ("allo", 128): PublishedText(953.28, 325.98, 204.05),
    ("allo", 256): PublishedText(1906.56, 651.96, 204.05),
    ("dfx", 32): PublishedText(350.00, 177.20, 185.19),
    ("dfx", 64): PublishedText(694.70, 349.10, 185.19),
    ("dfx", 128): PublishedText(1384.00, 692.80, 185.19),
    ("dfx", 256): PublishedText(2800.00, 1417.60, 185.19),
    ("codo", 32): PublishedText(158.64, 20.40, 231.5),
    ("codo", 64): PublishedText(None, 32.64, None),
    ("codo", 128): PublishedText(None, 110.40, None),
}
RIVALS = ("streamtensor", "codo", "allo", "dfx")

Rows = list[Mapping[str, Value]]


def run(only: str = "", limit: int | None = None) -> Figures:
    """`only` is a part of a row's name, as `memory/llama` or `text`, or a pattern."""
    asked = [name for name in _names() if only in name or fnmatch(name, only)][:limit]
    rows: Rows = []
    for name in (n for n in asked if not n.startswith("text")):
        rows.append(_tried(name))
    if texts := [int(name.rpartition("/")[2]) for name in asked if name.startswith("text")]:
        rows += _texts(texts)
    return Figures("simulated", rows, _summary(rows))


def _names() -> list[str]:
    compiled = [f"compile/{family}/{mode}" for family in FAMILIES for mode in MODES]
    memory = [f"memory/{family}" for family in FAMILIES]
    return [*compiled, *memory, "prefill/gpt2/32", *(f"text/{n}" for n in LENGTHS), "devices/2", "devices/4"]


def _summary(rows: Rows) -> dict[str, Value]:
    def of(part: str, figure: str) -> list[float]:
        return [float(str(row[figure])) for row in rows if row["part"] == part and row.get(figure) is not None]

    def at_32(figure: str) -> Value:
        return next((row.get(figure) for row in rows if row["part"] == "text" and row["tokens_in"] == 32), None)

    return {
        "max_compile_s": max(of("compile", "total_s"), default=None),
        "max_memory_pct": max(of("memory", "memory_pct"), default=None),
        "ttft_32_ms": at_32("first_ms"),
        "latency_32_32_ms": at_32("latency_ms"),
        "decode_pct_of_bandwidth_bound": at_32("bandwidth_pct"),
        "prefill_pct_of_compute_bound": max(of("prefill", "compute_pct"), default=None),
        "scaling_2": None,
        "scaling_4": None,
    }


def _tried(name: str) -> Mapping[str, Value]:
    part, _, which = name.partition("/")
    began = time.perf_counter()
    row: dict[str, Value] = {"part": part, "name": name}
    try:
        if part == "compile":
            family, mode = which.split("/")
            row |= {"evidence": WALL_CLOCK, **compile_block(f"zoo:{family}?size=real&{MODES[mode]}")}
        elif part == "devices":
            row |= {"evidence": None, "scaling": None, "reason": _ONE_CARD}
        else:
            row |= {"evidence": "simulated", **_block(part, which)}
    except PenstockError as error:
        row |= {"evidence": None, "reason": str(error)}
    _say(f"{name}: {time.perf_counter() - began:.0f} s")
    return row


def _block(part: str, which: str) -> Mapping[str, Value]:
    family, tokens = which.split("/") if part == "prefill" else (which, "128")
    model = f"zoo:{family}?size=real&mode=prefill&seq={tokens}"
    found = Searched.of(prepare(import_model(model), "w8a8"))
    return {"model": model, "cycles": found.cycles, "explore_s": round(found.seconds, 1), **_of_design(found)}


def _of_design(found: Searched) -> Mapping[str, Value]:
    """Shares and bounds, resources beside what the card has, and the largest buffers."""
    used, limits = found.best.figures.resources.as_dict(), found.evaluator.platform.limits.as_dict()
    largest = sorted(found.held.items(), key=lambda item: -item[1])[:_BUFFERS]
    return {
        **found.shares, "between_bits": found.between,
        "largest_buffers": ", ".join(f"{name} {bits:,} bits" for name, bits in largest),
        "bound_cycles": found.bound.value, "bound_reason": found.bound.reason,
        "feasible": found.best.feasible, "platform": PLATFORM, "resources_evidence": "modelled",
        **{f"{name}_used": count for name, count in used.items()},
        **{f"{name}_available": limits[name] for name in used},
    }  # fmt: skip


def _texts(lengths: list[int]) -> Rows:
    """One accelerator for all: a call of each layer takes as long wherever the token stands."""
    began = time.perf_counter()
    try:
        _say(f"{MODEL}: importing {LAYERS} layers")
        program = prepare(import_model(MODEL), "w8a8")
        _say(f"{MODEL}: quantised after {time.perf_counter() - began:.0f} s; searching")
        found = Searched.of(program)
        host_ms = host_part_ms(program)
    except PenstockError as error:
        return [{"part": "text", "name": f"text/{n}", "tokens_in": n, "reason": str(error)} for n in lengths]
    _say(f"text: {time.perf_counter() - began:.0f} s")
    return [_text(tokens, found, host_ms) for tokens in lengths]


def _text(tokens: int, found: Searched, host_ms: float) -> Mapping[str, Value]:
    """`tokens` of a prompt, and as many written: the first when the last of the prompt has passed."""
    to_ms = 1e-3 / found.evaluator.clock_mhz
    card = None if found.cycles is None else LAYERS * found.cycles * to_ms
    bound = LAYERS * found.bound.value * to_ms
    calls = 2 * tokens - 1
    row: dict[str, Value] = {
        "part": "text", "name": f"text/{tokens}", "model": MODEL, "tokens_in": tokens, "tokens_out": tokens,
        "evidence": "simulated, and wall-clock of the host's part", "lm_head": "host, float32",
        "cycles": found.cycles, "layers": LAYERS, "host_ms": round(host_ms, 3),
        **(_all_told(tokens, calls, card, host_ms) if card else {"reason": "the design deadlocks"}),
        "bound_first_ms": round(tokens * bound, 3), "bound_latency_ms": round(calls * bound, 3),
        **_of_design(found),
    }  # fmt: skip
    for rival in RIVALS:
        theirs = PUBLISHED.get((rival, tokens), PublishedText(None, None, None))
        row |= {
            f"{rival}_latency_ms": theirs.latency_ms, f"{rival}_first_ms": theirs.first_ms,
            f"{rival}_tokens_per_second": theirs.tokens_per_second,
        }  # fmt: skip
    return row


def _all_told(tokens: int, calls: int, card: float, host_ms: float) -> Mapping[str, Value]:
    """The host's part is wanted once a token that is written: prompts are only read."""
    return {
        "card_ms_a_token": round(card, 4),
        "card_first_ms": round(tokens * card, 3),
        "card_latency_ms": round(calls * card, 3),
        "card_tokens_per_second": round(1e3 / card, 1),
        "first_ms": round(tokens * card + host_ms, 3),
        "latency_ms": round(calls * card + tokens * host_ms, 3),
        "tokens_per_second": round(1e3 / (card + host_ms), 1),
    }


def host_part_ms(program: Program) -> float:
    """The best of some runs of what stands around the layers, which answer at once."""
    layers = program.layers
    assert layers is not None, "the model shares its layers"
    around = HostGraph(layers.graph, layers.values)
    answers = [np.zeros_like(x) for x in layers.calls[0][1]]
    seconds: list[float] = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        around.run_whole(layers.inputs, lambda _number, _values: answers)
        seconds.append(time.perf_counter() - began)
    return 1e3 * min(seconds)


def _say(text: str) -> None:
    print(f"llm: {text}", file=sys.stderr, flush=True)
