"""csynth.rpt, the summary of a whole design as text: a tree of modules (+) and loops (o), dataflow marked with *."""

from __future__ import annotations

import re

from penstock.profiling.vitis.reading import unreadable
from penstock.profiling.vitis.records import Module, ReportedLoop, ReportedUsage, SynthesisReport
from penstock.profiling.vitis.tables import ReportTable, read_tables
from penstock.profiling.vitis.values import ReadingNotes, facts, flow_of, most, name_of, span, usage, version_of

_TOP = re.compile(r"^== Synthesis Summary Report of '([^'\n]{1,500})'", re.MULTILINE)
_ROW = re.compile(r"(\s*)([+o])(\s*)(\S.*?)(\*?)\s*\Z")


def is_summary(text: str) -> bool:
    return _TOP.search(text) is not None


def read_summary(text: str, source: str) -> SynthesisReport:
    """What the summary has: no clock and nothing that is available, but every module and loop.

    Its latencies are the worst case only, so they are bounds. II and stages of a pipeline do not depend on data.
    """
    found = _TOP.search(text)
    table = next((t for t in read_tables(text) if t.column("modules") == 0), None)
    if found is None or table is None or not table.closed or not table.rows:
        raise unreadable(source, "the table of modules and loops is missing or cut off")
    head = facts(text)
    notes = ReadingNotes()
    if table.crooked:
        notes.add(f"{table.crooked} rows of modules and loops do not fit their columns: left out")
    notes.add("clock and what is available: not in a summary report")
    modules, loops = _tree(table, notes)
    top = next((module for module in modules if module.name == found.group(1)), None)
    if top is None:
        notes.add(f"the top {found.group(1)} is not among the modules")
    return SynthesisReport(
        source=source, top=found.group(1), version=version_of(head),
        part=name_of(head.get("target device")), family=name_of(head.get("product family")),
        flow=flow_of(head), clock_target_ns=None, clock_uncertainty_ns=None,
        clock_estimated_ns=None, kind=top.kind if top else None, latency=top.latency if top else None,
        latency_average=None, interval=top.interval if top else None, used=top.used if top else ReportedUsage(),
        available=ReportedUsage(), loops=tuple(loops), modules=tuple(modules), instances=(), fifos=(), memories=(),
        operators=(), notes=notes.lines(),
    )  # fmt: skip


def _tree(table: ReportTable, notes: ReadingNotes) -> tuple[list[Module], list[ReportedLoop]]:
    modules: list[Module] = []
    loops: list[ReportedLoop] = []
    path: list[tuple[int, str, str]] = []  # indent, "+" or "o", name
    for row in table.rows:
        found = _ROW.match(row[0])
        if found is None:
            notes.add(f"{row[0].strip()[:60]!r} is neither a module nor a loop: left out")
            continue
        indent, mark, name, dataflow = len(found.group(1)), found.group(2), found.group(4), bool(found.group(5))
        path = [entry for entry in path if entry[0] < indent]
        latency = most(table.cell(row, "latency", "cycles"))
        said = name_of(table.cell(row, "pipelined"))
        if mark == "+":
            kind = "dataflow" if dataflow else said
            interval = most(table.cell(row, "interval"))
            modules.append(Module(name, None, latency, interval, kind, usage(table.named(row)), ReportedUsage()))
        else:
            owner = next((entry[2] for entry in reversed(path) if entry[1] == "+"), "?")
            parents = _parents(path)
            pipelined = None if said is None else said.lower() not in ("no", "none", "dataflow")
            iteration = (span if pipelined else most)(table.cell(row, "iteration"))
            figures = (
                span(table.cell(row, "trip")), latency, span(table.cell(row, "interval")), None, iteration, iteration
            )  # fmt: skip
            loops.append(ReportedLoop(name, owner, parents, *figures, pipelined, "dataflow" if dataflow else said))
        path.append((indent, mark, name))
    return modules, loops


def _parents(path: list[tuple[int, str, str]]) -> tuple[str, ...]:
    names: list[str] = []
    for _, mark, name in reversed(path):
        if mark == "+":
            break
        names.append(name)
    return tuple(reversed(names))
