"""`python -m benchmarks.blocks_page [FIGURES.json]`: writes docs/blocks.md and its pictures anew, from the kept figures
or from those of a file that `penstock bench blocks --json` wrote, which are then the kept ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.blocks import FAMILIES
from benchmarks.hida.curves import curves
from benchmarks.searched import PLATFORM
from benchmarks.written_page import ROOT, WrittenPage
from penstock.compiler.platforms import load_platform

PAGE = Path("docs") / "blocks.md"
NAMES = {"gpt2": "GPT-2-medium", "llama": "Llama", "qwen": "Qwen", "gemma": "Gemma"}
_PICTURES = {
    "decode": ("A token beside a cache (simulated)", "places in the cache"),
    "prefill": ("A prompt read at once (simulated)", "tokens of the prompt"),
}
_LEAST = {"decode": ("bandwidth_pct", 85.0), "prefill": ("compute_pct", 50.0)}
_MOST_HELD, _MOST_SECONDS = 15.0, 120.0
Row = Mapping[str, Any]


def files(run: Mapping[str, Any]) -> dict[Path, str]:
    """Everything that is written, by its place in the repository, from one object of `penstock bench blocks --json`."""
    rows: list[Row] = run["rows"]
    drawn = {
        PAGE.parent / f"blocks-{mode}.svg": curves(title, _series(rows, mode), "cycles", along)
        for mode, (title, along) in _PICTURES.items()
    }
    return {PAGE: _page(run, rows), **drawn}


WRITTEN = WrittenPage(ROOT / "benchmarks" / "data" / "blocks.json", files)


def _series(rows: Sequence[Row], mode: str) -> dict[str, dict[int, float]]:
    made = [row for row in _of(rows, mode) if row["cycles"]]
    return {
        NAMES[family]: {int(row["tokens"]): float(row["cycles"]) for row in made if row["block"] == family}
        for family in FAMILIES
    }


def _of(rows: Sequence[Row], mode: str) -> list[Row]:
    return [row for row in rows if row["mode"] == mode]


def _page(run: Mapping[str, Any], rows: Sequence[Row]) -> str:
    board, machine = load_platform(PLATFORM), run["machine"]
    return "\n".join([
        f"""# Decoder blocks of real size
What `penstock compile --quantize w8a8` comes to for one decoder block of four families on an {board.title} at
{board.clock_mhz:g} MHz, all weights in external memory. Written by `python -m benchmarks.blocks_page` from one run of
`penstock bench blocks --json` on {machine["processor"]}, {machine["cores"]} cores; a test holds that it is what that
command writes. Nothing here was measured on a board: cycles, shares and bits are *simulated*, bounds *modelled*,
seconds *wall-clock*, from a prepared block to the design with its FIFOs sized and placed on the card's dies.
{_noted(run)}
*Of the bound*: cycles beside those that no design of the space can go below. *Held between kernels*: what FIFOs and
converters hold of the tensors between kernels, beside these tensors; not counted is what waits of weights and caches.
FIFOs that would hold more than {_MOST_HELD:g} % for the sake of inputs that follow are sized for one input, as
[explore.md](explore.md) says.
In **bold** is what misses a goal: {_goals()}.

## Decode
One token beside a cache. What counts is how much of what the external memory sustains passes between the first word of
a load and the last one.

![A token beside a cache](blocks-decode.svg)
""",
        _table(rows, "decode", "of bandwidth"),
        """## Prefill
A prompt read at once. What counts is how much of the time of its DSPs a design's products take.

![A prompt read at once](blocks-prefill.svg)
""",
        _table(rows, "prefill", "of compute"),
    ])  # fmt: skip


def _noted(run: Mapping[str, Any]) -> str:
    """What whoever measured says of the run, as `note` in its object: what else the machine did, say."""
    return f"\n{run['note']}\n" if "note" in run else ""


def _goals() -> str:
    least = {mode: f"at least {least:g} %" for mode, (_, least) in _LEAST.items()}
    return (
        f"{least['decode']} of bandwidth, {least['prefill']} of compute, at most {_MOST_HELD:g} % held and "
        f"{_MOST_SECONDS:g} s"
    )


def _table(rows: Sequence[Row], mode: str, share: str) -> str:
    figure, least = _LEAST[mode]
    body = [
        [
            _name(row), f"{row['cycles']:,}", f"{row['cycles'] / row['bound']:.2f} x",
            _judged(row[figure], row[figure] >= least, " %"),
            _judged(row["memory_pct"], row["memory_pct"] <= _MOST_HELD, " %"),
            f"{row['dsp']:,}", _judged(row["explore_s"], row["explore_s"] <= _MOST_SECONDS, " s"),
        ]
        for row in _of(rows, mode) if row["cycles"]
    ]  # fmt: skip
    failed = [f"{_name(row)}: {row['reason']}" for row in _of(rows, mode) if not row["cycles"]]
    head = ["block", "cycles", "of the bound", share, "held between kernels", "DSPs", "searched in"]
    return _lines([head, ["---"] * len(head), *body]) + "".join(f"\nNo figures for {one}.\n" for one in failed)


def _name(row: Row) -> str:
    return f"{NAMES[row['block']]}, {row['tokens']}"


def _judged(value: float, keeps: bool, unit: str) -> str:
    return f"{value:g}{unit}" if keeps else f"**{value:g}{unit}**"


def _lines(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    WRITTEN.renew(sys.argv[1:])
