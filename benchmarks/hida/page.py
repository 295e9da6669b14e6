"""docs/hida.md and its pictures, from the figures of a run of `penstock bench hida`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.hida.curves import curves
from benchmarks.hida.lenet import CLOCK_MHZ
from benchmarks.hida.published import IA_CA, SMALLEST_TILE_DSP, TABLE_2
from benchmarks.hida.sweep import BY, FACTORS, NAMED, PLATFORM, TILES, Point
from benchmarks.language.pictures import short
from benchmarks.written_page import ROOT, WrittenPage
from penstock.compiler.platforms import load_platform
from penstock.dse.space.aligned_by import AlignedBy

PAGE = Path("docs") / "hida.md"
_METRICS = {
    "dsp": ("DSPs", "dsp", "DSPs", 1.0),
    "memory": ("Memory on the chip", "on_chip_bits", "Mbit", 1e6),
    "throughput": ("Throughput", "frames_a_second", "frames/s", 1.0),
}
_ALONG = "parallel factor: lanes of the busiest kernel at most"
Row = Mapping[str, Any]


def files(run: Mapping[str, Any]) -> dict[Path, str]:
    """Everything that is written, by its place in the repository, from one object of `penstock bench hida --json`."""
    rows: dict[str, Row] = {str(row["name"]): row for row in run["rows"]}
    drawn: dict[Path, str] = {}
    for metric, (title, figure, unit, scale) in _METRICS.items():
        for number, series in (("10", _figure_10(rows, figure, scale)), ("11", _figure_11(rows, figure, scale))):
            text = curves(f"ResNet-18: {title} (modelled)", series, unit, _ALONG)
            drawn[PAGE.parent / f"hida-{number}-{metric}.svg"] = text
    return {PAGE: _page(run, rows), **drawn}


WRITTEN = WrittenPage(ROOT / "benchmarks" / "data" / "hida.json", files)


def _curve(rows: Mapping[str, Row], names: Mapping[int, str], figure: str, scale: float) -> dict[int, float]:
    return {x: float(rows[name][figure]) / scale for x, name in names.items() if name in rows}


def _figure_10(rows: Mapping[str, Row], figure: str, scale: float) -> dict[str, dict[int, float]]:
    return {
        f"tile {tile}": _curve(rows, {n: f"resnet18/ia+ca/{n}x{tile}" for n in FACTORS}, figure, scale)
        for tile in TILES
    }


def _figure_11(rows: Mapping[str, Row], figure: str, scale: float) -> dict[str, dict[int, float]]:
    return {
        NAMED[by]: _curve(rows, {n: _of(by, n) for n in FACTORS}, figure, scale) for by in BY
    }  # fmt: skip


def _of(by: AlignedBy, factor: int) -> str:
    return Point(factor, TILES[-1], by).name


def _page(run: Mapping[str, Any], rows: Mapping[str, Row]) -> str:
    board = load_platform(PLATFORM)
    return "\n".join([
        f"""# HIDA's ablations and its LeNet
Figures 10 and 11 and table 2 of HIDA's paper (ASPLOS 2024), with what Penstock's designs come to. Written by
`python -m benchmarks.hida` from one run of `penstock bench hida --json`; a test holds that it is what that command
writes. Nothing here was measured on a board: every figure says whether it is *modelled* or *simulated*.

## Figure 10: parallel factor and tile
ResNet-18 at 224 x 224 in W8A8 on one SLR of a VU9P ({board.clock_mhz:g} MHz). Each point is one setting of the space:
`allocation=aligned`, a tile, and how many lanes the busiest kernel has at most. Frames pass place by place whatever the
tile is, so tiles are of channels here, where HIDA's are of rows and columns too. Points may be larger than the device:
{_fitting(rows)}. Memories are counted as block RAM, before a finished design moves some of them to UltraRAM.
""",
        *_pictures("10"), _points(rows),
        f"""HIDA saw the count of DSPs rise where tiles get smaller ({SMALLEST_TILE_DSP} at a factor of 1 with tiles of
2, for addresses): {_smallest(rows)}. In common with HIDA's figure: small tiles hold fewer lanes, so that throughput
stops growing with the factor.

## Figure 11: by work, by neighbours
The same with tiles of {TILES[-1]}. IA: lanes in proportion to each kernel's work; without it every kernel has as many
as the busiest. CA: neighbours agree on factors, through windows with their step. `penstock explore --aligned-by
intensity`, `connection` or `neither` leaves one or both out.
""",
        *_pictures("11"), _groups(rows),
        _compared(rows),
        """## Table 2: LeNet
