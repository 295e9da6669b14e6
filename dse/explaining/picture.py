"""A design's neighbourhood as a picture: what each step of a parameter does to the objective, and what mattered."""

from __future__ import annotations

from math import log2

from penstock.dse.explaining.sensitivity import Neighbour, Sensitivity
from penstock.dse.support.drawing import Drawing

WIDTH, ROW = 800, 20
NAMES, MIDDLE, HALF = 290, 510, 150  # between the names and the longest bar there is room for its figure
MOST_ROWS, MOST_PARAMETERS = 14, 6


def sensitivity_svg(found: Sensitivity) -> str:
    """Bars to the left are better; a design that does not fit is drawn pale. Steps without effect are counted."""
    drawing = Drawing(WIDTH, "What one step of each parameter changes, and which parameters mattered")
    shown = [n for n in found.neighbours if n.objective is not None and not n.same and n.objective != 1]
    rows = sorted(shown, key=lambda n: (-abs(log2(n.objective or 1)), n.parameter, str(n.other)))[:MOST_ROWS]
    drawing.text(0, 14, f"One step of a parameter: {found.objective}", "name")
    drawing.text(MIDDLE - HALF, 32, "better", "soft")
    drawing.text(MIDDLE + HALF, 32, "worse", "soft", "end")
    drawing.text(WIDTH, 32, "fullest resource", "soft", "end")
    widest = max([1.0, *(abs(log2(n.objective or 1)) for n in rows)])
    y = 38.0
    for row in rows:
        _bar(drawing, row, y, widest)
        y += ROW
    drawing.line(MIDDLE, 36, MIDDLE, y, 1, "--line")
    quiet = len(found.neighbours) - len(rows)
    notes = [f"steps that change less or nothing: {quiet}" if quiet else "", "pale: does not fit"]
    if found.left_out:
        notes.insert(1, f"not modelled: {found.left_out}")
    drawing.text(0, y + 16, " · ".join(note for note in notes if note), "soft")
    if any(one.share > 0 for one in found.importances):
        _importances(drawing, found, y + 44)
    return drawing.svg()


def _bar(drawing: Drawing, row: Neighbour, y: float, widest: float) -> None:
    ratio = row.objective or 1.0
    length = HALF * abs(log2(ratio)) / widest
    drawing.text(NAMES, y + 13, f"{row.parameter}  {row.value} → {row.other}", "", "end", _hint(row))
    colour = ("--good" if ratio < 1 else "--warm") if row.feasible else "--line"
    drawing.box(MIDDLE - (length if ratio < 1 else 0), y + 3, length, ROW - 7, colour, 2)
    at = MIDDLE + length + 6 if ratio > 1 else MIDDLE - length - 6
    drawing.text(at, y + 13, _change(ratio), "soft", "start" if ratio > 1 else "end")
    drawing.text(WIDTH, y + 13, f"{row.binding} {row.share or 0:.0%}", "soft", "end")


def _change(ratio: float) -> str:
    return f"× {ratio:.2f}" if ratio >= 2 else f"{ratio - 1:+.1%}"


def _hint(row: Neighbour) -> str:
    fits = "fits" if row.feasible else "does not fit"
    return f"{row.latency} cycles, {row.binding} at {row.share or 0:.0%} of its limit, {fits}"


def _importances(drawing: Drawing, found: Sensitivity, y: float) -> None:
    drawing.text(0, y, f"Which parameters mattered over {found.trials} trials (share of the variance)", "name")
    for one in [one for one in found.importances if one.share > 0][:MOST_PARAMETERS]:
        y += ROW
        drawing.text(NAMES, y + 3, one.parameter, "", "end")
        drawing.box(NAMES + 12, y - 7, 320, ROW - 7, "track", 2)
        drawing.box(NAMES + 12, y - 7, 320 * one.share, ROW - 7, "--water", 2)
        drawing.text(NAMES + 340, y + 3, f"{one.share:.0%}", "soft")
