"""What all runs share of measurements: how many were spared, and what is kept of each tool."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.web import text
from penstock.web.text import Document


@dataclass(frozen=True)
class ToolRow:
    tool: str
    evidence: str
    kept: str
    uses: str
    seconds: str


@dataclass(frozen=True)
class MeasurementRow:
    asked: str
    spared_share: str
    seconds_saved: str
    tools: tuple[ToolRow, ...]


def view_profiles(profiles: Document) -> MeasurementRow:
    spared = profiles["hits"] + profiles["waits"]
    asked = spared + profiles["misses"]
    return MeasurementRow(
        asked=text.quantity(asked),
        spared_share=text.percent(spared / asked) if asked else "–",
        seconds_saved=text.duration(profiles["seconds_saved"]),
        tools=tuple(
            ToolRow(
                tool=kind["tool"].removeprefix("penstock-"),
                evidence=kind["evidence"],
                kept=text.quantity(kind["profiles"]),
                uses=text.quantity(kind["uses"]),
                seconds=text.duration(kind["seconds"]),
            )
            for kind in profiles["tools"]
        ),
    )