HIDA's is on a PYNQ-Z2. The device that stands for it, the clock and what is assumed are in
`benchmarks/hida/lenet.py`: a ZU3EG limited to the same share of each of an XC7Z020's resources, 100 MHz, one product to
a DSP slice, or of LUTs. The network is `zoo:lenet5` (416,520 products a frame) in W8A8; HIDA's is not described well
enough to know how many its frames take.
""",
        _lenet(rows),
    ])  # fmt: skip


def _pictures(number: str) -> list[str]:
    return ["".join(f"![{title}](hida-{number}-{metric}.svg)\n" for metric, (title, *_) in _METRICS.items())]


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(rows: Mapping[str, Row], name: str, figure: str, scale: float = 1.0) -> str:
    return short(float(rows[name][figure]) / scale) if name in rows else "–"


def _points(rows: Mapping[str, Row]) -> str:
    body = [
        [f"{factor}", *(
            " / ".join([_cell(rows, name, "frames_a_second"), _cell(rows, name, "dsp"),
                        _cell(rows, name, "on_chip_bits", 1e6)])
            for tile in TILES for name in [f"resnet18/ia+ca/{factor}x{tile}"]
        )]
        for factor in FACTORS
    ]  # fmt: skip
    simulated = [
        f"factor {row['parallel_factor']}, tile {row['tile']}: {row['simulated_interval_cycles']:,} cycles a frame "
        f"*simulated*, {row['interval_cycles']:,} *modelled*"
        for row in rows.values() if row.get("simulated_interval_cycles")
    ]  # fmt: skip
    seen = f"\nSimulated as well: {'; '.join(simulated)}.\n" if simulated else "\nNone of these was simulated.\n"
    head = ["factor", *(f"tile {tile}" for tile in TILES)]
    return f"Frames/s, DSPs and Mbit of memory, *modelled*:\n\n{_table(head, body)}{seen}"


def _fitting(rows: Mapping[str, Row]) -> str:
    swept = [row for row in rows.values() if row["part"] == "resnet18"]
    return f"{sum(bool(row['fits']) for row in swept)} of the {len(swept)} of both figures keep to its limits so"


def _smallest(rows: Mapping[str, Row]) -> str:
    small, large = (rows.get(f"resnet18/ia+ca/1x{tile}") for tile in (TILES[0], TILES[-1]))
    if not small or not large:
        return "not run here"
    return f"addresses take no DSPs here, {small['dsp']} at that point beside {large['dsp']} with tiles of {TILES[-1]}"


def _groups(rows: Mapping[str, Row]) -> str:
    body = [
        [f"{factor}", *(
            " / ".join([_cell(rows, _of(by, factor), "frames_a_second"), _cell(rows, _of(by, factor), "dsp"),
                        _cell(rows, _of(by, factor), "on_chip_bits", 1e6)])
            for by in BY
        )]
        for factor in FACTORS
    ]  # fmt: skip
    return f"Frames/s, DSPs and Mbit of memory, *modelled*:\n\n{_table(['factor', *NAMED.values()], body)}"


def _compared(rows: Mapping[str, Row]) -> str:
    lines: list[str] = []
    for factor, theirs in IA_CA.items():
        both = rows.get(_of("both", factor))
        others = [row for by in BY[1:] if (row := rows.get(_of(by, factor)))]
        if not both or not others:
            continue
        least, most = {}, {}
        for name, figure in (("dsp", "dsp"), ("memory", "on_chip_bits")):
            ratios = [float(row[figure]) / max(float(both[figure]), 1.0) for row in others]
            least[name], most[name] = min(ratios), max(ratios)
        speeds = [float(both["frames_a_second"]) / float(row["frames_a_second"]) for row in others]
        lines.append(
            f"At a factor of {factor} the other groups take {least['dsp']:.2f} to {most['dsp']:.2f} times the DSPs of "
            f"IA+CA (HIDA: {theirs['dsp']:g}) and {least['memory']:.2f} to {most['memory']:.2f} times its memory "
            f"({theirs['memory']:g}), and IA+CA has {min(speeds):.2f} to {max(speeds):.2f} times their frames a second "
            f"({'on par' if theirs['throughput'] == 1 else format(theirs['throughput'], 'g')}).\n"
        )
    note = (
        "Shares of lanes are rounded down: beside a first layer of 118 million products those of 116 million get 62 of "
        "64, of which 56 divide their dims. Without IA they have all 64, which is why the groups without it are faster "
        "at the same factor, with more DSPs.\n\n"
        "CA alone and naive come to the same designs: equal numbers of lanes, powers of two, agree by themselves. "
        "HIDA's other groups fall back to flawed designs at large factors, since factors and memories' layouts do not "
        "match. Here a converter goes between two kernels whose orders differ, and none of the groups breaks down.\n"
    )
    return "\n".join([*lines, note])


def _lenet(rows: Mapping[str, Row]) -> str:
    published = [
        [f"{name}, as published", f"{one.resources_pct:g}", f"{one.frames_a_second:,.0f}", one.took, "–"]
        for name, one in TABLE_2.items()
    ]
    named = {
        "lenet/search": "Penstock's search",
        "lenet/walk": "the best of 34,560 designs by seven factors",
    }
    ours = [
        [title, f"{row['share_pct']:g} (of {row['share_of'].upper()})",
         f"**{row['frames_a_second']:,.0f}** *simulated*", f"{row['search_cpu_s']:g} s of a processor",
         f"{row['modelled']:,} of {row['designs']:,}"]
        for name, title in named.items() if (row := rows.get(name))
    ]  # fmt: skip
    searched = rows.get("lenet/search")
    of_dsp = f"{CLOCK_MHZ * 1e6 / searched['modelled_interval_cycles_of_dsp']:,.0f}" if searched else "–"
    return _table(["", "resources, %", "frames/s", "took", "designs modelled"], [*published, *ours]) + (
        f"\nThe search had multipliers of DSPs ({of_dsp} frames/s *modelled*) and then of LUTs, of which there\n"
        "are more; in the 34,560 they are DSPs. Of these, those are not modelled whose lanes are more than the DSPs,\n"
        "and those that could not be faster than the best so far. Poolings have one lane in all of them, and hold\n"
        "the fastest up; the search gives them as many as they need. HIDA's hours are the vendor's HLS runs for each\n"
        "design.\n"
    )
