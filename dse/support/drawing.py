"""Pictures as self-contained SVG text, in colours that follow the reader's light or dark setting."""

from __future__ import annotations

from html import escape

_LIGHT = (
    "--ink:#1c2730;--soft:#5c6b76;--line:#c9cfcc;--panel:#fff;--faint:#eef0ee;"
    "--water:#0f6b78;--bad:#b3402f;--warm:#c07a12;--good:#2d7a46;--violet:#6a5acd"
)
_DARK = (
    "--ink:#e4eaec;--soft:#96a5ad;--line:#3a474f;--panel:#192126;--faint:#26323a;"
    "--water:#57b9c5;--bad:#e8806f;--warm:#e0aa55;--good:#6cc088;--violet:#a99bf0"
)
STYLE = (
    f".ps{{{_LIGHT}}}@media (prefers-color-scheme:dark){{.ps{{{_DARK}}}}}"
    '.ps text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--ink)}'
    ".ps .soft{fill:var(--soft)}.ps .name{font-weight:600;font-size:13px}"
    ".ps .panel{fill:var(--panel);stroke:var(--line)}.ps .track{fill:var(--faint)}"
)

_MORE = " … and 999 more"
_CHARACTER = 6.7  # width of a letter of 12 px, generously


class Drawing:
    """Shapes in the order in which they are added; the height grows with them."""

    def __init__(self, width: int, title: str) -> None:
        self.width = width
        self.height = 0.0
        self._title = title
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, style: str = "panel", radius: float = 6) -> None:
        """A rectangle in one of the style classes, or in a colour variable such as `--water`."""
        look = f'class="{style}"' if not style.startswith("--") else f'fill="var({style})"'
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{max(width, 0):g}" height="{height:g}" rx="{radius:g}" {look}/>'
        )
        self.height = max(self.height, y + height)

    def text(self, x: float, y: float, text: str, style: str = "", anchor: str = "start", hint: str = "") -> None:
        """A line of text with its base line at y; `hint` is shown when pointed at."""
        title = f"<title>{escape(hint)}</title>" if hint else ""
        look = f' class="{style}"' if style else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{look}>{title}{escape(text)}</text>')
        self.height = max(self.height, y + 4)

    def line(self, x1: float, y1: float, x2: float, y2: float, thickness: float, colour: str = "--water") -> None:
        self._parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="var({colour})" '
            f'stroke-width="{thickness:g}" stroke-linecap="round"/>'
        )
        self.height = max(self.height, y1, y2)

    def svg(self) -> str:
        height = self.height + 10
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ps" viewBox="0 0 {self.width} {height:g}" '
            f'width="{self.width}" height="{height:g}" role="img" aria-label="{escape(self._title)}">'
            f"<title>{escape(self._title)}</title><style>{STYLE}</style>{''.join(self._parts)}</svg>"
        )


def text_width(text: str) -> float:
    return len(text) * _CHARACTER


def wrap(names: list[str], width: float, most_lines: int) -> list[str]:
    """Names side by side in lines of a width; what does not fit is counted in the last line."""
    lines: list[str] = []
    current, shown = "", 0
    for name in names:
        joined = f"{current} · {name}" if current else name
        room = width - (text_width(_MORE) if len(lines) + 1 == most_lines and name != names[-1] else 0)
        if current and text_width(joined) > room:
            if len(lines) + 1 == most_lines:
                break
            lines.append(current)
            current = name
        else:
            current = joined
        shown += 1
    if current:
        lines.append(current)
    if shown < len(names) and lines:
        lines[-1] += f" … and {len(names) - shown} more"
    return lines


def table(header: list[str], rows: list[list[str]]) -> str:
    """Columns of text, numbers to the right."""
    widths = [max(len(line[column]) for line in [header, *rows]) for column in range(len(header))]

    def line(cells: list[str], fill: list[bool]) -> str:
        pairs = zip(cells, widths, fill, strict=True)
        return "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in pairs).rstrip()

    right = [all(_is_number(row[column]) for row in rows) and bool(rows) for column in range(len(header))]
    return "\n".join([line(header, right), "  ".join("-" * w for w in widths), *(line(r, right) for r in rows)]) + "\n"


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("%", "").replace("-", "").strip().isdigit() or text in (
        "",
        "–",
    )
