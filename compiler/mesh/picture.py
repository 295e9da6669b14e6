"""A measured plan as a picture: cores by how long they compute, links by how long they carry."""

from __future__ import annotations

from penstock.compiler.mesh.planner import MeshMeasured
from penstock.compiler.mesh.traffic import Traffic

_STEP, _SIZE = 90, 44


def picture_of(measured: MeshMeasured, traffic: Traffic) -> str:
    """An SVG: the share of the run is written in every core and colours every link."""
    machine, run = traffic.machine, measured.run
    rows, columns = (1, *machine.extents)[-2:]
    shapes: list[str] = []

    def middle(place: tuple[int, ...]) -> tuple[float, float]:
        row, column = (0, *place)[-2:]
        return 70 + column * _STEP, 70 + row * _STEP

    at_pad = {machine.scratchpad_of(core): core for core in reversed(machine.cores)}
    for link, busy in zip(machine.links, run.busy[: len(machine.links)], strict=True):
        ends = [at_pad.get(node) for node in (link.source, link.target)]
        share = min(float(busy) / run.cycles, 1.0)
        title = f"<title>{link.network} {link.source[1]} to {link.target[1]}: {share:.0%} of the run</title>"
        here = next(end for end in ends if end is not None)
        (x, y), (tx, ty) = middle(here), middle(ends[1] or here)
        if None in ends:
            tx, ty = x - 32, y - 32
        elif abs(tx - x) > _STEP or abs(ty - y) > _STEP:  # what closes a ring
            tx, ty = x + (36 if tx != x else 0), y + (36 if ty != y else 0)
        colour = f"hsl({120 - 120 * share:.0f} 70% 45%)"
        line = (
            f'<line x1="{x:g}" y1="{y:g}" x2="{tx:g}" y2="{ty:g}" stroke="{colour}" stroke-width="{2 + 6 * share:.1f}">'
        )
        shapes.append(f"{line}{title}</line>")
    for core, busy in zip(machine.cores, run.cores, strict=True):
        x, y = middle(core)
        share = float(busy) / run.cycles
        shapes.append(
            f'<rect x="{x - _SIZE / 2:g}" y="{y - _SIZE / 2:g}" width="{_SIZE}" height="{_SIZE}" rx="6" '
            f'fill="hsl(210 60% {95 - 45 * share:.0f}%)"/><text x="{x:g}" y="{y + 4:g}">{share:.0%}</text>'
        )
    for channel, busy in zip(machine.channels, run.busy[len(machine.links) :], strict=True):
        at = machine.channels.index(channel)
        where = f'x="{70 + 110 * (at % 8)}" y="{70 + rows * _STEP + 20 * (at // 8)}"'
        shapes.append(f"<text {where}>{channel[0]}{list(channel[1])} {float(busy) / run.cycles:.0%}</text>")
    width, height = max(140 + columns * _STEP, 140 + 110 * min(8, len(machine.channels))), 160 + rows * _STEP
    height += 20 * (len(machine.channels) // 8)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
    title = f"{measured.plan.facts.program.name} on {machine.title}: {run.cycles:,.0f} cycles [simulated]"
    return "\n".join(
        [f'{head} font-size="12" text-anchor="middle">', f'<text x="20" y="20" text-anchor="start">{title}</text>',
         *shapes, "</svg>", ""]
    )  # fmt: skip
