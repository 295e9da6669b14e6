"""The plan of a mesh as a picture: cores by how long they compute, links by how long they carry, cores over time."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from penstock.web.text import Document

_STEP, _SIZE, _EDGE = 90, 44, 70
_BAR, _LEFT = 10, 70


@dataclass(frozen=True)
class MeshView:
    """What the page of a design shows of the array that a tile program was planned onto."""

    title: str
    kernel: str
    blocks: str
    cycles: str
    modelled: str
    bound: str
    array: str
    over_time: str
    nest: tuple[str, ...]


def view_mesh(record: Document) -> MeshView:
    return MeshView(
        record["title"], record["kernel"], record["blocks"], f"{record['cycles']:,.0f}", f"{record['modelled']:,.0f}",
        f"{record['bound']:,.0f}", mesh_svg(record), cores_over_time_svg(record), tuple(record["nest"]),
    )  # fmt: skip


def mesh_svg(record: Document) -> str:
    """The array: the share of the run is written in every core and colours every link."""
    rows, columns = (1, *record["extents"])[-2:]
    shapes: list[str] = []

    def middle(core: int) -> tuple[float, float]:
        return _EDGE + core % columns * _STEP, _EDGE + core // columns * _STEP

    for network, source, target, carried in record["links"]:
        share = min(max(float(carried), 0.0), 1.0)
        ends = [end for end in (source, target) if end >= 0]
        if not ends:
            continue
        (x, y), (tx, ty) = middle(ends[0]), middle(ends[-1])
        if len(ends) == 1:  # to a channel of the memory outside
            tx, ty = x - 32, y - 32
        elif abs(tx - x) > _STEP or abs(ty - y) > _STEP:  # what closes a ring
            tx, ty = x + (36 if tx != x else 0), y + (36 if ty != y else 0)
        if source >= 0 and target >= 0 and (tx, ty) < (x, y):  # the way back lies beside
            x, tx, y, ty = x + 5, tx + 5, y + 5, ty + 5
        shapes.append(
            f'<line x1="{x:g}" y1="{y:g}" x2="{tx:g}" y2="{ty:g}" stroke="{_colour(share)}" '
            f'stroke-width="{2 + 6 * share:.1f}"><title>{escape(str(network))}: {share:.0%} of the run</title></line>'
        )
    for core, computed in enumerate(record["cores"]):
        x, y = middle(core)
        share = min(max(float(computed), 0.0), 1.0)
        shapes.append(
            f'<rect x="{x - _SIZE / 2:g}" y="{y - _SIZE / 2:g}" width="{_SIZE}" height="{_SIZE}" rx="6" '
            f'fill="hsl(210 60% {95 - 45 * share:.0f}%)"/><text x="{x:g}" y="{y + 4:g}" fill="#111">{share:.0%}</text>'
        )
    for at, (name, carried) in enumerate(record["channels"]):
        x, y = _EDGE + 110 * (at % 8), _EDGE + rows * _STEP + 20 * (at // 8)
        shapes.append(f'<text x="{x}" y="{y}">{escape(str(name))} {float(carried):.0%}</text>')
    count = len(record["channels"])
    width = max(2 * _EDGE + (columns - 1) * _STEP, _EDGE + 110 * min(8, count) - 40)
    height = _EDGE + rows * _STEP + 20 * -(-count // 8)
    words = f"{record['kernel']} on {record['title']}: {record['cycles']:,.0f} cycles [simulated]"
    return _svg(width, height, words, shapes)


def cores_over_time_svg(record: Document) -> str:
    """A row a core, dark where it computes."""
    _, columns = (1, *record["extents"])[-2:]
    rows = record["over_time"]
    parts = max(map(len, rows), default=0)
    shapes: list[str] = []
    for core, row in enumerate(rows):
        y = 34 + core * (_BAR + 2)
        if len(rows) <= 64 or core % columns == 0:
            shapes.append(
                f'<text x="{_LEFT - 6}" y="{y + 9}" text-anchor="end">{core // columns}, {core % columns}</text>'
            )
        for at, busy in enumerate(row):
            share = min(max(float(busy), 0.0), 1.0)
            shapes.append(
                f'<rect x="{_LEFT + at * 12}" y="{y}" width="12" height="{_BAR}" '
                f'fill="hsl(210 60% {96 - 56 * share:.0f}%)">'
                f"<title>{share:.0%}</title></rect>"
            )
    height = 60 + len(rows) * (_BAR + 2)
    shapes.append(f'<text x="{_LEFT}" y="{height - 8}" text-anchor="start">0</text>')
    end = _LEFT + parts * 12
    shapes.append(f'<text x="{end}" y="{height - 8}" text-anchor="end">{record["shown_cycles"]:,.0f} cycles</text>')
    return _svg(end + 20, height, "Cores over time: dark is computing, light is waiting [simulated]", shapes)


def _colour(share: float) -> str:
    return f"hsl({120 - 120 * share:.0f} 70% 45%)"


def _svg(width: float, height: float, words: str, shapes: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
    said = escape(words)
    return "\n".join(
        [f'{head} font-size="12" text-anchor="middle" fill="currentColor" role="img" aria-label="{said}">',
         f'<text x="20" y="20" text-anchor="start">{said}</text>', *shapes, "</svg>", ""]
    )  # fmt: skip
