"""A synthesis report as JSON, to be kept with the profile that was made of it: what retiming and reports need.

Operators, instances and memories are left out: there are thousands, and whoever wants them reads the report itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from penstock.profiling.vitis.records import CountSpan, ReportedFifo, ReportedLoop, ReportedUsage, SynthesisReport

_LEFT_OUT: tuple[str, ...] = ("modules", "instances", "memories", "operators")
_SPANS = ("latency", "interval", "depth")
_USAGES = ("used", "available")
_LOOP_SPANS = ("trip", "latency", "ii", "depth", "iteration_latency")
MOST_LOOPS = 4096


def report_to_json(report: SynthesisReport) -> dict[str, Any]:
    """Of a report with very many loops or FIFOs the first ones, with a note."""
    notes = report.notes
    if len(report.loops) > MOST_LOOPS or len(report.fifos) > MOST_LOOPS:
        notes = (*notes, f"of {len(report.loops)} loops and {len(report.fifos)} FIFOs at most {MOST_LOOPS} are kept")
    kept = replace(
        report, modules=(), instances=(), memories=(), operators=(), notes=notes, loops=report.loops[:MOST_LOOPS],
        fifos=report.fifos[:MOST_LOOPS],
    )  # fmt: skip
    document = {name: value for name, value in asdict(kept).items() if name not in _LEFT_OUT}
    return json.loads(json.dumps(document))  # lists for tuples, as whoever reads it will have it


def report_from_json(document: Mapping[str, Any]) -> SynthesisReport:
    """Read what `report_to_json` wrote."""
    known = {field.name for field in fields(SynthesisReport)}
    values = {name: value for name, value in document.items() if name in known}
    return SynthesisReport(
        **{
            **values,
            **{name: _span(values[name]) for name in _SPANS},
            **{name: ReportedUsage(**values[name]) for name in _USAGES},
            **dict.fromkeys(_LEFT_OUT, ()),
            "loops": tuple(_loop(one) for one in values["loops"]),
            "fifos": tuple(ReportedFifo(**{**one, "used": ReportedUsage(**one["used"])}) for one in values["fifos"]),
            "notes": tuple(values["notes"]),
        }
    )


def _loop(one: Mapping[str, Any]) -> ReportedLoop:
    spans = {name: _span(one[name]) for name in _LOOP_SPANS}
    return ReportedLoop(**{**one, **spans, "parents": tuple(one["parents"])})


def _span(value: Mapping[str, int] | None) -> CountSpan | None:
    return None if value is None else CountSpan(**value)
