"""The picture of a design's latency by the size that a call says."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compiler.package.report_timing import LengthsTiming

WIDTH, HEIGHT = 420, 140
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 22, 22


@dataclass(frozen=True)
class LengthLine:
    """Sizes to the right, cycles upward, both from 0 on."""

    name: str
    points: tuple[tuple[float, float, str], ...]
    """Where each run stands, and what it is."""

    width: int = WIDTH
    height: int = HEIGHT

    @property
    def line(self) -> str:
        return " ".join(f"{x},{y}" for x, y, _ in self.points)


def length_line(timing: LengthsTiming) -> LengthLine | None:
    """None where a call says several sizes: they have no one axis."""
    names = list(timing.runs[0].sizes)
    if len(names) != 1 or len(timing.runs) < 2:
        return None
    [name] = names
    longest = max(run.sizes[name] for run in timing.runs)
    slowest = max(run.latency_cycles for run in timing.runs)
    points = [
        (
            round(_LEFT + (WIDTH - _LEFT - _RIGHT) * run.sizes[name] / longest, 1),
            round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * run.latency_cycles / slowest, 1),
            f"{name}={run.sizes[name]}: {run.latency_cycles:,} cycles",
        )
        for run in timing.runs
    ]
    return LengthLine(name, tuple(points))
