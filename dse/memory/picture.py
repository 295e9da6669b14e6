"""An allocation as a picture and as a table."""

from __future__ import annotations

from penstock.compiler.platforms import RESOURCE_NAMES, Family, Resources
from penstock.dse.memory.result import Allocation
from penstock.dse.support.drawing import Drawing, table, text_width

_WIDTH, _PAD = 860, 14
_COLOURS = {"registers": "--soft", "lutram": "--good", "srl": "--warm", "bram": "--water", "uram": "--violet"}
_TITLES = {
    "registers": "registers", "lutram": "LUT RAM", "srl": "shift registers", "bram": "block RAM", "uram": "UltraRAM",
}  # fmt: skip


def memory_svg(allocation: Allocation) -> str:
    """A box a die: how its bits are divided among kinds of memory, and how full each resource is."""
    picture = Drawing(_WIDTH, "How every buffer and FIFO is built")
    y = 4.0
    for region in allocation.limits:
        y = _draw_region(picture, allocation, region, y) + 10
    return picture.svg()


def _draw_region(picture: Drawing, allocation: Allocation, region: str, y: float) -> float:
    bits: dict[str, int] = {}
    for name, use in allocation.uses.items():
        if allocation.regions[name] == region:
            bits[use.kind] = bits.get(use.kind, 0) + use.bits * use.copies
    kinds = [kind for kind in _COLOURS if kind in bits]
    height = max(72 + 18 * len(kinds), 34 + 18 * len(RESOURCE_NAMES))
    picture.box(1, y, _WIDTH - 2, height)
    picture.text(_PAD, y + 22, region, "name")
    whole = sum(bits.values())
    count = sum(allocation.kinds(region).values())
    picture.text(_PAD + 12 + text_width(region), y + 22, f"{count} memories, {whole:,} bits", "soft")
    x, length = float(_PAD), 400.0
    for kind in kinds:
        part = length * bits[kind] / whole if whole else 0
        picture.box(x, y + 34, part, 16, _COLOURS[kind], 2)
        x += part
    for number, kind in enumerate(kinds):
        row = y + 72 + 18 * number
        picture.box(_PAD, row - 10, 11, 11, _COLOURS[kind], 2)
        picture.text(_PAD + 18, row, f"{_TITLES[kind]}: {allocation.kinds(region)[kind]} memories, {bits[kind]:,} bits")
    _draw_shares(picture, allocation, region, y)
    return y + height


def _draw_shares(picture: Drawing, allocation: Allocation, region: str, y: float) -> None:
    limits = allocation.limits[region].as_dict()
    logic = allocation.logic.get(region, Resources()).as_dict()
    left, length = 520.0, 150.0
    for number, (resource, used) in enumerate(allocation.used(region).items()):
        row, limit = y + 26 + 18 * number, limits[resource]
        picture.text(left - 6, row, resource, "soft", "end")
        picture.box(left, row - 10, length, 11, "track", 3)
        if limit:
            picture.box(left, row - 10, length * min(used / limit, 1), 11, "--water", 3)
            picture.box(left, row - 10, length * min(logic[resource] / limit, 1), 11, "--soft", 3)
        picture.text(left + length + 8, row, f"{used:,} of {limit:,}" if limit else "none", "soft")


def memory_table(allocation: Allocation, family: Family) -> str:
    """Every memory with its geometry, the largest first; blocks by their name in the device's family."""
    header = ["memory", "on", "words", "bits", "banks", "copies", "built of", "blocks", "lut", "ff"]
    rows = [
        [name, allocation.regions[name], f"{u.shape.words:,}", f"{u.shape.word_bits:,}", f"{u.shape.banks:,}",
         str(u.copies), _TITLES[u.kind],
         u.blocks(family) or "–", f"{u.area.lut:,}", f"{u.area.ff:,}"]
        for name, u in sorted(allocation.uses.items(), key=lambda item: (-item[1].bits * item[1].copies, item[0]))
    ]  # fmt: skip
    return table(header, rows)
