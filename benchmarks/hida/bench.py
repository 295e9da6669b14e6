"""ResNet-18 swept as in HIDA's figures 10 and 11, and LeNet within its table 2's resources.

`penstock bench hida --json --keep rows.jsonl`, then `python -m benchmarks.hida` writes docs/hida.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.asked import is_asked_for
from benchmarks.hida import lenet, sweep
from benchmarks.hida.published import TABLE_2
from benchmarks.kept_rows import keep_row, kept_rows
from benchmarks.registry import Figures, Value

Row = Mapping[str, Value]
COMPARED = 64
"""The parallel factor at which figure 11's groups are compared in the summary."""


def makers() -> dict[str, Callable[[], Row]]:
    """Every row by name, and what makes it."""

    def of(point: sweep.Point) -> Callable[[], Row]:
        return lambda: sweep.row(point)

    return {"lenet/search": lenet.searched, "lenet/walk": lenet.walked, **{p.name: of(p) for p in sweep.points()}}


def run(only: str = "", limit: int | None = None, keep: Path | None = None) -> Figures:
    """`only` is a part of a row's name, as `lenet` or `resnet18/naive`, or a pattern.

    Rows go to the end of the file `keep` when they are there, and those that it has are not made again.
    """
    known: dict[str, Row] = {str(row["name"]): row for row in kept_rows(keep)}
    rows: list[Row] = []
    for name, make in [(n, m) for n, m in makers().items() if is_asked_for(n, only)][:limit]:
        row = known.get(name) or make()
        rows.append(row)
        if name not in known:
            keep_row(keep, row)
    return Figures("modelled", rows, summary({str(row["name"]): row for row in rows}))


def summary(rows: Mapping[str, Row]) -> dict[str, Value]:
    """What is asked for by name; null where its rows were not made."""
    largest, smallest = sweep.TILES[-1], sweep.TILES[0]
    both = rows.get(f"resnet18/ia+ca/{COMPARED}x{largest}")
    naive = rows.get(f"resnet18/naive/{COMPARED}x{largest}")
    found: dict[str, Value] = {"rows": len(rows)}
    for figure, over in (("frames_a_second", both), ("dsp", naive), ("on_chip_bits", naive)):
        under = naive if over is both else both
        found[f"ia_ca_{figure}_times"] = None if not (over and under) else _ratio(over, under, figure)
    found["smallest_tile_dsp"] = rows.get(f"resnet18/ia+ca/1x{smallest}", {}).get("dsp")
    for name in ("search", "walk"):
        row = rows.get(f"lenet/{name}", {})
        frames = row.get("frames_a_second")
        found[f"lenet_{name}_frames_a_second"] = frames
        found[f"lenet_{name}_times_hida"] = (
            None if frames is None else round(float(frames) / TABLE_2["HIDA"].frames_a_second, 3)
        )
        found[f"lenet_{name}_cpu_s"] = row.get("search_cpu_s")
    return found


def _ratio(over: Row, under: Row, figure: str) -> float:
    return round(float(str(over[figure])) / max(float(str(under[figure])), 1e-9), 2)
