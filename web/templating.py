"""The templates: where they lie, what they may call, and that they are ready before anybody asks for a page."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from penstock.web import text


@cache
def environment() -> Environment:
    """The template environment; whatever a template misspells is an error, never an empty place."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=text.unturned,
    )
    made.filters |= {
        "quantity": text.quantity,
        "microseconds": text.microseconds,
        "percent": text.percent,
        "size": text.size,
        "clock": text.clock,
        "stamp": text.stamp,
    }
    return made


def compile_templates() -> None:
    """All of them, which takes longer than most pages: else the first who looks at one waits for it."""
    for name in environment().list_templates():
        environment().get_template(name)
