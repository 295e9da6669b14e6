"""A partition as a picture and as a table: what stands where, how full each die is, what crosses."""

from __future__ import annotations

from penstock.compiler.platforms import RESOURCE_NAMES, Resources
from penstock.dse.partition.result import Partition
from penstock.dse.support.drawing import Drawing, table, text_width, wrap

_WIDTH, _PAD, _NAMES = 860, 14, 470
_BAR, _GAP = 150, 62


def partition_svg(partition: Partition) -> str:
    """Dies from top to bottom, between them what crosses; self-contained SVG for light and dark pages."""
    picture = Drawing(_WIDTH, f"{partition.site.name}: which task stands on which die")
    y = 4.0
    dies = partition.site.dies
    for position, die in enumerate(dies):
        y = _draw_die(picture, partition, die, y)
        for boundary in partition.site.boundaries:
            if position + 1 < len(dies) and boundary.between[1] == dies[position + 1]:
                y = _draw_boundary(picture, partition, boundary.name, y)
    return picture.svg()


def _draw_die(picture: Drawing, partition: Partition, die: str, y: float) -> float:
    names = [t.name for t in partition.graph.things if partition.dies[t.name] == die]
    lines = wrap(names, _NAMES, 6) or ["nothing"]
    height = max(24 + 18 * len(RESOURCE_NAMES), 46 + 17 * len(lines))
    picture.box(1, y, _WIDTH - 2, height)
    picture.text(_PAD, y + 22, die, "name")
    picture.text(_PAD + 12 + text_width(die), y + 22, f"{_tasks(partition, die)} tasks", "soft")
    for number, line in enumerate(lines):
        picture.text(_PAD, y + 44 + 17 * number, line, hint=", ".join(names) if number == 0 else "")
    left = _WIDTH - _PAD - _BAR - 130
    for number, (resource, used) in enumerate(partition.used[die].items()):
        row = y + 24 + 18 * number
        limit = partition.site.limits[die].as_dict()[resource]
        share = partition.shares[die][resource]
        picture.text(left - 6, row, resource, "soft", "end")
        picture.box(left, row - 10, _BAR, 11, "track", 3)
        if used:
            colour = "--bad" if share > 1 else "--warm" if share > 0.9 else "--water"
            picture.box(left, row - 10, max(2.0, _BAR * min(share, 1)), 11, colour, 3)
        picture.text(left + _BAR + 8, row, f"{used:,} of {limit:,}" if limit else "none", "soft")
    return y + height


def _draw_boundary(picture: Drawing, partition: Partition, name: str, y: float) -> float:
    boundary = next(b for b in partition.site.boundaries if b.name == name)
    crossing = sorted(partition.crossing(boundary), key=lambda c: -c.bits)
    wires = partition.wires(boundary)
    thickness = 2 + 10 * min(1.0, wires / boundary.wires) if boundary.wires else 2
    if wires:
        picture.line(60, y + thickness / 2, 60, y + _GAP - thickness / 2, thickness)
    picture.text(90, y + 26, f"{wires:,} of {boundary.wires:,} wires, {len(crossing)} connections", "name")
    listed = wrap([f"{c.name} {c.bits:,}" for c in crossing], _WIDTH - 120, 1)
    picture.text(90, y + 44, listed[0] if listed else "nothing crosses", "soft",
                 hint=", ".join(f"{c.name} {c.bits:,} bits" for c in crossing))  # fmt: skip
    return y + _GAP


def partition_table(partition: Partition) -> str:
    """The same as text: dies with their resources, then links with their wires, then every task."""
    header = ["die", "tasks", *RESOURCE_NAMES, "fullest"]
    rows: list[list[str]] = []
    for die in partition.site.dies:
        used = partition.used[die]
        fullest = f"{max(partition.shares[die].values()):.1%}"
        rows.append([die, str(_tasks(partition, die)), *(f"{value:,}" for _, value in used.items()), fullest])
    parts = [table(header, rows)]
    if partition.site.boundaries:
        links = [
            [b.name, str(len(partition.crossing(b))), f"{partition.wires(b):,}", f"{b.wires:,}"]
            for b in partition.site.boundaries
        ]
        parts.append(table(["link", "connections", "wires", "of"], links))
    parts.append(table(["task", "die"], [[t.name, partition.dies[t.name]] for t in partition.graph.things]))
    return "\n".join(parts)


def _tasks(partition: Partition, die: str) -> int:
    """What stands there, without memories outside, which take nothing."""
    return sum(partition.dies[t.name] == die and t.resources != Resources() for t in partition.graph.things)
