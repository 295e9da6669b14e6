"""Bars as SVG, side by side in groups or piled up, with their figures written on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#2563a8", "#9a9a9a", "#c9772b", "#5b8c5a", "#8458a5", "#b23a48", "#3c9ba0", "#d0b13f", "#6b6b6b")
_HEIGHT, _BAR, _GAP, _LEFT, _TOP = 180.0, 22.0, 26.0, 16.0, 34.0


def grouped_bars(title: str, groups: Mapping[str, Mapping[str, float | None]], unit: str) -> str:
    """A group of bars a key; a bar that has no figure is left out, with a dash at its place."""
    kinds = list(dict.fromkeys(kind for group in groups.values() for kind in group))
    most = max((v for group in groups.values() for v in group.values() if v is not None), default=1.0) or 1.0
    shapes: list[str] = []
    x = _LEFT
    for label, group in groups.items():
        start = x
        for kind in kinds:
            value = group.get(kind)
            tall = 0.0 if value is None else _HEIGHT * value / most
            y = _TOP + _HEIGHT - tall
            said = "-" if value is None else short(value)
            shapes += [_rectangle(x, y, tall, COLOURS[kinds.index(kind)], f"{label}, {kind}: {said} {unit}"),
                       _text(x + _BAR / 2, y - 3, said, 8)]  # fmt: skip
            x += _BAR
        shapes.append(_text((start + x) / 2, _TOP + _HEIGHT + 14, label, 11))
        x += _GAP
    return _drawn(f"{title} [{unit}]", shapes, kinds, x)


def piled_bars(title: str, bars: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """A bar a key, of parts on each other; their sum is written above."""
    kinds = list(dict.fromkeys(kind for bar in bars.values() for kind in bar))
    most = max((sum(bar.values()) for bar in bars.values()), default=1.0) or 1.0
    shapes: list[str] = []
    x = _LEFT
    for label, bar in bars.items():
        y = _TOP + _HEIGHT
        for kind, value in bar.items():
            tall = _HEIGHT * value / most
            y -= tall
            colour = COLOURS[kinds.index(kind) % len(COLOURS)]
            shapes.append(_rectangle(x, y, tall, colour, f"{label}, {kind}: {short(value)} {unit}"))
        shapes.append(_text(x + _BAR / 2, y - 3, short(sum(bar.values())), 9))
        for line, word in enumerate(label.split()):
            shapes.append(_text(x + _BAR / 2, _TOP + _HEIGHT + 14 + 11 * line, word, 10))
        x += _BAR + 2 * _GAP
    return _drawn(f"{title} [{unit}]", shapes, kinds, x)


def short(value: float) -> str:
    """Three digits, without any of the computer's own."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _drawn(title: str, shapes: Sequence[str], kinds: Sequence[str], right: float) -> str:
    width = max(right, 460.0)
    columns = max(1, int((width - _LEFT) // 145))
    keys: list[str] = []
    bottom = _TOP + _HEIGHT + 36
    for number, kind in enumerate(kinds):
        x, y = _LEFT + number % columns * 145, bottom + 16 * (number // columns)
        colour = COLOURS[number % len(COLOURS)]
        keys += [f'<rect x="{x:g}" y="{y - 9:g}" width="10" height="10" fill="{colour}"/>',
                 _text(x + 15, y, kind, 10, "start")]  # fmt: skip
    height = bottom + 16 * ((len(kinds) - 1) // columns + 1)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif"'
    ground = f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
    foot = (
        f'<line x1="{_LEFT:g}" y1="{_TOP + _HEIGHT:g}" x2="{width - _LEFT:g}" y2="{_TOP + _HEIGHT:g}" stroke="#444"/>'
    )
    return "\n".join([f'{head} role="img">', f"<title>{escape(title)}</title>", ground,
                      _text(_LEFT, 16, title, 12, "start"), *shapes, foot, *keys, "</svg>", ""])  # fmt: skip


def _rectangle(x: float, y: float, tall: float, colour: str, said: str) -> str:
    size = f'x="{x:g}" y="{y:.1f}" width="{_BAR - 2:g}" height="{tall:.1f}"'
    return f'<rect {size} fill="{colour}"><title>{escape(said)}</title></rect>'


def _text(x: float, y: float, said: str, size: int, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(said)}</text>'
