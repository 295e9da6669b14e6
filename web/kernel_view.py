"""A C++ kernel before and after: its times, its tasks, its FIFOs, and its source with what limits each loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.web import text
from penstock.web.dataflow_view import FlowGraph
from penstock.web.kernel_flow import view_kernel_flow
from penstock.web.text import Document

MOST_ROWS = 300
MOST_LINES = 3_000
_RESOURCES = ("dsp", "lut", "ff", "bram18")
_NONE: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Change:
    """A figure as it was and as it is, and in words what that comes to."""

    name: str
    before: str
    after: str
    ratio: str
    better: bool | None
    """None: neither."""


@dataclass(frozen=True)
class TaskRow:
    """A task of the simulation as a bar, in percent of the whole run, and whom it waits for."""

    name: str
    start: float
    width: float
    works: float
    title: str
    waits: tuple[str, ...]


@dataclass(frozen=True)
class FifoRow:
    name: str
    where: str
    ends: str
    bits: str
    depth: str
    needed: str
    saved: str
    fill: float


@dataclass(frozen=True)
class LoopRow:
    task: str
    loop: str
    where: str
    iterations: str
    ii: int
    depth: int
    limit: str
    limit_at: str


@dataclass(frozen=True)
class SourceLine:
    number: int
    text: str
    notes: tuple[str, ...]
    """What is to be said of a loop or array on this line."""
    limits: bool
    """It keeps a loop from starting an iteration every cycle."""


@dataclass(frozen=True)
class KernelState:
    """All that is known of one of the two sources."""

    suffix: str
    """Behind the name of each part of it."""
    headline: str
    flow: FlowGraph | None
    deadlock: str
    schedule: str
    cycles: str
    tasks: tuple[TaskRow, ...]
    fifos: tuple[FifoRow, ...]
    fifos_said: str
    loops: tuple[LoopRow, ...]
    slow: int
    lines: tuple[SourceLine, ...]
    cut: bool
    unused: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class KernelRunView:
    top: str
    file: str
    part: str
    clock: str
    before: KernelState
    after: KernelState | None
    changes: tuple[Change, ...]
    done: tuple[str, ...]
    unmoved: str
    values: str
    values_known: bool


def view_kernel_run(record: Document) -> KernelRunView:
    """`record` is what the run's package says of its kernel, or its first analysis alone."""
    before, after, explored = record["before"], record.get("after"), record.get("exploration") or {}
    values = explored.get("values") or {}
    return KernelRunView(
        top=before["top"],
        file=record.get("file") or before["kernel"],
        part=before["part"],
        clock=f"{before['clock_mhz']:g} MHz",
        before=_state(" as sent" if after else "", before, record.get("sent"), unchanged=not after),
        after=_state("", after, record.get("source")) if after else None,
        changes=changes_between(before, after, explored.get("limits") or {}) if after else (),
        done=_done(explored),
        unmoved=explored.get("unmoved") or "",
        values=_values(values),
        values_known=not values.get("not"),
    )


def _state(suffix: str, found: Document, source: str | None, *, unchanged: bool = False) -> KernelState:
    loops = tuple(_loop(loop) for loop in found["loops"])
    whole = max([found["latency"] or 0, *(task["end"] for task in found["tasks"]), 1])
    lines = _lines(source or "", found)
    fifos = sorted(found["fifos"], key=lambda one: -abs(one["saved_bits"]))
    return KernelState(
        suffix=suffix,
        flow=None if suffix else view_kernel_flow(found, "sent" if unchanged else "now"),
        headline="it stops for ever" if found["deadlock"] else f"{found['latency']:,} cycles",
        deadlock=found["deadlock"] or "",
        schedule=found["schedule"],
        cycles=f"{whole:,}",
        tasks=tuple(_task(task, whole) for task in found["tasks"][:MOST_ROWS]) if len(found["tasks"]) > 1 else (),
        fifos=tuple(_fifo(fifo) for fifo in fifos[:MOST_ROWS]),
        fifos_said=_fifos_said(found),
        loops=tuple(sorted(loops, key=lambda row: -row.ii)[:MOST_ROWS]),
        slow=sum(loop.ii > 1 for loop in loops),
        lines=lines[:MOST_LINES],
        cut=len(lines) > MOST_LINES,
        unused=tuple(found["unused"]),
        notes=tuple(found["notes"]),
    )


def _loop(loop: Document) -> LoopRow:
    return LoopRow(
        loop["task"], loop["loop"], loop["where"], f"{loop['iterations']:,}", loop["ii"], loop["depth"], loop["limit"],
        loop["limit_at"],
    )  # fmt: skip


def _task(task: Document, whole: int) -> TaskRow:
    span = max(1, task["end"] - task["start"])
    width = 100 * span / whole
    works = min(width, 100 * task["busy"] / whole)
    waits = tuple(f"{cycles:,} cycles for {channel}, {why}" for channel, why, cycles in task["waits"])
    idle = max(0, span - task["busy"])
    title = f"{task['name']}: cycles {task['start']:,} to {task['end']:,}, {task['busy']:,} busy, {idle:,} waiting"
    start = min(99.0, 100 * task["start"] / whole)
    return TaskRow(task["name"], round(start, 2), round(max(width, 0.3), 2), round(works, 2), title, waits)


