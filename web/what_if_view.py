"""A design with changes beside the design as it is: what was changed, and every figure before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.web import text
from penstock.web.dataflow_view import FlowGraph, neighbours
from penstock.web.text import Document


@dataclass(frozen=True)
class ChangeField:
    """A number of the open layer that may be another one; `now` is what it is with the changes so far."""

    kind: str
    part: str
    position: int
    label: str
    was: int
    now: int
    most: int


@dataclass(frozen=True)
class BeforeAfter:
    """One figure before and after; `tone` says whether less of it is there now."""

    name: str
    before: str
    after: str
    change: str
    tone: str
    evidence: tuple[str, str]


@dataclass(frozen=True)
class WhatIfView:
    """`going` while no worker has answered, `refused` where the design cannot be."""

    run: str
    page: str
    changes: tuple[str, ...]
    going: str
    refused: str
    figures: tuple[BeforeAfter, ...]
    notes: tuple[str, ...]
    waits: tuple[tuple[str, Document], ...]
    seconds: float | None
    can_run: bool


def fields_of(report: Document, flow: FlowGraph, key: str, run: Document | None) -> tuple[ChangeField, ...]:
    """What can be changed of a layer: tile and lanes of each loop, depths of its channels."""
    changed = _changes(run)
    found: list[ChangeField] = []
    decided = next((one for one in report["design"]["kernels"] if one["name"] == key), None)
    if decided is not None:
        given: Document = changed.get("kernels", {}).get(key, {})
        for name, kind in (("tile", "tile"), ("lanes", "unroll")):
            for position, (size, trips) in enumerate(zip(decided[kind], decided["trips"], strict=True)):
                now = given.get(kind, decided[kind])[position]
                found.append(ChangeField(kind, key, position, f"{name} of d{position} ({trips:,})", size, now, trips))
    depths: Document = changed.get("fifo_depths", {})
    for edges, way in zip(neighbours(flow, key), ("from", "to"), strict=True):
        others = [edge.source if way == "from" else edge.target for edge in edges]
        for edge, other in zip(edges, others, strict=True):
            if edge.depth is not None:
                now = depths.get(edge.name, edge.depth)
                which = f", {edge.name}" if others.count(other) > 1 else ""  # as instances of one task have
                label = f"depth of the FIFO {way} {other}{which}"
                found.append(ChangeField("depth", edge.name, 0, label, edge.depth, now, 1 << 20))
    return tuple(found)


def view_what_if(run: Document | None) -> WhatIfView | None:
    """From the run that was asked; None where nothing was."""
    if run is None:
        return None
    found: Document | None = run["summary"].get("what_if")
    error = run["error"]
    refused = error["what"] if error else ""
    if found is None:
        going = "" if run["state"] in ("succeeded", "failed", "cancelled") else "A worker looks at it."
        if going and run["waiting_for"]:
            going = run["waiting_for"]
        return WhatIfView(run["id"], run["page"], (), going, refused, (), (), (), None, False)
    before, after = found["before"], found["after"]
    refused = refused or after["refused"]
    return WhatIfView(
        run=run["id"],
        page=run["page"],
        changes=tuple(_in_words(found["changes"])),
        going="",
        refused=refused,
        figures=() if refused or before["refused"] else tuple(_figures(before, after)),
        notes=() if refused else _notes(after),
        waits=tuple(
            (when, wait) for when, look in (("before", before), ("after", after)) for wait in look.get("waits", ())
        ),
        seconds=found["seconds"],
        can_run=not refused,
    )


def _changes(run: Document | None) -> Document:
    return ((run or {}).get("summary", {}).get("what_if") or {}).get("changes", {})


def _in_words(changes: Document) -> list[str]:
    depths = [f"depth of {name}: {depth}" for name, depth in changes["fifo_depths"].items()]
    return depths + [
        f"{name}: {'lanes' if kind == 'unroll' else kind} {' × '.join(map(str, sizes))}"
        for name, change in changes["kernels"].items()
        for kind, sizes in change.items()
    ]


def _figures(before: Document, after: Document) -> list[BeforeAfter]:
    times = (before["evidence"], after["evidence"])
    rows = [
        _figure("latency, µs", before["latency_us"], after["latency_us"], times),
        _figure("latency, cycles", before["latency_cycles"], after["latency_cycles"], times),
        _figure("cycles between two inputs", before["interval_cycles"], after["interval_cycles"], times),
    ]
    areas = (before["used_evidence"], after["used_evidence"])
    for name, limit in after["limits"].items():
        if before["used"][name] or after["used"][name]:
            rows.append(_figure(name.upper(), before["used"][name], after["used"][name], areas, limit))
    return rows


def _figure(
    name: str, before: float | None, after: float | None, evidence: tuple[str, str], limit: int | None = None
) -> BeforeAfter:
    def shown(value: float | None) -> str:
        if value is None:
            return "–"
        share = f" ({text.percent(value / limit)})" if limit else ""
        return text.quantity(value) + share

    change, tone = "", "same"
    if before and after is not None:
        moved = after / before - 1
        change = "as before" if moved == 0 else f"{moved:+.1%}".replace("%", " %").replace("-", "−")
        tone = "same" if moved == 0 else "less" if moved < 0 else "more"
    return BeforeAfter(name, shown(before), shown(after), change, tone, evidence)


def _notes(after: Mapping[str, object]) -> tuple[str, ...]:
    fits = "" if after["fits"] else "It does not keep to the limits."
    return tuple(note for note in (fits, str(after["explanation"])) if note)
