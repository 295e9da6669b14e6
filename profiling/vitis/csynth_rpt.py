"""`<name>_csynth.rpt`, one module's report as text, of every generation: read by headings and column heads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from penstock.profiling.vitis.reading import read_text, unreadable
from penstock.profiling.vitis.records import (
    BoundOperation,
    CountSpan,
    Instance,
    Module,
    ReportedFifo,
    ReportedLoop,
    ReportedMemory,
    ReportedUsage,
    SynthesisReport,
)
from penstock.profiling.vitis.summary_rpt import is_summary, read_summary
from penstock.profiling.vitis.tables import ReportTable, read_tables
from penstock.profiling.vitis.values import (
    ReadingNotes,
    decimal,
    facts,
    flow_of,
    name_of,
    span,
    usage,
    version_of,
    whole,
)

_TOP = re.compile(r"^== .*Report for '([^'\n]{1,500})'", re.MULTILINE)
_UNITS = {"s": 1e9, "sec": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0, "ps": 1e-3}


def read_csynth_report(path: Path) -> SynthesisReport:
    """Read a module's report, or csynth.rpt, the summary of all modules."""
    text = read_text(path)
    if is_summary(text):
        return read_summary(text, path.name)
    found = _TOP.search(text)
    if found is None:
        raise unreadable(path, "no synthesis report", limit="a line \"== Vitis HLS Report for '...'\" was expected")
    tables = read_tables(text)
    if any(not table.closed for table in tables[-1:]):
        raise unreadable(path, "the report ends inside a table", hint="it was cut off: run the step again")
    return _report(found.group(1), facts(text), tables, path.name)


def _report(top: str, head: dict[str, str], tables: list[ReportTable], source: str) -> SynthesisReport:
    notes = ReadingNotes()
    for table in tables:
        if table.crooked and "Interface" not in table.headings:
            notes.add(f"{table.crooked} rows of {' / '.join(table.headings)!r} do not fit their columns: left out")
    clock = _clock(tables, notes)
    latency = _first(tables, "latency", "summary")
    row = latency.rows[0] if latency is not None and latency.rows else None
    used, available = _totals(tables, notes)
    cycles = interval = kind = None
    if latency is None or row is None:
        notes.add("latency: not in the report")
    else:
        cycles = _pair(latency, row, "latency", "latency", notes)
        interval = _pair(latency, row, "interval", "interval", notes)
        kind = name_of(latency.cell(row, "pipeline"))
    module = Module(top, clock[2], cycles, interval, kind, used, available)
    return SynthesisReport(
        source=source, top=top, version=version_of(head), part=name_of(head.get("target device")),
        family=name_of(head.get("product family")), flow=flow_of(head), clock_target_ns=clock[0],
        clock_uncertainty_ns=clock[1], clock_estimated_ns=clock[2], kind=kind, latency=cycles, latency_average=None,
        interval=interval, used=used, available=available, loops=tuple(_loops(tables, top, notes)),
        modules=(module,), instances=tuple(_instances(tables, top)), fifos=tuple(_fifos(tables, top)),
        memories=tuple(_memories(tables, top)), operators=tuple(_operators(tables, top)), notes=notes.lines(),
    )  # fmt: skip


def _first(tables: list[ReportTable], *headings: str) -> ReportTable | None:
    return next((table for table in tables if table.under(*headings)), None)


def _clock(tables: list[ReportTable], notes: ReadingNotes) -> tuple[float | None, float | None, float | None]:
    """Target, uncertainty and estimate of the slowest clock; in ns, also where the unit stands in the cells."""
    table = _first(tables, "timing", "summary")
    rows = table.rows if table is not None else ()
    if table is None or not rows:
        notes.add("clock: not in the report")
        return None, None, None
    figures = [
        tuple(_nanoseconds(table.cell(row, head)) for head in ("target", "uncertainty", "estimated")) for row in rows
    ]
    target, uncertainty, estimated = max(figures, key=lambda figure: figure[2] or -1.0)
    for name, figure in (("clock target", target), ("estimated clock", estimated)):
        if figure is None:
            notes.add(f"{name}: no figure in the report")
    return target, uncertainty, estimated


def _nanoseconds(text: str | None) -> float | None:
    value, words = decimal(text), (text or "").split()
    if value is None or len(words) < 2:
        return value
    return None if words[1] not in _UNITS else value * _UNITS[words[1]]


def _pair(table: ReportTable, row: tuple[str, ...], head: str, what: str, notes: ReadingNotes) -> CountSpan | None:
    low = notes.whole(table.cell(row, head, "min", without="absolute"), f"{what}, least")
    high = notes.whole(table.cell(row, head, "max", without="absolute"), f"{what}, most")
    return notes.between(low, high, what)


