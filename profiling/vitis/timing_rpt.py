"""report_timing_summary: slacks, whether all constraints are met, and how fast each clock could run."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.profiling.vitis.reading import read_start, unreadable
from penstock.profiling.vitis.records import ClockTiming, TimingReport
from penstock.profiling.vitis.values import ReadingNotes, decimal, name_of

# The paths that follow the summary can be hundreds of megabytes and are not read.
_START = 8 << 20
_FACT = re.compile(r"^\| (Tool Version|Device)\s*:\s*(\S.*)$", re.M)
_MET, _NOT_MET = "All user specified timing constraints are met", "Timing constraints are not met"
# "CP required: 3.333" of <top>_export.rpt, "| Target | 3.333 |" of export_impl.rpt
_EXPORT = re.compile(
    r"^(?:CP |\| )(required|target|(?:achieved )?post-(?:synthesis|implementation|route))[ \t]*[:|][ \t]+"
    r"([0-9.]{1,15})[ \t]*(?:\||$)",
    re.M | re.I,
)
_PERIODS = {
    "required": "required", "target": "required",
    "achieved post-synthesis": "synthesised", "post-synthesis": "synthesised",
    "achieved post-implementation": "implemented", "post-route": "implemented",
    "achieved post-route": "implemented", "post-implementation": "implemented",
}  # fmt: skip


def read_timing(path: Path) -> TimingReport:
    """Read the summary at the head of the report."""
    text = read_start(path, _START)
    notes = ReadingNotes()
    figures = _row_after(text, "Design Timing Summary", "WNS(ns)")
    if figures is None:
        if (exported := _exported(path, text)) is not None:
            return exported
        raise unreadable(path, "no timing summary", limit="a line of WNS(ns), TNS(ns) ... with its figures")
    cells = dict(zip(_heads(text, "Design Timing Summary"), figures, strict=False))
    slack = notes.decimal(cells.get("WNS(ns)"), "worst slack")
    hold = notes.decimal(cells.get("WHS(ns)"), "worst hold slack")
    failing = notes.whole(cells.get("TNS Failing Endpoints"), "failing endpoints")
    said = True if _MET in text else False if _NOT_MET in text else None
    counted = None if slack is None else slack >= 0 and (hold is None or hold >= 0) and not failing
    if said is None:
        notes.add("whether constraints are met: the report does not say it in words")
    elif counted is not None and said and not counted:
        notes.add("the report says that constraints are met, its slacks say that they are not")
        said = False
    head = {key.lower(): value.strip() for key, value in _FACT.findall(text[:16384])}
    version = re.search(r"v\.?(\d{4}\.\d)", head.get("tool version", ""))
    return TimingReport(
        path.name, name_of(head.get("device")), version.group(1) if version else None, slack,
        failing, hold, counted if said is None else said,
        tuple(_clocks(text)), notes.lines(),
    )  # fmt: skip


def _section(text: str, title: str) -> list[str]:
    """The lines below a title in a box, up to the next box."""
    place = text.find(f"| {title}\n")
    if place < 0:
        return []
    lines = text[place : place + (1 << 18)].split("\n")[1:]
    start = next((i for i, line in enumerate(lines) if _rule(line)), 0) + 1
    end = next((i for i in range(start, len(lines)) if _rule(lines[i])), len(lines))
    return lines[start:end]


def _rule(line: str) -> bool:
    return len(line) > 60 and not line.strip("-")


def _heads(text: str, title: str) -> list[str]:
    line = next((line for line in _section(text, title) if "WNS(ns)" in line), "")
    return re.split(r"\s{2,}", line.strip())


def _row_after(text: str, title: str, word: str) -> list[str] | None:
    """The figures under the heads: as many as there are heads, and all of them numbers."""
    lines, heads = _section(text, title), _heads(text, title)
    for index, line in enumerate(lines):
        if word in line:
            rows = (row.split() for row in lines[index + 1 :])
            row = next((row for row in rows if row and set("".join(row)) - {"-"}), [])
            fits = len(row) == len(heads) and all(decimal(cell) is not None or cell == "NA" for cell in row)
            return row if fits else None
    return None


def _clocks(text: str) -> list[ClockTiming]:
    """Clocks with their periods, and the worst slack inside each domain where it has paths."""
    slacks: dict[str, float | None] = {}
    lines = _section(text, "Intra Clock Table")
    head = next((line for line in lines if "WNS(ns)" in line), None)
    if head is not None:
        place = head.index("WNS(ns)")
        for line in lines[lines.index(head) + 2 :]:
            if line.strip():
                # Columns end at the same place: a clock without paths leaves its slack blank.
                cells = {cell.end(): cell.group() for cell in re.finditer(r"\S+", line)}
                slacks[line.split()[0]] = decimal(cells.get(place + len("WNS(ns)")))
    clocks: list[ClockTiming] = []
    for line in _section(text, "Clock Summary"):
        found = re.match(r"\s*(\S+)\s+\{[^}]*\}\s+([\d.]+)\s+([\d.]+)\s*$", line)
        if found is not None:
            clocks.append(ClockTiming(found.group(1), decimal(found.group(2)), slacks.get(found.group(1))))
    return clocks


def _exported(path: Path, text: str) -> TimingReport | None:
    """HLS' own export report: the period that was asked for and the one that was reached."""
    found = {_PERIODS[name.lower()]: decimal(value) for name, value in _EXPORT.findall(text)}
    required = found.get("required")
    achieved = found.get("implemented", found.get("synthesised"))
    if required is None or achieved is None:
        return None
    slack = round(required - achieved, 3)
    notes = ReadingNotes()
    if "implemented" not in found:
        notes.add("achieved after synthesis only: the design was not placed")
    device = re.search(r"^(?:Device target| +\* Target device):\s+(\S+)", text, re.M)
    version = re.search(r"(?:\bv\.?|\* Version:\s+)(\d{4}\.\d)", text[:4096])
    return TimingReport(
        path.name, device.group(1) if device else None, version.group(1) if version else None, slack, None,
        None, slack >= 0, (ClockTiming("ap_clk", required, slack),), notes.lines(),
        "implemented" if "implemented" in found else None,
    )  # fmt: skip