def _fifo(fifo: Document) -> FifoRow:
    depth, needed = fifo["depth"], fifo["needed"]
    lanes = f"{fifo['lanes']} × " if fifo["lanes"] > 1 else ""
    return FifoRow(
        fifo["name"], fifo["where"], f"{fifo['writer']} → {fifo['reader']}", f"{lanes}{fifo['bits']}", f"{depth:,}",
        f"{needed:,}", f"{fifo['saved_bits']:,}" if fifo["saved_bits"] else "–",
        round(min(100.0, 100 * needed / depth), 1) if depth else 0.0,
    )  # fmt: skip


def _fifos_said(found: Document) -> str:
    if not found["fifos"]:
        return ""
    if not found["saved_bits"]:
        return "each is as deep as it is filled"
    shrunk = found["latency_with_needed_depths"]
    at = f" at {shrunk:,} cycles" if shrunk is not None else ""
    if found["saved_bits"] < 0:
        return f"{-found['saved_bits']:,} bits more would let none of them be full{at}"
    return f"{found['saved_bits']:,} bits could be saved{at}"


def _lines(source: str, found: Document) -> tuple[SourceLine, ...]:
    notes: dict[int, list[str]] = {}
    limits: set[int] = set()
    for loop in found["loops"]:
        line = _line_of(loop["limit_at"])
        said = f"II = {loop['ii']}: {loop['limit']}" if loop["limit"] else ""
        if line is not None and said:
            notes.setdefault(line, []).append(said)
            limits.add(line)
        own = _line_of(loop["where"])
        if own is not None:
            words = f"{loop['loop']}: {loop['iterations']:,} iterations, II = {loop['ii']}, {loop['depth']} stages"
            notes.setdefault(own, []).append(words)
    for fifo in found["fifos"]:
        line = _line_of(fifo["where"])
        if line is not None:
            notes.setdefault(line, []).append(f"{fifo['name']}: depth {fifo['depth']:,}, needs {fifo['needed']:,}")
    lines = text.shown_code(source).removesuffix("\n").split("\n") if source else []
    return tuple(
        SourceLine(number, line, tuple(dict.fromkeys(notes.get(number, ())))[:6], number in limits)
        for number, line in enumerate(lines, 1)
    )


def _line_of(place: str) -> int | None:
    """Of file:line or file:line:column."""
    return next((int(part) for part in place.split(":")[1:2] if part.isdecimal()), None)


def changes_between(before: Document, after: Document, limits: Mapping[str, Any] = _NONE) -> tuple[Change, ...]:
    """Every figure of two sources of one kernel."""
    rows = [
        _change("latency", before["latency"], after["latency"], " cycles"),
        _change("a new run every", before["interval"], after["interval"], " cycles"),
    ]
    for name in _RESOURCES:
        limit = f" of {limits[name]:,}" if name in limits else ""
        rows.append(_change(name.upper(), before["area"].get(name), after["area"].get(name), "", limit, area=True))
    bits = [_fifo_bits(one) for one in (before, after)]
    return tuple(rows) + ((_change("bits of FIFOs", bits[0], bits[1], "", area=True),) if any(bits) else ())


def _change(
    name: str, was: int | None, now: int | None, unit: str, limit: str = "", *, area: bool = False
) -> Change:  # fmt: skip
    def shown(value: int | None) -> str:
        return "never ends" if value is None else f"{value:,}{unit}"

    if was is None or now is None or was == now:
        return Change(name, shown(was), shown(now) + limit, "the same" if was == now else "", None)
    if area:
        more = now - was
        return Change(name, shown(was), shown(now) + limit, f"{abs(more):,} {'more' if more > 0 else 'less'}", None)
    times = was / max(1, now)
    words = f"{times:,.3g} times as fast" if times >= 1 else f"{1 / times:,.3g} times as long"
    return Change(name, shown(was), shown(now) + limit, words, times > 1)


def _fifo_bits(found: Document) -> int:
    return sum(one["depth"] * one["bits"] * one["lanes"] for one in found["fifos"])


def _done(explored: Document) -> tuple[str, ...]:
    if explored.get("changes"):
        return tuple(explored["changes"])
    nests: Sequence[Document] = explored.get("nests") or ()
    lines = [f"{explored['tasks']} tasks that run at the same time"] if explored.get("tasks", 1) > 1 else []
    for nest in nests:
        lanes = ", ".join(f"{count} of {name}" for name, count in nest["lanes"].items())
        order = ", ".join(nest["order"])
        moved = "" if nest["order"] == nest["source"] else " (moved)"
        lines.append(f"line {nest['line']}: loops {order}{moved}" + (f"; {lanes} at once" if lanes else ""))
    return tuple(lines)


def _values(values: Document) -> str:
    if not values:
        return ""
    if values.get("not"):
        return f"Whether it computes the same was not tried: {values['not']}."
    words = f", {values['compared']:,} words" if values["compared"] else ""
    return f"It computes the same: {values['how']}{words}."
