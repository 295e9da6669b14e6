"""A folder's reports as one HTML page that needs nothing else, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.compiler.platforms.resources import RESOURCE_LABELS
from penstock.profiling.kernels.page import document, escaped, table
from penstock.profiling.solutions.found import FolderReports
from penstock.profiling.vitis.records import CountSpan, ReportedUsage, SynthesisReport

_MOST_LINES = 20
_MET = {True: "met", False: "missed", None: "not said whether met"}


def page_of(found: FolderReports) -> str:
    """The page; what cannot be true stands first."""
    parts = [f"<h1>{escaped(found.folder)}</h1>"]
    if found.doubts:
        lines = "".join(f"<li>{escaped(line)}</li>" for line in found.doubts)
        parts.append(f'<h2>What cannot be relied on</h2><ul class="bad">{lines}</ul>')
    for place, report in found.syntheses:
        parts.append(f"<h2>Synthesis of {escaped(report.top or '?')}</h2><p>{escaped(place)}: {_head(report)}.</p>")
        parts.append(_synthesis(report))
    if found.cosims:
        parts.append("<h2>Co-simulation</h2>" + table(
            ("report", "verdict", "latency", "interval"),
            ((where, c.verdict, _or_none(c.latency_max), _or_none(c.interval_max)) for where, c in found.cosims),
        ))  # fmt: skip
    if found.areas:
        parts.append("<h2>Area</h2>" + table(
            ("report", "state", "what is used"),
            ((where, a.state or "?", _usage(a.used, a.available)) for where, a in found.areas),
        ))  # fmt: skip
    if found.timings:
        parts.append("<h2>Timing</h2>" + table(
            ("report", "met", "worst slack, ns"),
            ((where, _MET[t.met], _or_none(t.worst_slack_ns)) for where, t in found.timings),
        ))  # fmt: skip
    for place, info in found.links:
        parts.append(
            f"<h2>Linked binary</h2><p>{escaped(place)}: kernels {escaped(', '.join(info.kernels) or '?')}.</p>"
        )
        parts.append(table(
            ("clock", "asked, MHz", "reached, MHz", "default, MHz"),
            ((c.name, *map(_or_none, (c.requested_mhz, c.reached_mhz, c.default_mhz))) for c in info.clocks),
        ))  # fmt: skip
    if found.notes:
        parts.append("<h2>Notes</h2><ul>" + "".join(f"<li>{escaped(line)}</li>" for line in found.notes) + "</ul>")
    return document(found.folder, parts)


def lines_of(found: FolderReports) -> Iterator[str]:
    """What a terminal shows."""
    for place, report in found.syntheses:
        yield f"csynth    {report.top or '?'}: {_cycles(report.latency)} cycles, {_head(report)} ({place})"
        yield f"          {_usage(report.used, report.available)}"
        slow = [loop for loop in report.loops if loop.ii is not None and (loop.ii.high or loop.ii.low or 1) > 1]
        for loop in slow[:_MOST_LINES]:
            yield f"loop      {loop.module}, {loop.name}: II = {_cycles(loop.ii)}, {_cycles(loop.trip)} iterations"
        if len(slow) > _MOST_LINES:
            yield f"loop      and {len(slow) - _MOST_LINES} more with an II above 1"
    for place, cosim in found.cosims:
        cycles = "no figures" if cosim.latency_max is None else f"{cosim.latency_max:,} cycles"
        yield f"cosim     {cosim.verdict}, {cycles} ({place})"
    for place, area in found.areas:
        evidence = area.evidence or area.state or "no evidence"
        yield f"area      {_usage(area.used, area.available)} [{evidence}] ({place})"
    for place, timing in found.timings:
        yield f"timing    {_MET[timing.met]}, worst slack {_or_none(timing.worst_slack_ns)} ns ({place})"
    for place, info in found.links:
        for clock in info.clocks:
            if clock.reached_mhz is not None:
                yield f"clock     {clock.name}: {clock.reached_mhz:g} MHz of {_or_none(clock.requested_mhz)} ({place})"
    yield from (f"doubt     {line}" for line in found.doubts)
    yield from (f"note      {line}" for line in found.notes[:_MOST_LINES])
    if len(found.notes) > _MOST_LINES:
        yield f"note      and {len(found.notes) - _MOST_LINES} more in the page"


def _head(report: SynthesisReport) -> str:
    said = [report.version, report.part, report.flow, None if report.kind in (None, "none", "no") else report.kind]
    words = [word for word in said if word]
    if report.clock_target_ns:
        reached = f", estimated {report.clock_estimated_ns:g}" if report.clock_estimated_ns else ""
        words.append(f"clock {report.clock_target_ns:g} ns{reached}")
    return ", ".join(words)


def _synthesis(report: SynthesisReport) -> str:
    parts = [
        f"<p>Latency <b>{_cycles(report.latency)}</b> cycles, a new run every {_cycles(report.interval)} [csynth]. "
        f"{escaped(_usage(report.used, report.available))}</p>"
    ]
    if report.loops:
        parts.append(table(
            ("module", "loop", "iterations", "II", "asked", "depth", "latency", "how it waits"),
            (
                (x.module, " / ".join((*x.parents, x.name)), *map(_cycles, (x.trip, x.ii)), _or_none(x.target_ii),
                 _cycles(x.depth), _cycles(x.latency), x.style or "")
                for x in report.loops
            ),
        ))  # fmt: skip
    if report.fifos:
        parts.append(table(
            ("FIFO", "module", "depth", "bits", "made of"),
            (
                (x.name, x.module or "?", _or_none(x.depth), _or_none(x.bits), x.implementation or "")
                for x in report.fifos
            ),
        ))  # fmt: skip
    if report.memories:
        parts.append(table(
            ("memory", "module", "words", "bits", "BRAM18"),
            (
                (x.name, x.module or "?", _or_none(x.words), _or_none(x.bits), _or_none(x.used.bram18))
                for x in report.memories
            ),
        ))  # fmt: skip
    return "".join(parts)


def _usage(used: ReportedUsage, available: ReportedUsage) -> str:
    words: list[str] = []
    for key, name in RESOURCE_LABELS.items():
        count, room = getattr(used, key), getattr(available, key)
        if count is not None:
            share = f" ({100 * count / room:.1f} %)" if room else ""
            words.append(f"{count:,} {name}{share}")
    return ", ".join(words) or "no figures of area"


def _cycles(span: CountSpan | None) -> str:
    return "unknown" if span is None else span.words


def _or_none(value: float | None) -> object:
    return "–" if value is None else value
