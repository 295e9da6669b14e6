"""What Vivado says of area after synthesis, placement or routing: by site, kernel, instance or die, or exported."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from penstock.compiler.platforms import RESOURCE_NAMES
from penstock.profiling.vitis.reading import read_text, unreadable
from penstock.profiling.vitis.records import ImplementedReport, PlacedResources, ReportedUsage
from penstock.profiling.vitis.tables import ReportTable, read_tables
from penstock.profiling.vitis.values import ReadingNotes, name_of, whole

_FACT = re.compile(
    r"^(?:\|? ?| +\* )(Tool Version|Version|Design State|Device|Device target|Target device|Implementation tool)"
    r"\s*:\s*(\S.*)$",
    re.M,
)
_EXPORTED = re.compile(r"^(LUT|FF|DSP|BRAM|URAM):\s+([0-9]{1,12})\s*$", re.M)
_EXPORTS = re.compile(r"resource usage|(?:Place & Route|RTL Synthesis) Resource Summary", re.I)
_PLACED = re.compile(r"post-implementation|== Place & Route Resource Summary", re.I)
_AFTER_ROUTING = re.compile(r"kernel_util\w*_routed\Z", re.I)
_STATE = re.compile(r"(Synth(?:esi[sz])?ed|Optimized|(?:Fully |Partially )?(?:Placed|Routed)|Physopt post\w+)", re.I)

_Found = tuple[ReportedUsage, ReportedUsage, tuple[PlacedResources, ...]]
"""Used, available, and of which parts."""

# Vivado counts block RAMs in tiles of 36 kbit, high-level synthesis in halves of those.
_SITES: dict[str, str] = {
    "clb luts": "lut", "slice luts": "lut",
    "clb registers": "ff", "slice registers": "ff", "registers": "ff",
    "dsps": "dsp", "dsp slices": "dsp", "uram": "uram", "block ram tile": "bram18",
}  # fmt: skip


def read_utilization(path: Path) -> ImplementedReport:
    """Read report_utilization, report_accelerator_utilization, a hierarchical one, or HLS' own export report."""
    text = read_text(path)
    head = {key.lower(): value.strip() for key, value in _FACT.findall(text[:16384])}
    notes = ReadingNotes()
    if (exported := _exported(text)) is not None:
        state = "Routed" if _PLACED.search(text) else "Synthesized"
        return _record(path, state, head, exported, ReportedUsage(), (), notes)
    tables = read_tables(text)
    if tables and not tables[-1].closed:
        raise unreadable(path, "the report ends inside a table", hint="it was cut off: run the step again")
    if crooked := sum(table.crooked for table in tables):
        notes.add(f"{crooked} rows do not fit their columns: left out")
    state = _state(head, path)
    for reader in (_by_kernel, _by_instance):
        if (found := _first(reader, tables)) is not None:
            return _record(path, state, head, *found, notes)
    used, available = _by_site(tables)
    dies = _first(_by_die, tables)
    if used is not None:  # of a device of several dies the same report also has a section with each die's part
        return _record(path, state, head, used, available, dies[2] if dies is not None else (), notes)
    if dies is not None:
        return _record(path, state, head, *dies, notes)
    raise unreadable(path, "no utilisation report", limit="a table of site types, kernels or instances")


def _first(reader: Callable[[ReportTable], _Found | None], tables: list[ReportTable]) -> _Found | None:
    return next((found for table in tables if (found := reader(table)) is not None), None)


def _record(
    path: Path, state: str | None, head: dict[str, str], used: ReportedUsage, available: ReportedUsage,
    parts: tuple[PlacedResources, ...],
    notes: ReadingNotes,
) -> ImplementedReport:  # fmt: skip
    for what, found in (("used", used), ("available", available)):
        if found.missing:
            notes.add(f"{what}: no figure for {', '.join(found.missing)}")
    said = next((head[key] for key in ("tool version", "implementation tool", "version") if key in head), "")
    version = re.search(r"(?:\bv\.?|\A)(\d{4}\.\d)", said)
    routed = state is not None and "rout" in state.lower() and "partial" not in state.lower()
    if not routed and parts and _AFTER_ROUTING.search(path.stem) and (state or "").lower() == "fully placed":
        # v++ writes the kernels' table once it has routed the design: its name says so, its head names the placement.
        notes.add(f"the head says {state}, the name of the file that the design was routed: the name is believed")
        routed = True
    if not routed:
        notes.add(f"the design is {state.lower() if state else 'in a state that the report does not name'}: not routed")
    part = name_of(next((head[key] for key in ("device", "device target", "target device") if key in head), None))
    return ImplementedReport(
        path.name, state, part, version.group(1) if version else None, used, available, parts, notes.lines(),
        "implemented" if routed else None,
    )  # fmt: skip


def _state(head: dict[str, str], path: Path) -> str | None:
    found = _STATE.search(head.get("design state", "")) or _STATE.search(path.stem)
    return found.group(1) if found else None


