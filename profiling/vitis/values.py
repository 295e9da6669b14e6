"""Figures out of a report's text. What is not there is None and noted; nothing becomes 0 that does not say 0."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.profiling.vitis.records import CountSpan, ReportedUsage

ABSENT = frozenset({"", "-", "?", "na", "n/a", "undef", "unknown", "inf", "infinite"})
"""How the tools write that they do not know."""

_WHOLE = re.compile(r"[0-9]{1,18}\Z")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?\Z")
_FACT = re.compile(r"^\s*\* (Version|Solution|Product family|Target device):[ \t]*(\S.*)$", re.MULTILINE)
_MAX_NOTES = 100

ALIASES: Mapping[str, str] = {
    "bram_18k": "bram18", "bram18k": "bram18", "bram18": "bram18", "bram": "bram18", "ramb18": "bram18",
    "dsp": "dsp", "dsp48e": "dsp", "dsp48": "dsp", "dsp48e1": "dsp", "dsp48e2": "dsp", "dsp58": "dsp", "dsps": "dsp",
    "ff": "ff", "reg": "ff", "lut": "lut", "uram": "uram",
}  # fmt: skip


class ReadingNotes:
    """What was missing or odd, in words, each once and not without end."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}
        self._more = 0

    def add(self, text: str) -> None:
        if text in self._lines:
            return
        if len(self._lines) < _MAX_NOTES:
            self._lines[text] = None
        else:
            self._more += 1

    def lines(self) -> tuple[str, ...]:
        return (*self._lines, *([f"and {self._more} more"] if self._more else []))

    def whole(self, text: str | None, what: str) -> int | None:
        """A count; None, with a note, where the report has none."""
        value = whole(text)
        if value is None:
            self._note(text, what)
        return value

    def span(self, text: str | None, what: str) -> CountSpan | None:
        value = span(text)
        if value is None:
            self._note(text, what)
        return value

    def decimal(self, text: str | None, what: str) -> float | None:
        value = decimal(text)
        if value is None:
            self._note(text, what)
        return value

    def between(self, low: int | None, high: int | None, what: str) -> CountSpan | None:
        """A range from its two ends; noted where they are in the wrong order."""
        if low is not None and high is not None and low > high:
            self.add(f"{what}: from {low} to {high} is no range")
        return between(low, high)

    def _note(self, text: str | None, what: str) -> None:
        if text is None:
            self.add(f"{what}: not in the report")
        elif text.strip().lower() in ABSENT:
            self.add(f"{what}: the report says {text.strip() or 'nothing'!r}")
        else:
            self.add(f"{what}: {text.strip()[:40]!r} is no figure")


def whole(text: str | None) -> int | None:
    """A count, with or without a unit or a percentage after it ("27 (~0%)", "12 cycles")."""
    words = (text or "").split()
    if not words or not _WHOLE.match(words[0]):
        return None
    return int(words[0]) if len(words) == 1 or not words[1][0].isdigit() else None


def span(text: str | None) -> CountSpan | None:
    """A count or a range: "37", "17 ~ 1929", "1 ~ ?"."""
    parts = (text or "").split("~")
    if len(parts) > 2 or not all(whole(part) is not None or part.strip().lower() in ABSENT for part in parts):
        return None
    return between(whole(parts[0]), whole(parts[-1]))


def most(text: str | None) -> CountSpan | None:
    """A figure that is the worst case: a bound. A range has both ends in it."""
    found = span(text)
    return found if found is None or "~" in (text or "") else CountSpan(None, found.high)


def between(low: int | None, high: int | None) -> CountSpan | None:
    """A range from its two ends, one of which may be unknown; None where both are, or where they are in disorder."""
    if low is None and high is None:
        return None
    return None if low is not None and high is not None and low > high else CountSpan(low, high)


def decimal(text: str | None) -> float | None:
    """A number with or without a unit: "2.812 ns"."""
    words = (text or "").split()
    return float(words[0]) if words and _DECIMAL.match(words[0]) else None


def name_of(text: str | None) -> str | None:
    """A word, or None where the report leaves it out."""
    text = (text or "").strip()
    return text if text and text.lower() not in ABSENT else None


def facts(text: str) -> dict[str, str]:
    """The lines "* Version: ..." at the top of a text report of HLS."""
    return {key.lower(): value.strip() for key, value in _FACT.findall(text[:8192])}


def version_of(head: Mapping[str, str]) -> str | None:
    return next(iter(head.get("version", "").split()), None)


def flow_of(head: Mapping[str, str]) -> str | None:
    found = re.search(r"\((\w+) .*Flow Target\)", head.get("solution", ""))
    return found.group(1).lower() if found else None


def usage(cells: Mapping[str, str | None]) -> ReportedUsage:
    """Resources by the tools' many names; what is not a count stays None."""
    counts: dict[str, int] = {}
    for key, text in cells.items():
        resource, count = ALIASES.get(key.strip().lower()), whole(text)
        if resource is not None and count is not None:
            counts.setdefault(resource, count)
    return ReportedUsage(**counts)
