"""Curves over doubling factors as SVG: both axes are logarithmic, and every point says its figures."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import floor, log2, log10

from benchmarks.language.pictures import COLOURS, short

Curve = Mapping[int, float]
"""By factor; one that has no figure is left out."""
_LEFT, _TOP, _WIDE, _HIGH, _KEYS = 58.0, 34.0, 400.0, 200.0, 110.0


def curves(title: str, series: Mapping[str, Curve], unit: str, along: str) -> str:
    """One curve a key. Points of 0 have no place on such an axis: they are not drawn."""
    drawn = {name: {x: y for x, y in curve.items() if y > 0} for name, curve in series.items()}
    factors = sorted({x for curve in drawn.values() for x in curve})
    values = [y for curve in drawn.values() for y in curve.values()] or [1.0]
    low, high = log10(min(values)), log10(max(values))
    if high - low < 0.1:
        low, high = low - 0.5, high + 0.5
    first, last = (log2(factors[0]), log2(factors[-1])) if len(factors) > 1 else (0.0, 1.0)

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + _WIDE * (log2(x) - first) / (last - first)
        return across, _TOP + _HIGH * (1 - (log10(y) - low) / (high - low))

    shapes: list[str] = []
    for x in factors:
        across, _ = place(x, 10**low)
        shapes += [_line(across, _TOP, across, _TOP + _HIGH, "#eeeeee"), _text(across, _TOP + _HIGH + 14, f"{x}")]
    for value in _marks(low, high):
        _, up = place(factors[0] if factors else 1, value)
        shapes += [_line(_LEFT, up, _LEFT + _WIDE, up, "#dddddd"), _text(_LEFT - 5, up + 3, short(value), "end")]
    for number, (name, curve) in enumerate(drawn.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [(x, y, *place(x, y)) for x, y in sorted(curve.items())]
        path = " ".join(f"{across:.1f},{up:.1f}" for _, _, across, up in points)
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        shapes += [
            f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3" fill="{colour}">'
            f"<title>{escape(f'{name}, {x}: {short(y)} {unit}')}</title></circle>"
            for x, y, across, up in points
        ]
        key = _TOP + 10 + 16 * number
        shapes += [
            f'<rect x="{_LEFT + _WIDE + 14:g}" y="{key - 9:g}" width="10" height="10" fill="{colour}"/>',
            _text(_LEFT + _WIDE + 29, key, name, "start"),
        ]
    width, height = _LEFT + _WIDE + _KEYS, _TOP + _HIGH + 36
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif"'
    return "\n".join([
        f'{head} role="img">', f"<title>{escape(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
        _text(16, 16, f"{title} [{unit}]", "start", 12), *shapes,
        _text(_LEFT + _WIDE / 2, _TOP + _HIGH + 29, along), "</svg>", "",
    ])  # fmt: skip


def _marks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten on the axis; of many powers the powers alone."""
    steps = (1, 2, 5) if high - low < 2 else (1,)
    found = [step * 10.0**power for power in range(floor(low), floor(high) + 1) for step in steps]
    return [value for value in found if low <= log10(value) <= high]


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, said: str, anchor: str = "middle", size: int = 10) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(said)}</text>'
