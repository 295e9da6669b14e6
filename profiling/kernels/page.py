"""An analysis as one HTML page that needs nothing else: a timeline of the tasks, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from penstock.profiling.kernels.analysis import Analysis

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}
td,th{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #ddd}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}h2{margin-top:2rem}.bad{color:#a00}code{font-size:.93em}"""
_WIDTH, _ROW, _LEFT = 900, 22, 170


def page_of(found: Analysis) -> str:
    head = "deadlock" if found.deadlock else f"{found.latency:,} cycles"
    parts = [
        f"<h1>{escaped(found.top)}</h1><p>{escaped(found.kernel)} for {escaped(found.part)} at "
        f"{found.clock_mhz:g} MHz: <b>{head}</b> (simulated, schedules {found.schedule}).</p>",
    ]
    return document(found.top, [*parts, *sections(found)])


def comparison_page(before: Analysis, after: Analysis, explored: Mapping[str, Any]) -> str:
    """A kernel as it was and as it became, each with all that is known of it."""
    was, became = ("it stops for ever" if one.deadlock else f"{one.latency:,} cycles" for one in (before, after))
    values = explored["values"]
    same = (
        f"Values were not compared: {values['not']}." if values.get("not")
        else f"Same values: {values['how']}" + (f", {values['compared']:,} words." if values["compared"] else ".")
    )  # fmt: skip
    parts = [
        f"<h1>{escaped(before.top)}</h1><p>{escaped(before.kernel)} for {escaped(before.part)} at "
        f"{before.clock_mhz:g} MHz: {was} as it was sent, <b>{became}</b> now (simulated, schedules {after.schedule}); "
        f"{explored['trials']:,} sources were tried.</p><p>{escaped(same)}</p>",
    ]
    if explored.get("unmoved"):
        parts.append(f"<p>Its loops were not moved, pragmas alone were changed: {escaped(explored['unmoved'])}</p>")
    if explored.get("changes"):
        parts.append("<ul>" + "".join(f"<li>{escaped(line)}</li>" for line in explored["changes"]) + "</ul>")
    rows = ((name.upper(), count, after.area.get(name, 0)) for name, count in before.area.items())
    parts.append("<h2>Area, modelled</h2>" + table(("resource", "as sent", "now"), rows))
    now = [part.replace("<h2>", "<h2>Now: ") for part in sections(after)]
    sent = [part.replace("<h2>", "<h2>As sent: ") for part in sections(before)]
    return document(before.top, [*parts, *now, *sent])


def sections(found: Analysis) -> list[str]:
    """Tasks, loops, FIFOs, and what is to be known beside them."""
    parts: list[str] = []
    if found.deadlock:
        parts.append(f'<p class="bad">It stops for ever: {escaped(found.deadlock)}</p>')
    elif found.interval:
        parts.append(f"<p>A new run can start every {found.interval:,} cycles.</p>")
    parts.append(
        "<p>Area, modelled: " + ", ".join(f"{value:,} {name.upper()}" for name, value in found.area.items()) + ".</p>"
    )
    if len(found.tasks) > 1:
        parts.append("<h2>Tasks</h2>" + _timeline(found) + _tasks(found))
    parts.append("<h2>Loops</h2>" + table(
        ("task", "loop", "at", "iterations", "II", "depth", "what limits the II", "line"),
        ((x.task, x.loop, x.where, x.iterations, x.ii, x.depth, x.limit, x.limit_at) for x in found.loops),
    ))  # fmt: skip
    if found.fifos:
        parts.append(
            f"<h2>FIFOs</h2><p>In all, {found.fifos_said}.</p>" + table(
                ("FIFO", "at", "from", "to", "lanes", "bits", "depth", "needed", "bits saved"),
                (
                    (f.name, f.where, f.writer, f.reader, f.lanes, f.bits, f.depth, f.needed, f.saved_bits)
                    for f in found.fifos
                ),
            )
        )  # fmt: skip
    for title, lines in (("Directives without effect", found.unused), ("Notes", found.notes)):
        if lines:
            parts.append(f"<h2>{title}</h2><ul>" + "".join(f"<li>{escaped(line)}</li>" for line in lines) + "</ul>")
    return parts


def document(title: str, parts: Iterable[str]) -> str:
    """A whole page."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escaped(title)}</title><style>{_STYLE}</style>'
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _tasks(found: Analysis) -> str:
    rows = (
        (
            t.name,
            t.start,
            t.end,
            t.busy,
            "; ".join(f"{cycles:,} for {channel} ({why})" for channel, why, cycles in t.waits),
        )
        for t in found.tasks
    )
    return table(("task", "starts", "ends", "busy", "waits"), rows)


def _timeline(found: Analysis) -> str:
    """A bar a task from its start to its end; the dark part is the share that it was busy."""
    last = max((task.end for task in found.tasks), default=1) or 1
    scale = (_WIDTH - _LEFT) / last
    bars: list[str] = []
    for row, task in enumerate(found.tasks):
        y, x = row * _ROW + 4, _LEFT + task.start * scale
        whole = max(1.0, (task.end - task.start) * scale)
        busy = min(whole, task.busy * scale)
        bars.append(
            f'<text x="0" y="{y + 12}" font-size="12">{escaped(task.name[:24])}</text>'
            f'<rect x="{x:.1f}" y="{y}" width="{whole:.1f}" height="15" fill="#cfe0f2"/>'
            f'<rect x="{x:.1f}" y="{y}" width="{busy:.1f}" height="15" fill="#3b78b5">'
            f"<title>busy {task.busy:,}</title></rect>"
        )
    box = f"0 0 {_WIDTH} {len(bars) * _ROW + 6}"
    return f'<svg viewBox="{box}" role="img" aria-label="when tasks run">{"".join(bars)}</svg>'


def table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """Rows under heads; counts are set right and have separators."""
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return "<table><tr>" + "".join(f"<th>{escaped(head)}</th>" for head in heads) + f"</tr>{body}</table>"


def _cell(value: object) -> str:
    return f'<td class="n">{value:,}</td>' if isinstance(value, int) else f"<td>{escaped(str(value))}</td>"


def escaped(text: str) -> str:
    """Text as HTML shows it."""
    return escape(text)