def _totals(tables: list[ReportTable], notes: ReadingNotes) -> tuple[ReportedUsage, ReportedUsage]:
    table = _first(tables, "utilization estimates", "summary")
    if table is None:
        notes.add("used and available: not in the report")
        return ReportedUsage(), ReportedUsage()
    found = []
    for name, what in (("Total", "used"), ("Available", "available")):
        row = table.row(name)
        result = ReportedUsage() if row is None else usage(table.named(row))
        if result.missing:
            notes.add(f"{what}: no figure for {', '.join(result.missing)}")
        found.append(result)
    return found[0], found[1]


def _loops(tables: list[ReportTable], module: str, notes: ReadingNotes) -> Iterator[ReportedLoop]:
    table = _first(tables, "latency", "detail", "loop")
    parents: list[str] = []
    for row in table.rows if table is not None else ():
        assert table is not None
        marks, _, name = row[0].strip().partition(" ")
        if not name:
            marks, name = "-", marks
        level = len(marks) if set(marks) == {"+"} else 0  # "- outer", "+ inner", "++ inner of that"
        del parents[level:]
        kind = name_of(table.cell(row, "pipelined"))
        pipelined = None if kind is None else kind.lower() not in ("no", "none", "dataflow")
        iteration = span(table.cell(row, "iteration"))
        where = f"{module}, loop {name.strip()}"
        yield ReportedLoop(
            name=name.strip(), module=module, parents=tuple(parents),
            trip=notes.span(table.cell(row, "trip"), f"trip count of {where}"),
            latency=_pair(table, row, "latency", f"latency of {where}", notes),
            ii=span(table.cell(row, "achieved")), target_ii=whole(table.cell(row, "target")),
            depth=iteration, iteration_latency=iteration, pipelined=pipelined, kind=kind,
        )  # fmt: skip
        parents.append(name.strip())


def _parts(tables: list[ReportTable], name: str) -> Iterator[tuple[ReportTable, tuple[str, ...]]]:
    """The rows of a detail of the utilisation, without totals: they have that name, and a line above them."""
    for table in tables:
        if table.under("utilization estimates", "detail", name):
            for row in table.rows[: table.first]:
                if row[0].strip().lower() != "total":
                    yield table, row


def _instances(tables: list[ReportTable], top: str) -> Iterator[Instance]:
    areas = {row[0].strip(): usage(table.named(row)) for table, row in _parts(tables, "instance")}
    modules = {row[0].strip(): table.cell(row, "module") for table, row in _parts(tables, "instance")}
    timing = _first(tables, "latency", "detail", "instance")
    times: dict[str, tuple[CountSpan | None, CountSpan | None]] = {}
    quiet = ReadingNotes()  # an instance without figures is common: black boxes, combinational modules
    for row in timing.rows if timing is not None else ():
        assert timing is not None
        name = row[0].strip()
        modules.setdefault(name, timing.cell(row, "module"))
        times[name] = (_pair(timing, row, "latency", name, quiet), _pair(timing, row, "interval", name, quiet))
    for name, module in modules.items():
        latency, interval = times.get(name, (None, None))
        yield Instance(name, module or "?", top, latency, interval, areas.get(name, ReportedUsage()))


def _fifos(tables: list[ReportTable], top: str) -> Iterator[ReportedFifo]:
    for table, row in _parts(tables, "fifo"):
        depth, bits = whole(table.cell(row, "depth")), whole(table.cell(row, "bits"))
        yield ReportedFifo(row[0].strip(), top, depth, bits, None, usage(table.named(row)))


def _memories(tables: list[ReportTable], top: str) -> Iterator[ReportedMemory]:
    for table, row in _parts(tables, "memory"):
        yield ReportedMemory(
            row[0].strip(), top, name_of(table.cell(row, "module")), whole(table.cell(row, "words")),
            whole(table.cell(row, "bits", without="*")), whole(table.cell(row, "banks", without="*")), None,
            usage(table.named(row)),
        )  # fmt: skip


def _operators(tables: list[ReportTable], top: str) -> Iterator[BoundOperation]:
    """Expressions in logic and the cores that took DSPs."""
    for table, row in _parts(tables, "expression"):
        operation = table.cell(row, "operation") or "?"
        yield BoundOperation(row[0].strip(), top, operation, None, None, None, None, usage(table.named(row)))
    for table, row in _parts(tables, "dsp"):
        operation = table.cell(row, "expression") or "?"
        yield BoundOperation(
            row[0].strip(), top, operation, table.cell(row, "module"), None, None, None, ReportedUsage()
        )
