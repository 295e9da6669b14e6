"""How numbers, times and sizes read on a page; every filter of the templates lives here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Document = Mapping[str, Any]
"""What the API says, as JSON; pages show parts of it."""

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that do not show, or that turn or hide what stands beside them."""
_SIZES = ("B", "kB", "MB", "GB", "TB")

_TURNING = ("\u202d", "\u202e")
"""Overrides of the writing direction: a name that ends in gpj.exe would read as one that ends in exe.jpg."""


def shown_code(source: str) -> str:
    """Somebody's source as a compiler reads it: what is not seen in it, or makes it read otherwise, is written out."""
    return _UNSEEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", source.replace("\r\n", "\n"))


def of_area(evidence: str) -> str:
    """What stands behind a count of resources where cycles were simulated: a simulation measures no area."""
    return "modelled" if evidence == "simulated" else evidence


def quantity(value: float) -> str:
    """A number with three or four digits that matter: 0.0412, 7.25, 128.4, 12,345."""
    size = abs(value)
    if size >= 1000 or value == int(value):
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    return f"{value:.3g}"


def microseconds(value: float) -> str:
    """A latency with the unit that suits it."""
    if value >= 1e6:
        return f"{quantity(value / 1e6)} s"
    if value >= 1e3:
        return f"{quantity(value / 1e3)} ms"
    if value >= 1 or value == 0:
        return f"{quantity(value)} µs"
    return f"{quantity(value * 1e3)} ns"


def percent(share: float) -> str:
    """A share of one as a percentage with one decimal below 10 %."""
    value = share * 100
    return f"{value:.1f} %" if abs(value) < 10 else f"{value:,.0f} %"


def beside_bound(gap_pct: float) -> str:
    """How far a design is from what none can be better than; far from it a percentage says less than a multiple."""
    if gap_pct <= 0:
        return "at the bound"
    return f"{percent(gap_pct / 100)} above the bound" if gap_pct < 100 else f"{gap_pct / 100 + 1:,.3g} times the bound"


def size(count: int) -> str:
    """Bytes in decimal units, as disks and networks count."""
    value = float(count)
    for unit in _SIZES:
        if value < 1000 or unit == _SIZES[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("the last unit takes everything")


def moment(value: str | datetime | None) -> datetime | None:
    """A time stamp of the API as a datetime."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def duration(seconds: float) -> str:
    """Seconds as people say them: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if seconds < 0:
        seconds = 0.0
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, name, small, small_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= unit:
            rest = whole % unit // small
            return f"{whole // unit} {name} {rest} {small_name}" if rest else f"{whole // unit} {name}"
    return f"{whole} s"


def age(value: str | datetime | None, now: datetime) -> str:
    """How long ago, in one unit: just now, 40 s ago, 12 min ago, 3 h ago, 5 d ago."""
    at = moment(value)
    if at is None:
        return "never"
    seconds = (now - at).total_seconds()
    if seconds < 2:
        return "just now"
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name} ago"
    raise AssertionError("two seconds are at least one second")


def between(start: str | datetime | None, end: str | datetime | None, now: datetime) -> str:
    """How long something took, or takes so far; empty if it has not begun."""
    begun, ended = moment(start), moment(end)
    return "" if begun is None else duration(((ended or now) - begun).total_seconds())


def clock(value: str | datetime | None) -> str:
    """The time of day in UTC, as the log shows it."""
    at = moment(value)
    return "" if at is None else at.astimezone(UTC).strftime("%H:%M:%S")


def stamp(value: str | datetime | None) -> str:
    """Date and time in UTC for tooltips."""
    at = moment(value)
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def unturned(value: object) -> object:
    """A text whose characters stand in the order in which they are: what would turn them around is named instead."""
    if not isinstance(value, str) or not any(mark in value for mark in _TURNING):
        return value
    for mark in _TURNING:
        value = value.replace(mark, f"[U+{ord(mark):04X}]")
    return value


def by_size(word: str) -> list[tuple[float, str]]:
    """What to sort words by, so that the numbers in them stand by size: 16×8 before 16×32."""
    parts = enumerate(re.split(r"(\d+)", word))
    return [(float(part), "") if at % 2 else (0.0, part) for at, part in parts]
