"""Decoder blocks of real size in W8A8: cycles of the design that a search finds, and what memory and arithmetic allow.

What the figures mean is in `searched.py`. A block that cannot be run has `null` for its figures, and the `reason`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.asked import is_asked_for
from benchmarks.kept_rows import keep_row, kept_rows
from benchmarks.registry import Figures, Value
from benchmarks.searched import Searched
from penstock.compiler.errors import PenstockError
from penstock.services.jobs.model import load_program

FAMILIES = ("gpt2", "llama", "qwen", "gemma")
PREFILLS, CACHES = (32, 128), (32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class BlockCase:
    family: str
    mode: str
    tokens: int
    """Of a prefill, or in the cache of a decode."""

    @property
    def label(self) -> str:
        return f"{self.family}/{self.mode}/{self.tokens}"

    @property
    def reference(self) -> str:
        sizes = f"seq={self.tokens}" if self.mode == "prefill" else f"seq=1&cache={self.tokens}"
        return f"zoo:{self.family}?size=real&mode={self.mode}&{sizes}"


def cases() -> list[BlockCase]:
    return [
        BlockCase(family, mode, tokens)
        for family in FAMILIES
        for mode, sizes in (("prefill", PREFILLS), ("decode", CACHES))
        for tokens in sizes
    ]


def run(only: str = "", limit: int | None = None, keep: Path | None = None) -> Figures:
    """`only` is a part of a case's name, as `gpt2/decode`, or a pattern.

    Rows go to the end of the file `keep` when they are there, and those that it has are not searched again.
    """
    wanted = [case for case in cases() if is_asked_for(case.label, only)][:limit]
    known = {BlockCase(row["block"], row["mode"], row["tokens"]): row for row in kept_rows(keep)}
    rows: list[Mapping[str, Value]] = []
    for case in wanted:
        row = known.get(case)
        if row is None:
            row = _tried(case)
            keep_row(keep, row)
        rows.append(row)

    def of(mode: str, figure: str) -> list[float]:
        return [float(str(row[figure])) for row in rows if row["mode"] == mode and row.get(figure) is not None]

    summary: dict[str, Value] = {
        "decode_pct_of_bandwidth_min": min(of("decode", "bandwidth_pct"), default=None),
        "prefill_pct_of_compute_min": min(of("prefill", "compute_pct"), default=None),
        "memory_pct_max": max([*of("prefill", "memory_pct"), *of("decode", "memory_pct")], default=None),
        "max_explore_s": max([*of("prefill", "explore_s"), *of("decode", "explore_s")], default=None),
        "infeasible_defaults": sum(
            int(str(row["infeasible_defaults"])) for row in rows if "infeasible_defaults" in row
        ),
    }
    return Figures("simulated", rows, summary)


def _tried(case: BlockCase) -> Mapping[str, Value]:
    try:
        return _row(case)
    except PenstockError as error:
        return {"block": case.family, "mode": case.mode, "tokens": case.tokens, "cycles": None, "reason": str(error)}


def _row(case: BlockCase) -> Mapping[str, Value]:
    program = load_program(case.reference, "w8a8")
    found = Searched.of(program)
    space, evaluate = found.evaluator.space, found.evaluator.evaluate
    usual = [evaluate(setting) for setting in (*space.paced_settings(), space.fitted_setting()) if setting]
    row: dict[str, Value] = {
        "block": case.family, "mode": case.mode, "tokens": case.tokens,
        "cycles": found.cycles,
        "modelled_cycles": found.best.figures.latency,
        "feasible": found.best.feasible,
        "bound": found.bound.value, "bound_reason": found.bound.reason,
        **found.shares,
        "stripes": found.best.design.stripes,
        "modelled": found.modelled,
        "infeasible_defaults": sum(not one.feasible for one in usual),
        "explore_s": round(found.seconds, 1),
    }  # fmt: skip
    print(f"blocks: {case.label}: {row['cycles']} cycles in {found.seconds:.0f} s", file=sys.stderr, flush=True)
    return row
