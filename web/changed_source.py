"""Another source of a C++ kernel beside the one that a run has: what was changed in it, and what that comes to."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass

from penstock.web.kernel_view import Change, changes_between
from penstock.web.text import Document

MOST_CHANGED = 40
"""Lines of a difference that are shown."""
_SUFFIX = ", changed"
_SOON = 10
"""Its priority: somebody waits for it."""


@dataclass(frozen=True)
class SourceForm:
    """The source as it can be changed, and how what comes of it is asked for as a run of one trial."""

    file: str
    top: str
    text: str
    options: str


@dataclass(frozen=True)
class ChangedSource:
    """`going` while no worker has read it, `refused` where it cannot be read."""

    run: str
    page: str
    model: str
    name: str
    going: str
    refused: str
    where: str
    hint: str
    lines: tuple[str, ...]
    more: int
    changes: tuple[Change, ...]
    asked: tuple[tuple[str, str], ...]
    """Options of a run of it, each as a form has it."""


def source_form(run: Document, top: str, file: str, text: str) -> SourceForm:
    options = {**_options(run), "trials": 1, "priority": _SOON, "name": _name(run)}
    return SourceForm(file, top, text, json.dumps(options))


def view_changed_source(
    run: Document, question: Document, base: Document, found: Document | None, texts: tuple[str, str]
) -> ChangedSource:
    """`base` and `found` are what is known of the run's source and of the other one, whose `texts` these are."""
    error = question["error"] or {}
    going = ""
    if found is None and not error and question["state"] not in ("succeeded", "failed", "cancelled"):
        going = question["waiting_for"] or "A worker reads it."
    lines = [
        line
        for line in difflib.unified_diff(texts[0].splitlines(), texts[1].splitlines(), n=0, lineterm="")
        if not line.startswith(("---", "+++"))
    ]
    options = _options(run)
    return ChangedSource(
        run=question["id"],
        page=question["page"],
        model=question["model"]["id"],
        name=question["name"],
        going=going,
        refused=error.get("what") or ("" if found or going else "It was not read."),
        where=error.get("where") or "",
        hint=error.get("hint") or "",
        lines=tuple(lines[:MOST_CHANGED]),
        more=max(0, len(lines) - MOST_CHANGED),
        changes=changes_between(base, found) if found is not None else (),
        asked=tuple((name, value if isinstance(value, str) else " ".join(value)) for name, value in options.items()),
    )


def _options(run: Document) -> dict[str, str | list[str]]:
    """What the other source is to be looked at for: the same as the run's."""
    return {name: run["options"][name] for name in ("platform", "objectives", "limits") if run["options"].get(name)}


def _name(run: Document) -> str:
    return run["name"][:180].removesuffix(_SUFFIX) + _SUFFIX
