"""`<name>_cosim.rpt`: the verdict and the measured cycles; tells the real report from the one written before."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.profiling.vitis.reading import missing, read_text, unreadable
from penstock.profiling.vitis.records import CosimReport, Verdict
from penstock.profiling.vitis.tables import ReportTable, read_tables
from penstock.profiling.vitis.values import ReadingNotes, name_of, whole

_SIMULATOR = re.compile(r"^Simulation tool\s*:[ \t]*(\S+?)\.?\s*$", re.MULTILINE)
_LIMIT = 4 << 20


def read_cosim_report(path: Path) -> CosimReport:
    """One report, of the language that was simulated."""
    text = read_text(path, _LIMIT)
    tables = [table for table in read_tables(text) if table.column("status") is not None]
    if not tables:
        raise unreadable(path, "no co-simulation report", limit="a table with a column Status was expected")
    table = tables[0]
    if not table.closed:
        raise unreadable(path, "the report ends inside its table", hint="it was cut off: run the step again")
    ran = [row for row in table.rows if (table.cell(row, "status") or "").lower() in ("pass", "fail")]
    if not ran:
        raise unreadable(path, "the report has no verdict", limit="Pass or Fail was expected for one language")
    found = _SIMULATOR.search(text)
    reports = [_report(table, row, found.group(1) if found else None, path.name) for row in ran]
    return max(reports, key=lambda report: _RANK[report.verdict])


_RANK: dict[Verdict, int] = {"not-run": 0, "pass": 1, "fail": 2}


def _report(table: ReportTable, row: tuple[str, ...], simulator: str | None, source: str) -> CosimReport:
    notes = ReadingNotes()
    status = (table.cell(row, "status") or "").lower()
    figures = [table.cell(row, head, end) for head in ("latency", "interval") for end in ("min", "avg", "max")]
    total = table.cell(row, "total")
    some = any(whole(text) is not None for text in (*figures, total))
    verdict: Verdict = "pass" if status == "pass" else "fail"
    if verdict == "fail" and simulator is None and not some:
        verdict = "not-run"
        notes.add("written before the simulation: it names no simulator and no figures, so its Fail is no verdict")
    counts = [
        notes.whole(text, f"{head}, {end}") if head == "latency" else whole(text)
        for text, (head, end) in zip(
            figures, ((head, end) for head in ("latency", "interval") for end in ("min", "avg", "max")), strict=True
        )
    ]
    if counts[3] is None:
        notes.add("interval: the report has none; it takes several transactions to measure one")
    return CosimReport(
        source=source, language=name_of(row[0]), verdict=verdict, simulator=simulator,
        latency_min=counts[0], latency_average=counts[1], latency_max=counts[2],
        interval_min=counts[3], interval_average=counts[4], interval_max=counts[5],
        total_cycles=whole(total), notes=notes.lines(),
    )  # fmt: skip


def find_cosim_report(folder: Path) -> CosimReport:
    """The report of a folder that counts: one that ran, and of those one that failed.

    The tool writes `_cosim.rpt` or `<top>_cosim.rpt` with Fail before it simulates, and may write the real one under
    another name beside it.
    """
    paths = sorted(path for path in folder.glob("*cosim.rpt") if path.is_file())
    if not paths:
        raise missing(folder / "*_cosim.rpt", "there is no co-simulation report")
    reports = [read_cosim_report(path) for path in paths]
    return max(reports, key=lambda report: _RANK[report.verdict])
