"""The pages of a package, from Jinja2 templates: report.html and the two README files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from penstock.compiler.evidence import EVIDENCE_KINDS, Look
from penstock.compiler.package import scatter as plots
from penstock.compiler.package.dataflow import dataflow
from penstock.compiler.package.decorating import Decorating
from penstock.compiler.package.gantt import gantt
from penstock.compiler.package.length_line import length_line
from penstock.compiler.package.report import Report
from penstock.compiler.package.xrt import runs_on_xrt
from penstock.compiler.program import Program

MEMORY_NAMES = {"lutram": "LUT RAM", "srl": "shift registers", "bram": "block RAM", "uram": "UltraRAM"}


def render_html(report: Report) -> str:
    """One self-contained page: no scripts, nothing fetched. What cannot be drawn is named; report.json has it all."""
    making = Decorating()
    page = making.make("the page", lambda: _page(report, making), None)
    if page is not None:
        return page
    lost = escape("; ".join(f"{one.part}: {one.why}" for one in making.left_out))
    return (
        f"<!doctype html><title>{escape(report.name)}</title><p>Not drawn: {lost}. report.json has every figure.</p>\n"
    )


def _page(report: Report, making: Decorating) -> str:
    exploration, run = report.exploration, report.timing.simulated
    fifos = [c for c in report.design.channels if c.kind == "fifo" and c.depth is not None and c.width_bits is not None]
    flow = making.make("the dataflow's drawing", lambda: dataflow(report), None)
    plot = making.make("the plot of trials", lambda: plots.scatter(exploration) if exploration else None, None)
    front = making.make("the front", lambda: plots.front_rows(exploration) if exploration else (), ())
    bars = making.make("the drawing of times", lambda: gantt(run) if run else None, None)
    by_length = report.timing.lengths
    line = making.make("latency by length", lambda: length_line(by_length) if by_length else None, None)
    searched = exploration.left_out if exploration else ()
    return _environment().get_template("report.html.j2").render(
        r=report,
        flow=flow,
        plot=plot,
        front=front,
        plot_size=plots,
        evidence_kinds=EVIDENCE_KINDS,
        looking=_labels_looking,
        gantt=bars,
        length_line=line,
        memory_names=MEMORY_NAMES,
        fifo_bits=sum((c.depth or 0) * (c.width_bits or 0) for c in fifos) if fifos else None,
        saved_bits=sum(c.saved_bits or 0 for c in fifos),
        left_out=(*report.left_out, *searched, *making.left_out),
    )  # fmt: skip


def render_readme(report: Report, program: Program) -> str:
    template = _environment().get_template("package_readme.md.j2")
    return template.render(r=report, program=program)


def render_bitstream_note(report: Report) -> str:
    return _environment().get_template("bitstream_readme.md.j2").render(r=report)


def _labels_looking(look: Look) -> str:
    """The style sheet's selector of all evidence whose label looks so."""
    return ", ".join(f".e-{name}" for name, kind in EVIDENCE_KINDS.items() if kind.look == look)


def grouped(value: float | int | None) -> Markup | str:
    """A number with thin groups of three digits; words where there is none."""
    if value is None:
        return Markup('<span class="missing">not measured</span>')
    text = f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:,.4g}"
    return text.replace(",", "\u202f")


def rate(value: float | None) -> Markup | str:
    """So many a second, short enough for a headline."""
    if value is None:
        return Markup('<span class="missing">not measured</span>')
    for size, word in ((1e9, "G"), (1e6, "M"), (1e5, "k")):
        if value >= size:
            return f"{value / (1e3 if word == 'k' else size):.3g}\u202f{word}/s"
    return f"{grouped(value)}\u202f/s"


def picture(svg: str) -> Markup:
    """A drawing of the report's own as part of the page; anything else is shown as text."""
    return Markup(svg) if svg.startswith("<svg ") and "<script" not in svg else Markup.escape(svg)


def percent(value: float | None, digits: int = 1) -> Markup | str:
    if value is None:
        return Markup('<span class="missing">not measured</span>')
    if 0 < value < 0.5 * 10 ** -(digits + 2):
        return f"<{10**-digits:g}\u202f%"
    return f"{value * 100:.{digits}f}\u202f%"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(enabled_extensions=("html.j2",), default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Any] = {"grouped": grouped, "percent": percent, "rate": rate, "picture": picture}
    environment.tests["on_xrt"] = runs_on_xrt  # pyright: ignore[reportUnknownMemberType]
    environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]
    return environment