def _exported(text: str) -> ReportedUsage | None:
    """`<top>_export.rpt` and export_impl.rpt: block RAMs are counted in 18 kbit there, to compare with the estimate."""
    if not _EXPORTS.search(text):
        return None
    found = {name.lower(): int(count) for name, count in _EXPORTED.findall(text)}
    if not found:
        return None
    return ReportedUsage(found.get("lut"), found.get("ff"), found.get("dsp"), found.get("bram"), found.get("uram"))


def _by_site(tables: list[ReportTable]) -> tuple[ReportedUsage | None, ReportedUsage]:
    used: dict[str, int] = {}
    available: dict[str, int] = {}
    for table in tables:
        if table.column("site type") is None:
            continue
        for row in table.rows:
            resource = _site(row)
            if resource is None or resource in used:
                continue
            count, room = (_count(_under(table, row, head), resource) for head in ("used", "available"))
            if count is not None:
                used[resource] = count
            if room is not None:
                available.setdefault(resource, room)
    return (ReportedUsage(**used) if used else None), ReportedUsage(**available)


def _under(table: ReportTable, row: tuple[str, ...], head: str) -> str | None:
    """The cell below exactly this head: one that is damaged may run over its neighbours."""
    cells = dict(zip((words.lower() for words in table.columns), row, strict=True))
    return cells.get(head)


def _site(row: tuple[str, ...]) -> str | None:
    """The resource that a row of sites counts; Vivado marks some with stars for its footnotes."""
    return _SITES.get(row[0].strip().rstrip("*").lower())


def _by_die(table: ReportTable) -> _Found | None:
    """report_utilization -slr of a device of several dies: a column for each."""
    dies = [head for head in table.columns if re.fullmatch(r"SLR\d+", head)]
    if table.column("site type") is None or not dies:
        return None
    counts: dict[str, dict[str, int]] = {die: {} for die in dies}
    for row in table.rows:
        resource = _site(row)
        for die in dies:
            count = _count(row[table.columns.index(die)], resource) if resource is not None else None
            if resource is not None and count is not None:
                counts[die].setdefault(resource, count)
    shared = [name for name in RESOURCE_NAMES if all(name in counts[die] for die in dies)]
    used = ReportedUsage(**{name: sum(counts[die][name] for die in dies) for name in shared})
    return used, ReportedUsage(), tuple(PlacedResources(die, None, ReportedUsage(**counts[die])) for die in dies)


def _count(text: str | None, resource: str) -> int | None:
    """A count of a site; half tiles are whole block RAMs of 18 kbit."""
    if resource != "bram18":
        return whole(text)
    found = re.match(r"\s*([0-9]{1,12})(?:\.(0|5|00|50))?\s*(?:\[|\(|\Z)", text or "")
    if found is None:
        return None
    return 2 * int(found.group(1)) + ((found.group(2) or "0").startswith("5"))


_KERNEL_COLUMNS = {"lut": "lut", "reg": "ff", "dsp": "dsp", "bram": "bram18", "uram": "uram"}
_LEVEL_COLUMNS = {"total luts": "lut", "ffs": "ff", "dsp blocks": "dsp", "dsp48 blocks": "dsp", "uram": "uram"}


def _row_usage(table: ReportTable, row: tuple[str, ...], columns: dict[str, str]) -> ReportedUsage:
    cells = dict(zip((head.lower() for head in table.columns), row, strict=True))
    counts = {resource: _count(cells[head], resource) for head, resource in columns.items() if head in cells}
    return ReportedUsage(**counts)


def _by_kernel(table: ReportTable) -> _Found | None:
    """The kernels of a platform; what is available is the user's budget."""
    budget = table.row("user budget")
    spent = table.row("used resources")
    if budget is None or spent is None:
        return None
    parts: list[PlacedResources] = []
    kernel: str | None = None
    for row in table.rows:
        name = row[0].strip()
        if name.lower() in ("platform", "user budget", "used resources", "unused resources"):
            continue
        nested = row[0].startswith("  ")
        parts.append(PlacedResources(name, kernel if nested else None, _row_usage(table, row, _KERNEL_COLUMNS)))
        kernel = kernel if nested else name
    return _row_usage(table, spent, _KERNEL_COLUMNS), _row_usage(table, budget, _KERNEL_COLUMNS), tuple(parts)


def _by_instance(table: ReportTable) -> _Found | None:
    """report_utilization -hierarchical: instances by indentation."""
    if table.column("instance") != 0 or table.column("total luts") is None or not table.rows:
        return None
    parts: list[PlacedResources] = []
    path: list[tuple[int, str]] = []
    for row in table.rows:
        name, indent = row[0].strip(), len(row[0]) - len(row[0].lstrip())
        path = [entry for entry in path if entry[0] < indent]
        used = _row_usage(table, row, _LEVEL_COLUMNS)
        tiles, halves = whole(table.cell(row, "ramb36")), whole(table.cell(row, "ramb18"))
        bram = 2 * tiles + halves if tiles is not None and halves is not None else None
        used = ReportedUsage(used.lut, used.ff, used.dsp, bram, used.uram)
        parts.append(PlacedResources(name, path[-1][1] if path else None, used))
        path.append((indent, name))
    return parts[0].used, ReportedUsage(), tuple(parts)
